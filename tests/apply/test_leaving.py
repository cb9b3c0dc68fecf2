"""Ends of a run that are not the plan's: refusals after leftover throttles came off, and one or two signals."""

from collections.abc import Callable

import pytest
from apply.small_world import At
from helpers.plans.deaths import killed, passing
from helpers.plans.end_state import in_flight, throttles
from helpers.plans.small_runs import RATE, admin_of, cluster, move, plan_of

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.limits import ApplyRules
from reconciler.apply.run import run_plan
from reconciler.model.cluster import Cluster
from reconciler.model.desired import DesiredCluster, Window
from reconciler.model.plan import Plan
from reconciler.model.problem import Refused, StalePlan
from reconciler.model.run import RunFailed, RunState, StoppedEarly
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition


def two_stages(before: Cluster) -> Plan:
    """Return a plan of two throttled stages."""
    first = ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)
    return plan_of([first, ReassignStage(2, (move("payments-0", "2,4", "2,6"),), RATE)], before)


@pytest.mark.parametrize("point", ["throttle.broker", "moves.done"])
def test_a_refused_run_puts_the_throttles_of_a_killed_one_back(
    before: Cluster, admin: SimulatedAdmin, point: str
) -> None:
    journal = killed(admin, two_stages(before), passing(point))
    assert throttles(admin.cluster) != throttles(before)
    admin.reassign({TopicPartition("payments", 0): (4, 2)})
    with pytest.raises(StalePlan) as error:
        run_plan(two_stages(before), admin, journal)
    assert "throttles that an earlier run of this plan had left were put back" in str(error.value)
    assert throttles(admin.cluster) == throttles(before)


def test_outside_its_windows_too() -> None:
    before = cluster()  # a Saturday
    admin = admin_of(before)
    journal = killed(admin, two_stages(before), passing("moves.done"))
    nights = DesiredCluster("small", windows=(Window(("sun",), "01:00", "02:00"),))
    with pytest.raises(Refused, match="outside the windows"):
        run_plan(two_stages(before), admin, journal, declared=ApplyRules(nights))
    assert throttles(admin.cluster) == throttles(before)


def test_a_refused_run_leaves_the_throttles_of_moves_in_flight_and_says_so(
    before: Cluster, admin: SimulatedAdmin
) -> None:
    journal = killed(admin, two_stages(before), passing("reassign.recorded"))
    on = throttles(admin.cluster)
    admin.reassign({TopicPartition("payments", 0): (4, 2)})
    with pytest.raises(StalePlan) as error:
        run_plan(two_stages(before), admin, journal)
    assert "left moves in flight under its throttles: orders-0; run cancel with this plan" in str(error.value)
    assert throttles(admin.cluster) == on


class Signals:
    """The first signal asks the run to end, the second ends it at once: as `cli.stopping` does it."""

    def __init__(self, admin: SimulatedAdmin, *, is_due: Callable[[], bool]) -> None:
        self.admin = admin
        self.is_due = is_due
        self.came = False

    def reason(self) -> str | None:
        """Return why to stop, once it is time."""
        self.came = self.came or self.is_due()
        return "SIGTERM came" if self.came else None

    def second(self) -> None:
        """Let the second signal come, if the first has."""
        if self.came:
            raise KeyboardInterrupt


@pytest.mark.parametrize("call", ["reassign", "topics", "reassignments", "alter_topic_configs", "broker_configs"])
def test_a_second_signal_ends_the_way_back_at_once_and_names_what_is_left(
    before: Cluster, admin: SimulatedAdmin, call: str
) -> None:
    signals = Signals(admin, is_due=lambda: bool(in_flight(admin.cluster)))
    interrupted = At(call, 1, signals.second)

    admin.fault = lambda name, moment: interrupted(name, moment) if signals.came else None
    with pytest.raises(StoppedEarly) as error:
        run_plan(two_stages(before), admin, MemoryJournal(), should_stop=signals.reason)
    assert error.value.code == "KR715"
    result = error.value.result
    assert result is not None
    assert result.left == (TopicPartition("orders", 0), TopicPartition("payments", 0))
    assert any("stage 1 may still be in flight: orders-0" in one for one in result.messages)
    still_on = throttles(admin.cluster).items() - throttles(before).items()
    for where, _ in still_on:
        kind, name, key = where.split(" ")
        assert any(f"{kind} {name} keeps" in str(one) and key in str(one) for one in result.leftover_throttles), where
    assert still_on
    assert all(str(one) in str(error.value) for one in result.leftover_throttles)
    admin.fault = None
    admin.clock.sleep(60)
    assert run_plan(two_stages(before), admin, MemoryJournal()).state is RunState.DONE
    assert throttles(admin.cluster) == throttles(before)


def test_a_second_signal_ends_a_call_that_the_first_one_left_to_finish(before: Cluster, admin: SimulatedAdmin) -> None:
    signals = Signals(admin, is_due=lambda: False)

    asked: list[int] = []

    def both() -> None:
        signals.came = True
        asked.append(admin.writes)
        raise KeyboardInterrupt

    admin.fault = At("disks", 2, both)  # the first look at disks is before the run begins
    with pytest.raises(StoppedEarly) as error:
        run_plan(two_stages(before), admin, MemoryJournal(), should_stop=signals.reason)
    assert error.value.code == "KR715"
    assert [admin.writes] == asked
    assert in_flight(admin.cluster) == ["orders-0"]


def test_a_signal_before_the_first_stage_names_what_is_left(before: Cluster) -> None:
    with pytest.raises(StoppedEarly) as error:
        run_plan(two_stages(before), admin_of(before), MemoryJournal(), should_stop=lambda: "SIGTERM came")
    assert str(error.value).startswith("stopped before it began: SIGTERM came")
    assert error.value.result is not None
    assert error.value.result.left == (TopicPartition("orders", 0), TopicPartition("payments", 0))


def test_a_resumed_run_that_fails_in_an_earlier_stage_takes_the_later_ones_moves_back_too(
    before: Cluster, admin: SimulatedAdmin
) -> None:
    first = ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)
    plan = plan_of([first, ReassignStage(2, (move("payments-0", "2,4", "2,6"),), RATE)], before, timeout_seconds=60)
    journal = killed(admin, plan, lambda name: name == "poll" and in_flight(admin.cluster) == ["payments-0"])
    partition = admin.cluster.topics["orders"].partitions[0]
    path = partition.log_dirs[partition.replicas.index(4)]
    assert path is not None
    admin.fail_log_dir(4, path)
    assert in_flight(admin.cluster) == ["payments-0"]
    with pytest.raises(RunFailed):
        run_plan(plan, admin, journal)
    assert in_flight(admin.cluster) == []
    assert throttles(admin.cluster) == throttles(before)
