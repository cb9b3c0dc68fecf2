"""Where a balance stays short of what was asked for: by how much, and which rule forbids more."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from reconciler.model.desired import Balance, BalanceTarget, Off, Within
from reconciler.model.problem import Problem, Severity
from reconciler.planner.demand import Bench, Demand
from reconciler.planner.levels import least_cost, least_squares
from reconciler.planner.network import Bools, Ints
from reconciler.planner.replicas import band
from reconciler.planner.rows import Rows, classes, free_choices


def tightness_warnings(balance: Balance, demand: Demand, held: Bools, leaders: Sequence[int]) -> Iterator[Problem]:
    """Yield a warning for each balance that the rules keep from its target, with these replicas and leaders placed."""
    bench = demand.bench
    if not demand.slots:
        return
    counts = demand.base + held.sum(axis=0)
    if not _is_reached(counts, bench, balance.replicas):
        message = f"replicas per broker end at {_span(counts)}: {_forbidding(demand.rows, bench, demand.base)}"
        yield Problem("KR803", message, balance.at.get("replicas"), Severity.WARNING)
    leading = demand.led + bench.tally(iter(leaders))
    if not _is_reached(leading, bench, balance.leaders):
        message = f"preferred leaders per broker end at {_span(leading)}: the replicas' places allow no better"
        yield Problem("KR804", message, balance.at.get("leaders"), Severity.WARNING)


def _is_reached(counts: Ints, bench: Bench, target: BalanceTarget) -> bool:
    if isinstance(target, Off) or not len(counts):
        return True
    if isinstance(target, Within):
        low, high = band(int(counts.sum()), bench, target)
    else:
        share = int(counts.sum()) * bench.capacity
        capacity = int(bench.capacity.sum())
        low, high = share // capacity, -(-share // capacity)
    return bool(((low <= counts) & (counts <= high)).all())


def _forbidding(rows: Rows, bench: Bench, base: Ints) -> str:
    """Return, in words, the first rule without which the counts could be more even."""
    picked, _ = classes(rows)
    without_racks = replace(
        picked,
        low=np.zeros_like(picked.low),
        high=np.broadcast_to(picked.need[:, None], picked.high.shape),
        leading=np.zeros_like(picked.leading),
    )
    without_brokers = replace(without_racks, allowed=np.ones_like(picked.allowed))
    now = _unevenness(picked, bench, base)
    if _unevenness(without_racks, bench, base) < now:
        return "placement.racks forbids more"
    if _unevenness(without_brokers, bench, base) < now:
        return "placement.brokers, racks.only or a cordoned broker forbids more"
    return "replicas that may not move, or too few of them, forbid more"


def _unevenness(rows: Rows, bench: Bench, base: Ints) -> float:
    choices = least_squares(rows, free_choices(rows), base, bench.capacity).choices
    placed = least_cost(rows, choices, np.zeros_like(choices.brokers)).placed
    return float((((base + placed.sum(axis=0)) ** 2) / bench.capacity).sum())


def _span(counts: Ints) -> str:
    return f"{int(counts.min())} to {int(counts.max())}"
