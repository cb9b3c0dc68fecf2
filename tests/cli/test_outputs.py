"""stdout and stderr that nobody reads any more: a verb ends quietly, a run in order."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.plans.end_state import in_flight, throttles
from helpers.program.call import ROOT, run_program
from helpers.waiting import HANG

from reconciler.files.snapshot import read_snapshot

PROGRAM = f"{sys.executable} -m reconciler"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
# Its stderr is a pipe, or a terminal, which is gone when the moves are on their way; then something is to be said.
LOST = """
import os, sys
reader, writer = os.{kind}()
os.dup2(writer, 2)
os.close(writer)
from reconciler.apply.crash import planted
from reconciler.cli.main import run

def lose(name):
    global reader
    if name == "poll" and reader is not None:
        os.close(reader)
        reader = None
        print("still there?", file=sys.stderr, flush=True)

sys.argv = ["reconciler", "apply", "plan.json", "--yes"]
with planted(lose):
    run()
"""


@pytest.fixture
def planned(planned_demo: Path, tmp_path: Path) -> Path:
    """Return the demo's snapshot in a folder with a plan for it."""
    shutil.copytree(planned_demo, tmp_path, dirs_exist_ok=True)
    return tmp_path / "desired-state" / "demo" / "snapshot.json"


def unread(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the program with nobody to read its stdout."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "reconciler", *arguments]
    try:
        return subprocess.run(
            command, cwd=cwd, env=ENVIRONMENT, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=HANG,
            check=False,
        )  # fmt: skip
    finally:
        os.close(writer)


def in_shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", line], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=HANG, check=False
    )


@pytest.mark.parametrize("arguments", ["--help", "plan", "show plan.json", "show plan.json -o json", "status"])
def test_a_verb_whose_output_nobody_reads_ends_and_says_nothing(planned: Path, arguments: str) -> None:
    ended = unread(*arguments.split(), cwd=planned.parents[2])
    assert (ended.returncode, ended.stderr) == (143, "")


def test_outputs_that_are_closed_from_the_start_are_found_so_and_nothing_is_written_elsewhere(planned: Path) -> None:
    before = planned.read_bytes()
    assert in_shell(f"exec {PROGRAM} plan --out new.json <&- >&- 2>&-", planned.parents[2]).returncode == 143
    assert in_shell(f"exec {PROGRAM} apply plan.json --yes <&- >&- 2>&-", planned.parents[2]).returncode == 143
    assert planned.read_bytes() == before


def test_an_error_keeps_its_code_where_nobody_reads_of_it(planned: Path) -> None:
    assert in_shell(f"exec {PROGRAM} nonsense 2>&-", planned.parents[2]).returncode == 64
    full = in_shell(f"exec {PROGRAM} plan >/dev/full", planned.parents[2])
    assert (full.returncode, "No space left" in full.stderr, "Traceback" in full.stderr) == (1, True, False)


def test_a_run_that_ends_before_its_result_is_missed_has_ended_well(planned: Path) -> None:
    ended = unread("apply", "plan.json", "--yes", cwd=planned.parents[2])
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("kind", ["pipe", "openpty"])
def test_a_run_that_cannot_tell_any_more_ends_in_order(planned: Path, kind: str) -> None:
    folder, before = planned.parents[2], read_snapshot(planned)
    ended = subprocess.run(
        [sys.executable, "-c", LOST.format(kind=kind)], cwd=folder, env=ENVIRONMENT, timeout=HANG, check=False
    )
    assert ended.returncode == 143
    after = read_snapshot(planned)
    assert (in_flight(after), throttles(after)) == ([], throttles(before))
    assert [topic.partitions for topic in after.topics.values() if topic.name in before.topics] != []
    assert run_program("apply", "plan.json", "--yes", cwd=folder).code == 0
