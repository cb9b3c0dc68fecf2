"""stdout and stderr that nobody reads any more: a verb ends quietly, a run in order."""

import os
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.end_state import in_flight, throttles
from helpers.program.call import ROOT, captured
from helpers.program.documents import document, write_simulated
from helpers.waiting import HANG

from reconciler.cli.main import main
from reconciler.files.snapshot import read_snapshot

pytestmark = pytest.mark.long

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


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a simulated cluster and a plan for it, made once."""
    folder = tmp_path_factory.mktemp("small")
    before = small_cluster("orders-0: 1,2,3 size 90000000", "orders-1: 2,3,1 size 90000000")
    declared = document("Topic", "orders", "{placement: {assignment: [[1, 2, 4], [5, 6, 1]]}}")
    with chdir(folder):
        write_simulated(before, declared, spec="moves: {throttle: 50MiB/s}")
        assert main(["plan", "--out", "plan.json"]) == 0
    return folder


@pytest.fixture
def planned(small: Path, tmp_path: Path) -> Path:
    """Return the cluster's snapshot in a copy of that folder."""
    shutil.copytree(small, tmp_path, dirs_exist_ok=True)
    return tmp_path / "desired-state" / "small" / "snapshot.json"


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
    return captured(["/bin/sh", "-c", line], cwd, ENVIRONMENT)


@pytest.mark.parametrize("arguments", ["--help", "show plan.json -o json"])
def test_a_verb_whose_output_nobody_reads_ends_and_says_nothing(planned: Path, arguments: str) -> None:
    ended = unread(*arguments.split(), cwd=planned.parents[2])
    assert (ended.returncode, ended.stderr) == (143, "")


def test_outputs_that_are_closed_from_the_start_are_found_so_and_nothing_is_written_elsewhere(planned: Path) -> None:
    before = planned.read_bytes()
    assert in_shell(f"exec {PROGRAM} apply plan.json --yes <&- >&- 2>&-", planned.parents[2]).returncode == 143
    assert planned.read_bytes() == before


def test_an_error_keeps_its_code_where_nobody_reads_of_it(planned: Path) -> None:
    assert in_shell(f"exec {PROGRAM} nonsense 2>&-", planned.parents[2]).returncode == 64
    full = in_shell(f"exec {PROGRAM} status >/dev/full", planned.parents[2])
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
    with chdir(folder):
        assert main(["apply", "plan.json", "--yes"]) == 0
