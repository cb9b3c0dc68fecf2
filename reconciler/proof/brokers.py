"""Restates from the contract which brokers a placement may use, and what the files say of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from reconciler.model.cluster import Cluster
from reconciler.model.desired import BrokerState, Desired
from reconciler.proof.arrays import Bools, Ints

ELSEWHERE = -1
"""The column of a broker that takes no part."""
_CORDONED = "cordoned.log.dirs"
_LEAVING = (BrokerState.DRAINING, BrokerState.ABSENT)


@dataclass(frozen=True, slots=True)
class Brokers:
    """The brokers that take part: alive, and not on their way out. Arrays run parallel to `ids`, ascending.

    `rack` [brokers] is a position in `racks`, which names the racks of all registered brokers. `leaving` are those
    that are to end empty, registered or not. `cordoned`: by the files, or by Kafka where no file says active.
    """

    ids: tuple[int, ...]
    column: Mapping[int, int]
    rack: Ints
    racks: tuple[str, ...]
    rack_of: Mapping[int, str]
    capacity: tuple[int, ...]
    leaving: frozenset[int]
    cordoned: frozenset[int]
    maintained: frozenset[int]

    def columns(self, broker_ids: Iterable[int]) -> list[int]:
        """Return where these brokers stand in the arrays."""
        column = self.column
        return [column.get(broker_id, ELSEWHERE) for broker_id in broker_ids]

    def mask(self, broker_ids: Iterable[int]) -> Bools:
        """Return [brokers]: who is among these."""
        found = np.zeros(len(self.ids), dtype=np.bool_)
        found[[self.column[broker_id] for broker_id in broker_ids if broker_id in self.column]] = True
        return found


def brokers_of(desired: Desired, observed: Cluster) -> Brokers:
    """Return the brokers that take part in any placement."""
    written = desired.cluster.brokers

    def having(*states: BrokerState) -> frozenset[int]:
        return frozenset(broker_id for broker_id, broker in written.items() if broker.state in states)

    leaving = having(*_LEAVING)
    ids = tuple(sorted(b for b, broker in observed.brokers.items() if not broker.is_fenced and b not in leaving))
    rack_of = {broker_id: broker.rack or "" for broker_id, broker in observed.brokers.items()}
    racks = tuple(sorted(set(rack_of.values())))
    number = {name: position for position, name in enumerate(racks)}
    return Brokers(
        ids=ids,
        column={broker_id: column for column, broker_id in enumerate(ids)},
        rack=np.array([number[rack_of[broker_id]] for broker_id in ids], dtype=np.int64),
        racks=racks,
        rack_of=rack_of,
        capacity=tuple(written[b].capacity if b in written else 1 for b in ids),
        leaving=leaving,
        cordoned=having(BrokerState.CORDONED) | _closed_by_kafka(desired, observed),
        maintained=having(BrokerState.MAINTENANCE),
    )


def _closed_by_kafka(desired: Desired, observed: Cluster) -> frozenset[int]:
    """Return the brokers all of whose log dirs Kafka gives nothing new, less those whose state is written as active."""
    active = {b for b, one in desired.cluster.brokers.items() if one.has_state and one.state is BrokerState.ACTIVE}
    closed = set()
    for broker_id, broker in observed.brokers.items():
        setting = broker.configs.get(_CORDONED, broker.settings.get(_CORDONED, ""))
        named = {each.strip() for each in setting.split(",")}
        is_open = any(not one.is_cordoned and one.path not in named for one in broker.log_dirs)
        if "*" in named or (broker.log_dirs and not is_open):
            closed.add(broker_id)
    return frozenset(closed - active)
