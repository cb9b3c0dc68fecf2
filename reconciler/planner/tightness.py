"""Where a balance stays short of what was asked for: by how much, and which rule forbids more."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from reconciler.model.desired import Balance, BalanceTarget, Off, Within
from reconciler.model.problem import Problem, Severity
from reconciler.planner.demand import Bench, Demand
from reconciler.planner.evenness import band, imbalance
from reconciler.planner.levels import Shares, evened
from reconciler.planner.rows import Bools, Ints, Rows, classes, free_choices, kinds_of


def tightness_warnings(balance: Balance, demand: Demand, held: Bools, leader: Ints) -> Iterator[Problem]:
    """Yield a warning for each balance that the rules keep from its target, with these replicas and leaders placed."""
    bench = demand.bench
    if not demand.slots:
        return
    counts = demand.base + held.sum(axis=0)
    if not _is_reached(counts, bench, balance.replicas):
        message = f"replicas per broker end at {_span(counts)}: {_forbidding(demand, bench)}"
        yield Problem("KR803", message, balance.at.get("replicas"), Severity.WARNING)
    leading = demand.led + np.bincount(leader, minlength=len(bench.ids))
    if not _is_reached(leading, bench, balance.leaders):
        message = f"preferred leaders per broker end at {_span(leading)}: the replicas' places allow no better"
        yield Problem("KR804", message, balance.at.get("leaders"), Severity.WARNING)


def _is_reached(counts: Ints, bench: Bench, target: BalanceTarget) -> bool:
    if isinstance(target, Off) or not len(counts):
        return True
    if isinstance(target, Within):
        low, high = band(int(counts.sum()), bench.capacity, target)
    else:
        share = int(counts.sum()) * bench.capacity
        capacity = int(bench.capacity.sum())
        low, high = share // capacity, -(-share // capacity)
    return bool(((low <= counts) & (counts <= high)).all())


def _forbidding(demand: Demand, bench: Bench) -> str:
    """Return, in words, the first rule without which the counts could be more even."""
    rows = replace(demand.rows, topic=np.zeros_like(demand.topic))
    picked, _ = classes(rows, kinds_of(demand.kinds.rows)[demand.kind])
    without_racks = replace(
        picked,
        low=np.zeros_like(picked.low),
        high=np.broadcast_to(picked.need[:, None], picked.high.shape),
        leading=np.zeros_like(picked.leading),
    )
    without_brokers = replace(without_racks, allowed=np.ones_like(picked.allowed))
    shares = Shares(demand.base, bench.capacity)
    now = _unevenness(picked, shares)
    if _unevenness(without_racks, shares) < now:
        return "placement.racks forbids more"
    if _unevenness(without_brokers, shares) < now:
        return "placement.brokers, racks.only or a cordoned broker forbids more"
    return "replicas that may not move, or too few of them, forbid more"


def _unevenness(rows: Rows, shares: Shares) -> int:
    return imbalance(shares, rows, evened(rows, free_choices(rows), shares).placed)


def _span(counts: Ints) -> str:
    return f"{int(counts.min())} to {int(counts.max())}"
