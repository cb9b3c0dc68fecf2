"""Who leads each partition: a second flow over each partition's replicas; it orders lists and copies nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reconciler.model.desired import Balance, Even
from reconciler.model.plan import PriceLevel
from reconciler.planner.costs import HeldCost
from reconciler.planner.demand import Demand
from reconciler.planner.evenness import asked_of_leaders, imbalance
from reconciler.planner.levels import Shares, evened, is_open, least_cost
from reconciler.planner.replicas import price_level
from reconciler.planner.rows import Bools, Ints, Rows, free_choices
from reconciler.planner.sift import Cost
from reconciler.planner.turns import leader_turns


@dataclass(frozen=True, slots=True)
class Leaders:
    """Each slot's preferred leader, as a column of the bench, and the prices that prove their choice."""

    column: Ints
    levels: tuple[PriceLevel, ...] = ()


def place_leaders(demand: Demand, held: Bools, balance: Balance) -> Leaders:
    """Return each slot's preferred leader, one of the brokers that hold it [slots, brokers].

    Without a target the fewest leaders change; with one, the fewest that reach it.
    """
    if not demand.slots:
        return Leaders(demand.kind)
    asked = list(asked_of_leaders(demand, balance))
    rows = _rows(demand, held)
    choices = free_choices(rows, len(demand.topics) if any(each.shares.is_cells for each in asked) else 0)
    changed = _changed(demand)
    levels = []
    for each in asked:
        solved = evened(rows, choices, each.shares, near=changed)
        choices = solved.choices
        levels.append(price_level(each.objective, imbalance(each.shares, rows, solved.placed), demand, solved))
    least = least_cost(rows, choices, changed)
    levels.append(price_level("leaders changed", least.value, demand, least))
    for cost in _tie_breaks(demand, balance):
        if not is_open(rows, least.choices):
            break
        least = evened(rows, least.choices, cost) if isinstance(cost, Shares) else least_cost(rows, least.choices, cost)
    seat = least.placed.argmax(axis=1)
    return Leaders(rows.broker(np.arange(len(seat)), seat), tuple(levels))


def _tie_breaks(demand: Demand, balance: Balance) -> Iterator[Cost | Shares]:
    """Yield what decides between equals: leaders that have the data, a better balance, turns."""
    yield _fresh(demand)
    if not isinstance(balance.leaders, Even):
        yield Shares(demand.led, demand.bench.capacity)
    if demand.is_new.any():
        yield leader_turns(demand.slots, demand.bench)


def _rows(demand: Demand, held: Bools) -> Rows:
    """Return one row a slot, whose seats are the brokers that hold it."""
    column, is_there = _seats(held)
    one = np.ones((len(demand.slots), 1), dtype=np.int64)
    return Rows(
        count=one[:, 0],
        need=one[:, 0],
        allowed=_candidates(demand, column, is_there),
        low=0 * one,
        high=one,
        rack=np.zeros(column.shape[1], dtype=np.int64),
        leading=np.zeros(one.shape, dtype=np.bool_),
        topic=demand.topic,
        column=column,
        brokers=len(demand.bench.ids),
    )


def _seats(held: Bools) -> tuple[Ints, Bools]:
    """Return the brokers that hold each slot [slots, most replicas], and which of these places are filled."""
    slot, broker = np.nonzero(held)
    size = held.sum(axis=1)
    place = np.arange(len(slot)) - (np.cumsum(size) - size)[slot]
    column = np.zeros((len(held), max(1, int(size.max(initial=0)))), dtype=np.int64)
    column[slot, place] = broker
    return column, np.arange(column.shape[1]) < size[:, None]


def _candidates(demand: Demand, column: Ints, is_there: Bools) -> Bools:
    """Return which seats may lead: an allowed one; where none is, one in maintenance; where none is, any."""
    kind = demand.kind[:, None]
    candidates = is_there & demand.kinds.leadable[kind, column]
    for tier in (is_there & demand.kinds.leadable_at_need[kind, column], is_there):
        nobody = ~candidates.any(axis=1)
        candidates[nobody] = tier[nobody]
    explicit = np.flatnonzero((demand.need == 0) & (demand.fixed[:, 0] >= 0))
    candidates[explicit] = is_there[explicit] & (column[explicit] == demand.fixed[explicit, :1])
    return candidates


def _changed(demand: Demand) -> HeldCost:
    """Return one for each leader that is another than now."""
    first = demand.replicas[:, :1]
    return HeldCost((~demand.is_new).astype(np.int64), first, np.zeros_like(first))


def _fresh(demand: Demand) -> HeldCost:
    """Return one for each leader that does not hold the data yet."""
    return HeldCost((~demand.is_new).astype(np.int64), demand.replicas, np.zeros_like(demand.replicas))
