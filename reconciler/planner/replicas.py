"""Which brokers hold each partition: the replica sets, by minimum-cost flows in the contract's order of objectives."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm

import numpy as np

from reconciler.model.desired import BalanceTarget, Even, Off, Within
from reconciler.model.plan import PriceLevel, Proof
from reconciler.planner.demand import Bench, Demand, Slot
from reconciler.planner.levels import Balanced, is_open, least_cost, least_outside, least_squares
from reconciler.planner.network import Bools, Ints
from reconciler.planner.rows import Rows, classes, free_choices
from reconciler.planner.turns import turns


@dataclass(frozen=True, slots=True)
class Costs:
    """What the choice of a broker costs, [slots, brokers]: bytes copied, replicas copied, preferred leaders kept."""

    bytes: Ints
    copies: Ints
    leaders_kept: Ints


@dataclass(frozen=True, slots=True)
class ReplicaSets:
    """Who holds what [slots, brokers], and the proof that no choice copies less."""

    held: Bools
    proof: Proof


def place_replicas(demand: Demand, target: BalanceTarget) -> ReplicaSets:
    """Return the least movement to a placement that keeps every rule and is as balanced as asked for.

    Where a size is unknown, replicas are counted before bytes.
    """
    rows, bench = demand.rows, demand.bench
    if not demand.slots:
        return ReplicaSets(rows.allowed, Proof())
    costs = _costs(demand.slots, bench)
    balance = balanced(rows, bench, demand.base, target)
    choices = balance.choices
    objective, first, second = ("bytes", costs.bytes, costs.copies)
    if not demand.is_size_known:
        objective, first, second = ("replicas", costs.copies, costs.bytes)
    least = least_cost(rows, choices, first)
    prices = _joint_prices(rows, first, least.prices, balance.prices)
    proof = Proof(objective, least.value, least.bound, dict(zip(bench.ids, prices, strict=True)))
    placed, choices = least.placed, least.choices
    levels = [price_level(objective, least.value, bench, least.prices)]
    if not isinstance(target, Off):
        reached = imbalance(demand.base + placed.sum(axis=0), bench, target)
        levels.insert(0, price_level("replicas balance", reached, bench, balance.prices))
    if is_open(rows, choices, second):
        least = least_cost(rows, choices, second)
        placed, choices = least.placed, least.choices
    if not isinstance(target, Even) and is_open(rows, choices, _any_broker(bench, rows)):
        choices = least_squares(rows, choices, demand.base, bench.capacity).choices
        placed = least_cost(rows, choices, np.zeros_like(costs.bytes)).placed
    for cost in (costs.leaders_kept, turns(demand.slots, bench)):
        if is_open(rows, choices, cost):
            least = least_cost(rows, choices, cost)
            placed, choices = least.placed, least.choices
    return ReplicaSets(placed > 0, replace(proof, levels=tuple(levels)))


def price_level(objective: str, value: int, bench: Bench, prices: Ints) -> PriceLevel:
    """Return an objective that was solved to its optimum, with the prices [brokers] of its solution."""
    return PriceLevel(objective, value, value, dict(zip(bench.ids, prices.tolist(), strict=True)))


def imbalance(counts: Ints, bench: Bench, target: BalanceTarget) -> int:
    """Return how far counts [brokers] are from the target: the squares over capacity, or the replicas outside."""
    held, capacity = counts.tolist(), bench.capacity.tolist()
    if isinstance(target, Even):
        common = lcm(*capacity)
        return sum(count * count * (common // weight) for count, weight in zip(held, capacity, strict=True))
    if isinstance(target, Off):
        return 0
    low, high = band(sum(held), bench, target)
    return int((np.maximum(low - counts, 0) + np.maximum(counts - high, 0)).sum())


def balanced(rows: Rows, bench: Bench, base: Ints, target: BalanceTarget) -> Balanced:
    """Return the choices whose broker counts are as balanced as the target asks and the rules allow.

    Only counts matter here, so partitions of the same demand are one row: the solutions of the classes are those of
    the partitions, since the demands are flows and a flow of n equal ones is n flows.
    """
    if isinstance(target, Off):
        return Balanced(free_choices(rows), np.zeros_like(base))
    picked, kind = classes(rows)
    choices = free_choices(picked)
    if isinstance(target, Even):
        narrowed = least_squares(picked, choices, base, bench.capacity)
    else:
        low, high = band(rows.total + int(base.sum()), bench, target)
        narrowed = least_outside(picked, choices, base, low, high)
    return replace(narrowed, choices=narrowed.choices.of_rows(kind))


def band(total: int, bench: Bench, target: Within) -> tuple[Ints, Ints]:
    """Return the fewest and most [brokers] within the target of each fair share, the next whole numbers included."""
    capacity = int(bench.capacity.sum())
    low, high = [], []
    for weight in bench.capacity.tolist():
        share = total * weight
        numerator, denominator = target.fraction.numerator, target.fraction.denominator
        least = -(-share * (denominator - numerator) // (capacity * denominator))
        most = share * (denominator + numerator) // (capacity * denominator)
        low.append(max(0, min(least, share // capacity)))
        high.append(max(most, -(-share // capacity)))
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)


def _costs(slots: Sequence[Slot], bench: Bench) -> Costs:
    shape = (len(slots), len(bench.ids))
    is_copied = np.ones(shape, dtype=np.bool_)
    leaders_kept = np.zeros(shape, dtype=np.int64)
    size = np.array([0 if slot.is_new else slot.size or 0 for slot in slots], dtype=np.int64)
    for number, slot in enumerate(slots):
        if slot.is_new:
            is_copied[number] = False
            continue
        is_copied[number, [bench.column[replica] for replica in slot.replicas if replica in bench.column]] = False
        if slot.replicas[0] in bench.column and slot.replicas[0] in slot.rules.leadable:
            leaders_kept[number, bench.column[slot.replicas[0]]] = -1
    return Costs(size[:, None] * is_copied, is_copied.astype(np.int64), leaders_kept)


def _any_broker(bench: Bench, rows: Rows) -> Ints:
    """Return a cost that differs between any two brokers, so that a free choice between brokers shows."""
    return np.broadcast_to(np.arange(len(bench.ids)), rows.allowed.shape)


def _joint_prices(rows: Rows, cost: Ints, prices: Ints, balance_prices: Ints) -> list[int]:
    """Return prices that hold without the balance being given: those of the balance weigh more than any copy can save.

    The bound they give: over all partitions the cheapest legal replica set at its cost and these prices, less the
    prices of the best-balanced counts.
    """
    spread = int(np.ptp(prices)) if len(prices) else 0
    weight = int(rows.need.max(initial=0)) * (int(cost.max(initial=0)) + spread) + 1
    joint = [int(price) + weight * int(balance) for price, balance in zip(prices, balance_prices, strict=True)]
    return [price - min(joint) for price in joint]
