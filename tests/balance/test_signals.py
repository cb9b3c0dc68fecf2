"""The program with a Spark of its own, and a signal in the midst of a job that would never end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.load_oracle import Row
from helpers.program import ROOT
from helpers.sample_tables import START, write_parquet
from helpers.spark_session import QUICK_JAVA

HANG_SECONDS = 300

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("number", "code", "says"), [(signal.SIGTERM, 143, "Terminated."), (signal.SIGINT, 130, "Interrupted.")]
)
def test_a_signal_while_spark_works_ends_both_at_once_and_leaves_what_was_there(
    number: signal.Signals, code: int, says: str, tmp_path: Path
) -> None:
    write_parquet(tmp_path / "samples.parquet", [Row(START, "east", "t", 0, 1.0, 1.0, None, 5, None)])
    old = tmp_path / "loads"
    old.mkdir()
    (old / "_report.json").write_text("old")
    command = ("loads", "--samples", "samples.parquet", "--out", "loads", "--master", "local[1]")
    with subprocess.Popen(
        [sys.executable, "-m", "helpers.endless_job", *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "JDK_JAVA_OPTIONS": QUICK_JAVA},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # its Java is in the same, and can be looked for
    ) as running:
        try:
            _await(lambda: any(tmp_path.glob(".loads.new-*/_temporary")), running)
            running.send_signal(number)
            out, err = running.communicate(timeout=HANG_SECONDS)
            _await(lambda: not _is_alive(running.pid))
        finally:
            if _is_alive(running.pid):
                os.killpg(running.pid, signal.SIGKILL)
    told = [line for line in err.splitlines() if line and not line.startswith("NOTE: Picked up JDK_JAVA_OPTIONS")]
    assert (running.returncode, out, told) == (code, "", [says])
    assert [path.name for path in old.iterdir()] == ["_report.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loads", "samples.parquet"]


def _await(is_so: Callable[[], bool], running: "subprocess.Popen[str] | None" = None) -> None:
    end = time.monotonic() + HANG_SECONDS
    while not is_so():
        assert time.monotonic() < end
        assert running is None or running.poll() is None, "it ended before the signal"
        time.sleep(0.01)


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
