"""yaml-language-server, which VS Code and other editors use, completes and checks what `init` writes."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from workflow.language_server import Editor, NoServer, server_command

from reconciler.workflow.init import modeline

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    try:
        return server_command(tmp_path_factory.mktemp("node"))
    except NoServer as error:
        pytest.skip(f"{error}; tests/files/test_schemas_for_editors.py checks what it would read")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the schemas, as in this repository."""
    workspace = tmp_path_factory.mktemp("workspace")
    shutil.copytree(ROOT / "schemas", workspace / "schemas")
    return workspace


@pytest.fixture
def folder(workspace: Path, tmp_path: Path) -> Path:
    """Return the folder of a cluster that no other test has."""
    folder = workspace / "desired-state" / tmp_path.name
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(scope="module")
def editor(command: list[str], workspace: Path) -> Iterator[Editor]:
    with Editor(command, workspace) as opened:
        yield opened


def written(folder: Path, kind: str, *lines: str) -> Path:
    """Write a document whose last line is to be completed."""
    file = folder / f"{kind}.yaml"
    head = f"{modeline('../../schemas', kind)}apiVersion: reconciler/v1\nkind: {kind}\n"
    file.write_text(head + "\n".join(lines), "utf-8")
    return file


def offered(editor: Editor, file: Path) -> dict[str, str]:
    lines = file.read_text("utf-8").split("\n")
    editor.open(file)
    return editor.completions(file, len(lines) - 1, len(lines[-1]))


def known(name: str, *path: str) -> dict[str, str]:
    """Return the keys that a schema knows there, with their descriptions."""
    part = json.loads((ROOT / "schemas" / name).read_text("utf-8"))
    for step in path:
        part = part["properties"][step]
    return {key: value["description"] for key, value in part["properties"].items()}


def test_each_key_is_offered_with_what_it_means(editor: Editor, folder: Path) -> None:
    topic = written(folder, "Topic", "metadata: {name: orders}", "spec:", "  ")
    found = offered(editor, topic)
    assert known("topic.json", "spec").items() <= found.items()
    cluster = written(folder, "Cluster", "metadata: {name: prod}", "spec:", "  moves:", "    ")
    assert known("cluster.json", "spec", "moves").items() <= offered(editor, cluster).items()


def test_values_and_kafkas_own_configs_are_offered(editor: Editor, folder: Path) -> None:
    state = written(folder, "Cluster", "metadata: {name: prod}", "spec:", "  brokers:", "    - id: 5", "      state: ")
    assert {"active", "cordoned", "maintenance", "draining", "absent"} <= set(offered(editor, state))
    config = written(folder, "Topic", "metadata: {name: orders}", "spec:", "  config:", "    ")
    assert {"retention.ms", "min.insync.replicas", "cleanup.policy"} <= set(offered(editor, config))
    throttle = written(folder, "Cluster", "metadata: {name: prod}", "spec:", "  moves:", "    throttle: ")
    assert "50MiB/s" in offered(editor, throttle)


def test_a_key_tells_what_it_means(editor: Editor, folder: Path) -> None:
    file = written(folder, "Topic", "metadata: {name: orders}", "spec: {partitions: 6}")
    editor.open(file)
    assert "may only grow" in editor.hover(file, 4, 9)


def test_what_validate_would_refuse_is_marked_while_it_is_typed(editor: Editor, folder: Path) -> None:
    file = written(folder, "Topic", "metadata: {name: orders}", "spec:", "  partition: 6", "  replicationFactor: three")
    editor.open(file)
    assert sorted(line for line, _ in editor.problems(file)) == [5, 6]


@pytest.mark.deep
def test_with_the_guides_settings_all_documents_of_a_file_are_checked(command: list[str], folder: Path) -> None:
    guide = (ROOT / ".github" / "guides" / "adopt.md").read_text("utf-8")
    (block,) = re.findall(r"```json\n(.*?)```", guide, flags=re.DOTALL)
    wrong = "apiVersion: reconciler/v1\nkind: Topic\nmetadata: {name: orders}\nspec: {partition: 6}\n"
    (folder / "topics").mkdir()
    lines = {folder / "topics.yaml": [4, 9], folder / "topics" / "shop.yaml": [3, 8]}
    for file in lines:
        # A modeline holds for the document that it stands in.
        head = modeline("../../schemas", "Topic") if file.parent == folder else ""
        file.write_text(f"{head}{wrong}---\n{wrong}", "utf-8")
    with Editor(command, folder.parents[1]) as opened:
        opened.open(folder / "topics.yaml")
        assert [line for line, _ in opened.problems(folder / "topics.yaml")] == [4]
    with Editor(command, folder.parents[1], json.loads(block)["yaml.schemas"]) as opened:
        for file, found in lines.items():
            opened.open(file)
            assert [line for line, _ in opened.problems(file)] == found


@pytest.mark.parametrize("path", sorted((ROOT / "desired-state").rglob("*.yaml")), ids=lambda path: path.name)
def test_the_shipped_files_are_in_order_for_it(path: Path, editor: Editor, folder: Path) -> None:
    file = folder / path.name
    shutil.copy(path, file)
    editor.open(file)
    assert editor.problems(file) == []
