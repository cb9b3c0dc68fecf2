"""Chooses who leads each partition: a second flow, over its replicas, that orders lists and copies nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.columns import Bools, Ints, is_at
from reconciler.model.desired import Balance, Even
from reconciler.model.plan import PriceLevel
from reconciler.planner.costs import Cost, leader_turns
from reconciler.planner.objectives import CountTargets, asked_of_leaders, evened, price_level, solved_in_order
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.rows import Demand, Rows, Standing, free_choices


@dataclass(frozen=True, slots=True)
class Leaders:
    """The preferred leaders."""

    column: Ints  # [partitions]
    levels: tuple[PriceLevel, ...] = ()  # the prices that prove the choice


def place_leaders(task: PlacementTask, held: Ints, balance: Balance) -> Leaders:
    """Return each partition's preferred leader, one of the brokers that hold it [partitions, most].

    Without a target the fewest leaders change; with one, the fewest that reach it.
    """
    if not task.partitions:
        return Leaders(task.rule_class)
    asked = list(asked_of_leaders(task, balance))
    topics = len(task.topics) if any(targets.is_cells for _, targets in asked) else 0
    of_topic = task.topic if topics else np.zeros_like(task.topic)
    demand = Demand(_rules(max(1, topics), len(task.eligible.ids)), of_topic, held, np.ones_like(task.topic))
    choices = free_choices(demand, topics)
    choices = replace(choices, named=np.where(_candidates(task, held), np.int8(0), np.int8(-1)))
    standing = Standing.of(demand, choices, np.arange(len(held)), len(held))
    changed = _unless(is_at(held, task.replicas[:, :1]), task)
    levels = []
    for objective, targets in asked:
        found = evened(standing, targets, near=changed)
        standing = found.left
        levels.append(price_level(objective, targets.imbalance(standing), task, found))
    first, ties = ("leaders changed", changed), _tie_breaks(task, held, balance)
    chosen = solved_in_order(task, standing, held, first, ties)
    return Leaders(chosen.table[:, 0], (*levels, *chosen.levels))


def _tie_breaks(task: PlacementTask, held: Ints, balance: Balance) -> Iterator[tuple[str, Cost | CountTargets]]:
    """Yield what decides between equals: leaders that have the data, a better balance, turns; nothing is proved."""
    yield "", _unless(is_at(held, task.replicas), task)
    if not isinstance(balance.leaders, Even):
        yield "", CountTargets(task.led, task.eligible.capacity["leaders"])
    if task.is_new.any():
        yield "", leader_turns(task.partitions, task.eligible, held)


def _rules(topics: int, brokers: int) -> Rows:
    """Return what each topic demands: one leader, among brokers that a partition names; racks have no say."""
    one = np.ones((topics, 1), dtype=np.int64)
    return Rows(
        need=one[:, 0],
        allowed=np.zeros((topics, brokers), dtype=np.bool_),
        low=0 * one,
        high=one,
        rack=np.zeros(brokers, dtype=np.int64),
        topic=np.arange(topics),
    )


def _candidates(task: PlacementTask, held: Ints) -> Bools:
    """Return which of the holders may lead: one in a rack that is to; else in another; else one in maintenance."""
    rule_class, is_there = task.rule_class[:, None], held >= 0
    candidates = is_there & task.rule_classes.leadable[rule_class, held]
    for tier in (is_there & task.rule_classes.leadable_at_need[rule_class, held], is_there):
        nobody = ~candidates.any(axis=1)
        candidates[nobody] = tier[nobody]
    # Who writes an assignment has written its leader: the first of the list.
    explicit = np.flatnonzero((task.need == 0) & (task.fixed[:, 0] >= 0))
    candidates[explicit] = is_there[explicit] & (held[explicit] == task.fixed[explicit, :1])
    return candidates


def _unless(is_free: Bools, task: PlacementTask) -> Cost:
    """Return a cost of one for each holder that is not free and whose partition is not new."""
    return Cost(np.zeros(len(is_free), dtype=np.int64), (~is_free & ~task.is_new[:, None]).astype(np.int64))
