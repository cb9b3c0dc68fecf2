"""A plan and both states around it as Arrow tables: what policies ask."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import pyarrow as pa

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.desired import Desired, DesiredTopic
from reconciler.model.plan import Plan
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

Table: TypeAlias = pa.Table
_TEXT, _INT, _LONG, _YES_NO = pa.string(), pa.int32(), pa.int64(), pa.bool_()
_IDS, _TEXTS = pa.list_(_INT), pa.map_(_TEXT, _TEXT)
_TOPICS = {
    "topic": _TEXT,
    "is_internal": _YES_NO,
    "is_declared": _YES_NO,
    "labels": _TEXTS,
    "partitions": _INT,
    "replication_factor": _INT,
    "configs": _TEXTS,
    "observed_partitions": _INT,
    "observed_replication_factor": _INT,
    "observed_configs": _TEXTS,
}
_BROKERS = {
    "broker": _INT,
    "rack": _TEXT,
    "host": _TEXT,
    "is_alive": _YES_NO,
    "state": _TEXT,
    "capacity": _INT,
    "total_bytes": _LONG,
    "usable_bytes": _LONG,
    "configs": _TEXTS,
}
_REPLICAS = {
    "topic": _TEXT,
    "partition": _INT,
    "position": _INT,
    "broker": _INT,
    "rack": _TEXT,
    "log_dir": _TEXT,
    "size_bytes": _LONG,
    "is_leader": _YES_NO,
    "is_in_sync": _YES_NO,
}
_MOVES = {
    "stage": _INT,
    "topic": _TEXT,
    "partition": _INT,
    "from_replicas": _IDS,
    "to_replicas": _IDS,
    "bytes": _LONG,
    "reason": _TEXT,
    "at": _TEXT,
}


def plan_tables(
    plan: Plan, desired: Desired, observed: Cluster, planned: Cluster, declared: Mapping[str, DesiredTopic]
) -> Mapping[str, Table]:
    """Return the tables `topics, brokers, observed_replicas, planned_replicas, moves`, rows in the order of their keys.

    `planned` is the cluster as the plan leaves it, `declared` what is written of each managed topic.

    A topic: `partitions`, `replication_factor` (the least of its partitions') and `configs` as the plan leaves them,
    null where it deletes the topic; `observed_…` as they are, null where it makes it. `configs` are overrides alone.
    A broker: `state` and `capacity` as declared, bytes of its log dirs in all, null where one is not known.
    A replica: `position` 0 is the preferred leader; one that a reassignment is taking away has none. `size_bytes` is
    null where not known. A move: whole ordered lists of brokers, and the line that asks for it.
    """
    return {
        "topics": _table(_TOPICS, _topic_rows(observed, planned, declared)),
        "brokers": _table(_BROKERS, _broker_rows(desired, observed)),
        "observed_replicas": _table(_REPLICAS, _replica_rows(observed, {})),
        "planned_replicas": _table(_REPLICAS, _replica_rows(planned, plan.foretold_log_dirs)),
        "moves": _table(_MOVES, _move_rows(plan)),
    }


def _table(columns: Mapping[str, pa.DataType], rows: Iterable[tuple[object, ...]]) -> Table:
    held: list[list[object]] = [[] for _ in columns]
    for row in rows:
        for column, value in zip(held, row, strict=True):
            column.append(value)
    arrays = [pa.array(values, kind) for values, kind in zip(held, columns.values(), strict=True)]
    return pa.table(dict(zip(columns, arrays, strict=True)))


def _topic_rows(
    observed: Cluster, planned: Cluster, declared: Mapping[str, DesiredTopic]
) -> Iterator[tuple[object, ...]]:
    for name in sorted({*observed.topics, *planned.topics}):
        was, now = observed.topics.get(name), planned.topics.get(name)
        written = declared.get(name)
        known = now or was
        yield (
            name,
            known is not None and known.is_internal,
            written is not None,
            sorted(written.labels.items()) if written is not None else [],
            *_held(now.partitions if now else None),
            sorted(now.configs.items()) if now else None,
            *_held(was.partitions if was else None),
            sorted(was.configs.items()) if was else None,
        )


def _held(partitions: tuple[Partition, ...] | None) -> tuple[int | None, int | None]:
    """Return how many partitions there are, and the least replication factor."""
    if partitions is None:
        return None, None
    return len(partitions), min((len(partition.target_replicas) for partition in partitions), default=None)


def _broker_rows(desired: Desired, observed: Cluster) -> Iterator[tuple[object, ...]]:
    for broker in observed.brokers.values():
        written = desired.cluster.broker(broker.id)
        yield (
            broker.id,
            broker.rack,
            broker.host,
            not broker.is_fenced,
            written.state.value,
            written.capacity,
            _sum(log_dir.total_bytes for log_dir in broker.log_dirs),
            _sum(log_dir.usable_bytes for log_dir in broker.log_dirs),
            sorted(broker.configs.items()),
        )


def _sum(known: Iterable[int | None]) -> int | None:
    """Return the sum; None where one is not known, or there is none."""
    values = list(known)
    whole = [value for value in values if value is not None]
    return sum(whole) if whole and len(whole) == len(values) else None


def _replica_rows(
    cluster: Cluster, foretold: Mapping[TopicPartition, Mapping[int, str]]
) -> Iterator[tuple[object, ...]]:
    racks = {broker.id: broker.rack for broker in cluster.brokers.values()}
    for key, partition in cluster.partitions():
        target = partition.target_replicas
        known = dict(zip(partition.replicas, partition.log_dirs, strict=False))
        for broker_id in sorted(partition.replicas, key=lambda one: (one not in target, partition.replicas.index(one))):
            yield (
                key.topic,
                key.partition,
                target.index(broker_id) if broker_id in target else None,
                broker_id,
                racks.get(broker_id),
                known.get(broker_id) or foretold.get(key, {}).get(broker_id),
                partition.size_on(broker_id),
                broker_id == partition.leader,
                broker_id in partition.isr,
            )


def _move_rows(plan: Plan) -> Iterator[tuple[object, ...]]:
    for stage in plan.stages:
        for move in stage.moves if isinstance(stage, ReassignStage) else ():
            yield (
                stage.number,
                *move.topic_partition,
                move.from_replicas,
                move.to_replicas,
                move.bytes,
                move.reason.value,
                str(move.at) if move.at else None,
            )
