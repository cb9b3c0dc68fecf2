"""Whole runs on the simulated cluster, and what stops them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from apply.small_world import At
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.deaths import put_back_what_is_named
from helpers.plans.end_state import assignments, in_flight, shortcomings, throttles
from helpers.plans.small_runs import RATE, SIZE, admin_of, cluster, election, move, plan_of, whole_plan

from reconciler.admin.port import Answer
from reconciler.admin.simulated import Moment, SimulatedAdmin
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.limits import ApplyRules
from reconciler.apply.run import run_plan
from reconciler.model.change import ConfigChange, ConfigOperation, CreatePartitions
from reconciler.model.cluster import LEADER_THROTTLED_RATE, LEADER_THROTTLED_REPLICAS, Cluster
from reconciler.model.desired import DesiredCluster, Window
from reconciler.model.plan import Plan
from reconciler.model.problem import (
    ClusterUnavailable,
    MissingRight,
    Problem,
    ReconcilerError,
    Refused,
    Severity,
    StalePlan,
)
from reconciler.model.run import Outcome, RunFailed, RunProgress, RunState, StoppedEarly
from reconciler.model.stage import ElectStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition

ORDERS_0 = TopicPartition("orders", 0)


def two_moves(before: Cluster, **fields: object) -> Plan:
    """Return a plan of one throttled stage that moves two partitions, and one stage after it."""
    first = ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"), move("orders-1", "2,3,1", "2,3,5")), RATE)
    second = ReassignStage(2, (move("payments-0", "2,4", "2,6"),), RATE)
    return plan_of([first, second], before, **fields)


def failed(plan: Plan, admin: SimulatedAdmin, **options: object) -> RunFailed:
    """Run a plan that fails and return its error."""
    with pytest.raises(RunFailed) as error:
        run_plan(plan, admin, MemoryJournal(), **options)  # type: ignore[arg-type]
    return error.value


def within(window: Window) -> ApplyRules:
    """Return that runs work inside that window alone."""
    return ApplyRules(DesiredCluster("small", windows=(window,)))


def refused(plan: Plan, admin: SimulatedAdmin, kind: type[ReconcilerError], **options: object) -> ReconcilerError:
    """Run a plan that is refused before anything is changed, as its dry run is, and return the error."""
    with pytest.raises(kind) as dry:
        run_plan(plan, admin, MemoryJournal(), is_dry_run=True, **options)  # type: ignore[arg-type]
    with pytest.raises(kind) as error:
        run_plan(plan, admin, MemoryJournal(), **options)  # type: ignore[arg-type]
    assert admin.writes == 0
    assert (dry.value.code, str(dry.value)) == (error.value.code, str(error.value))
    return error.value


def test_a_whole_plan_ends_as_planned_with_the_throttles_of_before(before: Cluster, admin: SimulatedAdmin) -> None:
    plan = whole_plan(before)
    result = run_plan(plan, admin, MemoryJournal())
    assert shortcomings(plan, before, admin.cluster) == []
    assert (result.state, result.stages_done, result.stages, result.leftover_throttles) == (RunState.DONE, 6, 6, ())
    assert result.writes == admin.writes


def test_a_second_apply_writes_nothing(before: Cluster, admin: SimulatedAdmin) -> None:
    plan = whole_plan(before)
    run_plan(plan, admin, MemoryJournal())
    writes = admin.writes
    result = run_plan(plan, admin, MemoryJournal())
    assert admin.writes == writes
    assert (result.state, result.writes) == (RunState.DONE, 0)


def test_a_throttled_stage_takes_as_long_as_its_throttle_says(before: Cluster) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)], before)
    result = run_plan(plan, admin_of(before), MemoryJournal())
    assert SIZE / RATE <= result.seconds <= SIZE / RATE + 5


def test_throttles_are_on_before_the_first_byte_moves(before: Cluster, admin: SimulatedAdmin) -> None:
    seen: list[dict[str, str]] = []
    admin.fault = At("reassign", 1, lambda: seen.append(throttles(admin.cluster)))
    run_plan(two_moves(before), admin, MemoryJournal())
    on = seen[0]
    assert on["topic orders leader.replication.throttled.replicas"] == "0:1,2:3,0:2,0:3,1:1,1:2,1:3"
    assert on["topic orders follower.replication.throttled.replicas"] == "0:4,1:5"
    assert on["broker 5 follower.replication.throttled.rate"] == str(RATE)
    assert "broker 6 follower.replication.throttled.rate" not in on


def test_a_list_that_covers_everything_is_left_as_it_is(before: Cluster, admin: SimulatedAdmin) -> None:
    plan = plan_of([ReassignStage(1, (move("clicks-0", "1,2,3", "1,2,4"),), RATE)], before)
    seen: list[str] = []
    admin.fault = At(
        "reassign", 1, lambda: seen.append(admin.cluster.topics["clicks"].configs[LEADER_THROTTLED_REPLICAS])
    )
    run_plan(plan, admin, MemoryJournal())
    assert seen == ["*"]
    assert throttles(admin.cluster) == throttles(before)


def test_a_throttle_that_an_operator_changes_meanwhile_stays_as_they_set_it(
    before: Cluster, admin: SimulatedAdmin
) -> None:

    def operator() -> None:
        admin.alter_broker_configs(2, [ConfigChange(LEADER_THROTTLED_RATE, ConfigOperation.SET, "77000000")])
        items = ConfigChange(LEADER_THROTTLED_REPLICAS, ConfigOperation.APPEND, "7:7")
        admin.alter_topic_configs({"orders": [items], "payments": [items]})

    admin.fault = At("disks", 2, operator)
    run_plan(two_moves(before), admin, MemoryJournal())
    changed = {
        where: value for where, value in throttles(admin.cluster).items() if throttles(before).get(where) != value
    }
    assert changed == {
        "broker 2 leader.replication.throttled.rate": "77000000",
        "topic orders leader.replication.throttled.replicas": "0:1,2:3,7:7",
        "topic payments leader.replication.throttled.replicas": "7:7",
    }


def test_progress_tells_bytes_rate_and_time_to_go(before: Cluster) -> None:
    seen: list[RunProgress] = []
    plan = plan_of([ReassignStage(1, (replace(move("orders-0", "1,2,3", "1,2,4"), bytes=SIZE),), RATE // 10)], before)
    run_plan(plan, admin_of(before), MemoryJournal(), progress=seen.append)
    midway = [one for one in seen if one.bytes_per_second and not one.done_moves]
    assert all(abs(one.bytes_per_second - RATE / 10) < RATE / 100 for one in midway if one.bytes_per_second)
    assert all(one.eta_seconds is not None and one.eta_seconds < SIZE / RATE * 10 for one in midway)
    copied = [one.copied_bytes for one in seen]
    assert copied == sorted(copied)
    assert (seen[-1].copied_bytes, seen[-1].done_moves) == (SIZE, 1)


def test_a_plan_for_another_cluster_is_stale(before: Cluster) -> None:
    error = refused(two_moves(before, cluster_id="another"), admin_of(before), StalePlan)
    assert error.code == "KR501"
    assert "another" in str(error)


def test_a_plan_with_violations_is_refused_with_the_code_of_the_first(before: Cluster) -> None:
    plan = two_moves(before, violations=(Problem("KR402", "too many bytes", severity=Severity.VIOLATION),))
    assert refused(plan, admin_of(before), Refused).code == "KR402"


def test_a_plan_is_stale_when_a_partition_it_touches_has_moved_elsewhere() -> None:
    before = cluster()
    plan, admin = two_moves(before), admin_of(before)
    admin.reassign({ORDERS_0: (3, 2, 1)})
    admin.writes = 0
    error = refused(plan, admin, StalePlan)
    assert "orders-0: expected [1, 2, 3] or [1, 2, 4], found [3, 2, 1]" in str(error)


def test_an_unrelated_change_does_not_spoil_a_plan(before: Cluster, admin: SimulatedAdmin) -> None:
    plan = two_moves(before)
    admin.reassign({TopicPartition("quiet", 0): (2, 3)})
    assert run_plan(plan, admin, MemoryJournal()).state is RunState.DONE


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        (
            {"retention.ms": "7"},
            "topic orders: expected retention.ms set to 1000 or set to 2000, found retention.ms set to 7",
        ),
        ({}, ""),
    ],
)
def test_a_config_changed_by_somebody_else_makes_a_plan_stale(configs: dict[str, str], expected: str) -> None:
    before = cluster()
    plan, admin = whole_plan(before), admin_of(before)
    changes = [ConfigChange(key, ConfigOperation.SET, value) for key, value in configs.items()]
    admin.alter_topic_configs({"orders": changes})
    admin.writes = 0
    if not expected:
        assert run_plan(plan, admin, MemoryJournal()).state is RunState.DONE
        return
    assert expected in str(refused(plan, admin, StalePlan))


def test_a_topic_made_again_under_the_same_name_is_not_deleted(before: Cluster) -> None:
    again = replace(before, topics={**before.topics, "old": replace(before.topics["old"], topic_id="another")})
    error = refused(whole_plan(before), admin_of(again), StalePlan)
    assert "another topic was made under the same name" in str(error)


def test_a_dead_broker_that_the_plan_requires_refuses_it(before: Cluster, admin: SimulatedAdmin) -> None:
    admin.kill_broker(6)
    error = refused(two_moves(before), admin, Refused)
    assert (error.code, "6" in str(error)) == ("KR420", True)


def test_a_foreign_reassignment_of_a_touched_partition_refuses_it(before: Cluster, admin: SimulatedAdmin) -> None:
    admin.reassign({ORDERS_0: (1, 2, 6)})
    admin.writes = 0
    error = refused(two_moves(before), admin, Refused)
    assert (error.code, "[1, 2, 6]" in str(error)) == ("KR421", True)
    assert in_flight(admin.cluster) == ["orders-0"]


def test_a_partition_under_min_isr_refuses_a_stage_that_does_not_repair_it() -> None:
    before = small_cluster(
        "a-0: 1,2,3",
        "a-1: 1,2,3 isr 1",
        configs={"a": {"min.insync.replicas": "2"}},
        brokers=range(1, 5),
        fenced=[2, 3],
    )
    plan = plan_of([ReassignStage(1, (move("a-0", "1,2,3", "1,4"),))], before)
    error = refused(plan, admin_of(before), Refused)
    assert error.code == "KR422"
    assert "a-1 has 1 replicas in sync, min.insync.replicas is 2" in str(error)


def test_the_brokers_own_min_isr_counts_where_a_topic_sets_none() -> None:
    before = small_cluster(
        "a-0: 1,2,3",
        "a-1: 1,2,3 isr 1",
        brokers=range(1, 5),
        fenced=[2, 3],
        rates={broker: {"min.insync.replicas": "2"} for broker in (1, 4)},
    )
    plan = plan_of([ReassignStage(1, (move("a-0", "1,2,3", "1,4"),))], before)
    error = refused(plan, admin_of(before), Refused)
    assert "a-1 has 1 replicas in sync, min.insync.replicas is 2" in str(error)


def test_leaders_that_the_brokers_elect_by_themselves_are_no_trouble(before: Cluster, admin: SimulatedAdmin) -> None:
    stages = (
        ReassignStage(1, (move("payments-1", "2,4", "4,2"),)),
        ElectStage(2, (election("payments-1", 4), election("quiet-0", 3))),
    )
    keys = [TopicPartition("payments", 1), TopicPartition("quiet", 0), ORDERS_0]
    admin.fault = At("elect_preferred_leaders", 1, lambda: admin.elect_preferred_leaders(keys))
    result = run_plan(plan_of(stages, before), admin, MemoryJournal())
    assert (result.state, admin.cluster.topics["payments"].partitions[1].leader) == (RunState.DONE, 4)


def test_only_moves_that_change_the_replication_factor_may_change_it(before: Cluster, admin: SimulatedAdmin) -> None:
    asked: list[tuple[set[str], bool]] = []
    reassign = admin.reassign

    def watched(
        targets: Mapping[TopicPartition, Sequence[int] | None], *, is_replication_factor_change_allowed: bool = True
    ) -> Mapping[TopicPartition, Answer]:
        asked.append(({str(key) for key in targets}, is_replication_factor_change_allowed))
        return reassign(targets, is_replication_factor_change_allowed=is_replication_factor_change_allowed)

    admin.reassign = watched  # type: ignore[method-assign]
    run_plan(whole_plan(before), admin, MemoryJournal())
    assert ({"clicks-0", "payments-0"}, True) in asked
    assert all(not is_allowed for keys, is_allowed in asked if keys != {"clicks-0", "payments-0"})


def test_a_partition_under_min_isr_is_repaired() -> None:
    before = small_cluster(
        "a-0: 1,2,3 isr 1 size 10", configs={"a": {"min.insync.replicas": "2"}}, brokers=range(1, 6), fenced=[2, 3]
    )
    plan = plan_of([ReassignStage(1, (move("a-0", "1,2,3", "1,4,5"),))], before)
    admin = admin_of(before)
    assert run_plan(plan, admin, MemoryJournal()).state is RunState.DONE
    assert shortcomings(plan, before, admin.cluster) == []


def test_a_leader_hands_over_while_a_dead_replica_is_still_listed() -> None:
    before = small_cluster("a-0: 1,2,3 isr 2,3 leader 2 size 10", fenced=[1])
    stages = (
        ReassignStage(1, (move("a-0", "1,2,3", "3,1,2"),)),
        ElectStage(2, (election("a-0", 3),)),
        ReassignStage(3, (move("a-0", "3,1,2", "3"),)),
    )
    plan = plan_of(stages, before, brokers_alive=())
    admin = admin_of(before)
    assert run_plan(plan, admin, MemoryJournal()).state is RunState.DONE
    assert shortcomings(plan, before, admin.cluster) == []


def test_outside_its_windows_a_plan_is_refused_and_inside_it_runs() -> None:
    before = cluster()  # a Saturday, 14:00 UTC
    night = Window(("fri",), "22:00", "05:00")
    day = Window(("sat",), "15:00", "16:00", "Europe/Berlin")
    assert refused(two_moves(before), admin_of(before), Refused, declared=within(night)).code == "KR423"
    assert run_plan(two_moves(before), admin_of(before), MemoryJournal(), declared=within(day)).state is RunState.DONE


def test_after_the_deadline_no_stage_begins_and_the_next_run_goes_on(before: Cluster, admin: SimulatedAdmin) -> None:
    plan = two_moves(before)
    with pytest.raises(StoppedEarly) as stopped:
        run_plan(plan, admin, MemoryJournal(), deadline=admin.clock.now() + timedelta(seconds=1))
    result = stopped.value.result
    assert stopped.value.code == "KR711"
    assert result is not None
    assert (result.state, result.stages_done, result.left) == (RunState.STOPPED, 1, (TopicPartition("payments", 0),))
    assert "1 of 2 stages done; 3 moves: 2 done, 1 to do (payments-0)" in str(stopped.value)
    assert throttles(admin.cluster) == throttles(before)
    assert run_plan(plan, admin, MemoryJournal()).state is RunState.DONE


@pytest.mark.parametrize("is_window", [False, True])
def test_when_the_time_is_over_inside_a_stage_what_is_in_flight_ends_and_nothing_else_begins(
    *, is_window: bool
) -> None:
    before = replace(cluster(), observed_at="2026-11-21T14:59:58Z")
    moves = (move("orders-0", "1,2,3", "1,2,4"), move("clicks-0", "1,2,3", "1,2,4"))
    plan = plan_of([ReassignStage(1, moves, RATE)], before, per_broker=1)
    admin = admin_of(before)
    late = (
        {"declared": within(Window(("sat",), "14:00", "15:00"))}
        if is_window
        else {"deadline": admin.clock.now() + timedelta(seconds=1)}
    )
    with pytest.raises(StoppedEarly) as stopped:
        run_plan(plan, admin, MemoryJournal(), **late)
    assert stopped.value.code == ("KR712" if is_window else "KR711")
    assert str(stopped.value).startswith("stopped before the end of stage 1 of 1: ")
    ended = assignments(admin.cluster)
    assert (ended["orders-0"], ended["clicks-0"]) == ((1, 2, 4), (1, 2, 3))
    assert throttles(admin.cluster) == throttles(before)
    assert run_plan(plan, admin, MemoryJournal()).state is RunState.DONE
    assert shortcomings(plan, before, admin.cluster) == []


def test_a_run_that_goes_on_counts_the_stages_done_before_it(before: Cluster, admin: SimulatedAdmin) -> None:
    plan = two_moves(before)
    with pytest.raises(StoppedEarly):
        run_plan(plan, admin, MemoryJournal(), deadline=admin.clock.now() + timedelta(seconds=1))
    admin.writes = 0
    error = refused(plan, admin, StoppedEarly, deadline=admin.clock.now())
    assert "stopped before stage 2 of 2: the time given is over" in str(error)
    assert "1 of 2 stages done; 3 moves: 2 done, 1 to do (payments-0)" in str(error)
    told = run_plan(plan, admin, MemoryJournal(), is_dry_run=True)
    assert (told.state, told.stages_done, told.left) == (RunState.CHECKED, 1, (TopicPartition("payments", 0),))


def test_when_its_window_ends_no_further_stage_begins() -> None:
    before = replace(cluster(), observed_at="2026-11-21T14:59:58Z")
    admin = admin_of(before)
    with pytest.raises(StoppedEarly) as stopped:
        run_plan(two_moves(before), admin, MemoryJournal(), declared=within(Window(("sat",), "14:00", "15:00")))
    assert stopped.value.code == "KR712"
    assert assignments(admin.cluster)["orders-0"] == (1, 2, 4)


def test_a_signal_takes_the_moves_in_flight_back_in_their_order(before: Cluster, admin: SimulatedAdmin) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-2", "3,1,2", "1,4,5"),), RATE)], before)
    with pytest.raises(StoppedEarly) as stopped:
        run_plan(plan, admin, MemoryJournal(), should_stop=lambda: "SIGINT" if in_flight(admin.cluster) else None)
    assert "SIGINT" in str(stopped.value)
    assert (assignments(admin.cluster), throttles(admin.cluster)) == (assignments(before), throttles(before))
    assert in_flight(admin.cluster) == []


def test_an_unexpected_error_leaves_nothing_behind_either(before: Cluster, admin: SimulatedAdmin) -> None:

    def broken() -> None:
        raise KeyboardInterrupt

    admin.fault = At("disks", 2, broken)
    with pytest.raises(KeyboardInterrupt):
        run_plan(two_moves(before), admin, MemoryJournal())
    assert (assignments(admin.cluster), throttles(admin.cluster)) == (assignments(before), throttles(before))


def test_a_partition_that_somebody_else_moves_meanwhile_is_left_alone_and_named(
    before: Cluster, admin: SimulatedAdmin
) -> None:
    admin.fault = At("disks", 2, lambda: admin.reassign({ORDERS_0: (1, 2, 6)}))
    error = failed(two_moves(before), admin)
    assert error.code == "KR701"
    assert "orders-0 is being reassigned to [1, 2, 6], expected [1, 2, 3] or [1, 2, 4]" in str(error)
    assert assignments(admin.cluster)["orders-1"] == (2, 3, 5)
    assert throttles(admin.cluster) == throttles(before)
    admin.clock.sleep(100)
    assert set(assignments(admin.cluster)["orders-0"]) >= {1, 2, 6}


def test_a_move_that_somebody_else_cancels_is_not_fought_over(before: Cluster, admin: SimulatedAdmin) -> None:
    admin.fault = At("disks", 2, lambda: admin.reassign({ORDERS_0: None}))
    error = failed(two_moves(before), admin)
    assert "somebody else cancelled its move" in str(error)
    assert assignments(admin.cluster)["orders-0"] == (1, 2, 3)


def test_a_topic_deleted_meanwhile_is_named(before: Cluster, admin: SimulatedAdmin) -> None:
    admin.fault = At("disks", 2, lambda: admin.delete_topics(["orders"]))
    error = failed(two_moves(before), admin)
    assert "orders-0 is gone" in str(error)
    left = {where for where in throttles(before) if "orders" not in where}
    assert set(throttles(admin.cluster)) == left


def test_a_destination_that_dies_has_its_moves_taken_back_while_the_rest_ends(
    before: Cluster, admin: SimulatedAdmin
) -> None:
    admin.fault = At("disks", 2, lambda: admin.kill_broker(4))
    error = failed(two_moves(before), admin)
    assert error.code == "KR703"
    assert "broker 4" in str(error)
    assert "run apply again" in str(error)
    found = assignments(admin.cluster)
    assert (found["orders-0"], found["orders-1"], found["payments-0"]) == ((1, 2, 3), (2, 3, 5), (2, 4))
    assert in_flight(admin.cluster) == []
    result = error.result
    assert result is not None
    assert [one.code for one in result.leftover_throttles] == ["KR720"]
    assert result.seconds < 60
    admin.return_broker(4)
    admin.clock.sleep(60)
    ended = run_plan(two_moves(before), admin, MemoryJournal())
    assert [one.code for one in ended.leftover_throttles] == ["KR726"], "only the record names the debt of broker 4"
    put_back_what_is_named(two_moves(before), admin, ended)
    assert shortcomings(two_moves(before), before, admin.cluster) == []


def test_each_move_to_a_dead_destination_is_told_by_its_own_lists(before: Cluster, admin: SimulatedAdmin) -> None:
    moves = (move("orders-0", "1,2,3", "1,2,4"), move("payments-0", "2,4", "2,6"), move("clicks-0", "1,2,3", "1,6,3"))
    admin.fault = At("disks", 2, lambda: admin.kill_broker(6))
    told: list[str] = []
    error = failed(plan_of([ReassignStage(1, moves, RATE)], before), admin, notify=told.append)
    assert "broker 6, which payments-0 needs in [2, 6], is not alive" in str(error)
    assert "broker 6, which clicks-0 needs in [1, 6, 3], is not alive" in str(error)
    assert "it went back to [2, 4]" in str(error)
    assert len([one for one in told if "broker 6" in one and "taken back, the rest goes on" in one]) == 1


def test_partitions_that_somebody_adds_meanwhile_are_told_and_not_touched(
    before: Cluster, admin: SimulatedAdmin
) -> None:
    added = CreatePartitions("payments", 2, 4, {2: (1, 2), 3: (4, 5)})
    admin.fault = At("disks", 2, lambda: admin.create_partitions([added]))
    told: list[str] = []
    result = run_plan(two_moves(before), admin, MemoryJournal(), notify=told.append)
    (text,) = [one for one in result.messages if "payments" in one]
    assert text.startswith("topic payments: partitions 2 -> 4 while this run went on")
    assert text in told
    found = assignments(admin.cluster)
    assert (found["payments-2"], found["payments-3"]) == ((1, 2), (4, 5))


def test_partitions_that_the_plan_adds_are_not_told_as_somebody_elses(before: Cluster) -> None:
    assert run_plan(whole_plan(before), admin_of(before), MemoryJournal()).messages == ()


def test_a_destination_that_restarts_is_waited_for(before: Cluster, admin: SimulatedAdmin) -> None:

    def restart() -> None:
        admin.kill_broker(4)
        admin.fault = At("topics", 4, lambda: admin.return_broker(4))

    admin.fault = At("disks", 2, restart)
    assert run_plan(two_moves(before), admin, MemoryJournal()).state is RunState.DONE
    assert shortcomings(two_moves(before), before, admin.cluster) == []


def test_a_stage_without_progress_is_taken_back(before: Cluster, admin: SimulatedAdmin) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), 0)], before, timeout_seconds=600)
    error = failed(plan, admin)
    assert error.code == "KR702"
    assert "stage 1 made no progress for 600 s: orders-0" in str(error)
    assert (assignments(admin.cluster), throttles(admin.cluster)) == (assignments(before), throttles(before))
    assert in_flight(admin.cluster) == []


def test_a_slow_stage_is_not_taken_for_a_stuck_one(before: Cluster) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE // 100)], before, timeout_seconds=60)
    assert run_plan(plan, admin_of(before), MemoryJournal()).state is RunState.DONE


def test_a_cluster_that_stays_away_fails_the_run_and_names_what_is_left(before: Cluster, admin: SimulatedAdmin) -> None:

    def gone() -> None:
        def unavailable(_name: str, _moment: Moment) -> Answer | None:
            raise ClusterUnavailable("no broker answers")

        admin.fault = unavailable

    admin.fault = At("disks", 2, gone)
    error = failed(two_moves(before), admin)
    assert error.code == "KR705"
    assert "may still be in flight" in str(error)
    assert "KR720" in str(error)
    admin.fault = None
    assert run_plan(two_moves(before), admin, MemoryJournal()).state is RunState.DONE
    assert shortcomings(two_moves(before), before, admin.cluster) == []


def test_a_right_that_is_missing_ends_the_run_in_order(before: Cluster, admin: SimulatedAdmin) -> None:

    def denied() -> None:
        raise MissingRight("Alter on the cluster is missing")

    admin.fault = At("reassign", 1, denied)
    with pytest.raises(MissingRight):
        run_plan(two_moves(before), admin, MemoryJournal())
    assert throttles(admin.cluster) == throttles(before)


def test_what_kafka_refuses_for_good_is_told_and_not_repeated(before: Cluster, admin: SimulatedAdmin) -> None:
    asked: list[str] = []

    def policy(name: str, moment: Moment) -> Answer | None:
        if name == "create_topics" and moment is Moment.BEFORE:
            asked.append(name)
            return Answer("POLICY_VIOLATION", "no topics on Saturdays")
        return None

    admin.fault = policy
    error = failed(whole_plan(before), admin)
    assert asked == ["create_topics"]
    assert "audit: POLICY_VIOLATION (no topics on Saturdays)" in str(error)


def test_a_leader_that_cannot_be_elected_fails_the_run() -> None:
    before = small_cluster("a-0: 1,2,3 isr 2,3 leader 2", fenced=[1])
    plan = plan_of([ElectStage(1, (election("a-0", 1),))], before)
    admin = admin_of(before)
    error = failed(plan, admin)
    assert error.code == "KR706"
    assert "broker 1 does not lead a-0" in str(error)
    assert "it leads nothing until it is in sync; see to that broker" in str(error)


def test_a_stage_of_more_moves_than_a_request_takes_goes_in_parts() -> None:
    names = [f"a-{number}" for number in range(1500)]
    before = small_cluster(*(f"{name}: 1,2,3" for name in names))
    plan = plan_of([ReassignStage(1, tuple(move(name, "1,2,3", "1,3,2") for name in names))], before)
    admin = admin_of(before)
    assert run_plan(plan, admin, MemoryJournal()).writes == 2
    assert shortcomings(plan, before, admin.cluster) == []


def test_a_dry_run_says_each_step_and_does_none(before: Cluster, admin: SimulatedAdmin) -> None:
    result = run_plan(whole_plan(before), admin, MemoryJournal(), is_dry_run=True)
    assert admin.writes == 0
    assert (result.state, result.stages_done, result.stages) == (RunState.CHECKED, 0, 6)
    assert [str(key) for key in result.left][:3] == ["clicks-0", "clicks-1", "orders-0"]
    assert result.messages[0] == "stage 1: create topic audit, 2 partitions x 2 replicas"
    assert "stage 2: move orders-0 [1, 2, 3] -> [1, 2, 4], copies 95.4 MiB" in result.messages
    assert "stage 4: elect broker 4 as leader of payments-1" in result.messages


def test_a_dry_run_waits_for_what_is_under_way() -> None:
    before = small_cluster("orders-0: 1,2,3 size 100000000", "orders-1: 1,2,3 size 100000000")
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"), move("orders-1", "1,2,3", "1,2,5")))], before)
    admin = admin_of(before)
    admin.reassign({TopicPartition("orders", 0): (1, 2, 4)})
    told = run_plan(plan, admin, MemoryJournal(), is_dry_run=True).messages
    assert "stage 1: wait for orders-0, which is on its way to [1, 2, 4]" in told
    assert "stage 1: move orders-1 [1, 2, 3] -> [1, 2, 5], copies 95.4 MiB" in told


def test_the_journal_tells_each_step_of_each_stage(before: Cluster) -> None:
    journal = MemoryJournal()
    run_plan(two_moves(before), admin_of(before), journal)
    told = [(event.stage, event.step, event.outcome) for event in journal.appended]
    stage = [("throttle", Outcome.STARTED), ("throttle", Outcome.DONE), ("reassign", Outcome.DONE)]
    assert told[1:8] == [
        (1, "stage", Outcome.STARTED),
        *((1, step, outcome) for step, outcome in stage),
        *[(1, "unthrottle", Outcome.DONE)] * 2,
        (1, "stage", Outcome.DONE),
    ]
    assert told[0] == (0, "run", Outcome.STARTED)
    assert told[-1][1:] == ("run", Outcome.DONE)
