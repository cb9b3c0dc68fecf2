"""The program with a Spark of its own, and a signal in the midst of a job that would never end."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.program.call import ROOT
from helpers.samples.load_oracle import Row
from helpers.samples.sample_tables import START, write_parquet
from helpers.samples.spark_session import QUICK_JAVA
from helpers.waiting import HANG, wait_for

_SPARKS_JAVA = re.compile(rb"[^\0]*java\0.*SparkSubmit", re.DOTALL)

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.deep)])
def test_a_signal_while_spark_works_ends_both_at_once_and_leaves_what_was_there(
    tmp_path: Path, number: signal.Signals
) -> None:
    old = tmp_path / "loads"
    old.mkdir()
    (old / "_report.json").write_text("old")
    ended = _signalled(number, tmp_path, lambda _: any(tmp_path.glob(".loads.new-*/_temporary")))
    assert ended == (143, "", ["Terminated."])
    assert [path.name for path in old.iterdir()] == ["_report.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loads", "samples.parquet"]


def test_a_signal_while_spark_starts_leaves_no_java_behind(tmp_path: Path) -> None:
    assert _signalled(signal.SIGINT, tmp_path, _is_spark_started_by) == (130, "", ["Interrupted."])


def _signalled(number: signal.Signals, folder: Path, is_time: Callable[[int], bool]) -> tuple[int, str, list[str]]:
    """Return how the program ended, what it wrote and told, once it got that signal and all its processes are gone."""
    write_parquet(folder / "samples.parquet", [Row(START, "east", "t", 0, 1.0, 1.0, None, 5, None)])
    command = ("loads", "--samples", "samples.parquet", "--out", "loads", "--master", "local[1]")
    with subprocess.Popen(
        [sys.executable, "-m", "balance.endless_job", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "JDK_JAVA_OPTIONS": QUICK_JAVA},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # its Java is in the same, and can be looked for
    ) as running:
        try:
            wait_for(lambda: is_time(running.pid) or running.poll() is not None, "the moment of the signal", pause=0.05)
            assert running.poll() is None, "it ended before the signal"
            running.send_signal(number)
            out, err = running.communicate(timeout=HANG)
            wait_for(lambda: not _is_alive(running.pid), "the end of its processes")
        finally:
            if _is_alive(running.pid):
                os.killpg(running.pid, signal.SIGKILL)
    javas = ("NOTE: Picked up JDK_JAVA_OPTIONS", "WARNING: package sun.security.")  # Spark opens it, Java 25 lacks it
    return running.returncode, out, [line for line in err.splitlines() if line and not line.startswith(javas)]


def _is_spark_started_by(process: int) -> bool:
    """Return whether that process has a child which is Spark's Java: it takes a second until it answers."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return any(_SPARKS_JAVA.match(_command_of(child)) for child in children)


def _command_of(process: str) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
