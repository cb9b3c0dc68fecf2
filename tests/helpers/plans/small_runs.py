"""A small plan with every kind of step, and the simulated cluster it was made for."""

from collections.abc import Sequence
from dataclasses import replace

from helpers.clusters.small_cluster import small_cluster

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic
from reconciler.model.cluster import (
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    Cluster,
    Topic,
)
from reconciler.model.move import Election, Move, Reason
from reconciler.model.plan import Plan, Restore, Rollback, Source
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage
from reconciler.model.topic_partition import TopicPartition

MB = 1_000_000
SIZE = 100 * MB
RATE = 20 * MB


def move(name: str, before: str, after: str) -> Move:
    """Return a move written as `move("orders-0", "1,2,3", "1,2,4")`."""
    topic, _, number = name.rpartition("-")
    made = Move(TopicPartition(topic, int(number)), ids(before), ids(after), 0, Reason.BALANCE)
    return replace(made, bytes=SIZE * len(made.added))


def election(name: str, leader: int) -> Election:
    """Return an election written as `election("orders-0", 1)`."""
    topic, _, number = name.rpartition("-")
    return Election(TopicPartition(topic, int(number)), leader)


def ids(text: str) -> tuple[int, ...]:
    """Return the broker ids of `1,2,3`."""
    return tuple(int(one) for one in text.split(","))


def cluster() -> Cluster:
    """Return six brokers with topics of 100 MB a partition, and an operator's own throttles of every kind."""
    return small_cluster(
        f"clicks-0: 1,2,3 size {SIZE}",
        f"clicks-1: 2,3,1 size {SIZE}",
        f"old-0: 1,2 size {SIZE}",
        f"orders-0: 1,2,3 size {SIZE}",
        f"orders-1: 2,3,1 size {SIZE}",
        f"orders-2: 3,1,2 leader 1 size {SIZE}",
        f"payments-0: 2,4 size {SIZE}",
        f"payments-1: 2,4 size {SIZE}",
        f"quiet-0: 3,2 size {SIZE}",
        configs={
            "clicks": {LEADER_THROTTLED_REPLICAS: "*", FOLLOWER_THROTTLED_REPLICAS: "1:3"},
            "orders": {LEADER_THROTTLED_REPLICAS: "0:1,2:3", "retention.ms": "1000", "segment.bytes": "1048576"},
            "payments": {FOLLOWER_THROTTLED_REPLICAS: ""},
        },
        rates={1: {LEADER_THROTTLED_RATE: str(50 * MB)}},
    )


def plan_of(stages: Sequence[Stage], before: Cluster, **fields: object) -> Plan:
    """Return a plan of these stages for that cluster."""
    moved = [m.topic_partition for s in stages if isinstance(s, ReassignStage) for m in s.moves]
    restores = [(key, before.partition(key)) for key in sorted(set(moved))]
    made = Plan(
        cluster_name="small",
        cluster_id=before.cluster_id,
        source=Source("sha256:00"),
        id="0badcafe",
        brokers_alive=tuple(
            sorted({b for s in stages if isinstance(s, ReassignStage) for m in s.moves for b in m.to_replicas})
        ),
        stages=tuple(stages),
        topic_ids={name: f"id-of-{name}" for name in sorted({key.topic for key in moved}) if name in before.topics},
        rollback=Rollback(
            tuple(Restore(key, found.replicas, found.leader) for key, found in restores if found is not None),
            {t.name: _throttles(t) for t in before.topics.values() if _throttles(t)},
            {b.id: dict(b.configs) for b in before.brokers.values() if b.configs},
        ),
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def _throttles(topic: Topic) -> dict[str, str]:
    return {key: value for key, value in topic.configs.items() if "replication.throttled" in key}


def whole_plan(before: Cluster) -> Plan:
    """Return a plan with topic changes, throttled moves, a factor up and one down, reorders, a chain, elections."""
    changes = (
        CreateTopic("audit", 2, 2, {"retention.ms": "5000"}, {0: (1, 2), 1: (2, 3)}),
        CreatePartitions("clicks", 2, 4, {2: (3, 1, 2), 3: (4, 5, 6)}),
        AlterConfigs(
            "orders", {"retention.ms": "2000"}, ("segment.bytes",), {"retention.ms": "1000", "segment.bytes": "1048576"}
        ),
        DeleteTopic("old", "id-of-old", is_declared=True),
    )
    stages = (
        TopicsStage(1, (0, 1, 2, 3)),
        ReassignStage(2, (move("orders-0", "1,2,3", "1,2,4"), move("orders-1", "2,3,1", "5,3,1")), RATE),
        ReassignStage(
            3,
            (
                move("clicks-0", "1,2,3", "1,2"),
                move("clicks-1", "2,3,1", "4,3,1"),
                move("payments-0", "2,4", "2,4,6"),
                move("payments-1", "2,4", "4,2"),
            ),
            RATE,
        ),
        ElectStage(4, (election("payments-1", 4), election("quiet-0", 3))),
        ReassignStage(5, (move("orders-0", "1,2,4", "6,2,4"), move("orders-2", "3,1,2", "3,2,5")), 2 * RATE),
        ElectStage(6, (election("orders-0", 6), election("orders-2", 3))),
    )
    return plan_of(stages, before, topic_changes=changes)


def admin_of(before: Cluster) -> SimulatedAdmin:
    """Return a simulated cluster in that state."""
    return SimulatedAdmin(before)
