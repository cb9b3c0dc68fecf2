"""Chooses which brokers hold each partition: replica sets, by minimum-cost flows in the contract's order of objectives.

First the balance asked for, then the fewest bytes, then the fewest copies, then what decides between equals.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.desired import Balance, Even
from reconciler.model.plan import PriceLevel, Proof
from reconciler.planner.cheapest_sets import Classes
from reconciler.planner.costs import Cost, HeldCost, turns
from reconciler.planner.objectives import (
    CountTargets,
    asked_of_replicas,
    evened,
    price_level,
    solved_in_order,
)
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.rows import Bools, Rows, classes, demand_classes, free_choices


@dataclass(frozen=True, slots=True)
class ReplicaSets:
    """The chosen replicas, beside those that are fixed."""

    held: Bools  # [partitions, brokers]
    proof: Proof  # that no choice as balanced as this copies less


def place_replicas(task: PlacementTask, balance: Balance) -> ReplicaSets:
    """Return the least movement to a placement that keeps every rule and is as balanced as asked for.

    Where a size is unknown, replicas are counted before bytes.
    """
    if not task.partitions:
        return ReplicaSets(task.rows.allowed, Proof())
    rows, by_class, levels = _balanced(task, balance)
    choices = by_class.choices.take(by_class.of_row)
    is_known = task.is_size_known
    first = ("bytes" if is_known else "replicas", _bytes(task) if is_known else _copies(task))
    last, bound, (least, *more) = solved_in_order(
        task, rows, choices, first, _tie_breaks(task, balance), classes=by_class
    )
    levels.append(least)
    proof = Proof(least.objective, least.value, bound, _joint_prices(task, levels), levels=(*levels, *more))
    return ReplicaSets(last.placed > 0, proof)


def _balanced(task: PlacementTask, balance: Balance) -> tuple[Rows, Classes, list[PriceLevel]]:
    """Return the rows, and the choices of their classes whose counts are as balanced as the rules allow.

    Only counts matter here, so partitions with the same choice are one row: the solutions of the classes are those of
    the partitions, since they are flows, and a flow of n equal ones is n flows.
    """
    asked = list(asked_of_replicas(task, balance))
    has_cells = any(targets.is_cells for _, targets in asked)
    rows = task.rows if has_cells else replace(task.rows, topic=np.zeros_like(task.topic))
    picked, of_row = classes(rows, demand_classes(task.rule_classes.rows)[task.rule_class])
    choices = free_choices(picked, len(task.topics) if has_cells else 0)
    levels = []
    for objective, targets in asked:
        solved = evened(picked, choices, targets)
        choices = solved.choices
        levels.append(price_level(objective, targets.imbalance(picked, solved.placed), task, solved))
    return rows, Classes(picked, choices, of_row), levels


def _tie_breaks(task: PlacementTask, balance: Balance) -> Iterator[tuple[str, Cost | CountTargets]]:
    """Yield what decides between equals, in the contract's order: copies, a better balance, leaders kept, turns.

    What is proved has a name.
    """
    yield ("replicas", _copies(task)) if task.is_size_known else ("bytes", _bytes(task))
    if not isinstance(balance.replicas, Even):
        yield "evenness", CountTargets(task.base, task.eligible.capacity)
    # The fewest replicas out of sync stay: a move ends only once all that stay are in sync.
    if task.partitions.lagging:
        yield "", _lagging_kept(task)
    yield "", _leaders_kept(task)
    if task.is_new.any():
        yield "", turns(task.partitions, task.eligible)


def _bytes(task: PlacementTask) -> HeldCost:
    """Return the bytes that each choice copies; a new partition starts empty."""
    return HeldCost(task.size, task.replicas, np.zeros_like(task.replicas))


def _copies(task: PlacementTask) -> HeldCost:
    return HeldCost((~task.is_new).astype(np.int64), task.replicas, np.zeros_like(task.replicas))


def _lagging_kept(task: PlacementTask) -> HeldCost:
    """Return one for each present replica that is out of sync."""
    at = np.zeros_like(task.replicas)
    for row, lagging in task.partitions.lagging.items():
        at[row] = np.isin(task.partitions.replicas[row], [*lagging])
    return HeldCost(np.zeros(len(at), dtype=np.int64), task.replicas, at)


def _leaders_kept(task: PlacementTask) -> HeldCost:
    """Return a gain for the present preferred leader, where it may lead."""
    first = task.replicas[:, :1]
    number = np.arange(len(first))
    may_lead = (first[:, 0] >= 0) & task.rule_classes.leadable[task.rule_class, np.maximum(first[:, 0], 0)]
    at = np.zeros_like(first)
    at[number[may_lead], 0] = -1
    return HeldCost(np.zeros(len(first), dtype=np.int64), first, at)


def _joint_prices(task: PlacementTask, levels: list[PriceLevel]) -> dict[int, int]:
    """Return one price a broker for balance and copies together; balance prices outweigh any saving in copies.

    The bound they give: over all partitions the cheapest legal replica set at its cost and these prices, less the
    prices of the best-balanced counts.
    """
    *balances, last = levels
    prices = list(last.prices.values())
    largest = int(task.size.max(initial=1)) if last.objective == "bytes" else 1
    weight = (
        int(task.rule_classes.rows.need.max(initial=0)) * (largest + max(prices) - min(prices)) + 1 if prices else 1
    )
    has_balance = bool(balances) and balances[0].objective == "replicas balance"
    first = balances[0].prices if has_balance else dict.fromkeys(last.prices, 0)
    joint = {broker_id: price + weight * first[broker_id] for broker_id, price in last.prices.items()}
    least = min(joint.values(), default=0)
    return {broker_id: price - least for broker_id, price in joint.items()}
