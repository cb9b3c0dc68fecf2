"""What `balance` asks of counts, as arrays: the shares of brokers, and of each topic's part of them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reconciler.model.desired import Balance, BalanceTarget, Off, Within
from reconciler.planner.demand import Demand
from reconciler.planner.levels import Shares, weights
from reconciler.planner.rows import Bools, Counts, Ints, Rows


@dataclass(frozen=True, slots=True)
class Asked:
    """An objective by its name in the proof, and the counts that it wants even."""

    objective: str
    shares: Shares


def asked_of_replicas(demand: Demand, balance: Balance) -> Iterator[Asked]:
    """Yield what is asked of the replicas' counts: of brokers first, then of each topic over the brokers."""
    capacity = demand.bench.capacity
    if not isinstance(balance.replicas, Off):
        total = int(demand.need.sum() + demand.base.sum())
        yield Asked("replicas balance", _shares(demand.base, capacity, total, balance.replicas))
    if not isinstance(balance.topics, Off):
        base = demand.base_of_topic
        placed = np.bincount(demand.topic, weights=demand.need, minlength=len(demand.topics)).astype(np.int64)
        yield Asked("topics balance", _cell_shares(demand, base, placed + base.sum(axis=1), balance.topics))


def asked_of_leaders(demand: Demand, balance: Balance) -> Iterator[Asked]:
    """Yield what is asked of the preferred leaders' counts, in the same order."""
    capacity = demand.bench.capacity
    if not isinstance(balance.leaders, Off):
        total = len(demand.slots) + int(demand.led.sum())
        yield Asked("leaders balance", _shares(demand.led, capacity, total, balance.leaders))
    if not isinstance(balance.topics, Off):
        totals = np.bincount(demand.topic, minlength=len(demand.topics)).astype(np.int64)
        base = demand.led_of_topic
        yield Asked("topic leaders balance", _cell_shares(demand, base, totals + base.sum(axis=1), balance.topics))


def imbalance(shares: Shares, rows: Rows, placed: Counts) -> int:
    """Return how far the counts are from their shares: the squares over capacity, or the replicas outside the band."""
    topics = len(shares.base) // rows.brokers
    counts = shares.base + rows.units(placed, is_by_topic=shares.is_cells, topics=topics)
    if shares.low is None or shares.high is None:
        weight = weights(shares.capacity, int(counts.sum()))
        return sum(count * count * each for count, each in zip(counts.tolist(), weight.tolist(), strict=True))
    return int((np.maximum(shares.low - counts, 0) + np.maximum(counts - shares.high, 0)).sum())


def band(total: int, capacity: Ints, target: Within) -> tuple[Ints, Ints]:
    """Return the fewest and most [brokers] within the target of each fair share, the next whole numbers included."""
    whole = int(capacity.sum())
    low, high = [], []
    for weight in capacity.tolist():
        share = total * weight
        numerator, denominator = target.fraction.numerator, target.fraction.denominator
        least = -(-share * (denominator - numerator) // (whole * denominator))
        most = share * (denominator + numerator) // (whole * denominator)
        low.append(max(0, min(least, share // whole)))
        high.append(max(most, -(-share // whole)))
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)


def _shares(base: Ints, capacity: Ints, total: int, target: BalanceTarget) -> Shares:
    if isinstance(target, Within):
        low, high = band(total, capacity, target)
        return Shares(base, capacity, low=low, high=high)
    return Shares(base, capacity)


def _cell_shares(demand: Demand, base: Ints, totals: Ints, target: BalanceTarget) -> Shares:
    """Return the shares of each topic over the brokers that may hold it."""
    topics, brokers = base.shape
    capacity = np.tile(demand.bench.capacity, topics)
    if not isinstance(target, Within):
        return Shares(base.ravel(), capacity, is_cells=True)
    low, high = np.zeros((topics, brokers), dtype=np.int64), np.zeros((topics, brokers), dtype=np.int64)
    for number, eligible in enumerate(eligible_brokers(demand)):
        some = np.flatnonzero(eligible)
        if len(some):
            low[number, some], high[number, some] = band(int(totals[number]), demand.bench.capacity[some], target)
    return Shares(base.ravel(), capacity, is_cells=True, low=low.ravel(), high=high.ravel())


def eligible_brokers(demand: Demand) -> Bools:
    """Return [topics, brokers] which brokers may hold a replica of a topic, or hold one that stays."""
    found: Bools = demand.base_of_topic > 0
    for topic, kind in np.unique(np.stack([demand.topic, demand.kind], axis=1), axis=0):
        found[topic] |= demand.kinds.rows.allowed[kind]
    return found
