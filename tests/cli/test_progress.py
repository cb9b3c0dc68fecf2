import contextlib
import fcntl
import io
import os
import re
import struct
import subprocess
import sys
import termios

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


WATCHED = """
import logging
from reconciler.command.logs import set_up_logs
from reconciler.command.progress import running
from reconciler.command.terminal import tell
from reconciler.model.run import RunProgress

set_up_logs(0)
with running("production-europe-west") as hook:
    for stage in (1, 2):
        hook(RunProgress(stage, 3, 8, 12, 16 << 30, 24 << 30, 48.0 * 1024**2, 170.0))
        tell(f"Waiting 12 s for stage {stage}/3 of production-europe-west: 8/12   16.0 GiB of 24.0 GiB; 10 s for more.")
        logging.getLogger("reconciler.admin").warning("stage %s is slow", stage)
"""


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_a_line_that_is_told_beside_the_bar_begins_on_a_line_of_its_own_and_the_bar_comes_below(columns: int) -> None:
    terminal, stderr = os.openpty()
    fcntl.ioctl(stderr, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS" and "COLOR" not in name}
    with subprocess.Popen([sys.executable, "-c", WATCHED], cwd=ROOT, stderr=stderr, env=env | {"TERM": "xterm"}):
        os.close(stderr)
        rows = screen_rows(read_all(terminal).decode(), columns)
    # A long line may be broken at the terminal's edge: what counts is where it begins, and that all of it is there.
    begins = [row for row in rows if row.startswith(("Waiting", "warning", "production"))]
    assert [row.split()[0] for row in begins] == [
        "Waiting",
        "warning:",
        "Waiting",
        "warning:",
        *["production-europe-west"] * 2,
    ]
    assert begins == [row for row in rows if re.search("Waiting|warning|━|…", row)]
    text = " ".join(" ".join(rows).split())
    for stage in (1, 2):
        assert f"for stage {stage}/3 of production-europe-west: 8/12 16.0 GiB of 24.0 GiB; 10 s for more." in text
        assert f"warning: stage {stage} is slow" in text


def screen_rows(written: str, columns: int) -> list[str]:
    """Return what a terminal of that width shows once this was written to it: it knows what a bar uses, and no more."""
    rows, row, column = [""], 0, 0
    for found in re.finditer(r"(?s)\x1b\[([?0-9;]*)([A-Za-z])|.", written):
        code, argument, letter = found.group(), found[1], found[2]
        if letter == "A":
            row -= int(argument or 1)
        elif letter == "K":
            rows[row] = ""
        elif letter is not None:
            assert letter in "hlm", code
        elif code == "\r":
            column = 0
        elif code == "\n":
            row += 1
        else:
            if column == columns:
                row, column = row + 1, 0
            rows += [""] * (row + 1 - len(rows))
            rows[row] = rows[row].ljust(column)[:column] + code + rows[row][column + 1 :]
            column += 1
        rows += [""] * (row + 1 - len(rows))
    return rows


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
