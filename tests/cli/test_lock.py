"""A locked cluster as the command line tells of it."""

import re
import shutil
from pathlib import Path

import pytest
from helpers.plans.end_state import in_flight, throttles
from helpers.program.call import Program
from helpers.program.held_runs import HeldRun
from helpers.waiting import wait_for

from reconciler.files.lock_file import LockFile
from reconciler.files.snapshot import read_snapshot
from reconciler.model.lock import Holder

pytestmark = pytest.mark.long

DIGEST = f"sha256:5ca1ab1e{56 * '0'}"
HOLDER = Holder("apply of plan 5ca1ab1e", "kim", "build-7", 4711, "2026-11-21T09:00:00Z", DIGEST)


@pytest.fixture
def planned(planned_demo: Path, tmp_path: Path) -> Path:
    """Return the demo's snapshot in a folder with a plan for it."""
    shutil.copytree(planned_demo, tmp_path, dirs_exist_ok=True)
    return tmp_path / "desired-state" / "demo" / "snapshot.json"


@pytest.mark.parametrize("command", [("apply", "--yes"), ("apply", "--dry-run"), ("cancel",)], ids=" ".join)
def test_a_locked_cluster_is_refused_with_exit_3_and_the_name_of_its_holder(
    reconciler: Program, planned: Path, command: tuple[str, ...]
) -> None:
    before = planned.read_bytes()
    held = LockFile(planned).take(HOLDER)
    ended = reconciler(*command, "plan.json")
    held.release()
    assert ended.code == 3
    assert ended.err.startswith(
        "error: The cluster is locked by apply of plan 5ca1ab1e (started by kim on build-7, process 4711, "
        f"at 2026-11-21T09:00:00Z; digest {DIGEST}): one run at a time."
    )
    assert "(KR450)" in ended.err
    assert planned.read_bytes() == before


def test_a_holders_name_cannot_write_to_the_terminal(reconciler: Program, planned: Path) -> None:
    held = LockFile(planned).take(Holder("apply\x1b[2J", "k\x07im", "h\u202eost", 1, "now"))
    ended = reconciler("apply", "plan.json", "--yes")
    held.release()
    assert ended.code == 3
    assert not {"\x1b", "\x07", "\u202e"} & set(ended.err)


def test_looking_needs_no_lock(reconciler: Program, planned: Path) -> None:
    held = LockFile(planned).take(HOLDER)
    assert reconciler("status").code == 0
    planned_again = reconciler("plan")
    held.release()
    assert planned_again.code == 0
    assert f"warning: a run is changing the cluster: {HOLDER}. Once it has ended" in planned_again.err
    assert "warning" not in reconciler("plan").err


@pytest.mark.parametrize("options", [(), ("--rollback", "--yes")], ids=["cancel", "cancel --rollback"])
def test_a_cancel_stops_the_apply_that_is_on_and_both_say_so(planned: Path, options: tuple[str, ...]) -> None:
    folder = planned.parents[2]
    before = read_snapshot(planned)
    applying = HeldRun(folder / "applying", "apply", "plan.json", "--yes", at="reassign.recorded")
    wait_for(lambda: applying.is_there or applying.is_over, "the apply")
    assert in_flight(read_snapshot(planned))
    cancelling = HeldRun(folder / "cancelling", "cancel", *options, "plan.json", at="never")
    wait_for(lambda: planned.with_name(f"{planned.name}.lock.stop").exists() or cancelling.is_over, "the cancel")
    applying.go_on()
    code, told = applying.ended()
    assert code == 5, told
    by = rf"`reconciler cancel` of .+ on .+ \(process {cancelling.pid}\)"
    assert re.search(rf"{by} asks this run to stop: ending in order, throttles go back first\.", told), told
    assert re.search(rf"stopped before the end of stage \d of \d+: {by} asked for it; run apply again", told), told
    code, told = cancelling.ended()
    assert code == 0, told
    asked = (
        rf"Asked apply of plan \w+ \(started by .+ process {applying.pid}, at .+\) to stop: waiting until it has put "
    )
    assert re.search(asked, told), told
    after = read_snapshot(planned)
    assert (in_flight(after), throttles(after)) == ([], throttles(before))
    assert sorted(path.name for path in planned.parent.iterdir() if "snapshot" in path.name) == [planned.name]


def test_the_second_of_two_cancels_waits_for_the_first_and_ends_as_well(planned: Path) -> None:
    folder = planned.parents[2]
    before = read_snapshot(planned)
    applying = HeldRun(folder / "applying", "apply", "plan.json", "--yes", at="reassign.recorded")
    wait_for(lambda: applying.is_there or applying.is_over, "the apply")
    applying.kill()
    applying.ended()
    first = HeldRun(folder / "first", "cancel", "plan.json", at="withdraw.before")
    wait_for(lambda: first.is_there or first.is_over, "the first cancel")
    second = HeldRun(folder / "second", "cancel", "plan.json", at="never")
    waiting = rf"cancel of plan \w+ \(started by .+ process {first.pid}, at .+\) is on already: waiting for its end"
    wait_for(lambda: second.is_over or bool(re.search(waiting, second.said())), "the second cancel to wait")
    first.go_on()
    for cancelling, word in ((first, "taken back"), (second, "Nothing to cancel: nothing of plan ")):
        code, told = cancelling.ended()
        assert (code, word in told) == (0, True), told
    after = read_snapshot(planned)
    assert (in_flight(after), throttles(after)) == ([], throttles(before))


def test_a_cancel_whose_apply_is_killed_while_it_waits_takes_the_moves_back_itself(planned: Path) -> None:
    folder = planned.parents[2]
    before = read_snapshot(planned)
    applying = HeldRun(folder / "applying", "apply", "plan.json", "--yes", at="reassign.recorded")
    wait_for(lambda: applying.is_there or applying.is_over, "the apply")
    cancelling = HeldRun(folder / "cancelling", "cancel", "plan.json", at="never")
    wait_for(lambda: planned.with_name(f"{planned.name}.lock.stop").exists() or cancelling.is_over, "the cancel")
    applying.kill()
    code, told = cancelling.ended()
    assert (code, "taken back" in told) == (0, True), told
    after = read_snapshot(planned)
    assert (in_flight(after), throttles(after)) == ([], throttles(before))
    assert sorted(path.name for path in planned.parent.iterdir() if "snapshot" in path.name) == [planned.name]
