"""Counts what lies above `limits.diskUse` in the end, and bounds the bytes that a plan copies for what leaves.

The bytes above the limit have to leave the broker, whatever the prices say, and a replica that leaves is copied first::

    broker 1    1,000 GiB, of which 800 may be used, 860 are: no plan that mends that copies fewer than 60 GiB

Plans are meant that leave no more above the limit than this one, all disks together. Replicas that go without a copy
(a lower replication factor, a deleted topic) may be what leaves, so their bytes are taken off.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from fractions import Fraction

import numpy as np

from reconciler.proof.arithmetic import NONE, Ints, exact_product, exact_sum, is_new, stacked
from reconciler.proof.demands import Demands
from reconciler.proof.reached import Reached


def relieved_bytes(demands: Demands, end: Reached) -> int:
    """Return the bytes that every plan copies which leaves as little above the limit, all disks together."""
    room = _room(demands)
    above = {broker_id: -free for broker_id, free in room.items() if free < 0}
    if not above:
        return 0
    snapshot, (now, ends), own = demands.snapshot, _lists(demands, end), _own(demands)
    freed = _freed(demands, now, ends, room)
    after = sum(max(0, -free - freed[broker_id]) for broker_id, free in room.items())
    relief, total = max(0, sum(above.values()) - after), Fraction(0)
    holders = ((snapshot.replicas == broker_id, broker_id) for broker_id in above)
    prices = ((_cheapest(own[at], snapshot.size[at.any(axis=1)]), above[broker_id]) for at, broker_id in holders)
    # No byte of relief costs less than one that leaves the disk where that copies least.
    for price, most in sorted(prices):
        total += min(relief, most) * price
        relief -= min(relief, most)
    is_on_one = np.isin(snapshot.replicas, [*above]).any(axis=1)
    fewer = np.maximum((now >= 0).sum(axis=1) - (ends >= 0).sum(axis=1), 0) * is_on_one
    dropped = exact_sum(exact_product(fewer, own.max(axis=1, initial=0)))
    return max(0, int(total // 1) - dropped)


def full_disks(demands: Demands, end: Reached, only: Sequence[str]) -> Mapping[int, int]:
    """Return by how many bytes the disks of each broker are above the limit in the end; 0 or less: they keep it.

    Only brokers count that are to keep replicas and tell of their disks; in a plan for some topics alone, those of them
    that hold these topics.
    """
    snapshot, room = demands.snapshot, _room(demands)
    if only and room:
        is_named = [any(fnmatchcase(name, pattern) for pattern in only) for name in snapshot.topics]
        holders = {*snapshot.replicas[np.array(is_named, dtype=np.bool_)[snapshot.topic]].ravel().tolist()}
        room = {broker_id: left for broker_id, left in room.items() if broker_id in holders}
    freed = _freed(demands, *_lists(demands, end), room) if room else {}
    return {broker_id: -left - freed[broker_id] for broker_id, left in sorted(room.items())}


def _room(demands: Demands) -> dict[int, int]:
    """Return the bytes that are left below the limit of disks on each broker that tells it, before the plan."""
    brokers = demands.brokers
    room = zip(brokers.ids, brokers.capacity.room, strict=True)
    return {broker_id: left for broker_id, left in room if left is not None}


def _own(demands: Demands) -> Ints:
    """Return the bytes of each replica [rows, width], those of a copy if its own are unknown."""
    snapshot = demands.snapshot
    own: Ints = np.where(snapshot.sizes >= 0, snapshot.sizes, np.maximum(snapshot.size, 0)[:, None])
    return own


def _freed(demands: Demands, now: Ints, ends: Ints, broker_ids: Iterable[int]) -> dict[int, int]:
    """Return how many bytes fewer than now each of these brokers has in the end."""
    snapshot, own = demands.snapshot, _own(demands)
    row, seat = np.nonzero(is_new(snapshot.replicas, ends))
    gone, freed = snapshot.replicas[row, seat], own[row, seat]
    row, seat = np.nonzero(is_new(ends, now))
    came, taken = ends[row, seat], np.maximum(snapshot.size, 0)[row]
    return {one: exact_sum(freed[gone == one]) - exact_sum(taken[came == one]) for one in broker_ids}


def _lists(demands: Demands, end: Reached) -> tuple[Ints, Ints]:
    """Return the replicas of each row of the snapshot now and in the end; none of a topic that is deleted."""
    rows, fixed = demands.rows, demands.fixed
    none = np.full_like(demands.snapshot.target, NONE)
    now, ends, of_rows, of_fixed = np.split(
        stacked([demands.snapshot.target, none, end.replicas, fixed.replicas]),
        np.cumsum([len(none), len(none), len(end.replicas)]),
    )
    for part, lists in ((rows, of_rows), (fixed, of_fixed)):
        ends[part.at[part.at >= 0]] = lists[part.at >= 0]
    return now, ends


def _cheapest(own: Ints, copied: Ints) -> Fraction:
    """Return the least that a byte which leaves costs in bytes copied: of a tiered topic, or a leader that has less."""
    # A copy of unknown size may have no bytes.
    copies = [max(0, copy) for copy in copied.tolist()]
    ratios = [Fraction(copy, size) for size, copy in zip(own.tolist(), copies, strict=True) if size > copy]
    return min(ratios, default=Fraction(1))
