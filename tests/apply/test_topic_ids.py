"""A topic that was deleted and made again under the same name is another topic: named, and never touched."""

from dataclasses import replace

import pytest
from apply.small_world import At
from helpers.plans.end_state import assignments, in_flight, shortcomings, throttles
from helpers.plans.small_runs import RATE, admin_of, election, move, plan_of

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.cancel import cancel_run
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.model.change import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    CreatePartitions,
    CreateTopic,
    TopicChange,
)
from reconciler.model.cluster import Cluster, Topic
from reconciler.model.plan import Plan
from reconciler.model.problem import StalePlan
from reconciler.model.run import Outcome, RunEvent, RunFailed, RunState, StoppedEarly
from reconciler.model.stage import ElectStage, ReassignStage, TopicsStage


def plan_for(before: Cluster) -> Plan:
    """Return a plan of two throttled stages, each of which moves a partition of `orders` and one of `payments`."""
    first = ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"), move("payments-0", "2,4", "2,6")), RATE)
    second = ReassignStage(2, (move("orders-1", "2,3,1", "2,3,5"), move("payments-1", "2,4", "2,6")), RATE)
    return plan_of([first, second], before)


def made_again(admin: SimulatedAdmin, name: str = "orders") -> Topic:
    """Delete that topic and make another one of its name and placement; return it."""
    was = admin.cluster.topics[name]
    admin.delete_topics([name])
    assignment = {one.partition: one.target_replicas for one in was.partitions}
    answers = admin.create_topics([CreateTopic(name, len(was.partitions), 3, {"retention.ms": "9"}, assignment)])
    assert answers[name].is_ok
    made = admin.cluster.topics[name]
    assert made.topic_id != was.topic_id
    return made


def as_found(made: Topic) -> str:
    """Return how a run names it."""
    return f"another topic under the same name (id {made.topic_id})"


def test_before_the_run_it_makes_the_plan_stale(before: Cluster, admin: SimulatedAdmin) -> None:
    made = made_again(admin)
    admin.writes = 0
    with pytest.raises(StalePlan) as error:
        run_plan(plan_for(before), admin, MemoryJournal())
    assert f"orders-0: expected [1, 2, 3] or [1, 2, 4], found {as_found(made)}" in str(error.value)
    assert admin.writes == 0


@pytest.mark.parametrize(
    ("change", "stage"),
    [
        (CreatePartitions("orders", 3, 4, {3: (1, 2, 3)}), None),
        (AlterConfigs("orders", {"retention.ms": "2000"}, (), {"retention.ms": "1000"}), None),
        (None, ElectStage(1, (election("orders-2", 3),))),
    ],
)
def test_no_kind_of_stage_takes_it_for_the_topic_of_the_plan(
    before: Cluster, admin: SimulatedAdmin, change: TopicChange | None, stage: ElectStage | None
) -> None:
    stages = [stage or TopicsStage(1, (0,))]
    changes = (change,) if change else ()
    plan = replace(plan_of(stages, before, topic_changes=changes), topic_ids={"orders": "id-of-orders"})
    made_again(admin)
    admin.writes = 0
    with pytest.raises(StalePlan, match="another topic under the same name"):
        run_plan(plan, admin, MemoryJournal())
    assert admin.writes == 0


def test_in_the_middle_of_a_move_it_is_named_and_left_as_it_is_while_the_rest_ends(
    before: Cluster, admin: SimulatedAdmin
) -> None:
    made: list[Topic] = []
    admin.fault = At("disks", 2, lambda: made.append(made_again(admin)))
    with pytest.raises(RunFailed) as error:
        run_plan(plan_for(before), admin, MemoryJournal())
    assert error.value.code == "KR701"
    assert f"orders-0 is gone: expected on [1, 2, 3] or [1, 2, 4], found {as_found(made[0])}" in str(error.value)
    assert admin.cluster.topics["orders"] == made[0]
    assert (assignments(admin.cluster)["payments-0"], in_flight(admin.cluster)) == ((2, 6), [])
    left = {where: value for where, value in throttles(before).items() if "orders" not in where}
    assert throttles(admin.cluster) == left


def test_between_stages_it_ends_the_run_before_the_next_one(before: Cluster, admin: SimulatedAdmin) -> None:
    made: list[Topic] = []

    class Watching(MemoryJournal):
        def append(self, event: RunEvent, /) -> None:
            super().append(event)
            if (event.step, event.outcome) == ("stage", Outcome.DONE):
                made.append(made_again(admin))

    with pytest.raises(StalePlan) as error:
        run_plan(plan_for(before), admin, Watching())
    assert f"orders-1: expected [2, 3, 1] or [2, 3, 5], found {as_found(made[0])}" in str(error.value)
    assert admin.cluster.topics["orders"] == made[0]
    assert (assignments(admin.cluster)["payments-0"], assignments(admin.cluster)["payments-1"]) == ((2, 6), (2, 4))


def test_neither_a_stop_nor_a_cancel_nor_a_crash_makes_it_ours(before: Cluster, admin: SimulatedAdmin) -> None:
    journal = MemoryJournal()
    made: list[Topic] = []
    admin.fault = At("disks", 2, lambda: made.append(made_again(admin)))
    with pytest.raises(StoppedEarly):
        run_plan(plan_for(before), admin, journal, should_stop=lambda: "SIGINT" if made else None)
    items = ConfigChange("follower.replication.throttled.replicas", ConfigOperation.SET, "0:4")
    admin.alter_topic_configs({"orders": [items]})
    now = admin.cluster.topics["orders"]
    assert cancel_run(plan_for(before), admin, MemoryJournal(journal.appended)).state is RunState.CANCELLED
    assert cancel_run(plan_for(before), admin, MemoryJournal()).state is RunState.CANCELLED
    assert admin.cluster.topics["orders"] == now


def test_a_plan_of_a_cluster_without_ids_runs(before: Cluster) -> None:
    without = replace(before, topics={name: replace(one, topic_id=None) for name, one in before.topics.items()})
    for plan, known in ((replace(plan_for(before), topic_ids={}), before), (plan_for(before), without)):
        admin = admin_of(known)
        assert run_plan(plan, admin, MemoryJournal()).state is RunState.DONE
        assert shortcomings(plan, known, admin.cluster) == []
