import contextlib
import io
import os
import re
import subprocess
import sys

import pytest
from helpers.program.call import ROOT
from helpers.waiting import HANG

from reconciler.command.progress import progress_text, reading, running
from reconciler.model.run import RunProgress

GIB = 1024**3


def test_progress_tells_moves_bytes_rate_and_time_left() -> None:
    seen = RunProgress(2, 3, 8, 12, 16 * GIB, 24 * GIB, 48.0 * 1024**2, 170.0)
    assert progress_text(seen) == "8/12   16.0 GiB of 24.0 GiB   48 MiB/s   about 3 min left"
    assert progress_text(RunProgress(2, 3, 0, 12, 0, 0)) == "0/12"


def test_where_nobody_watches_a_stage_is_told_once_at_its_start_and_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    with running("demo") as hook:
        for done in (0, 1, 2, 2):
            hook(RunProgress(1, 2, done, 2, done * GIB, 2 * GIB))
    assert capsys.readouterr().err == (
        "demo  stage 1/2  0/2   0 B of 2.0 GiB\ndemo  stage 1/2  2/2   2.0 GiB of 2.0 GiB\n"
    )


def test_where_nobody_watches_reading_says_nothing() -> None:
    with reading() as hook:
        assert hook is None


COLOUR = re.compile(rb"\x1b\[[0-9;]*\b(?:3[0-7]|38|9[0-7])[0-9;]*m")


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "code", "said", "variables"),
    [
        (("plan", "--cluster", "demo"), 0, b"planning", {}),
        (("diff", "--cluster", "none"), 1, b"KR100", {}),
        (("diff", "--cluster", "demo"), 0, b"comparing", {"NO_COLOR": "1"}),
    ],
)
def test_whoever_waits_at_a_terminal_sees_what_is_being_done_and_errors_in_the_colours_of_all_else(
    arguments: tuple[str, ...], code: int, said: bytes, variables: dict[str, str]
) -> None:
    terminal, stderr = os.openpty()
    command = [sys.executable, "-m", "reconciler", *arguments, "--state", "desired-state/demo/snapshot.json"]
    env = {name: value for name, value in os.environ.items() if "COLOR" not in name} | {"TERM": "xterm"} | variables
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=stderr, env=env) as running:
        os.close(stderr)
        shown = read_all(terminal)
        out, _ = running.communicate(timeout=HANG)
    assert running.returncode == code
    assert said in shown
    assert b"\x1b[2K" in shown  # the bar is taken off again
    assert bool(COLOUR.search(shown)) is not bool(variables)
    assert b"\x1b" not in out


def read_all(terminal: int) -> bytes:
    """Return what is shown on a terminal until its other end is closed."""
    shown = b""
    with contextlib.suppress(OSError):  # how Linux tells that the other end is closed
        while block := os.read(terminal, 65536):
            shown += block
    os.close(terminal)
    return shown


def test_once_all_is_read_what_follows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Screen()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", screen)
    with reading("planning") as hook:
        assert hook is not None
        for what, done in (("topics", 0), ("topics", 1), ("groups", 0), ("groups", 1)):
            hook(what, done, 1)
    shown = screen.getvalue()
    assert [word for word in ("reading, planning", "planning") if word not in shown] == []
    assert shown.rindex("planning") > shown.index("reading")


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True
