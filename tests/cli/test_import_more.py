"""`import` into a folder that declares topics already: only what is undeclared is added, where it belongs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import Program, all_of
from helpers.program.documents import document
from jsonschema import Draft7Validator

from reconciler.files.schema_check import schema_folder
from reconciler.files.snapshot import write_snapshot
from reconciler.model.imported import FileChange
from reconciler.model.problem import ReconcilerError
from reconciler.workflow.import_target import target_of, write_changes

pytestmark = pytest.mark.long

SPREAD = "1,2,3", "2,3,1", "3,1,2"
KEPT = {"retention.ms": "86400000"}
FOLDER = Path("desired-state/prod")
CLUSTER = "apiVersion: reconciler/v1\nkind: Cluster\nmetadata: {name: prod} # ours\nspec: {}\n"
GOLD = document("TopicClass", "gold", "{replicationFactor: 3, placement: {racks: {spread: prefer}}, protect: [delete]}")
SHORT = document("TopicClass", "short", "{replicationFactor: 3, config: {retention.ms: 1d}}")
CLASSES = f"# What teams agreed on.\n{GOLD}---\n{SHORT}"
SHOP = """\
# Team shop. Ask before you change anything.
apiVersion: reconciler/v1
kind: Topic
metadata: {name: shop.orders}
spec:
  class: gold    # by contract
# end of shop"""
WEB = 'apiVersion: reconciler/v1\r\nkind: Topic\r\nmetadata: {names: ["web.*"]}\r\nspec: {class: gold}\r\n'
WROTE = {"cluster.yaml": CLUSTER, "classes.yaml": CLASSES, "teams/shop.yaml": SHOP, "teams/web.yaml": WEB}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a cluster whose files people wrote, beside a snapshot of it."""
    monkeypatch.chdir(tmp_path)
    for name, text in WROTE.items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_bytes(text.encode())
    lines = [f"{name}-{n}: {replicas} leader {replicas[0]}" for name in TOPICS for n, replicas in enumerate(SPREAD)]
    write_snapshot(
        small_cluster(*lines, "__offsets-0: 1", configs=dict.fromkeys(("lone", "shop.late"), KEPT)), "s.json"
    )
    return FOLDER


TOPICS = ("shop.orders", "shop.returns", "shop.late", "web.clicks", "lone")
ARGUMENTS = ("import", "--cluster", "prod", "--state", "s.json")


def files() -> dict[str, bytes]:
    return {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in FOLDER.rglob("*.yaml")}


def test_what_people_wrote_keeps_every_byte_and_new_topics_stand_behind_it(reconciler: Program, folder: Path) -> None:
    made = reconciler(*ARGUMENTS)
    assert (made.code, made.out) == (0, "")
    assert made.err.splitlines() == [
        "Added to desired-state/prod: 3 topics, 9 partitions, 2 files; 2 topics are declared already.",
        "  teams/other.yaml (new): lone (class short)",
        "  teams/shop.yaml: shop.late, shop.returns (class gold)",
        "A plan of these files is empty.",
        "Editors look for schemas that are not there yet; to write them: reconciler schemas.",
    ]
    now = files()
    assert now.keys() - WROTE.keys() == {"teams/other.yaml"}
    assert {name for name in WROTE if now[name] != WROTE[name].encode()} == {"teams/shop.yaml"}
    modeline = b"# yaml-language-server: $schema=../../../schemas/topic.json\n"
    assert now["teams/other.yaml"].startswith(modeline)
    assert now["teams/shop.yaml"].decode() == SHOP + "\n" + "".join(
        "---\n" + document("Topic", name, f"{{{spec}}}")
        for name, spec in (
            ("shop.late", "class: gold, partitions: 3, config: {retention.ms: 1d}"),
            ("shop.returns", "class: gold, partitions: 3"),
        )
    )
    assert reconciler("validate").code == 0
    assert reconciler("plan", "--state", "s.json", "--detailed-exitcode").code == 0
    again = reconciler(*ARGUMENTS)
    assert again.err.startswith("Nothing to add to desired-state/prod: 5 topics are declared already.\n")
    assert files() == now
    assert folder.is_dir()


@pytest.mark.usefixtures("folder")
def test_a_dry_run_shows_the_diff_and_writes_nothing(reconciler: Program) -> None:
    before = files()
    shown = reconciler(*ARGUMENTS, "--dry-run")
    assert (shown.code, files()) == (0, before)
    assert shown.err.startswith("Would add to desired-state/prod: 3 topics, 9 partitions, 2 files;")
    assert shown.err.endswith("Nothing was written (--dry-run).\n")
    assert "--- /dev/null\n+++ desired-state/prod/teams/other.yaml\n" in shown.out
    shop = shown.out[shown.out.index("--- desired-state/prod/teams/shop.yaml\n") :]
    plus = [line[1:] for line in shop.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert not [line for line in shown.out.splitlines() if line.startswith("-") and not line.startswith("---")]
    reconciler(*ARGUMENTS)
    assert (FOLDER / "teams/shop.yaml").read_text() == SHOP + "\n" + "".join(f"{line}\n" for line in plus)
    shutil.rmtree(FOLDER)
    first = reconciler(*ARGUMENTS, "--dry-run")
    assert (first.code, FOLDER.exists()) == (0, False)
    assert (
        all_of(first.out, ["--- /dev/null\n+++ desired-state/prod/cluster.yaml\n", "+metadata: {name: lone}\n"]) == []
    )
    assert first.err.startswith("Would write desired-state/prod: 5 topics")


@pytest.mark.usefixtures("folder")
def test_json_lists_what_was_added_and_where(reconciler: Program) -> None:
    for options, is_dry in ((("--dry-run",), True), ((), False)):
        value = json.loads(reconciler(*ARGUMENTS, *options, "-o", "json").out)
        Draft7Validator(json.loads((schema_folder() / "import.json").read_text("utf-8"))).validate(value)
        assert (value["dryRun"], value["declared"], value["ignored"], value["planEmpty"]) == (is_dry, 2, 1, True)
        assert value["files"] == ["teams/other.yaml", "teams/shop.yaml"]
        assert value["added"] == [
            {"class": "short", "file": "teams/other.yaml", "topic": "lone"},
            {"class": "gold", "file": "teams/shop.yaml", "topic": "shop.late"},
            {"class": "gold", "file": "teams/shop.yaml", "topic": "shop.returns"},
        ]


def test_what_is_left_out_is_told_each_time_and_written_into_no_file_that_is_there(
    reconciler: Program, folder: Path
) -> None:
    write_snapshot(small_cluster("shop.orders-0: 1,2,3", "shop_orders-0: 1,2,3", "sick-0: 4,5", fenced=[5]), "s.json")
    before = files()
    for _ in range(2):
        made = reconciler(*ARGUMENTS)
        assert made.err.startswith("Nothing to add to desired-state/prod: 1 topic is declared already.\n")
        told = ["sick: left out: partition 0: broker 5 is not alive", "its name collides with shop.orders"]
        assert all_of(made.err, told) == []
    assert files() == before
    assert folder.is_dir()


def test_copies_of_a_mirror_are_declared_by_it(reconciler: Program, folder: Path) -> None:
    mirror = document("Mirror", "m", "{source: us, topics: [lon*], rename: '{topic}', class: gold}")
    (folder / "mirror.yaml").write_text(mirror)
    made = reconciler(*ARGUMENTS, "-o", "json")
    assert [each["topic"] for each in json.loads(made.out)["added"]] == ["shop.late", "shop.returns"]


def test_what_declared_topics_want_is_told_and_not_laid_to_what_was_added(reconciler: Program, folder: Path) -> None:
    shop = folder / "teams" / "shop.yaml"
    shop.write_text(SHOP.replace("# by contract", "\n  config: {retention.ms: 2d}"))
    made = reconciler(*ARGUMENTS, "-o", "json")
    value = json.loads(made.out)
    (told,) = value["exceptions"]
    assert (value["planEmpty"], len(value["added"])) == (False, 3)
    assert told["message"] == (
        "desired-state/prod asks for more than the cluster keeps, with or without what was added: "
        "a plan would change 1 topic"
    )


@pytest.mark.parametrize(
    "happens",
    [
        lambda folder: (folder / "classes.yaml").write_text("kind: [\n"),
        lambda folder: (folder / "teams" / "more.yaml").write_text(SHOP),
        lambda folder: (folder / "cluster.yaml").unlink(),
    ],
    ids=["no YAML", "declared twice", "no Cluster document"],
)
def test_into_files_that_are_not_in_order_nothing_is_written(
    happens: Callable[[Path], object], reconciler: Program, folder: Path
) -> None:
    happens(folder)
    before = files()
    ended = reconciler(*ARGUMENTS)
    assert (ended.code, ended.out, files()) == (1, "", before)
    assert ended.err.startswith("error: ")


@pytest.mark.usefixtures("folder")
def test_topics_of_another_tool_are_added_too_and_those_declared_stay(reconciler: Program) -> None:
    topics = [{"topic": name, "partition": number, "replicas": [1, 2, 3]} for name in TOPICS[:3] for number in range(3)]
    Path("r.json").write_text(json.dumps({"version": 1, "partitions": topics}))
    made = reconciler("import", "--cluster", "prod", "--from", "kafka-json", "r.json")
    assert made.err.splitlines() == [
        "Added to desired-state/prod: 2 topics, 6 partitions, 1 file; 1 topic is declared already.",
        "  teams/shop.yaml: shop.late, shop.returns",
    ]
    assert (FOLDER / "teams/shop.yaml").read_text().startswith(SHOP + "\n---\n")
    again = reconciler("import", "--cluster", "prod", "r.json")
    assert again.err == "Nothing to add to desired-state/prod: 3 topics are declared already.\n"


@pytest.mark.usefixtures("folder")
def test_a_topic_whose_name_collides_with_a_declared_one_is_told_by_its_own_place(reconciler: Program) -> None:
    entry = {"topic": "shop_orders", "partition": 0, "replicas": [1]}
    Path("r.json").write_text(json.dumps({"version": 1, "partitions": [entry]}))
    before = files()
    ended = reconciler("import", "--cluster", "prod", "r.json")
    assert (ended.code, ended.out, files()) == (1, "", before)
    assert ended.err.startswith("error: r.json:1:31: topic shop_orders collides with shop.orders, which is declared: ")


def test_a_file_that_somebody_changed_meanwhile_is_not_written(folder: Path) -> None:
    target = target_of("desired-state", "prod")
    changes = [FileChange("teams/new.yaml", None, b"new"), FileChange("teams/shop.yaml", SHOP.encode(), b"more")]
    (folder / "teams" / "shop.yaml").write_text(f"{SHOP}\n# mine")
    with pytest.raises(ReconcilerError, match=r"shop.yaml was changed while import looked .*: run import again"):
        write_changes(target, changes)
    assert sorted(files()) == sorted(WROTE)
    (folder / "teams" / "new.yaml").write_text("theirs")
    with pytest.raises(ReconcilerError, match=r"new.yaml is there already"):
        write_changes(target, changes)
