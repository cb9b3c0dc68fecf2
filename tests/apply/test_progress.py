"""What a run tells of its way: rates and times that hold while partitions grow, and a journal line now and then."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from helpers.plans.small_runs import RATE, SIZE, admin_of, cluster, move, plan_of

from reconciler.admin.port import Answer
from reconciler.admin.simulated import Moment, SimulatedAdmin
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.model.cluster import Cluster
from reconciler.model.lock import purpose_of_run
from reconciler.model.plan import Plan
from reconciler.model.run import Outcome, RunProgress
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

ORDERS_0 = TopicPartition("orders", 0)


def plan_for(before: Cluster, rate: int) -> Plan:
    """Return a plan of one move at that rate."""
    stage = ReassignStage(1, (replace(move("orders-0", "1,2,3", "1,2,4"), bytes=SIZE),), rate)
    return plan_of([stage], before)


def test_while_a_partition_grows_the_total_and_the_time_left_grow_with_it(
    before: Cluster, admin: SimulatedAdmin
) -> None:
    rate, written = RATE // 10, RATE // 40
    last = [admin.clock.now()]

    def produce(name: str, moment: Moment) -> Answer | None:
        if name == "reassignments" and moment is Moment.BEFORE:
            seconds = (admin.clock.now() - last[0]).total_seconds()
            admin.produce(ORDERS_0, size=int(written * seconds))
            last[0] = admin.clock.now()
        return None

    admin.fault = produce
    seen: list[tuple[datetime, RunProgress]] = []
    run_plan(plan_for(before, rate), admin, MemoryJournal(), progress=lambda one: seen.append((admin.clock.now(), one)))
    end = seen[-1][0]
    midway = [(time, one) for time, one in seen if one.eta_seconds is not None and not one.done_moves]
    assert len(midway) > 5
    for time, one in midway:
        assert one.eta_seconds is not None
        left = (end - time).total_seconds()
        assert abs(one.eta_seconds - left) <= 0.2 * left + 10
    assert seen[-1][1].total_bytes > SIZE
    copied = [one.copied_bytes for _, one in seen]
    assert copied == sorted(copied)
    assert seen[-1][1].copied_bytes == seen[-1][1].total_bytes


class Ticking:
    """A clock like a machine's: time passes between any two looks at it."""

    def __init__(self, admin: SimulatedAdmin) -> None:
        self.clock = admin.clock
        self.passed = timedelta()

    def now(self) -> datetime:
        """Return the time, a little later each time."""
        self.passed += timedelta(microseconds=50)
        return self.clock.now() + self.passed

    def time_of_day(self) -> datetime:
        """Return the same."""
        return self.now()

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        self.clock.sleep(seconds)


def test_a_rate_is_told_although_time_passes_between_looks(before: Cluster, admin: SimulatedAdmin) -> None:
    admin.clock = Ticking(admin)
    seen: list[RunProgress] = []
    run_plan(plan_for(before, RATE // 10), admin, MemoryJournal(), progress=seen.append)
    rates = [one.bytes_per_second for one in seen if one.bytes_per_second and not one.done_moves]
    assert rates
    assert all(abs(rate - RATE / 10) < RATE / 50 for rate in rates)


def test_the_journal_tells_of_a_long_stage_once_a_minute_and_when_moves_end() -> None:
    before = cluster()
    moves = (move("orders-0", "1,2,3", "1,2,4"), move("orders-1", "2,3,1", "2,3,5"))
    admin, journal = admin_of(before), MemoryJournal()
    result = run_plan(plan_of([ReassignStage(1, moves, RATE // 100)], before), admin, journal)
    told = [event for event in journal.appended if event.step == "progress"]
    assert all(event.outcome is Outcome.ONGOING for event in told)
    assert result.seconds / 70 - 2 <= len(told) <= result.seconds / 60 + 6
    copied = [int(str(event.detail["copiedBytes"])) for event in told]
    assert copied == sorted(copied)
    assert told[1].detail["moves"] == {"inFlight": 2}
    assert told[-1].detail["bytesPerSecond"] is not None


@pytest.mark.parametrize("factor", [4, 0.25])
def test_after_a_change_of_the_throttle_the_time_left_follows_within_two_minutes(
    before: Cluster, admin: SimulatedAdmin, factor: float
) -> None:
    slow = SIZE // 3600 if factor > 1 else SIZE // 1200
    plan, changed_at = plan_for(before, int(slow * min(1, factor))), admin.clock.now() + timedelta(seconds=600)
    seen: list[tuple[datetime, RunProgress]] = []

    def watch(one: RunProgress) -> None:
        if not seen or seen[-1][0] < changed_at <= admin.clock.now():
            admin.ask_rate(purpose_of_run(plan.id), slow if not seen else int(slow * factor))
        seen.append((admin.clock.now(), one))

    run_plan(plan, admin, MemoryJournal(), progress=watch)
    end = seen[-1][0]
    assert seen[0][1].eta_seconds is None, "nothing is known at the first look"
    known = [(time, one.eta_seconds) for time, one in seen if one.eta_seconds is not None]
    assert min(eta for _, eta in known) >= 0
    rates = [one.bytes_per_second for _, one in seen[-20:-5]]
    assert all(rate is not None and abs(rate - slow * factor) < slow * factor / 5 for rate in rates)
    settled = [(time, eta) for time, eta in known if time - changed_at >= timedelta(seconds=120)]
    assert len(settled) > 20
    for time, eta in settled:
        left = (end - time).total_seconds()
        assert abs(eta - left) <= 0.1 * left + 15
