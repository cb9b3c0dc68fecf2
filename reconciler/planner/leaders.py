"""Who leads each partition: a second flow over each partition's replicas; it orders lists and copies nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.desired import BalanceTarget, Even, Off
from reconciler.model.plan import PriceLevel
from reconciler.planner.demand import Bench, Demand, Slot
from reconciler.planner.levels import is_open, least_cost, least_squares
from reconciler.planner.network import Bools, Ints
from reconciler.planner.replicas import balanced, imbalance, price_level
from reconciler.planner.rows import Rows
from reconciler.planner.turns import leader_turns


@dataclass(frozen=True, slots=True)
class Leaders:
    """Each slot's preferred leader, and the prices that prove their choice."""

    ids: Sequence[int]
    levels: tuple[PriceLevel, ...] = ()


def place_leaders(demand: Demand, held: Bools, target: BalanceTarget) -> Leaders:
    """Return each slot's preferred leader, one of the brokers that hold it [slots, brokers].

    Without a target the fewest leaders change; with one, the fewest that reach it.
    """
    slots, bench, base = demand.slots, demand.bench, demand.led
    if not slots:
        return Leaders(())
    rows = _rows(slots, held, bench)
    changed, fresh = _changes(slots, bench)
    balance = balanced(rows, bench, base, target)
    least = least_cost(rows, balance.choices, changed)
    levels = [price_level("leaders changed", least.value, bench, least.prices)]
    if not isinstance(target, Off):
        reached = imbalance(base + least.placed.sum(axis=0), bench, target)
        levels.insert(0, price_level("leaders balance", reached, bench, balance.prices))
    least = least_cost(rows, least.choices, fresh)
    placed, choices = least.placed, least.choices
    if not isinstance(target, Even) and is_open(rows, choices, np.broadcast_to(np.arange(len(bench.ids)), held.shape)):
        choices = least_squares(rows, choices, base, bench.capacity).choices
        placed = least_cost(rows, choices, np.zeros_like(changed)).placed
    order = leader_turns(slots, bench)
    if is_open(rows, choices, order):
        placed = least_cost(rows, choices, order).placed
    return Leaders([bench.ids[column] for column in placed.argmax(axis=1)], tuple(levels))


def _rows(slots: Sequence[Slot], held: Bools, bench: Bench) -> Rows:
    one = np.ones((len(slots), 1), dtype=np.int64)
    return Rows(
        count=one[:, 0],
        need=one[:, 0],
        allowed=np.stack([_candidates(slot, held[number], bench) for number, slot in enumerate(slots)]),
        low=0 * one,
        high=one,
        rack=np.zeros(len(bench.ids), dtype=np.int64),
        leading=np.zeros((len(slots), 1), dtype=np.bool_),
    )


def _candidates(slot: Slot, held: Bools, bench: Bench) -> Bools:
    """Return who may lead: an allowed one; where none is, one in maintenance; where none is, any."""
    if slot.fixed and slot.need == 0:
        return bench.mask(slot.fixed[:1])
    for tier in (slot.rules.leadable, slot.rules.leadable_at_need):
        candidates: Bools = held & bench.mask(tier)
        if candidates.any():
            return candidates
    return held


def _changes(slots: Sequence[Slot], bench: Bench) -> tuple[Ints, Ints]:
    """Return, [slots, brokers], whether a leader is another than now, and whether it does not hold the data yet."""
    changed = np.ones((len(slots), len(bench.ids)), dtype=np.int64)
    fresh = np.ones_like(changed)
    for number, slot in enumerate(slots):
        if slot.is_new:
            changed[number] = fresh[number] = 0
            continue
        if slot.replicas[0] in bench.column:
            changed[number, bench.column[slot.replicas[0]]] = 0
        fresh[number, [bench.column[replica] for replica in slot.replicas if replica in bench.column]] = 0
    return changed, fresh
