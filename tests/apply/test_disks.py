"""A destination whose disk fails or fills up: only its log dirs tell, and the rest of the run does not suffer."""

from dataclasses import replace
from itertools import pairwise

import pytest
from apply.small_world import At
from helpers.plans.end_state import assignments, in_flight, shortcomings, throttles
from helpers.plans.small_runs import RATE, admin_of, cluster, move, plan_of

from reconciler.admin.port import Answer
from reconciler.admin.simulated import Moment, SimulatedAdmin
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import paths_of
from reconciler.apply.progress import Disks
from reconciler.apply.run import run_plan
from reconciler.apply.session import Session
from reconciler.model.cluster import Cluster, LogDir
from reconciler.model.plan import Plan
from reconciler.model.problem import MissingRight
from reconciler.model.run import Outcome, RunFailed, RunState
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

ORDERS_0 = TopicPartition("orders", 0)
SLOW = RATE // 10


def plan_for(before: Cluster) -> Plan:
    """Return a plan of one slow stage that moves a partition to broker 4 and one to broker 5."""
    moves = (move("orders-0", "1,2,3", "1,2,4"), move("orders-1", "2,3,1", "2,3,5"))
    return plan_of([ReassignStage(1, moves, SLOW)], before)


def failed(plan: Plan, admin: SimulatedAdmin, **options: object) -> RunFailed:
    """Run a plan that fails and return its error."""
    with pytest.raises(RunFailed) as error:
        run_plan(plan, admin, MemoryJournal(), **options)  # type: ignore[arg-type]
    return error.value


def own_log_dir(admin: SimulatedAdmin, broker: int) -> str:
    """Return where the new replica of orders-0 lies on that broker."""
    partition = admin.cluster.topics["orders"].partitions[0]
    path = partition.log_dirs[partition.replicas.index(broker)]
    assert path is not None
    return path


def test_moves_into_a_log_dir_that_goes_offline_are_taken_back_while_the_rest_ends(
    before: Cluster, admin: SimulatedAdmin
) -> None:
    admin.fault = At("disks", 4, lambda: admin.fail_log_dir(4, own_log_dir(admin, 4)))
    told: list[str] = []
    error = failed(plan_for(before), admin, notify=told.append)
    assert error.code == "KR716"
    assert "of broker 4 is offline, so orders-0 cannot be copied to it" in str(error)
    assert "make room on that disk or replace it, restart the broker" in str(error)
    assert any("of broker 4 is offline" in one for one in told)
    found = assignments(admin.cluster)
    assert (found["orders-0"], found["orders-1"], in_flight(admin.cluster)) == ((1, 2, 3), (2, 3, 5), [])
    assert throttles(admin.cluster) == throttles(before)
    assert error.result is not None
    assert (error.result.left, error.result.seconds < 120) == ((ORDERS_0,), True)


def test_a_log_dir_that_was_offline_before_does_not_keep_replicas_from_the_others(
    before: Cluster, admin: SimulatedAdmin
) -> None:
    admin.fail_log_dir(4, "/d1")
    assert run_plan(plan_for(before), admin, MemoryJournal()).state is RunState.DONE
    assert own_log_dir(admin, 4) == "/d2"


def test_a_destination_that_has_no_room_left_for_what_arrives_has_its_moves_taken_back_before_its_disk_fails(
    before: Cluster, admin: SimulatedAdmin
) -> None:

    def fill() -> None:
        full = tuple(LogDir(one.path, 10**12, 2**20) for one in admin.cluster.brokers[4].log_dirs)
        brokers = {**admin.cluster.brokers, 4: replace(admin.cluster.brokers[4], log_dirs=full)}
        admin._become(replace(admin.cluster, brokers=brokers))

    admin.fault = At("disks", 4, fill)
    error = failed(plan_for(before), admin)
    assert error.code == "KR716"
    assert "of broker 4 has" in str(error)
    assert "MiB left, so orders-0 cannot be copied to it" in str(error)
    assert assignments(admin.cluster)["orders-1"] == (2, 3, 5)


def test_without_the_right_to_see_disks_the_run_goes_on_and_says_what_it_does_not_see(
    before: Cluster, admin: SimulatedAdmin
) -> None:

    def denied(name: str, moment: Moment) -> Answer | None:
        if name == "disks" and moment is Moment.BEFORE:
            raise MissingRight("Reading log dirs needs Describe on the cluster.")
        return None

    admin.fault = denied
    result = run_plan(plan_for(before), admin, MemoryJournal())
    assert shortcomings(plan_for(before), before, admin.cluster) == []
    assert [one for one in result.messages if "disk fails, cannot be seen: Reading log dirs needs Describe" in one]


def test_disks_are_asked_for_now_and_then_not_in_each_turn(before: Cluster, admin: SimulatedAdmin) -> None:
    calls: list[str] = []

    def count(name: str, _moment: Moment) -> Answer | None:
        calls.append(name)
        return None

    admin.fault = count
    result = run_plan(plan_for(before), admin, MemoryJournal())
    assert 2 <= calls.count("disks") <= result.seconds / 3 + 2


def looks_in(seconds: int) -> list[Observed]:
    """Return what the looks of a stage in flight tell, one each second."""
    admin = admin_of(cluster())
    plan = plan_for(admin.cluster)
    (stage,) = plan.stages
    assert isinstance(stage, ReassignStage)
    admin.reassign({ORDERS_0: (1, 2, 4)})
    session = Session(admin, MemoryJournal(), paths_of(plan))
    disks, observed = Disks(session), session.look(["orders"])
    looks = []
    for _ in range(seconds):
        looks.append(disks.added_to(observed, stage))
        admin.clock.sleep(1)
    return looks


def test_bytes_and_log_dirs_are_asked_for_every_three_seconds() -> None:
    looks = looks_in(19)
    assert [second for second, look in enumerate(looks) if look.replica_bytes] == [0, 3, 6, 9, 12, 15, 18]
    assert [second for second, look in enumerate(looks) if look.log_dirs] == [0, 3, 6, 9, 12, 15, 18]


def test_the_longer_a_stage_takes_the_seldomer_bytes_are_asked_for() -> None:
    looked = [second for second, look in enumerate(looks_in(600)) if look.replica_bytes]
    gaps = [later - earlier for earlier, later in pairwise(looked)]
    assert gaps == sorted(gaps)
    assert (gaps[0], gaps[-1]) == (3, 15)


def test_a_throttle_that_producers_use_up_is_told_and_ends_at_the_time_out(
    before: Cluster, admin: SimulatedAdmin
) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), SLOW)], before, timeout_seconds=900)
    last = [admin.clock.now()]

    def produce(name: str, moment: Moment) -> Answer | None:
        if name == "reassignments" and moment is Moment.BEFORE and in_flight(admin.cluster):
            seconds = (admin.clock.now() - last[0]).total_seconds()
            admin.produce(ORDERS_0, size=int(SLOW * seconds))
        last[0] = admin.clock.now()
        return None

    admin.fault = produce
    told: list[str] = []
    journal = MemoryJournal()
    with pytest.raises(RunFailed) as error:
        run_plan(plan, admin, journal, notify=told.append)
    assert error.value.code == "KR702"
    assert [one for one in told if "orders-0 came no closer to the end in 300 s although data arrives" in one]
    assert f"the throttle of {SLOW} bytes a second is too slow" in told[0]
    assert [event.outcome for event in journal.appended if event.step == "warning"] == [Outcome.ONGOING]
    assert (assignments(admin.cluster)["orders-0"], in_flight(admin.cluster)) == ((1, 2, 3), [])
    assert throttles(admin.cluster) == throttles(before)
