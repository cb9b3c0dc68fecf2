"""Restates the hard rules of a partition from the contract: who may hold it, who may lead it, how racks share it."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Placement, Spread
from reconciler.proof.brokers import Brokers

Bounds = tuple[tuple[int, ...], tuple[int, ...]]
"""The fewest and the most replicas of a partition that each rack may hold, in the order of `Brokers.racks`."""


@dataclass(frozen=True, slots=True)
class Eligible:
    """What one placement allows. `holders` may keep a replica, `takers` may also get one; `leaders` may come first.

    `stand_ins` lead while no leader is among the replicas. `counted` are the racks that the spread counts: those with a
    broker that the placement allows and that stays, alive or not.
    """

    holders: frozenset[int]
    takers: frozenset[int]
    leaders: frozenset[int]
    stand_ins: frozenset[int]
    counted: frozenset[str]


def eligible(placement: Placement, brokers: Brokers, observed: Cluster) -> Eligible:
    """Return what that placement allows in that cluster."""
    allowed = {
        b for b in observed.brokers if b not in brokers.leaving and _is_allowed(placement, b, brokers.rack_of[b])
    }
    holders = frozenset(allowed & brokers.column.keys())
    racks = placement.racks_leader
    stand_ins = frozenset(b for b in holders if racks is None or brokers.rack_of[b] in racks)
    return Eligible(
        holders=holders,
        takers=holders - brokers.cordoned,
        leaders=stand_ins - brokers.maintained,
        stand_ins=stand_ins,
        counted=frozenset(brokers.rack_of[b] for b in allowed),
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
    racks a rack may also stay as it is, and a new partition is spread as by `prefer`.
    """
    if spread is Spread.IGNORE:
        return (0,) * len(brokers.racks), (need,) * len(brokers.racks)
    racks = max(1, len(allowed.counted))
    floor, ceiling = need // racks, -(-need // racks)
    least = [floor if name in allowed.counted else 0 for name in brokers.racks]
    most = [ceiling] * len(brokers.racks)
    if spread is Spread.STRICT:
        return tuple(least), tuple(most)
    if spread is None and replicas:
        held = Counter(brokers.rack_of.get(broker_id, "") for broker_id in replicas)
        least = [min(low, held[name]) for low, name in zip(least, brokers.racks, strict=True)]
        most = [max(high, held[name]) for high, name in zip(most, brokers.racks, strict=True)]
    could = Counter(brokers.rack_of[b] for b in allowed.takers | (allowed.holders & set(replicas)))
    room = [could[name] for name in brokers.racks]
    return _yielding([min(*pair) for pair in zip(least, room, strict=True)], most, room, need)


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


def beside_kept(bounds: Bounds, room: Mapping[int, int], kept: Mapping[int, int], need: int) -> Bounds:
    """Return the bounds of what joins replicas that stay; none, where those alone are beyond what the bounds allow.

    `room` and `kept` count, by rack number, brokers that may take a replica and replicas that stay.
    """
    numbers = range(len(bounds[0]))
    least = [max(0, bounds[0][rack] - kept.get(rack, 0)) for rack in numbers]
    most = [max(0, bounds[1][rack] - kept.get(rack, 0)) for rack in numbers]
    places = sum(min(room.get(rack, 0), most[rack]) for rack in numbers)
    if places < need or sum(least) > need:
        least, most = [0] * len(numbers), [need] * len(numbers)
    return tuple(min(low, room.get(rack, 0)) for rack, low in enumerate(least)), tuple(most)
