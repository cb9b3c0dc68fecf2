"""What a rollback's plan holds: lists, limits, what it leaves alone and says so."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.small_runs import RATE, SIZE, admin_of, cluster, move, plan_of, whole_plan
from helpers.plans.undone import DESIRED, back, differences, half_full, plan_with_chains

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.files.plan_file import plan_text, read_plan, with_id, write_plan
from reconciler.model.change import AlterConfigs, ConfigChange, ConfigOperation, TopicChange
from reconciler.model.cluster import LEADER_THROTTLED_RATE, Cluster
from reconciler.model.config_value import UNREADABLE
from reconciler.model.desired import Desired, DesiredCluster, DesiredTopic, Limits, MovePolicy, Placement, Spread
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Severity
from reconciler.model.stage import ElectStage, ReassignStage, TopicsStage, moves_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.staging.rollback import as_if_cancelled, every_throttle_back, policy_of, rollback_of

BEFORE = cluster()
CHAINS = plan_with_chains(BEFORE)
AUDIT_STAYS = (
    "KR851 topic audit, which the plan created, stays: a rollback deletes no data. Where nobody needs it,"
    " declare it absent, or delete it yourself"
)
ORDERS_2_IS_LED_BY_ITS_FIRST = (
    "KR855 not all partitions were led by their first replica (orders-2 by 1), and now are:"
    " only a first replica can be elected"
)


def run(plan: Plan, before: Cluster) -> SimulatedAdmin:
    """Return a cluster on which that plan has run."""
    admin = admin_of(before)
    run_plan(plan, admin, MemoryJournal())
    return admin


def told(problems: Sequence[Problem]) -> list[str]:
    return [f"{problem.code} {problem.message}" for problem in problems]


def bare(plan: Plan) -> tuple[TopicChange, ...]:
    """Return the plan's topic changes without their effects."""
    return tuple(replace(change, effects=()) for change in plan.topic_changes)


def test_a_finished_run_goes_back_list_by_list_leader_by_leader() -> None:
    admin = run(CHAINS, BEFORE)
    found = back(CHAINS, admin)
    assert found.left == ()
    assert [problem.code for problem in found.plan.warnings] == ["KR814"]
    run_plan(found.plan, admin, MemoryJournal())
    # The two whose leader was not their first replica are led by it now.
    assert differences(BEFORE, admin.cluster) == []
    assert back(CHAINS, admin).plan.is_empty


def test_its_source_and_proof_say_what_it_is() -> None:
    found = back(CHAINS, run(CHAINS, BEFORE)).plan
    assert found.source.rolls_back == "0badcafe"
    assert found.source.desired_digest == CHAINS.source.desired_digest
    # clicks-0 gets 3 back, orders-0 1 and 3: nothing else is missing where it was.
    assert (found.proof.objective, found.proof.value, found.proof.lower_bound) == ("bytes", 3 * SIZE, 3 * SIZE)
    assert found.summary.bytes == 3 * SIZE
    assert (found.proof.joint_prices, found.proof.levels) == ({}, ())
    assert [each.replicas for each in found.rollback.assignments if str(each.topic_partition) == "orders-0"] == [
        (5, 2, 4)
    ]


def test_where_a_size_is_unknown_the_proof_counts_replicas() -> None:
    before = small_cluster("a-0: 1,2,3", "b-0: 1,2,3 size 7")
    plan = plan_of([ReassignStage(1, (move("a-0", "1,2,3", "1,2,4"), move("b-0", "1,2,3", "1,2,4")))], before)
    found = back(plan, run(plan, before)).plan
    assert (found.proof.objective, found.proof.value, found.proof.gap_percent) == ("replicas", 2, 0.0)
    assert "KR812" in {problem.code for problem in found.warnings}


def test_its_file_reads_back(tmp_path: Path) -> None:
    before = half_full()
    plan = plan_with_chains(before)
    found = back(plan, run(plan, before)).plan
    path = tmp_path / "back.json"
    write_plan(found, path)
    assert read_plan(path) == found
    assert '"rollsBack": "0badcafe"' in plan_text(found)


@pytest.mark.long
def test_stages_keep_the_limits() -> None:
    lines = [f"a-{number}: 1,2,3 size {SIZE}" for number in range(6)]
    before = small_cluster(*lines)
    moves = tuple(move(f"a-{number}", "1,2,3", "4,5,6") for number in range(6))
    plan = plan_of([ReassignStage(1, moves, RATE)], before)
    policy = MovePolicy(RATE // 2, per_broker=2, per_partition=1, per_stage=4, election_batch=5, timeout_seconds=99)
    desired = Desired(DesiredCluster("small", moves=policy))
    admin = run(plan, before)
    found = back(plan, admin, desired).plan
    stages = [stage for stage in found.stages if isinstance(stage, ReassignStage)]
    for stage in stages:
        assert len(stage.moves) <= 4
        assert all(len(one.added) <= 1 for one in stage.moves)
        assert stage.throttle_bytes_per_second == (RATE // 2 if any(one.added for one in stage.moves) else None)
    assert sum(one.bytes for stage in stages for one in stage.moves) == 18 * SIZE
    assert (found.per_broker, found.election_batch, found.timeout_seconds) == (2, 5, 99)
    run_plan(found, admin, MemoryJournal())
    assert differences(before, admin.cluster) == []


def test_a_limit_that_is_gone_over_is_a_violation_without_advice_that_does_not_fit() -> None:
    desired = Desired(replace(DESIRED.cluster, limits=Limits(moved_bytes=SIZE, changed_partitions=Fraction(1, 100))))
    found = back(CHAINS, run(CHAINS, BEFORE), desired).plan
    assert [problem.code for problem in found.violations] == ["KR411", "KR412"]
    assert not [problem for problem in found.violations if "--only" in problem.message]


def test_without_files_the_limits_are_what_the_plan_itself_tells() -> None:
    plan = replace(plan_with_chains(BEFORE), election_batch=7, timeout_seconds=70)
    found = back(plan, run(plan, BEFORE), policy_of(plan)).plan
    assert (found.election_batch, found.timeout_seconds) == (7, 70)
    rates = {s.throttle_bytes_per_second for s in found.stages if isinstance(s, ReassignStage) and s.bytes}
    assert rates == {RATE}


def test_configs_go_back_and_what_kafka_cannot_undo_is_named() -> None:
    plan = whole_plan(BEFORE)
    admin = run(plan, BEFORE)
    found = back(plan, admin)
    assert found.left == ()
    assert told(found.plan.warnings) == [
        AUDIT_STAYS,
        "KR852 topic clicks keeps 4 partitions, 2 before: Kafka takes none away",
        "KR853 topic old stays deleted: its data is gone. Where it is needed, declare it and plan again",
        ORDERS_2_IS_LED_BY_ITS_FIRST,
    ]
    assert bare(found.plan) == (
        AlterConfigs(
            "orders",
            {"retention.ms": "1000", "segment.bytes": "1048576"},
            (),
            {"retention.ms": "2000", "segment.bytes": None},
        ),
    )
    run_plan(found.plan, admin, MemoryJournal())
    after = admin.cluster
    assert dict(after.topics["orders"].configs) == dict(BEFORE.topics["orders"].configs)
    assert differences(BEFORE, after) == [
        "old-0: ((1, 2), 1, (1, 2)), now None",
        "orders-2: ((3, 1, 2), 1, (1, 2, 3)), now ((3, 1, 2), 3, (1, 2, 3))",
        "audit-0 is new",
        "audit-1 is new",
        "clicks-2 is new",
        "clicks-3 is new",
    ]


def test_an_override_that_was_not_there_is_removed_again() -> None:
    change = AlterConfigs("quiet", {"retention.ms": "5"}, (), {"retention.ms": None})
    plan = plan_of([TopicsStage(1, (0,))], BEFORE, topic_changes=(change,))
    admin = run(plan, BEFORE)
    found = back(plan, admin)
    assert found.plan.topic_changes == (AlterConfigs("quiet", {}, ("retention.ms",), {"retention.ms": "5"}),)
    run_plan(found.plan, admin, MemoryJournal())
    assert differences(BEFORE, admin.cluster) == []


def test_a_config_that_somebody_changed_since_is_left_alone_and_named() -> None:
    change = AlterConfigs("quiet", {"retention.ms": "5"}, (), {"retention.ms": None})
    plan = plan_of([TopicsStage(1, (0,))], BEFORE, topic_changes=(change,))
    admin = run(plan, BEFORE)
    admin.alter_topic_configs({"quiet": [ConfigChange("retention.ms", ConfigOperation.SET, "77")]})
    found = back(plan, admin)
    assert found.plan.is_empty
    assert told(found.left) == [
        "KR858 topic quiet: retention.ms is '77', not '5' as by the plan: somebody else changed it, so it is left alone"
    ]


def test_a_config_that_somebody_took_away_since_is_told_as_unset() -> None:
    change = AlterConfigs("quiet", {"retention.ms": "5"}, (), {"retention.ms": "4"})
    plan = plan_of([TopicsStage(1, (0,))], BEFORE, topic_changes=(change,))
    found = rollback_of(plan, BEFORE, DESIRED)
    (left,) = found.left
    assert left.message.startswith("topic quiet: retention.ms is unset, not '5' as by the plan: ")


@pytest.mark.parametrize(
    "change",
    [
        AlterConfigs("quiet", {"retention.ms": "5"}, (), {}),
        AlterConfigs("quiet", {}, ("message.format.version",), {"message.format.version": UNREADABLE}),
    ],
)
def test_a_config_whose_former_value_is_not_known_is_named(change: AlterConfigs) -> None:
    plan = plan_of([TopicsStage(1, (0,))], BEFORE, topic_changes=(change,))
    found = back(plan, run(plan, BEFORE))
    assert [problem.code for problem in found.left] == ["KR858"]
    assert found.plan.is_empty


def test_a_topic_made_again_under_a_deleted_name_is_left_and_named() -> None:
    plan = whole_plan(BEFORE)
    admin = run(plan, BEFORE)
    made = replace(BEFORE.topics["old"], topic_id="id-of-another")
    observed = replace(admin.observe(), topics={**admin.cluster.topics, "old": made})
    found = rollback_of(plan, observed, DESIRED)
    assert "topic old is another one, made since under the same name: it stays" in str(found.plan.warnings)


@pytest.mark.parametrize(
    ("broken", "why"),
    [("kill", "broker 3 is not alive"), ("lag", "broker 2 is not in sync"), ("leaderless", "it has no leader")],
)
def test_a_partition_whose_originals_are_not_fit_stays_and_says_why(broken: str, why: str) -> None:
    before = small_cluster(f"a-0: 1,2,3 size {SIZE}", f"b-0: 1,2,5 size {SIZE}")
    stages = [ReassignStage(1, (move("a-0", "1,2,3", "1,2,4"), move("b-0", "1,2,5", "6,2,5")), RATE)]
    plan = plan_of(stages, before)
    admin = run(plan, before)
    observed = admin.observe()
    if broken == "kill":
        admin.kill_broker(3)
        observed = admin.observe()
    else:
        a = observed.topics["a"]
        changed = {"lag": {"isr": (1, 4)}, "leaderless": {"leader": None}}[broken]
        one = replace(a.partitions[0], **changed)  # type: ignore[arg-type]
        observed = replace(observed, topics={**observed.topics, "a": replace(a, partitions=(one,))})
    found = rollback_of(plan, observed, DESIRED)
    assert told(found.left) == [
        f"KR856 a-0 cannot go back to [1, 2, 3] now: {why}. See to that and roll back again, or go on with apply"
    ]
    assert found.left[0] in found.plan.warnings
    moved = {str(one.topic_partition) for stage in found.plan.stages for one in getattr(stage, "moves", ())}
    assert moved == {"b-0"}


def test_what_is_below_min_isr_and_what_would_be_stays() -> None:
    before = small_cluster(
        f"a-0: 1,2 size {SIZE}", f"b-0: 1,2,3 size {SIZE}", configs={"b": {"min.insync.replicas": "2"}}
    )
    stages = [ReassignStage(1, (move("a-0", "1,2", "1,2,4"), move("b-0", "1,2,3", "1,2,4")), RATE)]
    plan = plan_of(stages, before)
    admin = run(plan, before)
    admin.alter_topic_configs({"a": [ConfigChange("min.insync.replicas", ConfigOperation.SET, "3")]})
    observed = admin.observe()
    b = observed.topics["b"]
    one = replace(b.partitions[0], isr=(1,), leader=1)
    found = rollback_of(
        plan, replace(observed, topics={**observed.topics, "b": replace(b, partitions=(one,))}), DESIRED
    )
    assert [problem.message.partition(": ")[2] for problem in found.left] == [
        "these are 2 replicas, min.insync.replicas is 3. See to that and roll back again, or go on with apply",
        "broker 2 is not in sync. See to that and roll back again, or go on with apply",
    ]
    assert found.plan.is_empty


def test_the_brokers_min_isr_holds_for_what_is_in_sync_and_never_keeps_the_old_factor_away() -> None:
    before = small_cluster(f"a-0: 1 size {SIZE}", f"b-0: 1,2,3 size {SIZE}")
    stages = [ReassignStage(1, (move("a-0", "1", "1,2"), move("b-0", "1,2,3", "1,2,4")), RATE)]
    plan = plan_of(stages, before)
    observed = run(plan, before).observe()
    brokers = {
        number: replace(broker, settings={"min.insync.replicas": "2"}) for number, broker in observed.brokers.items()
    }
    b = observed.topics["b"]
    topics = {**observed.topics, "b": replace(b, partitions=(replace(b.partitions[0], isr=(1,), leader=1),))}
    found = rollback_of(plan, replace(observed, brokers=brokers, topics=topics), DESIRED)
    moved = {str(one.topic_partition) for stage in found.plan.stages for one in getattr(stage, "moves", ())}
    assert (moved, [str(problem).partition(" ")[0] for problem in found.left]) == ({"a-0"}, ["b-0"])


def test_a_min_isr_that_the_plan_itself_raised_is_lowered_before_the_factor() -> None:
    before = small_cluster(f"a-0: 1,2 size {SIZE}")
    change = AlterConfigs("a", {"min.insync.replicas": "3"}, (), {"min.insync.replicas": None})
    plan = plan_of(
        [ReassignStage(1, (move("a-0", "1,2", "1,2,4"),), RATE), TopicsStage(2, (0,))], before, topic_changes=(change,)
    )
    admin = run(plan, before)
    found = back(plan, admin)
    assert [type(stage).__name__ for stage in found.plan.stages] == ["TopicsStage", "ReassignStage"]
    run_plan(found.plan, admin, MemoryJournal())
    assert differences(before, admin.cluster) == []


def test_a_min_isr_that_comes_back_counts_before_the_factor_is_lowered() -> None:
    change = AlterConfigs("a", {"min.insync.replicas": "1"}, (), {"min.insync.replicas": "3"})
    before = small_cluster(f"a-0: 1,2 size {SIZE}", configs={"a": {"min.insync.replicas": "3"}})
    plan = plan_of(
        [TopicsStage(1, (0,)), ReassignStage(2, (move("a-0", "1,2", "1,2,4"),), RATE)], before, topic_changes=(change,)
    )
    (left,) = back(plan, run(plan, before)).left
    assert left.message.startswith("a-0 cannot go back to [1, 2] now: these are 2 replicas, min.insync.replicas is 3.")


def test_what_somebody_else_moved_is_left_alone_and_named() -> None:
    admin = run(CHAINS, BEFORE)
    admin.reassign({TopicPartition("orders", 0): (6, 2, 4), TopicPartition("payments", 0): (2, 6, 4)})
    admin.clock.sleep(600)
    admin.reassign({TopicPartition("clicks", 0): (1, 2, 5)})
    found = back(CHAINS, admin)
    assert {(problem.code, problem.severity) for problem in found.left} == {("KR854", Severity.WARNING)}
    assert [problem.message.split(":")[0] for problem in found.left] == [
        "clicks-0 is being reassigned to [1, 2, 5], and not by this plan",
        "orders-0 is on [6, 2, 4], where this plan never put it",
        "payments-0 is on [2, 6, 4], where this plan never put it",
    ]
    admin.clock.sleep(600)
    run_plan(found.plan, admin, MemoryJournal())
    after = dict(admin.cluster.partitions())
    assert after[TopicPartition("orders", 0)].replicas == (6, 2, 4)
    assert after[TopicPartition("orders", 1)].replicas == (2, 3, 1)


def test_a_partition_that_is_gone_is_named() -> None:
    admin = run(CHAINS, BEFORE)
    admin.delete_topics(["quiet"])
    observed = admin.observe()
    gone = {name: topic for name, topic in observed.topics.items() if name != "payments"}
    found = rollback_of(CHAINS, replace(observed, topics=gone), DESIRED)
    assert [problem.message for problem in found.left] == [
        "payments-0 is gone, and so it does not go back to [2, 4]",
        "payments-1 is gone, and so it does not go back to [2, 4]",
    ]


def test_going_back_to_what_breaks_a_rack_rule_is_allowed_and_told() -> None:
    before = small_cluster(f"a-0: 1,4,2 size {SIZE}")
    plan = plan_of([ReassignStage(1, (move("a-0", "1,4,2", "1,3,2"),), RATE)], before)
    admin = run(plan, before)
    topic = DesiredTopic("a", placement=Placement(racks_spread=Spread.STRICT))
    found = back(plan, admin, replace(DESIRED, topics={"a": topic}))
    assert [problem.code for problem in found.plan.warnings] == ["KR857"]
    run_plan(found.plan, admin, MemoryJournal())
    assert differences(before, admin.cluster) == []


@pytest.mark.long
def test_every_list_on_the_way_of_an_earlier_rollback_is_known_without_its_file() -> None:
    before = small_cluster(f"a-0: 1,2,3 size {SIZE}")
    plan = plan_of([ReassignStage(1, (move("a-0", "1,2,3", "4,5,6"),), RATE)], before)
    first = back(plan, run(plan, before)).plan
    stages = [stage for stage in first.stages if isinstance(stage, ReassignStage)]
    assert len(stages) == 3
    for stage in stages:
        (step,) = stage.moves
        for stop in ("ended", "cancelled"):
            admin = run(plan, before)
            for earlier in stages[: stage.number - 1]:
                admin.reassign({one.topic_partition: one.to_replicas for one in earlier.moves})
                admin.clock.sleep(600)
            admin.reassign({step.topic_partition: step.to_replicas})
            if stop == "cancelled":
                admin.reassign({step.topic_partition: None})
            admin.clock.sleep(600)
            found = back(plan, admin)
            assert found.left == (), (stage.number, stop)
            run_plan(found.plan, admin, MemoryJournal())
            assert differences(before, admin.cluster) == []


def test_what_kafkas_own_cancel_of_the_plan_left_goes_back_to_its_order() -> None:
    plan = plan_of([ReassignStage(1, (move("a-0", "1,2,3", "4,2,3"),), RATE)], small_cluster(f"a-0: 1,2,3 size {SIZE}"))
    found = rollback_of(plan, small_cluster(f"a-0: 2,3,1 size {SIZE}"), DESIRED)
    assert found.left == ()
    assert [one.to_replicas for one in moves_of(found.plan.stages)] == [(1, 2, 3)]


def test_what_is_where_it_was_waits_for_no_replica_out_of_sync() -> None:
    plan = plan_of([ReassignStage(1, (move("a-0", "1,2,3", "1,2,4"),), RATE)], small_cluster("a-0: 1,2,3"))
    found = rollback_of(plan, small_cluster("a-0: 1,2,3 isr 1,2"), DESIRED)
    assert (found.left, found.plan.is_empty) == ((), True)


def test_what_is_in_flight_counts_as_taken_back_with_its_throttles() -> None:
    admin = admin_of(BEFORE)
    stage = CHAINS.stages[2]
    assert isinstance(stage, ReassignStage)
    admin.reassign({one.topic_partition: one.to_replicas for one in stage.moves})
    admin.alter_topic_configs(
        {"orders": [ConfigChange("leader.replication.throttled.replicas", ConfigOperation.APPEND, "0:2")]}
    )
    for broker_id in (1, 2):
        admin.alter_broker_configs(broker_id, [ConfigChange(LEADER_THROTTLED_RATE, ConfigOperation.SET, str(RATE))])
    seen = as_if_cancelled(admin.observe(), CHAINS, stage.moves)
    assert seen.partition(TopicPartition("orders", 0)) == BEFORE.partition(TopicPartition("orders", 0))
    assert dict(seen.topics["orders"].configs) == dict(BEFORE.topics["orders"].configs)
    assert {id_: broker.configs for id_, broker in seen.brokers.items()} == {
        id_: broker.configs for id_, broker in BEFORE.brokers.items()
    }
    found = with_id(rollback_of(CHAINS, seen, DESIRED).plan)
    assert found.is_empty
    assert as_if_cancelled(BEFORE, CHAINS, ()) is BEFORE


def test_every_throttle_that_any_rollback_sets_is_among_those_looked_for() -> None:
    from reconciler.apply.throttles import throttled_brokers, throttled_lists

    before = small_cluster(f"a-0: 1,2,3 size {SIZE}", f"b-0: 2,3 size {SIZE}")
    stages = [
        ReassignStage(1, (move("a-0", "1,2,3", "1,2,4"), move("b-0", "2,3", "2,3,5")), RATE),
        ReassignStage(2, (move("a-0", "1,2,4", "6,5,4"),), RATE),
    ]
    plan = plan_of(stages, before)
    traces = every_throttle_back(plan, DESIRED)
    for count in (1, 2):
        admin = run(plan_of(stages[:count], before), before)
        real = back(plan, admin).plan
        assert throttled_brokers(real) <= throttled_brokers(traces)
        for key, items in throttled_lists(real).items():
            assert items <= throttled_lists(traces)[key]
    assert every_throttle_back(plan_of([], before), DESIRED).stages == ()


def test_the_same_states_give_the_same_bytes() -> None:
    admin = run(CHAINS, BEFORE)
    assert plan_text(back(CHAINS, admin).plan) == plan_text(back(CHAINS, admin).plan)


def test_a_topic_that_was_made_again_is_not_touched() -> None:
    change = AlterConfigs("orders", {"retention.ms": "5"}, (), {"retention.ms": "1000"})
    stages = [*plan_with_chains(BEFORE).stages, TopicsStage(6, (0,))]
    plan = plan_of(stages, BEFORE, topic_changes=(change,), topic_ids={"orders": "id-of-orders"})
    admin = run(plan, BEFORE)
    observed = admin.observe()
    orders = replace(observed.topics["orders"], topic_id="id-of-another")
    found = rollback_of(plan, replace(observed, topics={**observed.topics, "orders": orders}), DESIRED)
    assert told(found.left) == ["KR854 topic orders is another one, made since under the same name: it is left alone"]
    assert "orders" not in {one.topic_partition.topic for s in found.plan.stages for one in getattr(s, "moves", ())}
    assert found.plan.topic_changes == ()


def test_disks_that_say_they_are_emptier_than_empty_still_give_a_plan_that_can_be_read(tmp_path: Path) -> None:
    admin = run(CHAINS, BEFORE)
    assert any((one.usable_bytes or 0) > 10**12 for broker in admin.cluster.brokers.values() for one in broker.log_dirs)
    write_plan(back(CHAINS, admin).plan, tmp_path / "back.json")
    assert read_plan(tmp_path / "back.json") == back(CHAINS, admin).plan


def test_a_partition_on_its_list_is_led_as_before_or_it_is_said_why_not() -> None:
    before = small_cluster("a-0: 1,2,3")
    plan = plan_of([ReassignStage(1, (move("a-0", "1,2,3", "2,1,3"),))], before)
    desired = Desired(DesiredCluster("small"))
    found = rollback_of(plan, small_cluster("a-0: 1,2,3 leader 2"), desired)
    assert (elections_of(found.plan), found.left) == ([("a-0", 1)], ())
    found = rollback_of(plan, small_cluster("a-0: 1,2,3 isr 2,3 leader 2"), desired)
    assert elections_of(found.plan) == []
    (left,) = told(found.left)
    assert left.startswith("KR856 a-0 cannot go back to [1, 2, 3] now: broker 1 is not in sync. ")


def test_a_partition_that_another_led_before_stays_led_by_another() -> None:
    before = small_cluster("a-0: 1,2,3 leader 3")
    plan = plan_of([ReassignStage(1, (move("a-0", "1,2,3", "2,1,3"),))], before)
    found = rollback_of(plan, small_cluster("a-0: 1,2,3 isr 2,3 leader 3"), Desired(DesiredCluster("small")))
    assert (elections_of(found.plan), found.left) == ([], ())


def elections_of(plan: Plan) -> list[tuple[str, int]]:
    stages = (stage for stage in plan.stages if isinstance(stage, ElectStage))
    return [(str(each.topic_partition), each.leader) for stage in stages for each in stage.elections]
