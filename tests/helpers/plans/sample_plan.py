"""A plan small enough to read, with one of everything, for whatever shows or stores plans."""

from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic
from reconciler.model.effect import Effect, EffectClass
from reconciler.model.move import Election, Move, Reason
from reconciler.model.plan import BrokerShare, LogDirUse, Plan, Proof, Restore, Rollback, Source
from reconciler.model.problem import Location, Problem, Severity
from reconciler.model.stage import ElectStage, ReassignStage, TopicsStage
from reconciler.model.topic_partition import TopicPartition

GIB = 1024**3
MIB = 1024**2
CLASSES = Location("demo/classes.yaml", 7, 5)
WEB = Location("demo/web.yaml", 9, 3)
CLUSTER = Location("demo/cluster.yaml", 12, 5)
KEYS_MOVE = Effect(EffectClass.IRREVERSIBLE, "Kafka takes no partitions away, and keys map elsewhere")
EMPTIED = Effect(
    EffectClass.DESTROYS,
    "deletes every record, within minutes of its writing",
    "retention.ms",
    48 * GIB,
    ("audit", "billing"),
    ("billing",),
    is_total=True,
)


def moves_of_sessions() -> tuple[Move, ...]:
    """Return two moves for the rack rule."""
    return tuple(
        Move(TopicPartition("sessions", number), (1, 4), (1, 5), 3 * GIB // 2, Reason.RACKS, CLASSES)
        for number in (2, 11)
    )


def moves_of_clicks() -> tuple[Move, ...]:
    """Return twelve moves that add a third replica."""
    return tuple(
        Move(TopicPartition("clicks", number), (2, 4), (2, 4, 6), 2 * GIB, Reason.REPLICATION_FACTOR, WEB)
        for number in range(12)
    )


def sample_plan() -> Plan:
    """Return a plan with every kind of stage, a warning and a violation."""
    elections = tuple(Election(TopicPartition("orders", number), 3) for number in range(5))
    moves = (*moves_of_sessions(), *moves_of_clicks())
    copied = sum(move.bytes for move in moves)
    return Plan(
        cluster_name="demo",
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        source=Source("sha256:00", "2026-11-21T14:02:11Z", "1c0ffee1c0ffee1c0ffee1c0ffee1c0ffee1c0ff"),
        id="4f3c9a1e",
        digest=f"sha256:4f3c9a1e{56 * '0'}",
        brokers_alive=(1, 2, 3, 4, 5, 6),
        topic_changes=(
            CreateTopic("audit", 3, 2, {"retention.ms": "604800000"}, {0: (1, 2), 1: (2, 3), 2: (3, 1)}, WEB),
            CreatePartitions("orders", 12, 18, {12: (1, 2, 3)}, WEB, (KEYS_MOVE,)),
            AlterConfigs(
                "clicks",
                {"retention.ms": "1"},
                ("x.secret",),
                {"retention.ms": None, "x.secret": "s3"},
                WEB,
                (EMPTIED,),
            ),
        ),
        stages=(
            TopicsStage(1, (0, 1, 2)),
            ReassignStage(2, moves[:2], 50 * MIB, 31),
            ReassignStage(3, moves[2:], 50 * MIB, 82),
            ElectStage(4, elections),
        ),
        rollback=Rollback(
            tuple(Restore(move.topic_partition, move.from_replicas, move.from_replicas[0]) for move in moves)
        ),
        proof=Proof("bytes", copied, copied, {}),
        balance_before={1: BrokerShare(118, 61, 40 * GIB), 6: BrokerShare(126, 66, 42 * GIB)},
        balance_after={1: BrokerShare(123, 63, 41 * GIB), 6: BrokerShare(131, 66, 66 * GIB)},
        warnings=(Problem("KR801", "brokers elect preferred leaders by themselves", CLUSTER, Severity.WARNING),),
        violations=(Problem("KR402", "27.0 GiB would move, limit 1.0 GiB", CLUSTER, Severity.VIOLATION),),
        least_seconds=109,
        disk_peak={1: 43 * GIB, 6: 67 * GIB},
        disk_capacity={1: 100 * GIB, 6: 100 * GIB},
        log_dirs={6: (LogDirUse("/d1", 20 * GIB, 50 * GIB), LogDirUse("/d2", 41 * GIB, 50 * GIB))},
        predicted_log_dirs={move.topic_partition: {6: "/d2"} for move in moves_of_clicks()},
        topic_ids={"clicks": "aWQtb2YtY2xpY2tz", "orders": "aWQtb2Ytb3JkZXJz"},
    )
