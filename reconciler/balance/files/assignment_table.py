"""Makes Arrow tables of observed clusters: who holds which partition, on which log dir, on which brokers and disks."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.balance.files.arrow_tables import INT, INTS, LONG, LONGS, TEXT, TEXTS, ArrowTable, arrow_table
from reconciler.model.cluster import Broker, Cluster, Partition
from reconciler.model.desired import CAPACITIES
from reconciler.model.topic_partition import TopicPartition

BEFORE, AFTER = "before", "after"
_PARTITIONS = {
    "side": TEXT,
    "cluster": TEXT,
    "topic": TEXT,
    "partition": INT,
    "leader": INT,
    "replicas": INTS,
    "sizes": LONGS,
    "log_dirs": TEXTS,
    "racks": TEXTS,
}
_BROKERS = {
    "cluster": TEXT,
    "broker": INT,
    "capacity": INT,
    **{f"{measure}_weight": LONG for measure in CAPACITIES},
    "foreign_bytes": LONG,
}
_PLACES = {
    "side": TEXT,
    "cluster": TEXT,
    "broker": INT,
    "rack": TEXT,
    "log_dir": TEXT,
    "total_bytes": LONG,
    "usable_bytes": LONG,
}


@dataclass(frozen=True, slots=True)
class Side:
    """One cluster as it is (`before`) or as a plan leaves it (`after`), under the name that samples call it by.

    `predicted_log_dirs`: where a plan takes new replicas to go, for those whose log dir the cluster does not tell.
    """

    name: str
    cluster: Cluster
    side: str = BEFORE
    predicted_log_dirs: Mapping[TopicPartition, Mapping[int, str]] = field(default_factory=dict)


def partition_table(sides: Iterable[Side]) -> ArrowTable:
    """Return one row for each side and partition.

    Columns: side, cluster, topic, partition, leader, replicas, sizes, log_dirs, racks. A partition under reassignment
    stands on its target. The four lists run parallel; what is not known is null. A replica on a broker that has one log
    dir only is in that.
    """
    return arrow_table(_PARTITIONS, (row for side in sides for row in _partition_rows(side)))


@dataclass(frozen=True, slots=True)
class Weighed:
    """What a cluster's fair shares go by: capacities of brokers, the weights that differ from them, foreign bytes."""

    capacities: Mapping[int, int] = field(default_factory=dict)
    weights: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    foreign: Mapping[int, int] = field(default_factory=dict)


def broker_table(sides: Iterable[Side], weighed: Mapping[str, Weighed]) -> ArrowTable:
    """Return one row for each broker that is registered, or holds a replica, on any side.

    Columns: cluster, broker, capacity, which is 1 where none is given; a weight for each measure, the capacity where
    none is given; foreign_bytes.
    """
    found = brokers_of(sides)
    rows = (_broker_row(name, broker.id, weighed) for name in sorted(found) for broker in found[name].values())
    return arrow_table(_BROKERS, rows)


def _broker_row(name: str, broker_id: int, weighed: Mapping[str, Weighed]) -> tuple[object, ...]:
    of = weighed.get(name, Weighed())
    capacity, weights = of.capacities.get(broker_id, 1), of.weights.get(broker_id, {})
    each = (weights.get(measure, capacity) for measure in CAPACITIES)
    return name, broker_id, capacity, *each, of.foreign.get(broker_id, 0)


def place_table(sides: Iterable[Side]) -> ArrowTable:
    """Return one row for each side and broker, and one for each of its log dirs, whether they hold anything or not.

    Columns: side, cluster, broker, rack, log_dir (null for the broker itself), total_bytes and usable_bytes as they are
    before, null where not known; those of a broker itself are 0, or null where its log dirs are not known.
    """
    sides = tuple(sides)
    return arrow_table(_PLACES, (row for side in sides for row in _place_rows(side, brokers_of(sides)[side.name])))


def brokers_of(sides: Iterable[Side]) -> Mapping[str, Mapping[int, Broker]]:
    """Return, for each cluster, its brokers by id, sorted; one that only holds replicas is not alive."""
    found: dict[str, dict[int, Broker]] = {}
    for side in sides:
        brokers = found.setdefault(side.name, {})
        for broker in side.cluster.brokers.values():
            brokers.setdefault(broker.id, broker)
        for broker_id in {one for _, partition in side.cluster.partitions() for one in partition.replicas}:
            brokers.setdefault(broker_id, Broker(broker_id, is_fenced=True))
    return {name: dict(sorted(brokers.items())) for name, brokers in found.items()}


def _place_rows(side: Side, brokers: Mapping[int, Broker]) -> Iterator[tuple[object, ...]]:
    for broker in brokers.values():
        itself = 0 if broker.log_dirs else None
        yield side.side, side.name, broker.id, broker.rack, None, itself, itself
        for log_dir in broker.log_dirs:
            sizes = log_dir.total_bytes, log_dir.usable_bytes
            yield side.side, side.name, broker.id, broker.rack, log_dir.path, *sizes


def _partition_rows(side: Side) -> Iterator[tuple[object, ...]]:
    only_dir = {
        broker.id: broker.log_dirs[0].path for broker in side.cluster.brokers.values() if len(broker.log_dirs) == 1
    }
    racks = {broker.id: broker.rack for broker in side.cluster.brokers.values()}
    for key, partition in side.cluster.partitions():
        replicas = partition.target_replicas
        places = {**only_dir, **side.predicted_log_dirs.get(key, {}), **_known_dirs(partition)}
        yield (
            side.side,
            side.name,
            key.topic,
            key.partition,
            partition.leader,
            replicas,
            [partition.size_on(broker_id) for broker_id in replicas],
            [places.get(broker_id) for broker_id in replicas],
            [racks.get(broker_id) for broker_id in replicas],
        )


def _known_dirs(partition: Partition) -> Mapping[int, str]:
    known = zip(partition.replicas, partition.log_dirs, strict=False)
    return {broker_id: path for broker_id, path in known if path is not None}
