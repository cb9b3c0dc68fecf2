"""Makes Arrow tables of a plan and both states around it: what policies ask."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.balance.files.arrow_tables import INT, INTS, LONG, TEXT, TEXT_BY_TEXT, YES_NO, ArrowTable, arrow_table
from reconciler.model.cluster import Cluster, Partition
from reconciler.model.desired import Desired, DesiredTopic
from reconciler.model.plan import Plan
from reconciler.model.stage import ReassignStage, TopicsStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.reach import reach, reach_all
from reconciler.simulate.storage import with_metadata

_TOPICS = {
    "topic": TEXT,
    "is_internal": YES_NO,
    "is_declared": YES_NO,
    "labels": TEXT_BY_TEXT,
    "partitions": INT,
    "replication_factor": INT,
    "configs": TEXT_BY_TEXT,
    "observed_partitions": INT,
    "observed_replication_factor": INT,
    "observed_configs": TEXT_BY_TEXT,
}
_BROKERS = {
    "broker": INT,
    "rack": TEXT,
    "host": TEXT,
    "is_alive": YES_NO,
    "state": TEXT,
    "capacity": INT,
    "total_bytes": LONG,
    "usable_bytes": LONG,
    "configs": TEXT_BY_TEXT,
}
_REPLICAS = {
    "topic": TEXT,
    "partition": INT,
    "position": INT,
    "broker": INT,
    "rack": TEXT,
    "log_dir": TEXT,
    "size_bytes": LONG,
    "is_leader": YES_NO,
    "is_in_sync": YES_NO,
}
_MOVES = {
    "stage": INT,
    "topic": TEXT,
    "partition": INT,
    "from_replicas": INTS,
    "to_replicas": INTS,
    "bytes": LONG,
    "reason": TEXT,
    "at": TEXT,
}


def plan_tables(
    plan: Plan, desired: Desired, observed: Cluster, planned: Cluster, declared: Mapping[str, DesiredTopic]
) -> Mapping[str, ArrowTable]:
    """Return the tables `topics, brokers, observed_replicas, planned_replicas, moves`, rows in the order of their keys.

    `planned` is the cluster as the plan leaves it, `declared` what is written of each managed topic.

    A topic: `partitions`, `replication_factor` (the least of its partitions') and `configs` as the plan leaves them,
    null where it deletes the topic; `observed_…` as they are, null where it makes it. `configs` are overrides alone.
    A broker: `state` and `capacity` (of replicas) as declared, bytes of its log dirs in all, null where one is unknown.
    A replica: `position` 0 is the preferred leader; one that a reassignment is taking away has none. `size_bytes` is
    null where not known. A move: whole ordered lists of brokers, and the line that asks for it.
    """
    return {
        "topics": arrow_table(_TOPICS, _topic_rows(observed, planned, declared)),
        "brokers": arrow_table(_BROKERS, _broker_rows(desired, observed)),
        "observed_replicas": arrow_table(_REPLICAS, _replica_rows(observed, {})),
        "planned_replicas": arrow_table(_REPLICAS, _replica_rows(planned, plan.new_log_dirs)),
        "moves": arrow_table(_MOVES, _move_rows(plan)),
    }


def state_after(plan: Plan, observed: Cluster) -> Cluster:
    """Return the cluster as the plan leaves it: topics, configs, replicas, leaders; free bytes stay as they were."""
    cluster = observed
    touched: dict[TopicPartition, Partition] = {}
    for stage, step in zip(plan.stages, reach_all(observed, plan), strict=True):
        if isinstance(stage, TopicsStage):
            cluster = reach(with_metadata(cluster, touched), stage, plan.topic_changes)
            touched = {}
        else:
            touched.update({key: partition for key, partition in step.items() if partition is not None})
    return with_metadata(cluster, touched)


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


def _held(partitions: Sequence[Partition] | None) -> tuple[int | None, int | None]:
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
            written.weight("replicas"),
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
    cluster: Cluster, predicted: Mapping[TopicPartition, Mapping[int, str]]
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
                known.get(broker_id) or predicted.get(key, {}).get(broker_id),
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
