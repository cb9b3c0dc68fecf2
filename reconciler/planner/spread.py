"""Lets `racks.spread: prefer` yield to `limits.replicasPerBroker`: by the fewest replicas, whatever is chosen later.

The limit is a bound on each broker, and the spread one on each rack of a partition. If both cannot be kept, the bounds
on racks become costs. A replica more than a rack should hold costs 1, and so does one fewer::

    class --need--> rack, 0..low at -1, then ..high at 0, then ..brokers at +1 --> broker --0..most--> sink

    example: racks a {1} and b {2, 3, 4}, four partitions of two replicas, limit 2: all 8 places are taken
             broker 1 has two replicas, so two partitions have a replica in a; each of the others costs 1

Prices of the best flow say what all best flows share (complementary slackness, see `reconciler.planner`). Where a price
bars an arc or fills it, that becomes a rule; so every placement that is chosen later is as near to the spread.
Spreads that are `strict`, and `racks.replicas`, do not yield. The spread of topics that write none does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from reconciler.model.change import BrokenRule
from reconciler.model.columns import NONE, Bools, Ints
from reconciler.model.desired import DesiredCluster
from reconciler.model.move import Reason
from reconciler.model.plan import PriceLevel
from reconciler.model.problem import Problem, warning
from reconciler.model.words import MANY, in_brackets, labelled, named_some
from reconciler.planner.flow import FlowInfeasibleError, Network, minimise
from reconciler.planner.placement_task import PlacementTask, YieldingSpread
from reconciler.planner.rows import Rows, room

SPREAD, YIELDING = "racks spread", "KR806"
Arcs = tuple[Ints, Ints, Ints, Ints, Ints]
"""Tails, heads, least flow, most flow, cost of a unit."""


def yielding_spread(task: PlacementTask) -> PlacementTask | None:
    """Return the task whose racks keep the spread as far as the limit allows; None if other rules forbid it too."""
    rules, is_strict = task.rule_classes.rows, task.rule_classes.is_strict
    count = np.bincount(task.rule_class, minlength=len(rules.need))
    brokers, racks = len(rules.rack), rules.low.shape[1]
    # Nodes: classes, their racks, brokers, and the sink.
    first_rack, first_broker = len(count), len(count) * (1 + racks)
    sink = first_broker + brokers
    pieces = [*_pieces(rules, is_strict)]
    tail, head = np.repeat(np.arange(len(count)), racks), first_rack + np.arange(len(count) * racks)
    layers: list[Arcs] = [
        (tail, head, (count[:, None] * low).ravel(), (count[:, None] * high).ravel(), np.full_like(tail, cost))
        for low, high, cost in pieces
    ]
    row, broker = np.nonzero(rules.allowed)
    arc_tail, arc_head, none = first_rack + row * racks + rules.rack[broker], first_broker + broker, np.zeros_like(row)
    layers.append((arc_tail, arc_head, none, count[row], none))
    most = np.full(brokers, int(task.need.sum())) if task.most is None else task.most
    every = np.arange(brokers)
    layers.append((first_broker + every, np.full_like(every, sink), 0 * every, most, 0 * every))
    supply = np.zeros(sink + 1, dtype=np.int64)
    supply[: len(count)] = count * rules.need
    supply[sink] = -supply.sum()
    try:
        solution = minimise(Network.of(layers, supply))
    except FlowInfeasibleError:
        return None
    price = solution.price
    # The sign of an arc's reduced cost: above 0 it is empty in every best flow, below 0 it is full in each.
    low, high = np.zeros_like(rules.low), np.zeros_like(rules.high)
    for least, length, cost in pieces:
        sign = (cost + price[tail] - price[head]).reshape(low.shape)
        low += np.where(sign < 0, length, least)
        high += np.where(sign > 0, least, length)
    sign = price[arc_tail] - price[arc_head]
    allowed, taken = rules.allowed.copy(), np.zeros_like(rules.allowed)
    allowed[row[sign > 0], broker[sign > 0]] = False
    taken[row[sign < 0], broker[sign < 0]] = True
    of_broker = price[first_broker:sink] - price[sink]
    spent = sum(
        int((cost * flow).sum()) for (*_, cost), flow in zip(layers, _split(solution.flow, layers), strict=True)
    )
    value = spent + int((count[:, None] * rules.low).sum())
    level = PriceLevel(SPREAD, value, value, dict(zip(task.eligible.ids, (-of_broker).tolist(), strict=True)))
    nearest = replace(
        rules, low=low, high=np.minimum(high, room(allowed, rules.rack, racks)), allowed=allowed, taken=taken
    )
    return replace(
        task,
        rule_classes=replace(task.rule_classes, rows=nearest),
        least=np.where(of_broker < 0, most, 0),
        spread=YieldingSpread(level, rules.low, rules.high),
    )


def loosened(task: PlacementTask) -> PlacementTask:
    """Return the task without a spread that is not strict."""
    rules, is_strict = task.rule_classes.rows, task.rule_classes.is_strict[:, None]
    places = room(rules.allowed, rules.rack, rules.low.shape[1])
    high = np.where(is_strict, rules.high, np.minimum(rules.need[:, None], places))
    loose = replace(rules, low=np.where(is_strict, rules.low, 0), high=high)
    return replace(task, rule_classes=replace(task.rule_classes, rows=loose))


def _split(flow: Ints, layers: list[Arcs]) -> list[Ints]:
    return np.split(flow, np.cumsum([len(layer[0]) for layer in layers])[:-1])


def _pieces(rules: Rows, is_strict: Bools) -> Iterator[tuple[Ints, Ints, int]]:
    """Yield what each rack takes of a partition [classes, racks] at each cost: the least of it, and the most."""
    places, strict = room(rules.allowed, rules.rack, rules.low.shape[1]), is_strict[:, None]
    # A strict rack takes all of its least at the first of the costs, and nothing beyond its most.
    yield np.where(strict, rules.low, 0), rules.low, -1
    yield np.zeros_like(rules.low), rules.high - rules.low, 0
    yield np.zeros_like(rules.low), np.where(strict, 0, np.maximum(places - rules.high, 0)), 1


def off_spread(task: PlacementTask, held: Ints) -> Ints:
    """Return [partitions] by how many replicas racks are off the spread that is asked for, with these replicas."""
    count, low, high = _in_racks(task, held)
    return np.where(task.need > 0, (np.maximum(low - count, 0) + np.maximum(count - high, 0)).sum(axis=1), 0)


def _in_racks(task: PlacementTask, held: Ints) -> tuple[Ints, Ints, Ints]:
    """Return [partitions, racks] the replicas in each rack, and the fewest and the most that the spread asks for."""
    spread, rack = task.spread or task.rule_classes.rows, np.where(held >= 0, task.eligible.rack[held], NONE)
    count = np.zeros((len(held), spread.low.shape[1]), dtype=np.int64)
    for number in range(count.shape[1]):
        count[:, number] = (rack == number).sum(axis=1)
    return count, spread.low[task.rule_class], spread.high[task.rule_class]


def is_nearest(task: PlacementTask, held: Ints) -> bool:
    """Whether these replicas keep the limit, and are as near to the spread as it allows."""
    is_within = task.most is None or bool((task.counts(held) <= task.most).all())
    return is_within and (task.spread is None or off_spread(task, held).sum() == task.spread.level.value)


def mended_by(task: PlacementTask, held: Ints, broken: Sequence[BrokenRule]) -> Sequence[BrokenRule]:
    """Return the rules that are broken now, without the spread of partitions that stay off it with these replicas."""
    off = {*task.partitions.keys(np.flatnonzero(off_spread(task, held)))}
    return [each for each in broken if each.reason is not Reason.RACKS or each.topic_partition not in off]


def spread_warnings(task: PlacementTask, cluster: DesiredCluster, held: Ints) -> Iterator[Problem]:
    """Yield a warning that names the partitions off their spread, the limit that it yields to, and what would help."""
    rows, eligible, limit_at = np.flatnonzero(off_spread(task, held)), task.eligible, cluster.limits.at
    if not len(rows):
        return
    if task.spread is None:
        count, _, high = _in_racks(task, held)
        short = [eligible.racks[number] or "none" for number in np.flatnonzero((count < high)[rows].any(axis=0))]
        limit, at = "limits.diskUse", limit_at.get("diskUse")
        where = labelled("rack", sorted(short), MANY)
        advice = f"No placement that keeps both was found: raise the limit, or add brokers in {where}"
    else:
        limit, at = f"limits.replicasPerBroker, {eligible.most}", limit_at.get("replicasPerBroker")
        ids = [broker_id for broker_id, price in task.spread.level.prices.items() if price > 0]
        racks = sorted({eligible.racks[eligible.rack[eligible.column[broker_id]]] or "none" for broker_id in ids})
        who = f"{labelled('broker', ids, MANY).capitalize()}, {labelled('rack', racks, MANY)}"
        advice = f"{who}, can take no more: raise the limit, or add brokers there"
    message = (
        f"{len(rows)} {'partition is' if len(rows) == 1 else 'partitions are'} not spread over the racks as"
        f" placement.racks.spread would have it ({named_some(map(str, task.partitions.keys(rows)), MANY)}): it is not"
        f" strict, and yields to {limit}{in_brackets(at)}. {advice}"
    )
    yield warning(YIELDING, message, at)
