"""Finds for each partition the cheapest legal replica set and the cheapest leader at given prices, all in one pass.

Objectives come one after the other: a set is cheaper if it costs less in the first objective, or as much there and
less in the next, and so on. The rules of a partition are bounds on racks and on the whole; of such sets
the greedy one is the cheapest: what bounds demand first, then the rest.

If a preferred spread yields to a limit, its bounds are costs of the first objective: a rack's first replicas, as many
as it should have, are each cheaper by 1, and those beyond its most dearer by 1. These costs rise with each replica of a
rack, as the brokers' own do, so the cheapest set is again the greedy one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.plan import PriceLevel, Prices
from reconciler.proof.arithmetic import Bools, Ints, NotProved, exact_sum, kinds_of, whole_numbers
from reconciler.proof.demands import NOBODY, Demands
from reconciler.proof.reached import Reached, leader_candidates

_CHUNK = 1 << 14


@dataclass(frozen=True, slots=True)
class Objective:
    """What a replica costs in one objective: `copy` [rows] where it is copied, and the price of its broker.

    `prices` are [brokers]; `topic_prices`, where there are any, [topics, brokers] and come on top; so do `load_prices`
    [loads, brokers], each times what the row carries of that load, `carried` [loads, rows].
    """

    copy: Ints
    prices: Ints
    topic_prices: Ints | None = None
    load_prices: Ints | None = None
    carried: Ints | None = None
    is_spread: bool = False  # what is measured is how far racks are from a preferred spread


def price_row(demands: Demands, level: PriceLevel, given: Prices) -> Ints:
    """Return prices [brokers], 0 where none is given; refuse those of other brokers."""
    column = demands.brokers.column
    row = [0] * len(column)
    for broker_id, price in given.items():
        if broker_id not in column:
            raise NotProved(
                f"{level.objective}: there is a price of broker {broker_id}, which takes no part in the plan"
            )
        row[column[broker_id]] = price
    return whole_numbers(row)


class NoLegalSet(Exception):
    """The rules of a partition, the `row`th, cannot all be kept."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def cheapest_sets(demands: Demands, objectives: Sequence[Objective], *, is_yielding: bool = False) -> list[int]:
    """Return, for each objective, the sum over all rows of their cheapest sets; raise NoLegalSet where one has none.

    `is_yielding`: a spread that is preferred binds no set.
    """
    sums = [0] * len(objectives)
    if not len(demands.rows):
        return sums
    table = _Table.of(demands, objectives, is_yielding=is_yielding)
    for start in range(0, len(demands.rows), _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, len(demands.rows)))
        sums = [sum_ + more for sum_, more in zip(sums, table.cheapest(rows), strict=True)]
    return sums


def cheapest_leaders(demands: Demands, end: Reached, objectives: Sequence[Objective]) -> list[int]:
    """Return, for each objective, the sum over all rows of their cheapest leaders, the first objective deciding first.

    `copy` of an objective is what another leader than the present one costs.
    """
    if not len(end.table):
        return [0] * len(objectives)
    is_other = end.table != demands.now[:, :1]
    column = np.maximum(end.table, 0)
    is_open = leader_candidates(demands, end.table)
    sums = []
    for each in objectives:
        key = each.prices[column] + each.copy[:, None] * is_other
        if each.topic_prices is not None:
            key = key + each.topic_prices[demands.rows.topic[:, None], column]
        least = np.where(is_open, key, key.max() + 1).min(axis=1)
        is_open = is_open & (key == least[:, None])
        sums.append(exact_sum(least))
    return sums


@dataclass(frozen=True, slots=True)
class _Table:
    """Everything by row, kind and group; rows of one group rank the brokers that they do not hold alike.

    `now` [rows, replicas] are present replicas, `may_keep` says which of them may stay. `low`, `high` [kinds, racks].
    `ranked` [groups, candidates] are the brokers worth looking at of each rack, the cheapest first.
    """

    objectives: Sequence[Objective]
    rack: Ints
    now: Ints
    may_keep: Bools
    kind: Ints
    topic: Ints
    need: Ints
    low: Ints
    high: Ints
    is_strict: Bools
    group: Ints
    ranked: Ints

    @staticmethod
    def of(demands: Demands, objectives: Sequence[Objective], *, is_yielding: bool) -> "_Table":
        now, kind, rack = demands.now, demands.rows.kind, demands.brokers.rack
        holders, takers = demands.who("holders"), demands.who("takers")
        may_keep = (now >= 0) & holders[kind[:, None], np.maximum(now, 0)]
        may_keep[(demands.rows.fixed >= 0).any(axis=1)] = False
        low, high, is_strict = demands.racks
        useful = _useful(objectives, high)
        if is_yielding:
            useful = np.full_like(useful, int(demands.need().max(initial=0)))
        by_topic = any(each.topic_prices is not None for each in objectives)
        pair = np.stack([kind, demands.rows.topic if by_topic else np.zeros_like(kind)], axis=1)
        first, group = kinds_of([*pair.T])
        return _Table(
            objectives=objectives,
            rack=rack,
            now=now,
            may_keep=may_keep,
            kind=kind,
            topic=demands.rows.topic,
            need=demands.need(),
            low=low,
            high=high,
            is_strict=is_strict | (not is_yielding),
            group=group,
            ranked=_ranked(objectives, pair[first], takers, rack, useful=useful + now.shape[1]),
        )

    def cheapest(self, rows: Ints) -> Iterator[int]:
        """Yield, for each objective, the sum over these rows of their cheapest sets."""
        now, kind = self.now[rows], self.kind[rows]
        others = self.ranked[self.group[rows]]
        is_held = (others[:, :, None] == now[:, None, :]).any(axis=2)
        broker = np.concatenate([now, others], axis=1)
        is_there = np.concatenate([self.may_keep[rows], (others >= 0) & ~is_held], axis=1)
        broker = np.where(is_there, broker, 0)
        is_copy = np.arange(broker.shape[1]) >= now.shape[1]
        keys = [_key(each, rows, self.topic, broker, is_copy) for each in self.objectives]
        order = np.lexsort((*reversed(keys), ~is_there), axis=1)
        broker, is_there = (np.take_along_axis(each, order, axis=1) for each in (broker, is_there))
        rack = np.where(is_there, self.rack[broker], NOBODY)
        keys = [np.take_along_axis(key, order, axis=1) for key in keys]
        is_taken, is_short = _greedy(rack, self.need[rows], self.low[kind], self.high[kind])
        for number in np.unique(kind[~self.is_strict[kind]]).tolist():
            some = np.flatnonzero(kind == number)
            own = [key[some] for key in keys]
            spread = np.zeros_like(own[0])
            if self.objectives[0].is_spread:
                spread = _spread(rack[some], self.low[number], self.high[number])
                own[0] = own[0] + spread
                keys[0][some] = own[0]
            is_taken[some] = _cheapest_of(own, rack[some] >= 0, int(self.need[rows[some[0]]]))
            is_short[some] = is_taken[some].sum(axis=1) < self.need[rows[some]]
        if is_short.any():
            raise NoLegalSet(int(rows[is_short.argmax()]))
        for key in keys:
            yield exact_sum(key[is_taken])


def _key(objective: Objective, rows: Ints, topic: Ints, broker: Ints, is_copy: Bools) -> Ints:
    key: Ints = objective.prices[broker] + objective.copy[rows][:, None] * is_copy
    if objective.topic_prices is not None:
        key = key + objective.topic_prices[topic[rows][:, None], broker]
    if objective.load_prices is not None and objective.carried is not None:
        for prices, carried in zip(objective.load_prices, objective.carried, strict=True):
            key += carried[rows][:, None] * prices[broker]
    return key


def _useful(objectives: Sequence[Objective], high: Ints) -> Ints:
    """Return how many takers of each rack a partition could have use for; any, where each ranks them by its loads."""
    if any(each.load_prices is not None for each in objectives):
        return np.full(high.shape[1], np.iinfo(np.int32).max)
    most: Ints = high.max(axis=0)
    return most


def _ranked(objectives: Sequence[Objective], pairs: Ints, takers: Bools, rack: Ints, *, useful: Ints) -> Ints:
    """Return [groups, candidates]: of each rack its cheapest takers, as many as a partition could have use for.

    `useful` [racks] are the most that it may take, and those that it holds and skips. `pairs` are kind and topic.
    """
    keys = [
        np.broadcast_to(each.prices, (len(pairs), len(rack)))
        + (each.topic_prices[pairs[:, 1]] if each.topic_prices is not None else 0)
        for each in objectives
    ]
    may_take = takers[pairs[:, 0]]
    order = np.lexsort((*reversed(keys), ~may_take), axis=1)
    may_take = np.take_along_axis(may_take, order, axis=1)
    columns = []
    for number, most in enumerate(useful.tolist()):
        is_here: Bools = may_take & (rack[order] == number)
        place = np.cumsum(is_here, axis=1) - 1
        found = np.full((len(pairs), min(int((rack == number).sum()), most)), NOBODY, dtype=np.int64)
        row, at = np.nonzero(is_here & (place < found.shape[1]))
        found[row, place[row, at]] = order[row, at]
        columns.append(found)
    return np.concatenate(columns, axis=1)


def _spread(rack: Ints, low: Ints, high: Ints) -> Ints:
    """Return [rows, candidates] what each costs as one more replica of its rack; candidates are in order of cost."""
    found = np.zeros_like(rack)
    for number, (least, most) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        place = np.cumsum(rack == number, axis=1)
        found = np.where(rack == number, (place > most).astype(np.int64) - (place <= least), found)
    return found


def _cheapest_of(keys: Sequence[Ints], is_there: Bools, need: int) -> Bools:
    """Return [rows, candidates] the cheapest of those that are there, so many of each row."""
    order = np.lexsort((*reversed(keys), ~is_there), axis=1)[:, :need]
    is_taken: Bools = np.zeros_like(is_there)
    np.put_along_axis(is_taken, order, values=True, axis=1)
    return is_taken & is_there


def _greedy(rack: Ints, need: Ints, low: Ints, high: Ints) -> tuple[Bools, Bools]:
    """Return [rows, candidates] which are taken, candidates standing in order of cost, and [rows] where too few are.

    `rack` is negative where there is no candidate.
    """
    is_taken: Bools = np.zeros(rack.shape, dtype=np.bool_)
    is_able = np.zeros_like(is_taken)
    for number in range(low.shape[1]):
        is_here = rack == number
        place = np.cumsum(is_here, axis=1)
        is_taken |= is_here & (place <= low[:, number, None])
        is_able |= is_here & (place <= high[:, number, None])
    is_short = (is_taken.sum(axis=1) < low.sum(axis=1)) | (is_taken & ~is_able).any(axis=1)
    left = need - is_taken.sum(axis=1)
    is_free = is_able & ~is_taken
    is_taken |= is_free & (np.cumsum(is_free, axis=1) <= left[:, None])
    return is_taken, is_short | (is_taken.sum(axis=1) != need)
