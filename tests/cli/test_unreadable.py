"""What may not be read is reported in the system's words: it is never taken for what is not there."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers.program.call import ROOT, Program

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.balance.files.table_folders import table_format

NOBODY = 65534
TOPIC = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaTopic\nmetadata: {name: %s}\nspec: {partitions: 1, replicas: 1}\n"
FILES = {
    "strimzi/a.yaml": TOPIC % "a",
    "strimzi/more/b.yaml": TOPIC % "b",
    "samples/a.csv": "ts,topic,partition\n",
    "samples/more/b.csv": "ts,topic,partition\n",
    "table/metadata/1.metadata.json": "{}",
    "runs/demo/1.plan.json": "{}",
    "java/bin/java": "",
}


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, reconciler: Program) -> Iterator[Path]:
    """Return the current folder, which any user may read: a demo, and files of other kinds."""
    assert reconciler
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        shutil.copytree(ROOT / "desired-state", folder / "desired-state")
        shutil.copytree(ROOT / "desired-state" / "demo", folder / "desired-state" / "other")
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        folder.chmod(0o755)
        monkeypatch.chdir(folder)
        yield folder


@contextmanager
def closed(folder: str, mode: int = 0) -> Iterator[None]:
    """Take rights to a folder away; whoever may read everything is somebody else meanwhile."""
    before, user = Path(folder).stat().st_mode, os.geteuid()
    Path(folder).chmod(mode)
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        Path(folder).chmod(before)


@pytest.mark.parametrize(
    ("folder", "mode", "arguments"),
    [
        ("desired-state", 0, ("plan",)),
        ("desired-state", 0, ("diff", "--cluster", "*")),
        ("desired-state/other", 0, ("plan", "--cluster", "*")),
        ("desired-state/other", 0o444, ("validate",)),
        ("desired-state/demo", 0o444, ("validate", "--cluster", "demo")),
        ("desired-state", 0, ("doctor", "--cluster", "demo")),
        ("runs/demo", 0, ("status", "--cluster", "demo")),
        ("strimzi/more", 0, ("import", "--cluster", "new", "strimzi")),
        ("strimzi/more", 0o444, ("import", "--cluster", "new", "strimzi")),
        ("runs", 0, ("balance", "--cluster", "*", "--loads", "x", "--state", "runs/demo")),
        ("runs", 0, ("schemas", "--out", "runs/demo")),
    ],
)
@pytest.mark.usefixtures("place")
def test_a_folder_that_may_not_be_read_is_reported(
    reconciler: Program, folder: str, mode: int, arguments: tuple[str, ...]
) -> None:
    before = reconciler(*arguments)
    assert "Permission denied" not in before.err
    with closed(folder, mode):
        ended = reconciler(*arguments)
    assert (ended.code, ended.out) == (1, ""), ended
    assert "Permission denied" in ended.err
    assert "internal error" not in ended.err


@pytest.mark.parametrize("pattern", ["samples", "samples/*/b.csv", "samples/**/*.csv"])
@pytest.mark.usefixtures("place")
def test_samples_in_a_folder_that_may_not_be_read_are_not_left_out(pattern: str) -> None:
    assert "samples/more/b.csv" in str(find_sample_files([pattern]))
    with closed("samples/more"), pytest.raises(PermissionError):
        find_sample_files([pattern])


@pytest.mark.usefixtures("place")
def test_a_table_whose_metadata_may_not_be_read_is_no_folder_of_parquet() -> None:
    assert table_format(Path("table")) == "iceberg"
    with closed("table/metadata"), pytest.raises(PermissionError):
        table_format(Path("table"))


@pytest.mark.parametrize(
    "arguments", [("plan",), ("validate",), ("diff", "--cluster", "*"), ("status", "--cluster", "c")]
)
def test_a_root_that_is_a_link_to_itself_is_reported(reconciler: Program, arguments: tuple[str, ...]) -> None:
    Path("root").symlink_to("root")
    ended = reconciler("-C", "root", *arguments)
    assert (ended.code, "Too many levels of symbolic links" in ended.err) == (1, True), ended


@pytest.mark.parametrize(
    ("link", "arguments"),
    [
        ("new.json", ("plan", "--cluster", "demo", "--out", "new.json")),
        (".reconciler-ci.json", ("init", "--ci", "github", "--index", "https://packages.invalid/simple")),
        ("schemas/schemas.json", ("schemas", "--all")),
    ],
)
@pytest.mark.usefixtures("place")
def test_a_link_to_itself_is_not_written_over(reconciler: Program, link: str, arguments: tuple[str, ...]) -> None:
    Path(link).parent.mkdir(exist_ok=True)
    Path(link).symlink_to(Path(link).name)
    ended = reconciler(*arguments)
    assert (ended.code, "Too many levels of symbolic links" in ended.err) == (1, True), ended
    assert Path(link).is_symlink()
