"""Counts what the disks of each broker hold, and how much they have room for."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from reconciler.model.cluster import Cluster
from reconciler.model.columns import sums
from reconciler.model.table_maker import table_of

NO_SPACE = "KR849"
"""The warning that no placement keeps `limits.diskUse`."""


@dataclass(frozen=True, slots=True)
class Space:
    """The part of each disk that may be filled; a `tight` broker keeps it on the way too, and not in the end alone."""

    share: Fraction
    tight: frozenset[int] = frozenset()
    inside: frozenset[int] = frozenset()  # brokers whose replicas may move between their log dirs for it
    relieved: frozenset[int] | None = None  # brokers whose disks are to end within it; None: all that take part


def deleted_bytes(observed: Cluster, topics: Collection[str]) -> Mapping[tuple[int, str | None], int]:
    """Return the bytes of these topics on each broker, by log dir and, under None, in all of them."""
    found = Counter[tuple[int, str | None]]()
    for name in sorted(topics):
        for partition in observed.topics[name].partitions if name in observed.topics else ():
            for place, broker_id in enumerate(partition.replicas):
                size = partition.size_on(broker_id) or 0
                path = partition.log_dirs[place] if place < len(partition.log_dirs) else None
                found[broker_id, None] += size
                found[broker_id, path] += size if path is not None else 0
    return found


def bytes_held(observed: Cluster) -> dict[int, int]:
    """Return the bytes on each broker: what its log dirs say is used, else its replicas' sum, where all are known."""
    held: dict[int, int] = {}
    silent: set[int] = set()
    for broker_id, broker in observed.brokers.items():
        used = broker.used_bytes
        if used is None:
            silent.add(broker_id)
        else:
            held[broker_id] = used
    if silent:
        held |= _replica_bytes(observed, silent)
    return {broker_id: held[broker_id] for broker_id in sorted(held)}


def _replica_bytes(observed: Cluster, brokers: Iterable[int]) -> dict[int, int]:
    table = table_of(observed)
    unknown = {*table.replicas[table.sizes < 0].tolist()}
    held = sums(table.replicas, table.sizes)
    return {broker_id: held.get(broker_id, 0) for broker_id in brokers if broker_id not in unknown}
