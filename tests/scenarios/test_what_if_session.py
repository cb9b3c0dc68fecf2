"""A lost rack, asked about before it happens: a session at the terminal, kept as files."""

import shlex
import shutil
from pathlib import Path

import pytest
from helpers.program.call import Program

pytestmark = pytest.mark.long

SCENARIO = Path(__file__).parent / "lost_rack"


def _session() -> list[tuple[str, list[str]]]:
    """Return each command with the lines that it must print, in their order."""
    found: list[tuple[str, list[str]]] = []
    for line in (SCENARIO / "session.txt").read_text("utf-8").splitlines():
        if line.startswith("$ reconciler "):
            found.append((line.removeprefix("$ reconciler "), []))
        elif line:
            found[-1][1].append(line)
    return found


def _missing(wanted: list[str], printed: list[str]) -> list[str]:
    """Return the wanted lines that are not printed in this order; others may stand between them."""
    rest = iter(printed)
    return [line for line in wanted if line not in rest]


def test_the_session_prints_what_it_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree(SCENARIO, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    reconciler = Program(capsys)
    assert len(_session()) >= 8
    for command, wanted in _session():
        ended = reconciler(*shlex.split(command))
        printed = [*ended.out.splitlines(), *ended.err.splitlines()]
        assert _missing(wanted, printed) == [], f"$ reconciler {command}\n{ended.out}\n{ended.err}"
