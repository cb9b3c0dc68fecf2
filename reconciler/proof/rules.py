"""Restates the hard rules from the contract: brokers that take part, who may hold and lead what, how racks share it."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.cluster import Cluster
from reconciler.model.desired import BrokerState, Desired, LogDirState, Placement, Spread
from reconciler.proof.arithmetic import Bools, Ints
from reconciler.proof.capacity import Capacity, capacity_of
from reconciler.proof.snapshot import Snapshot

ELSEWHERE = -1
"""The column of a broker that takes no part."""
_CORDONED = "cordoned.log.dirs"
_LEAVING = (BrokerState.DRAINING, BrokerState.ABSENT)


@dataclass(frozen=True, slots=True)
class Brokers:
    """The brokers that take part: alive, and not on their way out. Arrays run parallel to `ids`, ascending.

    `rack` [brokers] is a position in `racks`, which names the racks of all registered brokers. `leaving` are those
    that are to end empty, registered or not. `cordoned`: by the files, their log dirs too, or by Kafka where no file
    says active.
    """

    ids: tuple[int, ...]
    column: Mapping[int, int]
    rack: Ints
    racks: tuple[str, ...]
    rack_of: Mapping[int, str]
    capacity: Capacity
    leaving: frozenset[int]
    cordoned: frozenset[int]
    maintained: frozenset[int]

    def masks(self, some: Sequence[frozenset[int]]) -> Bools:
        """Return [some, brokers]: who is among each of these."""
        known = {each: np.isin(self.ids, [*each]) for each in {*some}}
        return np.array([known[each] for each in some], dtype=np.bool_).reshape(len(some), len(self.ids))


def brokers_of(desired: Desired, observed: Cluster, snapshot: Snapshot) -> Brokers:
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
        capacity=capacity_of(desired, observed, ids, snapshot),
        leaving=leaving,
        cordoned=having(BrokerState.CORDONED) | _closed_by_kafka(desired, observed) | _closed_dirs(desired, observed),
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


def _closed_dirs(desired: Desired, observed: Cluster) -> frozenset[int]:
    """Return the brokers with no log dir that is open, one of them at least being closed by the files."""
    closed = set()
    for broker_id, one in desired.cluster.brokers.items():
        shut = {each.path for each in one.log_dirs if each.state is not LogDirState.ACTIVE}
        broker = observed.brokers.get(broker_id)
        if not shut or broker is None or not broker.log_dirs:
            continue
        setting = broker.configs.get(_CORDONED, broker.settings.get(_CORDONED, ""))
        named = {each.strip() for each in setting.split(",")}
        if all(each.path in shut | named or each.is_cordoned or "*" in named for each in broker.log_dirs):
            closed.add(broker_id)
    return frozenset(closed)


Bounds = tuple[tuple[int, ...], tuple[int, ...]]
"""The fewest and the most replicas of a partition that each rack may hold, in the order of `Brokers.racks`."""


@dataclass(frozen=True, slots=True)
class Eligible:
    """What one placement allows. `holders` may keep a replica, `takers` may also get one.

    `leaders` are in racks that are to lead; `stand_ins` lead while no leader is among the replicas, and who is in
    maintenance while neither is. `counted` are the racks that the spread counts: those with a
    broker that the placement allows and that stays, alive or not. `is_partly_known`: some of these brokers have no rack
    while others have one. Then replicas there are in no counted rack.
    """

    holders: frozenset[int]
    takers: frozenset[int]
    leaders: frozenset[int]
    stand_ins: frozenset[int]
    counted: frozenset[str]
    is_partly_known: bool


def eligible(placement: Placement, brokers: Brokers, observed: Cluster) -> Eligible:
    """Return what that placement allows in that cluster."""
    allowed = {
        b for b in observed.brokers if b not in brokers.leaving and _is_allowed(placement, b, brokers.rack_of[b])
    }
    holders = frozenset(allowed & brokers.column.keys())
    racks = placement.racks_leader
    stand_ins = holders - brokers.maintained
    names = frozenset(brokers.rack_of[b] for b in allowed)
    return Eligible(
        holders=holders,
        takers=holders - brokers.cordoned,
        leaders=frozenset(b for b in stand_ins if racks is None or brokers.rack_of[b] in racks),
        stand_ins=stand_ins,
        counted=names - {""} or names,
        is_partly_known="" in names and len(names) > 1,
    )


def _is_allowed(placement: Placement, broker_id: int, rack: str) -> bool:
    is_named = placement.brokers_only is None or broker_id in placement.brokers_only
    is_rack_named = placement.racks_only is None or rack in placement.racks_only
    return is_named and is_rack_named and broker_id not in placement.brokers_except


def rack_bounds(
    spread: Spread | None, brokers: Brokers, allowed: Eligible, need: int, replicas: Collection[int]
) -> Bounds:
    """Return the bounds of a partition that has these replicas (none: it is new) and is to have `need`.

    `strict` holds as written. `prefer` yields what its racks cannot hold, as evenly as can be. Without any word on
    racks a rack may also stay as it is, and a new partition is spread as by `prefer`. If only some brokers have a rack,
    no rack is left by its last replica, none has to get one, and the others may stay as many as they are.
    """
    if spread is Spread.IGNORE:
        return (0,) * len(brokers.racks), (need,) * len(brokers.racks)
    racks = max(1, len(allowed.counted))
    floor, ceiling = need // racks, -(-need // racks)
    least = [floor if name in allowed.counted else 0 for name in brokers.racks]
    most = [ceiling] * len(brokers.racks)
    if spread is Spread.STRICT and not allowed.is_partly_known:
        return tuple(least), tuple(most)
    held = Counter(brokers.rack_of.get(broker_id, "") for broker_id in replicas)
    if spread is None and replicas:
        least = [min(low, held[name]) for low, name in zip(least, brokers.racks, strict=True)]
        most = [max(high, held[name]) for high, name in zip(most, brokers.racks, strict=True)]
    if allowed.is_partly_known:
        least = [min(1, low, held[name]) for low, name in zip(least, brokers.racks, strict=True)]
        most[brokers.racks.index("")] = max(ceiling, held[""])
    could = Counter(brokers.rack_of[b] for b in allowed.takers | (allowed.holders & set(replicas)))
    room = [could[name] for name in brokers.racks]
    least = [min(*pair) for pair in zip(least, room, strict=True)]
    return (tuple(least), tuple(most)) if spread is Spread.STRICT else _yielding(least, most, room, need)


def _yielding(least: list[int], most: list[int], room: list[int], need: int) -> Bounds:
    """Return the bounds, raised by the least number that lets all replicas find a place; racks are filled first."""

    def places(extra: int) -> int:
        return sum(min(there, high + extra) for there, high in zip(room, most, strict=True))

    if places(0) >= need or sum(room) < need:
        return tuple(least), tuple(most)
    extra = 1
    while places(extra) < need:
        extra += 1
    filled = tuple(min(there, high) for there, high in zip(room, most, strict=True))
    return filled, tuple(high + extra for high in most)


def beside_fixed(bounds: Bounds, room: Mapping[int, int], fixed: Mapping[int, int], need: int) -> Bounds:
    """Return the bounds of what joins replicas that stay; none, where those alone are beyond what the bounds allow.

    `room` and `fixed` count, by rack number, brokers that may take a replica and replicas that stay.
    """
    numbers = range(len(bounds[0]))
    least = [max(0, bounds[0][rack] - fixed.get(rack, 0)) for rack in numbers]
    most = [max(0, bounds[1][rack] - fixed.get(rack, 0)) for rack in numbers]
    places = sum(min(room.get(rack, 0), most[rack]) for rack in numbers)
    if places < need or sum(least) > need:
        least, most = [0] * len(numbers), [need] * len(numbers)
    return tuple(min(low, room.get(rack, 0)) for rack, low in enumerate(least)), tuple(most)
