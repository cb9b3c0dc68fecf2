"""Partitions that somebody else adds to a topic while a run moves it."""

from helpers.small_runs import RATE, cluster, move, plan_of, whole_plan

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.crash import planted
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.model.change import CreatePartitions
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition


def test_they_are_told_of_once_and_left_alone() -> None:
    plan = plan_of([ReassignStage(1, (move("orders-1", "2,3,1", "2,3,4"),), RATE)], cluster())
    admin, told = SimulatedAdmin(cluster()), list[str]()

    def grow(name: str) -> None:
        if name == "poll" and len(admin.cluster.topics["orders"].partitions) == 3:
            admin.create_partitions([CreatePartitions("orders", 3, 5, {3: (3, 1, 2), 4: (1, 2, 3)})])

    with planted(grow):
        result = run_plan(plan, admin, MemoryJournal(), notify=told.append)
    assert [text for text in told if "partitions 3 -> 5" in text] == [text for text in told if "orders:" in text]
    assert len([text for text in result.messages if "orders: partitions 3 -> 5" in text]) == 1
    added = [admin.cluster.partition(TopicPartition("orders", number)) for number in (3, 4)]
    assert [partition.replicas for partition in added if partition] == [(3, 1, 2), (1, 2, 3)]


def test_the_plan_s_own_growth_is_nothing_to_tell() -> None:
    told: list[str] = []
    result = run_plan(whole_plan(cluster()), SimulatedAdmin(cluster()), MemoryJournal(), notify=told.append)
    assert not [text for text in (*told, *result.messages) if "by this plan" in text]
