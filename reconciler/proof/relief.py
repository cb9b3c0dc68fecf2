"""Bounds the bytes that a plan copies by the bytes that have to leave disks above `limits.diskUse`.

The bytes above the limit have to leave the broker, whatever the prices say, and a replica that leaves is copied first::

    broker 1    1,000 GiB, of which 800 may be used, 860 are: no plan that mends that copies fewer than 60 GiB

Plans that leave as much above the limit as this one are meant. Replicas that go without a copy (a lower replication
factor, a deleted topic) may be what leaves, so their bytes are taken off.
"""

from fractions import Fraction

import numpy as np

from reconciler.proof.arithmetic import NONE, Ints, exact_product, exact_sum, is_new, stacked
from reconciler.proof.demands import Demands
from reconciler.proof.reached import Reached


def relieved_bytes(demands: Demands, end: Reached) -> int:
    """Return the bytes that every plan copies which relieves these disks as much."""
    brokers, snapshot = demands.brokers, demands.snapshot
    room = zip(brokers.ids, brokers.capacity.room, strict=True)
    above = {broker_id: -bytes_left for broker_id, bytes_left in room if bytes_left is not None and bytes_left < 0}
    if not above:
        return 0
    now, ends = _lists(demands, end)
    own = np.where(snapshot.sizes >= 0, snapshot.sizes, np.maximum(snapshot.size, 0)[:, None])
    removed, added = is_new(snapshot.replicas, ends), is_new(ends, now)
    total = Fraction(0)
    for broker_id, excess in above.items():
        is_here = snapshot.replicas == broker_id
        left = exact_sum(own[removed & is_here])
        came = exact_sum(np.maximum(snapshot.size, 0)[(added & (ends == broker_id)).any(axis=1)])
        total += min(excess, max(0, left - came)) * _cheapest(own[is_here], snapshot.size[is_here.any(axis=1)])
    is_on_one = np.isin(snapshot.replicas, [*above]).any(axis=1)
    fewer = np.maximum((now >= 0).sum(axis=1) - (ends >= 0).sum(axis=1), 0) * is_on_one
    dropped = exact_sum(exact_product(fewer, own.max(axis=1, initial=0)))
    return max(0, int(total // 1) - dropped)


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
