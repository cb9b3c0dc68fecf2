"""Each command line of the recording is right usage, and a second recording has the same bytes."""

import shlex
from pathlib import Path

import pytest
from helpers.outputs import record
from helpers.program.written_commands import exit_code_of_reading

EDITS = ("copy ", "write ", "replace ", "samples ")


def test_every_command_line_is_right_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    lines = [line for name, lines in record.sections().items() if name != "mistakes" for line in lines]
    commands = [shlex.split(line) for line in lines if not line.startswith(EDITS)]
    assert len(commands) >= 125
    assert [words for words in commands if exit_code_of_reading(tuple(words), monkeypatch) != 0] == []


@pytest.mark.long
def test_two_recordings_in_folders_of_other_names_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alike = [line for line in record.sections()["disks"] if line != "plan"]
    monkeypatch.setattr(record, "sections", lambda: {"disks": alike[:6]})
    recorded = []
    for folder in (tmp_path / "a", tmp_path / "another" / "deeper"):
        record.record(folder, ["disks"])
        recorded.append({path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()})
    assert recorded[0] == recorded[1]
    assert b"Proved" in recorded[0][Path("disks.txt")]
