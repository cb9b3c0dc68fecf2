"""Makes Arrow tables of observed clusters: who holds which partition, on which log dir, on which brokers and disks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from reconciler.balance.files.arrow_tables import INT, LONG, TEXT, ArrowTable, arrow_table
from reconciler.model.cluster import Broker, Cluster
from reconciler.model.columns import NONE, Ints, distinct
from reconciler.model.desired import CAPACITIES
from reconciler.model.partition_table import PartitionTable
from reconciler.model.table_maker import table_of
from reconciler.model.topic_partition import TopicPartition

BEFORE, AFTER = "before", "after"
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
    return pa.concat_tables(map(_partitions, sides))


def has_all_sizes(clusters: Iterable[Cluster]) -> bool:
    """Return whether the size of every replica, on the target of its partition, is known."""
    tables = map(table_of, clusters)
    return all(bool((table.on_target(table.sizes)[table.target >= 0] >= 0).all()) for table in tables)


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
    brokers = brokers_of(sides)
    return arrow_table(_PLACES, (row for side in sides for row in _place_rows(side, brokers[side.name])))


def brokers_of(sides: Iterable[Side]) -> Mapping[str, Mapping[int, Broker]]:
    """Return, for each cluster, its brokers by id, sorted; one that only holds replicas is not alive."""
    found: dict[str, dict[int, Broker]] = {}
    for side in sides:
        brokers = found.setdefault(side.name, {})
        for broker in side.cluster.brokers.values():
            brokers.setdefault(broker.id, broker)
        for broker_id in distinct(table_of(side.cluster).replicas).tolist():
            brokers.setdefault(broker_id, Broker(broker_id, is_fenced=True))
    return {name: dict(sorted(brokers.items())) for name, brokers in found.items()}


def _place_rows(side: Side, brokers: Mapping[int, Broker]) -> Iterator[tuple[object, ...]]:
    for broker in brokers.values():
        itself = 0 if broker.log_dirs else None
        yield side.side, side.name, broker.id, broker.rack, None, itself, itself
        for log_dir in broker.log_dirs:
            sizes = log_dir.total_bytes, log_dir.usable_bytes
            yield side.side, side.name, broker.id, broker.rack, log_dir.path, *sizes


def _partitions(side: Side) -> ArrowTable:
    table = table_of(side.cluster)
    is_held = table.target >= 0
    ids, of_broker = np.unique(table.target[is_held], return_inverse=True)
    brokers = [side.cluster.brokers.get(broker_id) for broker_id in ids.tolist()]
    racks = [broker.rack if broker is not None else None for broker in brokers]
    starts = pa.array(np.concatenate(([0], np.cumsum(table.factor))), INT)
    lists = {
        "replicas": pa.array(table.target[is_held], INT),
        "sizes": _known(table.on_target(table.sizes)[is_held], LONG),
        "log_dirs": _log_dirs(side, table, _only_dirs(brokers)[of_broker]),
        "racks": pa.array(racks, TEXT).take(pa.array(of_broker)),
    }
    return pa.table(
        {
            "side": pa.repeat(side.side, len(table.number)),
            "cluster": pa.repeat(side.name, len(table.number)),
            "topic": pa.array(table.topics, TEXT).take(pa.array(table.topic)),
            "partition": pa.array(table.number, INT),
            "leader": _known(table.leader, INT),
            **{name: pa.ListArray.from_arrays(starts, values) for name, values in lists.items()},
        }
    )


def _log_dirs(side: Side, table: PartitionTable, only: "np.ndarray[tuple[int], np.dtype[np.object_]]") -> pa.Array:
    """Return the log dir of each replica in `target`: as told, else as the plan says, else its broker's only one."""
    is_held = table.target >= 0
    found = np.full(table.target.shape, None, dtype=object)
    found[is_held] = only
    rows = table.rows_of(side.predicted_log_dirs).tolist()
    for row, predicted in zip(rows, side.predicted_log_dirs.values(), strict=True):
        for broker_id, path in predicted.items() if row != NONE else ():
            found[row, table.target[row] == broker_id] = path
    told = table.on_target(table.log_dirs)
    is_told = told >= 0
    found[is_told] = np.array(table.paths, dtype=object)[told[is_told]]
    return pa.array(found[is_held], TEXT)


def _only_dirs(brokers: Sequence[Broker | None]) -> "np.ndarray[tuple[int], np.dtype[np.object_]]":
    one = [broker.log_dirs if broker is not None else () for broker in brokers]
    return np.array([dirs[0].path if len(dirs) == 1 else None for dirs in one], dtype=object)


def _known(values: Ints, kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind, mask=values < 0)
