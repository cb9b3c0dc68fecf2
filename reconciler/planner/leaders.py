"""Who leads each partition: a second flow over each partition's replicas; it orders lists and copies nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reconciler.model.desired import Balance, Even
from reconciler.model.plan import PriceLevel
from reconciler.planner.costs import HeldCost, leader_turns
from reconciler.planner.objectives import Shares, asked_of_leaders, evened, imbalance, is_open, least_cost
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.replicas import price_level
from reconciler.planner.rows import Bools, Ints, Rows, free_choices
from reconciler.planner.sparse_flow import Cost


@dataclass(frozen=True, slots=True)
class Leaders:
    """Each partition's preferred leader, as a column, and the prices that prove the choice."""

    column: Ints
    levels: tuple[PriceLevel, ...] = ()


def place_leaders(task: PlacementTask, held: Bools, balance: Balance) -> Leaders:
    """Return each partition's preferred leader, one of the brokers that hold it [partitions, brokers].

    Without a target the fewest leaders change; with one, the fewest that reach it.
    """
    if not task.partitions:
        return Leaders(task.kind)
    asked = list(asked_of_leaders(task, balance))
    rows = _rows(task, held)
    choices = free_choices(rows, len(task.topics) if any(each.shares.is_cells for each in asked) else 0)
    changed = _changed(task)
    levels = []
    for each in asked:
        solved = evened(rows, choices, each.shares, near=changed)
        choices = solved.choices
        levels.append(price_level(each.objective, imbalance(each.shares, rows, solved.placed), task, solved))
    least = least_cost(rows, choices, changed)
    levels.append(price_level("leaders changed", least.value, task, least))
    for cost in _tie_breaks(task, balance):
        if not is_open(rows, least.choices):
            break
        least = evened(rows, least.choices, cost) if isinstance(cost, Shares) else least_cost(rows, least.choices, cost)
    seat = least.placed.argmax(axis=1)
    return Leaders(rows.broker(np.arange(len(seat)), seat), tuple(levels))


def _tie_breaks(task: PlacementTask, balance: Balance) -> Iterator[Cost | Shares]:
    """Yield what decides between equals: leaders that have the data, a better balance, turns."""
    yield _fresh(task)
    if not isinstance(balance.leaders, Even):
        yield Shares(task.led, task.eligible.capacity)
    if task.is_new.any():
        yield leader_turns(task.partitions, task.eligible)


def _rows(task: PlacementTask, held: Bools) -> Rows:
    """Return one row a partition, whose seats are the brokers that hold it."""
    column, is_there = _seats(held)
    one = np.ones((len(task.partitions), 1), dtype=np.int64)
    return Rows(
        count=one[:, 0],
        need=one[:, 0],
        allowed=_candidates(task, column, is_there),
        low=0 * one,
        high=one,
        rack=np.zeros(column.shape[1], dtype=np.int64),
        leading=np.zeros(one.shape, dtype=np.bool_),
        topic=task.topic,
        column=column,
        brokers=len(task.eligible.ids),
    )


def _seats(held: Bools) -> tuple[Ints, Bools]:
    """Return the brokers that hold each partition [partitions, most replicas], and which of these places are filled."""
    partition, broker = np.nonzero(held)
    size = held.sum(axis=1)
    place = np.arange(len(partition)) - (np.cumsum(size) - size)[partition]
    column = np.zeros((len(held), max(1, int(size.max(initial=0)))), dtype=np.int64)
    column[partition, place] = broker
    return column, np.arange(column.shape[1]) < size[:, None]


def _candidates(task: PlacementTask, column: Ints, is_there: Bools) -> Bools:
    """Return which seats may lead: an allowed one; where none is, one in maintenance; where none is, any."""
    kind = task.kind[:, None]
    candidates = is_there & task.kinds.leadable[kind, column]
    for tier in (is_there & task.kinds.leadable_at_need[kind, column], is_there):
        nobody = ~candidates.any(axis=1)
        candidates[nobody] = tier[nobody]
    explicit = np.flatnonzero((task.need == 0) & (task.fixed[:, 0] >= 0))
    candidates[explicit] = is_there[explicit] & (column[explicit] == task.fixed[explicit, :1])
    return candidates


def _changed(task: PlacementTask) -> HeldCost:
    """Return one for each leader that is another than now."""
    first = task.replicas[:, :1]
    return HeldCost((~task.is_new).astype(np.int64), first, np.zeros_like(first))


def _fresh(task: PlacementTask) -> HeldCost:
    """Return one for each leader that does not hold the data yet."""
    return HeldCost((~task.is_new).astype(np.int64), task.replicas, np.zeros_like(task.replicas))
