"""A cancel stops a run of its plan that is on elsewhere: wherever the run is just then, both end right."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread, current_thread

import pytest
from helpers.depth import parts
from helpers.plans.deaths import boundaries_of_whole_run
from helpers.plans.end_state import assignments, in_flight, shortcomings, throttles
from helpers.plans.small_runs import cluster, plan_of, whole_plan
from helpers.waiting import HANG, wait_for

from reconciler.admin.port import Answer
from reconciler.admin.simulated import Moment, SimulatedAdmin
from reconciler.admin.simulated_locks import Locks, MemoryLocks
from reconciler.apply.cancel import cancel_run, stop_run
from reconciler.apply.crash import planted
from reconciler.apply.journal import Journal, MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.files.journal import RunJournal
from reconciler.files.lock_file import LockFile
from reconciler.model.cluster import Cluster
from reconciler.model.lock import LockHeld, StopRequest, purpose_of_run
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import Outcome, RunResult, RunState, StoppedEarly

EVERY = boundaries_of_whole_run()
PASSED = EVERY[EVERY.index("lock.taken") :]
"""The boundaries that a run passes once it holds the lock."""


class Elsewhere:
    """A run in a thread, as another process has it; at its boundary number `at` it stands until `go_on`."""

    def __init__(self, plan: Plan, admin: SimulatedAdmin, journal: Journal, at: int) -> None:
        self.plan = plan
        self.admin = admin
        self.journal = journal
        self.at = at
        self.passed = 0
        self.is_there, self.may_go_on = Event(), Event()
        self.told: list[str] = []
        self.result: RunResult | None = None
        self.error: ReconcilerError | None = None
        self.thread = Thread(target=self._run)

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Run until it stands there; at the end it has ended."""
        with planted(self._pass):
            self.thread.start()
            assert self.is_there.wait(HANG)
            try:
                yield
            finally:
                self.may_go_on.set()
                self.thread.join(HANG)
        assert not self.thread.is_alive()

    def go_on_when_told(self, told: str) -> None:
        """Let it go on once the cancel says that it has asked."""
        assert told.startswith("Asked apply of plan 0badcafe (started by"), told
        Thread(target=self._go_on_when_asked).start()

    def _go_on_when_asked(self) -> None:
        lock = self.admin._lock
        try:
            wait_for(lambda: lock is None or lock.asked_by is not None, "the cancel to ask", pause=0.002)
        finally:
            self.may_go_on.set()

    def _pass(self, _name: str) -> None:
        if current_thread() is self.thread:
            self.passed += 1
            if self.passed == self.at:
                self.is_there.set()
                self.may_go_on.wait(HANG)

    def _run(self) -> None:
        try:
            self.result = run_plan(self.plan, self.admin, self.journal, notify=self.told.append)
        except ReconcilerError as error:
            self.error = error


def two_processes(locks: Locks) -> tuple[SimulatedAdmin, SimulatedAdmin]:
    """Return two admins of one cluster: the second sees what the first has done, once it has the lock."""
    first = SimulatedAdmin(cluster(), locks=locks)
    return first, SimulatedAdmin(cluster(), locks=locks, load=lambda: first.cluster)


@pytest.mark.long
@parts("places", range(1, len(PASSED) + 1, 8), deep=range(1, len(PASSED) + 1))
def test_wherever_a_run_is_a_cancel_stops_it_and_both_end_right(places: range) -> None:
    for at in places:
        stopped_at(at)


def stopped_at(at: int) -> None:
    before, plan = cluster(), whole_plan(cluster())
    first, second = two_processes(MemoryLocks())
    journal = MemoryJournal()
    run = Elsewhere(plan, first, journal, at)
    with run.standing():
        result = cancel_run(plan, second, MemoryJournal(), notify=run.go_on_when_told)
    is_done = not shortcomings(plan, before, second.cluster)  # it may be asked after the last thing that was to do
    assert result.state is (RunState.DONE if is_done else RunState.CANCELLED)
    assert in_flight(second.cluster) == []
    assert throttles(second.cluster) == throttles(before)
    if run.error is None:
        assert run.result is not None
        assert PASSED[at - 1] in {"stage.done", "end.before", "end.recorded", *PASSED[-4:]}, "it ran on to its end"
        assert shortcomings(plan, before, second.cluster) == []
    else:
        assert isinstance(run.error, StoppedEarly)
        assert "`reconciler cancel` of " in str(run.error)
        assert "asked for it; run apply again to go on" in str(run.error)
        assert [text for text in run.told if "asks this run to stop: ending in order" in text]
        run_plan(plan, second, MemoryJournal([*journal.events, *journal.appended]))
        assert shortcomings(plan, before, second.cluster) == []


def test_in_a_file_too_and_the_cancel_reads_what_the_run_has_written_last(tmp_path: Path) -> None:
    before, plan = cluster(), whole_plan(cluster())
    first, second = two_processes(LockFile(tmp_path / "snapshot.json"))
    at = PASSED.index("reassign.recorded") + 1
    run = Elsewhere(plan, first, RunJournal(tmp_path / "run.jsonl", plan.id), at)
    with run.standing():
        journal = RunJournal(tmp_path / "run.jsonl", plan.id)
        known = len(journal.events)
        cancel_run(plan, second, journal, notify=run.go_on_when_told)
    assert isinstance(run.error, StoppedEarly)
    assert assignments(second.cluster) == assignments(before) or run.error.result is not None
    assert in_flight(second.cluster) == []
    assert throttles(second.cluster) == throttles(before)
    assert len(journal.events) > known, "the end of the run is among them"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.jsonl"]


def test_a_run_of_another_plan_is_not_asked() -> None:
    plan = whole_plan(cluster())
    first, second = two_processes(MemoryLocks())
    with first.lock("apply of plan 5ca1ab1e") as lock, pytest.raises(LockHeld, match="5ca1ab1e"):
        cancel_run(plan, second, MemoryJournal())
    assert lock.asked_by is None
    assert second.writes == 0


@pytest.mark.parametrize("purpose", ["cancel of plan 5ca1ab1e", "restoring the throttles of plan 0badcafe"])
def test_who_is_no_run_is_not_asked(purpose: str) -> None:
    first, second = two_processes(MemoryLocks())
    with first.lock(purpose) as lock, pytest.raises(LockHeld):
        cancel_run(whole_plan(cluster()), second, MemoryJournal())
    assert lock.asked_by is None


def test_an_apply_asks_nobody() -> None:
    plan = whole_plan(cluster())
    first, second = two_processes(MemoryLocks())
    with first.lock(f"apply of plan {plan.id}") as lock, pytest.raises(LockHeld):
        run_plan(plan, second, MemoryJournal())
    assert lock.asked_by is None


def test_a_run_that_is_asked_before_it_begins_changes_nothing() -> None:
    locks = MemoryLocks()
    plan, admin = whole_plan(cluster()), SimulatedAdmin(cluster(), locks=locks)

    def ask(name: str) -> None:
        if name == "lock.taken" and locks.holder is not None:
            locks.ask_to_stop(StopRequest(locks.holder.purpose, locks.holder))

    with planted(ask), pytest.raises(StoppedEarly, match="stopped before it began"):
        run_plan(plan, admin, MemoryJournal())
    assert (admin.writes, admin.cluster) == (0, cluster())


def test_where_no_run_is_on_there_is_nobody_to_stop() -> None:
    locks = MemoryLocks()
    first, second = two_processes(locks)
    stop_run(whole_plan(cluster()), second)
    with first.lock("apply of plan 5ca1ab1e") as lock:
        stop_run(whole_plan(cluster()), second)
        assert lock.asked_by is None
    stop_run(plan_of([], cluster()), second)
    assert locks.holder is None


def test_a_rate_that_nobody_may_ask_for_is_told_and_not_taken_up(before: Cluster) -> None:
    plan, journal = whole_plan(before), MemoryJournal()
    admin, told = SimulatedAdmin(before), list[str]()
    asked = iter([7, 10**15])

    def ask(name: str, moment: Moment) -> Answer | None:
        if name == "reassignments" and moment is Moment.BEFORE and (rate := next(asked, None)) is not None:
            admin.ask_rate(purpose_of_run(plan.id), rate)
        return None

    admin.fault = ask
    assert run_plan(plan, admin, journal, notify=told.append).state is RunState.DONE
    refused = [text for text in told if "a member of the lock's group that calls itself" in text]
    assert refused
    assert all("not taken up" in text for text in refused)
    events = [event for event in journal.appended if event.step == "rate"]
    assert {event.outcome for event in events} == {Outcome.SKIPPED}
    assert all("calls itself" in str(event.detail["by"]) for event in events)
