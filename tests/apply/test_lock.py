"""One run per cluster: who comes second changes nothing, and who loses the lock writes nothing more."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread, current_thread

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts
from helpers.figures import Tell
from helpers.plans.deaths import boundaries_of, boundaries_of_whole_run, killed, passing
from helpers.plans.end_state import shortcomings, throttles
from helpers.plans.small_runs import cluster, move, plan_of, whole_plan
from helpers.waiting import HANG

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.admin.simulated_locks import MemoryLocks
from reconciler.apply.cancel import cancel_run
from reconciler.apply.crash import planted
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.leftovers import restore_throttles
from reconciler.apply.run import run_plan
from reconciler.apply.run_record import RunRecord
from reconciler.apply.session import Belief
from reconciler.apply.throttles import Entry, ThrottleRecord
from reconciler.files.lock_file import LockFile
from reconciler.files.snapshot import read_snapshot, write_snapshot
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import LEADER_THROTTLED_RATE, LEADER_THROTTLED_REPLICAS
from reconciler.model.lock import LockHeld, LockLost
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError, StalePlan
from reconciler.model.run import RunState, StoppedEarly
from reconciler.model.stage import ReassignStage

PASSED = len(boundaries_of_whole_run())


def test_whoever_comes_second_is_told_who_runs_and_changes_nothing() -> None:
    locks, before = MemoryLocks(), cluster()
    plan = whole_plan(before)
    second = SimulatedAdmin(before, locks=locks)
    journal = MemoryJournal()
    with SimulatedAdmin(before, locks=locks).lock("apply of plan 5ca1ab1e"):
        with pytest.raises(LockHeld, match="apply of plan 5ca1ab1e") as refused:
            run_plan(plan, second, journal)
        with pytest.raises(LockHeld, match="apply of plan 5ca1ab1e"):
            cancel_run(plan, second, journal)
    assert refused.value.code == "KR450"
    assert (second.writes, second.cluster, journal.appended) == (0, before, [])


def test_looking_what_a_run_would_do_takes_no_lock_and_tells_who_has_it() -> None:
    locks, before = MemoryLocks(), cluster()
    admin = SimulatedAdmin(before, locks=locks)
    admin.fault = lambda name, _moment: pytest.fail("a dry run took the lock") if name == "lock" else None
    another = SimulatedAdmin(before, locks=locks)
    with another.lock("apply of plan 5ca1ab1e"), pytest.raises(LockHeld, match="apply of plan 5ca1ab1e"):
        run_plan(whole_plan(before), admin, MemoryJournal(), is_dry_run=True)
    assert run_plan(whole_plan(before), admin, MemoryJournal(), is_dry_run=True).messages


def test_the_lock_tells_the_digest_of_the_plan_that_runs() -> None:
    locks, before = MemoryLocks(), cluster()
    plan = replace(whole_plan(before), digest=f"sha256:{64 * '0'}")
    told: set[str] = set()

    def look() -> None:
        told.update([locks.holder.digest] if locks.holder else [])

    run_plan(plan, SimulatedAdmin(before, locks=locks), MemoryJournal(), progress=lambda _: look())
    assert told == {plan.digest}


def test_however_a_run_ends_the_lock_is_free() -> None:
    locks, before = MemoryLocks(), cluster()
    plan = whole_plan(before)

    def stopped() -> str:
        return "a test stops it"

    with pytest.raises(StoppedEarly):
        run_plan(plan, SimulatedAdmin(before, locks=locks), MemoryJournal(), should_stop=stopped)
    assert locks.holder is None
    with pytest.raises(StalePlan):
        run_plan(plan, SimulatedAdmin(small_cluster(), locks=locks), MemoryJournal())
    assert locks.holder is None
    run_plan(plan, SimulatedAdmin(before, locks=locks), MemoryJournal())
    assert locks.holder is None
    cancel_run(plan, SimulatedAdmin(before, locks=locks), MemoryJournal())
    assert locks.holder is None


def test_the_lock_is_given_back_last() -> None:
    locks, before = MemoryLocks(), cluster()
    held: dict[str, bool] = {}

    def look(name: str) -> None:
        held[name] = locks.holder is not None

    with planted(look):
        run_plan(whole_plan(before), SimulatedAdmin(before, locks=locks), MemoryJournal())
    assert held["lock.taken"]
    assert held["end.recorded"]
    assert all(held.values())


def lost_at(at: int, locks: MemoryLocks, admin: SimulatedAdmin, verb: Callable[[], object]) -> LockLost | None:
    """Lose the lock at that boundary; return what the verb says of it, once it is certain that it wrote no more."""
    passed: list[str] = []
    writes: list[int] = []
    lost: LockLost | None = None

    def lose(name: str) -> None:
        passed.append(name)
        if len(passed) == at:
            locks.expire()
            writes.append(admin.writes)

    with planted(lose):
        try:
            verb()
        except LockLost as error:
            lost = error
    assert admin.writes == writes[0], f"written after {passed[at - 1]}"
    return lost


@pytest.mark.long
@parts("places", range(1, PASSED + 1, 7), deep=range(1, PASSED + 1))
def test_a_run_that_loses_the_lock_writes_nothing_more_and_the_next_one_ends_right(places: range) -> None:
    before = cluster()
    plan = whole_plan(before)
    for at in places:
        locks, journal = MemoryLocks(), MemoryJournal()
        admin = SimulatedAdmin(before, locks=locks)
        lost = lost_at(at, locks, admin, partial(run_plan, plan, admin, journal))
        assert lost is not None or not shortcomings(plan, before, admin.cluster)
        if lost is not None and throttles(admin.cluster) != throttles(before):
            assert "keeps" in str(lost), str(lost)
        run_plan(plan, admin, MemoryJournal([*journal.events, *journal.appended]))
        assert shortcomings(plan, before, admin.cluster) == []


def boundaries_of_a_cancel() -> int:
    """Return how many boundaries a cancel passes."""
    before = cluster()
    admin = SimulatedAdmin(before)
    journal = killed(admin, whole_plan(before), passing("reassign.recorded"))
    return len(boundaries_of(lambda: cancel_run(whole_plan(before), admin, journal)))


CANCEL_PASSED = boundaries_of_a_cancel()


@parts("places", range(1, CANCEL_PASSED + 1, 7), deep=range(1, CANCEL_PASSED + 1))
def test_a_cancel_that_loses_the_lock_writes_nothing_more_and_the_next_one_ends_right(places: range) -> None:
    before = cluster()
    plan = whole_plan(before)
    for at in places:
        locks = MemoryLocks()
        admin = SimulatedAdmin(before, locks=locks)
        journal = killed(admin, plan, passing("reassign.recorded"))
        lost = lost_at(at, locks, admin, partial(cancel_run, plan, admin, journal))
        if throttles(admin.cluster) != throttles(before):
            assert lost is not None
            assert "keeps" in str(lost)
        again = MemoryJournal([*journal.events, *journal.appended])
        assert cancel_run(plan, admin, again).state is RunState.CANCELLED
        assert throttles(admin.cluster) == throttles(before)


def test_a_run_that_is_stopped_and_loses_the_lock_names_its_throttles() -> None:
    locks, before = MemoryLocks(), cluster()
    plan = whole_plan(before)
    admin = SimulatedAdmin(before, locks=locks)
    passed: list[str] = []

    def lose(name: str) -> None:
        passed.append(name)
        if name == "withdraw.before":
            locks.expire()

    def stopped() -> str | None:
        return "a test stops it" if "reassign.recorded" in passed else None

    with planted(lose), pytest.raises(StoppedEarly, match="keeps") as ended:
        run_plan(plan, admin, MemoryJournal(), should_stop=stopped)
    assert "lock was lost" in str(ended.value)


def test_throttles_of_a_run_that_lives_are_not_taken_for_leftovers() -> None:
    locks, before = MemoryLocks(), small_cluster("orders-0: 1,2 size 1000")
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2", "1,3"),), 1_000_000)], before)
    admin = SimulatedAdmin(before, locks=locks)
    with admin.lock("apply of plan 0badcafe") as lock:
        entry = Entry(None, frozenset({"0:1", "0:2"}))
        left = ThrottleRecord({(1, LEADER_THROTTLED_RATE): None}, {("orders", LEADER_THROTTLED_REPLICAS): entry})
        record = RunRecord(plan.id, "small", lock.holder, ours=frozenset({"1000000"}), throttles=left)
        assert lock.keep(record.written()).is_ok
        admin.alter_broker_configs(1, [ConfigChange(LEADER_THROTTLED_RATE, ConfigOperation.SET, "1000000")])
        admin.alter_topic_configs({"orders": [ConfigChange(LEADER_THROTTLED_REPLICAS, ConfigOperation.SET, "0:1,0:2")]})
        other = SimulatedAdmin(admin.cluster, locks=locks)
        with pytest.raises(LockHeld):
            restore_throttles(plan, other, MemoryJournal(), belief=Belief.ALL)
        assert other.writes == 0
    assert restore_throttles(plan, admin, MemoryJournal(), belief=Belief.ALL).state is RunState.DONE
    assert throttles(admin.cluster) == {}


def test_where_there_is_nothing_to_bring_back_no_lock_is_needed() -> None:
    locks, before = MemoryLocks(), small_cluster("orders-0: 1,2 size 1000")
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2", "1,3"),), 1_000_000)], before)
    with SimulatedAdmin(before, locks=locks).lock("apply of another plan"):
        ended = restore_throttles(plan, SimulatedAdmin(before, locks=locks), MemoryJournal())
    assert (ended.state, ended.writes) == (RunState.DONE, 0)


class Race:
    """Two runs of one plan at once, on one simulated cluster in a file; the winner waits for the loser to end."""

    def __init__(self, snapshot: Path, plan: Plan) -> None:
        self.snapshot = snapshot
        self.plan = plan
        self.admitted: list[str] = []
        self.refused: list[LockHeld] = []
        self.other: list[Exception] = []
        self.is_settled = Event()
        self.guard = Lock()

    def run(self) -> None:
        runners = [Thread(target=self.runner, name=name) for name in ("left", "right")]
        with planted(self.passed):
            for one in runners:
                one.start()
            for one in runners:
                one.join(HANG)

    def runner(self) -> None:
        admin = SimulatedAdmin(
            read_snapshot(self.snapshot),
            save=lambda made: write_snapshot(made, self.snapshot),
            load=lambda: read_snapshot(self.snapshot),
            locks=LockFile(self.snapshot),
        )
        try:
            run_plan(self.plan, admin, MemoryJournal())
        except LockHeld as error:
            self.refused.append(error)
            self.is_settled.set()
        except ReconcilerError as error:
            self.other.append(error)
            self.is_settled.set()

    def passed(self, name: str) -> None:
        if name == "lock.taken":
            with self.guard:
                self.admitted.append(current_thread().name)
                if len(self.admitted) > 1:
                    self.is_settled.set()
            self.is_settled.wait(HANG)


@pytest.mark.long
@parts("races", 30, deep=100)
def test_of_two_runs_at_once_exactly_one_goes_ahead(
    tmp_path: Path, figures: Tell, monkeypatch: pytest.MonkeyPatch, races: int
) -> None:
    monkeypatch.setattr("reconciler.files.lock_file._READ_TRIES", 10_000)  # a holder may be slow to write its name
    before = small_cluster("orders-0: 1,2 size 1000", "orders-1: 2,1 size 1000")
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2", "2,1"),))], before)
    snapshot = tmp_path / "snapshot.json"
    write_snapshot(before, snapshot)
    fresh = snapshot.read_bytes()
    for number in range(races):
        snapshot.write_bytes(fresh)
        race = Race(snapshot, plan)
        race.run()
        assert (len(race.admitted), len(race.refused), race.other) == (1, 1, []), number
        assert race.refused[0].holder is not None
        assert race.refused[0].holder.purpose == "apply of plan 0badcafe"
        assert shortcomings(plan, before, read_snapshot(snapshot)) == []
    figures("lock races", f"{races} of two runs on a simulated cluster, exactly one went ahead in each")
