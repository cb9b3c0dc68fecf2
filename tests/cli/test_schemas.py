"""`schemas`: the schemas of this version, where the modelines of written files point to."""

import json
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import ROOT, Program

from reconciler.files.snapshot import write_snapshot

pytestmark = pytest.mark.long

MODELINE = "# yaml-language-server: $schema="
SHIPPED = ROOT / "schemas"
DOCUMENTS = ["cluster.json", "mirror.json", "owner.json", "topic-class.json", "topic.json"]


@pytest.mark.parametrize("root", ["desired-state", ".", "somewhere/else", "{here}/away"])
def test_each_file_that_import_writes_points_to_a_schema_that_is_written(reconciler: Program, root: str) -> None:
    root = root.format(here=Path.cwd())
    lines = [f"{team}.{number}-0: 1,2,3" for team in ("a", "b") for number in range(30)]
    write_snapshot(small_cluster(*lines, "t-0: 1,2"), "s.json")
    assert reconciler("-C", root, "import", "--cluster", "prod", "--state", "s.json").code == 0
    assert reconciler("-C", root, "schemas").code == 0
    written = sorted(Path(root, "prod").rglob("*.yaml"))
    assert len(written) > 4
    for file in written:
        first = file.read_text("utf-8").splitlines()[0]
        assert first.startswith(MODELINE), file
        schema = file.parent / first.removeprefix(MODELINE)
        assert schema.read_bytes() == (SHIPPED / schema.name).read_bytes(), file
        assert json.loads(schema.read_text("utf-8"))["properties"]["kind"]["const"] in file.read_text("utf-8")


def test_those_of_documents_are_written_or_all_and_made_new_after_an_upgrade(reconciler: Program) -> None:
    ended = reconciler("schemas", "--out", "here")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == f"Wrote here: {len(DOCUMENTS)} schemas, {', '.join(DOCUMENTS)}.\n"
    assert sorted(path.name for path in Path("here").iterdir()) == DOCUMENTS
    old = json.loads(Path("here/topic.json").read_text("utf-8"))
    Path("here/topic.json").write_text(json.dumps({"$id": old["$id"]}))
    said = json.loads(reconciler("schemas", "--out", "here", "--all", "-o", "json").out)
    shipped = {path.name: path.read_bytes() for path in SHIPPED.glob("*.json")}
    assert (said["folder"], said["files"]) == ("here", sorted(shipped))
    assert {path.name: path.read_bytes() for path in Path("here").iterdir()} == shipped


@pytest.mark.parametrize("content", ['{"$id": "https://example.com/topic"}', "[]", "no JSON", '{"$id": 1}'])
def test_what_is_no_schema_of_ours_is_left_alone(reconciler: Program, content: str) -> None:
    Path("schemas").mkdir()
    Path("schemas/topic.json").write_text(content)
    ended = reconciler("schemas")
    assert (ended.code, ended.out) == (1, "")
    assert "schemas/topic.json is there already, and is no schema of reconciler: name another folder" in ended.err
    assert [path.name for path in Path("schemas").iterdir()] == ["topic.json"]
    assert Path("schemas/topic.json").read_text() == content
