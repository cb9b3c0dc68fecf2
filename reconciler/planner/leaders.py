"""Chooses who leads each partition: a second flow, over its replicas, that orders lists and copies nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reconciler.model.desired import Balance, Even
from reconciler.model.plan import PriceLevel
from reconciler.planner.costs import Cost, HeldCost, leader_turns
from reconciler.planner.objectives import (
    CountTargets,
    asked_of_leaders,
    evened,
    price_level,
    solved_in_order,
)
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.rows import Bools, Ints, Rows, free_choices


@dataclass(frozen=True, slots=True)
class Leaders:
    """The preferred leaders."""

    column: Ints  # [partitions]
    levels: tuple[PriceLevel, ...] = ()  # the prices that prove the choice


def place_leaders(task: PlacementTask, held: Bools, balance: Balance) -> Leaders:
    """Return each partition's preferred leader, one of the brokers that hold it [partitions, brokers].

    Without a target the fewest leaders change; with one, the fewest that reach it.
    """
    if not task.partitions:
        return Leaders(task.rule_class)
    asked = list(asked_of_leaders(task, balance))
    rows = _rows(task, held)
    choices = free_choices(rows, len(task.topics) if any(targets.is_cells for _, targets in asked) else 0)
    changed = _changed(task)
    levels = []
    for objective, targets in asked:
        solved = evened(rows, choices, targets, near=changed)
        choices = solved.choices
        levels.append(price_level(objective, targets.imbalance(rows, solved.placed), task, solved))
    last, _, more = solved_in_order(task, rows, choices, ("leaders changed", changed), _tie_breaks(task, balance))
    seat = last.placed.argmax(axis=1)
    return Leaders(rows.broker(np.arange(len(seat)), seat), (*levels, *more))


def _tie_breaks(task: PlacementTask, balance: Balance) -> Iterator[tuple[str, Cost | CountTargets]]:
    """Yield what decides between equals: leaders that have the data, a better balance, turns; nothing is proved."""
    yield "", _fresh(task)
    if not isinstance(balance.leaders, Even):
        yield "", CountTargets(task.led, task.eligible.capacity)
    if task.is_new.any():
        yield "", leader_turns(task.partitions, task.eligible)


def _rows(task: PlacementTask, held: Bools) -> Rows:
    """Return one row a partition, whose seats are the brokers that hold it; racks have no say."""
    partition, broker = np.nonzero(held)
    size = held.sum(axis=1)
    place = np.arange(len(partition)) - (np.cumsum(size) - size)[partition]
    column = np.zeros((len(held), max(1, int(size.max(initial=0)))), dtype=np.int64)
    column[partition, place] = broker
    one = np.ones((len(held), 1), dtype=np.int64)
    return Rows(
        count=one[:, 0],
        need=one[:, 0],
        allowed=_candidates(task, column, np.arange(column.shape[1]) < size[:, None]),
        low=0 * one,
        high=one,
        rack=np.zeros(column.shape[1], dtype=np.int64),
        leading=np.zeros(one.shape, dtype=np.bool_),
        topic=task.topic,
        column=column,
        brokers=len(task.eligible.ids),
    )


def _candidates(task: PlacementTask, column: Ints, is_there: Bools) -> Bools:
    """Return which seats may lead: an allowed one; where none is, one in maintenance; where none is, any."""
    rule_class = task.rule_class[:, None]
    candidates = is_there & task.rule_classes.leadable[rule_class, column]
    for tier in (is_there & task.rule_classes.leadable_at_need[rule_class, column], is_there):
        nobody = ~candidates.any(axis=1)
        candidates[nobody] = tier[nobody]
    # Who writes an assignment has written its leader: the first of the list.
    explicit = np.flatnonzero((task.need == 0) & (task.fixed[:, 0] >= 0))
    candidates[explicit] = is_there[explicit] & (column[explicit] == task.fixed[explicit, :1])
    return candidates


def _changed(task: PlacementTask) -> HeldCost:
    """Return a cost of one for each leader that changes."""
    first = task.replicas[:, :1]
    return HeldCost((~task.is_new).astype(np.int64), first, np.zeros_like(first))


def _fresh(task: PlacementTask) -> HeldCost:
    """Return one for each leader that does not hold the data yet."""
    return HeldCost((~task.is_new).astype(np.int64), task.replicas, np.zeros_like(task.replicas))
