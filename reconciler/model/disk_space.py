"""Counts what the disks of each broker hold, and how much they have room for."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from reconciler.model.cluster import Cluster
from reconciler.model.columns import sums
from reconciler.model.table_maker import table_of

NO_SPACE = "KR849"
"""The warning that no placement keeps `limits.diskUse`."""


@dataclass(frozen=True, slots=True)
class Space:
    """The part of each disk that may be filled; a `tight` broker keeps it on the way too, and not in the end alone.

    `is_mending`: a disk is too full already, and nothing comes to it. To relieve it is a wish: where that fails,
    nothing is told. `is_sparing`: no placement relieves all such disks. They may stay so; nothing comes.
    """

    share: Fraction
    tight: frozenset[int] = frozenset()
    is_mending: bool = False
    is_sparing: bool = False


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
