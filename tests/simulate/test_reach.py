"""What stages reach."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic
from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.move import DirMove, Election, Move, Reason
from reconciler.model.plan import Plan, Source
from reconciler.model.stage import ElectStage, LogDirsStage, ReassignStage, Stage, TopicsStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.progress import advance
from reconciler.simulate.reach import reach, reach_all
from reconciler.simulate.requests import reassign

ORDERS = TopicPartition("orders", 0)
SMS = TopicPartition("sms", 0)


def move(key: TopicPartition, before: tuple[int, ...], after: tuple[int, ...]) -> Move:
    return Move(key, before, after, 0, Reason.BALANCE)


CHANGES = (
    CreateTopic("new", 1, 2, assignment={0: (4, 5)}),
    CreatePartitions("orders", 1, 2, assignment={1: (1, 2)}),
    AlterConfigs("orders", set={"retention.ms": "5"}, delete=("segment.ms",)),
    DeleteTopic("sms"),
)
STAGES: tuple[Stage, ...] = (
    ReassignStage(1, (move(ORDERS, (1, 2, 3), (4, 2)), move(SMS, (1, 2), (2, 1)))),
    ElectStage(2, (Election(ORDERS, 4), Election(SMS, 2))),
    TopicsStage(3, (0, 1, 2, 3)),
    ReassignStage(4, (move(ORDERS, (4, 2), (4, 5)),)),
)


def start() -> Cluster:
    return small_cluster(
        "orders-0: 1,2,3 leader 2 size 100", "sms-0: 1,2 size 7", configs={"orders": {"segment.ms": "9"}}
    )


def without_log_dirs(partitions: Mapping[TopicPartition, Partition]) -> Mapping[TopicPartition, Partition]:
    return {key: replace(partition, log_dirs=()) for key, partition in partitions.items()}


def test_stages_reach_what_the_same_requests_reach_in_time() -> None:
    cluster = start()
    stage = STAGES[0]
    assert isinstance(stage, ReassignStage)
    targets = {one.topic_partition: one.to_replicas for one in stage.moves}
    reached, waited_for = reach(cluster, stage), advance(reassign(cluster, targets).cluster, 60_000)
    assert without_log_dirs(dict(reached.partitions())) == without_log_dirs(dict(waited_for.partitions()))


def test_a_plan_reaches_stage_by_stage_what_each_stage_reaches_alone() -> None:
    cluster = start()
    plan = Plan("demo", "simulated", Source("sha256:0"), topic_changes=CHANGES, stages=STAGES)
    together = dict(cluster.partitions())
    for stage, touched in zip(STAGES, reach_all(cluster, plan), strict=True):
        cluster = reach(cluster, stage, CHANGES)
        together.update({key: partition for key, partition in touched.items() if partition is not None})
        for key in (key for key, partition in touched.items() if partition is None):
            del together[key]
        assert without_log_dirs(together) == without_log_dirs(dict(cluster.partitions()))
    assert {key: one.replicas for key, one in together.items()} == {
        ORDERS: (4, 5),
        TopicPartition("orders", 1): (1, 2),
        TopicPartition("new", 0): (4, 5),
    }
    assert together[ORDERS].leader == 4
    assert cluster.topics["orders"].configs == {"retention.ms": "5"}


@pytest.mark.long
def test_reaching_a_large_plan_copies_only_what_it_touches() -> None:
    lines = [f"orders-{number}: 1,2,3 size 10" for number in range(2_000)]
    moves = [move(TopicPartition("orders", number), (1, 2, 3), (1, 2, 4)) for number in range(2_000)]
    stages = tuple(ReassignStage(number + 1, (one,)) for number, one in enumerate(moves))
    plan = Plan("demo", "simulated", Source("sha256:0"), stages=stages)
    touched = list(reach_all(small_cluster(*lines), plan))
    assert [len(step) for step in touched] == [1] * 2_000


def test_a_stage_of_log_dirs_changes_where_a_replica_lies_and_nothing_else() -> None:
    partition = Partition(0, 1, (1, 2), (1, 2), sizes=(5, 5), log_dirs=("/d1", "/d1"))
    before = Cluster("id", brokers={1: Broker(1), 2: Broker(2)}, topics={"t": Topic("t", partitions=(partition,))})
    stage = LogDirsStage(1, (DirMove(TopicPartition("t", 0), 2, "/d1", "/d2", 5, Reason.LOG_DIRS),))
    assert reach(before, stage).topics["t"].partitions == (replace(partition, log_dirs=("/d1", "/d2")),)
