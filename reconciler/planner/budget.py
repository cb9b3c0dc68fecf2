"""Plans within a budget of bytes: rules are mended whole, and the rest of the bytes brings the balance nearer.

Between the plan that mends alone and the whole plan, bytes buy balance. With a weight on each, one flow minimises both
together::

    balance_weight * imbalance + byte_weight * bytes

Its optima are the corners of the curve's lower hull. Each is best at the bytes that it copies: whoever copies no more
and balances better would have a smaller sum. The weights of the next flow are the slope between two corners: it finds a
corner between them, or proves that there is none (Eisner and Severance 1976). The sum also bounds every plan within
the budget: imbalance >= (least sum - byte_weight * budget) / balance_weight. What lies between two corners is no flow;
`budget_search` looks there, among the few choices that the prices leave.

Measures come one after another, as in the whole plan: what is bought first is the balance of brokers, then of topics.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import gcd

import numpy as np

from reconciler.model.budget import Budgeted, CurvePoint, CurveReport, Way
from reconciler.model.columns import Ints, is_missing
from reconciler.model.desired import Balance, DesiredCluster
from reconciler.model.plan import PriceLevel
from reconciler.planner.budget_search import MOST_CHOICES, Room, searched
from reconciler.planner.costs import Cost, copies
from reconciler.planner.face import Solved
from reconciler.planner.objectives import CountTargets, asked_of_replicas, evened, least_cost, price_level, traded
from reconciler.planner.placement_task import PlacementTask, forced_bytes
from reconciler.planner.replicas import ReplicaSets, balanced, least_movement, place_replicas
from reconciler.planner.rows import Standing

MOST_SUM = 1 << 57
"""Weighted sums stay below this where the weights may be rounded: beyond 64 bits a flow takes many times as long."""
POINTS = 20
"""So many steps of bytes the curve has about."""
DIGITS = 6
HALVINGS = 12
"""How often the span of budgets is halved to find the most that fits a time: to one part in 4,096 of the whole."""


@dataclass(frozen=True, slots=True)
class Point:
    """A placement on the curve."""

    bytes: int
    imbalance: int
    table: Ints  # [partitions, most]: the brokers of all rows


@dataclass(frozen=True, slots=True)
class Edge:
    """A side of the hull, proved by a flow: no placement has a smaller weighted sum."""

    balance_weight: int
    byte_weight: int
    least: int
    solved: Solved
    table: Ints

    def bound(self, budget: int) -> int:
        """Return the imbalance that no placement within the budget gets below."""
        return max(0, -(-(self.least - self.byte_weight * budget) // self.balance_weight))

    def weighed(self, level: PriceLevel, budget: int) -> PriceLevel:
        """Return the level with what these weights prove of it."""
        bound = min(self.bound(budget), level.value)
        return replace(level, lower_bound=bound, weight=self.balance_weight, byte_weight=self.byte_weight)


@dataclass(slots=True)
class Trade:
    """One measure of balance against bytes, among the placements that a standing leaves; keeps each flow's answer."""

    task: PlacementTask
    standing: Standing
    targets: CountTargets
    later: Sequence[CountTargets]  # what is balanced after it
    evened: Solved = field(init=False)  # its best balance, whatever that copies
    corners: list[Point] = field(default_factory=list)  # by rising bytes and falling imbalance
    edges: dict[int, Edge] = field(default_factory=dict)  # by the bytes of the corner on their left

    def __post_init__(self) -> None:
        """Find the two ends: the least bytes, and the best balance."""
        cost = self._cost
        cheap = evened(least_cost(self.standing, cost).left, self.targets)
        self.evened = evened(self.standing, self.targets, near=cost)
        even = least_cost(self.evened.left, cost)
        first, last = self._point(cheap), self._point(even)
        self.corners += [first, last] if first.bytes < last.bytes else [first]

    def around(self, budget: int) -> tuple[Point, Point | None]:
        """Return the last known corner within the budget, which is at least that of the first, and the next one."""
        place = max(number for number, corner in enumerate(self.corners) if corner.bytes <= budget)
        return self.corners[place], next(iter(self.corners[place + 1 :]), None)

    def split(self, left: Point, right: Point) -> bool:
        """Look for a corner between these neighbours; return whether there is one."""
        if left.bytes in self.edges:
            return False
        balance_weight, byte_weight = self._weights(left, right)
        cost = Cost(self._cost.other * byte_weight, self._cost.at)
        solved = traded(self.standing, self.targets, cost, balance_weight)
        found = self._point(solved)

        def weighted(point: Point) -> int:
            return balance_weight * point.imbalance + byte_weight * point.bytes

        if weighted(found) < min(weighted(left), weighted(right)) and left.bytes < found.bytes < right.bytes:
            self.corners.insert(self.corners.index(right), found)
            return True
        self.edges[left.bytes] = Edge(balance_weight, byte_weight, weighted(found), solved, found.table)
        return False

    def widest(self, most: int) -> tuple[Point, Point] | None:
        """Return the widest pair of neighbours, more than so many bytes apart, between which nobody has looked."""
        open_pairs = [
            (a, b) for a, b in pairwise(self.corners) if a.bytes not in self.edges and b.bytes - a.bytes > most
        ]
        return max(open_pairs, key=lambda pair: pair[1].bytes - pair[0].bytes, default=None)

    def best(self, budget: int, *, is_searched: bool = True) -> tuple[Point, Edge | None]:
        """Return the best placement found within the budget, and the edge that bounds it; none where it is whole.

        Unless `is_searched`, it is a corner.
        """
        left, right = self.around(budget)
        while right is not None and self.split(left, right):
            left, right = self.around(budget)
        if right is None:
            return left, None
        edge = self.edges[left.bytes]
        if not is_searched or (edge.bound(budget) == left.imbalance and not self.later):
            return left, edge
        weights = edge.balance_weight, edge.byte_weight
        slack = edge.byte_weight * budget + edge.balance_weight * left.imbalance - edge.least
        room = Room(self.task, self.standing, self._cost, (self.targets, *self.later), weights, edge.solved, slack)
        table = searched(room, left.table, edge.table, budget)
        return (left if table is None else self._of(table)), edge

    @property
    def _cost(self) -> Cost:
        return copies(self.task.size, self.task.replicas)

    def _point(self, solved: Solved) -> Point:
        return self._of(solved.left.table)

    def _of(self, table: Ints) -> Point:
        copied = self._cost.of(self.task.replicas, table)
        return Point(copied, imbalance(self.task, self.targets, table), table)

    def _weights(self, left: Point, right: Point) -> tuple[int, int]:
        """Return weights in the proportion of the line between these points, rounded where numbers get too large."""
        bought, paid = left.imbalance - right.imbalance, right.bytes - left.bytes
        most = max(1, int((self.task.size * self.task.need).sum()))
        common = gcd(bought, paid)
        bought, paid = bought // common, paid // common
        if bought > 1 and bought * most > MOST_SUM:
            scaled = max(1, MOST_SUM // most)
            bought, paid = scaled, max(1, paid * scaled // bought)
        return paid, bought


def imbalance(task: PlacementTask, targets: CountTargets, table: Ints) -> int:
    """Return how far the counts of this table are from their shares."""
    counts = targets.base + task.counts(table, are_cells=targets.is_cells)
    return targets.imbalance_of(counts, targets.many)


@dataclass
class Curve:
    """What bytes buy on one cluster: every plan between the one that mends alone and the whole one."""

    task: PlacementTask
    balance: Balance
    _trades: dict[int, Trade] = field(default_factory=dict)  # from the standing of each step, by its place

    @cached_property
    def asked(self) -> list[tuple[str, CountTargets]]:
        """What is to be even, in order."""
        return list(asked_of_replicas(self.task, self.balance))

    @cached_property
    def whole(self) -> ReplicaSets:
        """The plan that reaches the whole balance."""
        return place_replicas(self.task, self.balance)

    @cached_property
    def mended(self) -> ReplicaSets:
        """The plan that copies least: it mends the rules, and the balance is the best that this brings."""
        if not self.task.partitions:
            return self.whole
        standing, _ = balanced(self.task, (), has_cells=self._has_cells)
        return least_movement(self.task, self.balance, standing, (), ties=[targets for _, targets in self.asked])

    @cached_property
    def forced(self) -> int:
        """Bytes that explicit assignments copy, which are no choice."""
        return forced_bytes(self.task)

    def copied(self, table: Ints) -> int:
        """Return the bytes that a placement copies in all; its table is [partitions, most] of brokers."""
        return self.forced + copies(self.task.size, self.task.replicas).of(self.task.replicas, table)

    def within(self, budget: int, *, is_searched: bool = True) -> ReplicaSets:
        """Return the best plan that copies no more bytes; the one that mends alone where even that copies more."""
        if self.copied(self.whole.held) <= budget:
            return self.whole
        if self.copied(self.mended.held) >= budget:
            return self.mended
        left = budget - self.forced
        # As many measures are whole as the budget allows.
        number = max(number for number, (_, _, least) in enumerate(self._steps) if least <= left)
        standing, reached, _ = self._steps[number]
        levels = [*reached]
        for place, (name, targets) in enumerate(self.asked[number:], start=number):
            trade = self._trade(standing, place)
            point, edge = trade.best(left, is_searched=is_searched)
            level = price_level(name, point.imbalance, self.task, trade.evened if edge is None else edge.solved)
            levels.append(level if edge is None else edge.weighed(level, left))
            standing = _fixed(self.task, standing, targets, point.table)
        return least_movement(self.task, self.balance, standing, levels)

    def budgeted(self, sets: ReplicaSets, budget: int) -> Budgeted:
        """Return what is told of a plan within the budget."""
        tables = self.mended.held, sets.held, self.whole.held
        mended, _, whole = map(self.copied, tables)
        ways = [Way(name, *(imbalance(self.task, targets, table) for table in tables)) for name, targets in self.asked]
        return Budgeted(budget, mended, whole, tuple(ways))

    def within_time(self, most: int) -> int:
        """Return the most bytes whose plan asks no more than `most` bytes of its busiest broker, in or out."""
        if self.busiest(self.whole.held) <= most:
            return self.copied(self.whole.held)
        # The corners are enough on a large cluster, where many plans would take many searches.
        is_searched = len(self.task.partitions) * len(self.task.eligible.ids) <= MOST_CHOICES
        low, high = self.copied(self.mended.held), self.copied(self.whole.held)
        found = low
        for _ in range(HALVINGS):
            middle = (low + high) // 2
            sets = self.within(middle, is_searched=is_searched)
            if self.busiest(sets.held) <= most:
                low, found = middle, self.copied(sets.held)
            else:
                high = middle
        return found

    def busiest(self, table: Ints) -> int:
        """Return the bytes that the busiest broker takes in, or serves as the preferred leader of what is copied."""
        task = self.task
        is_new = is_missing(table, task.replicas) & ~task.is_new[:, None]
        row, seat = np.nonzero(is_new)
        source = task.replicas[row, 0]
        is_served = source >= 0
        into = np.zeros(len(task.eligible.ids), dtype=np.int64)
        out_of = np.zeros_like(into)
        np.add.at(into, table[row, seat], task.size[row])
        np.add.at(out_of, source[is_served], task.size[row[is_served]])
        return int(max(into.max(initial=0), out_of.max(initial=0)))

    def points(self, many: int) -> list[Ints]:
        """Return about so many placements along the curve, as tables [partitions, most] by rising bytes.

        They are corners of the hull, each the best at the bytes that it copies; between two that are far apart, the
        best that was found.
        """
        found = [self.mended.held, self.whole.held]
        first, last = map(self.copied, found)
        span = last - first
        for place, (standing, _, _) in enumerate(self._steps if self.task.partitions else ()):
            trade = self._trade(standing, place)
            while wide := trade.widest(span // many):
                trade.split(*wide)
            found += [corner.table for corner in trade.corners]
        copied = {self.copied(table): table for table in reversed(found)}
        for low, high in pairwise(sorted(copied)):
            for part in range(1, (high - low) * many // max(1, span)):
                sets = self.within(low + (high - low) * part // ((high - low) * many // span))
                copied.setdefault(self.copied(sets.held), sets.held)
        return [copied[each] for each in sorted(copied) if each >= first]

    @property
    def _has_cells(self) -> bool:
        return any(targets.is_cells for _, targets in self.asked)

    @cached_property
    def _steps(self) -> list[tuple[Standing, list[PriceLevel], int]]:
        """The choices left with the first so many measures whole, their levels, and the least bytes that takes."""
        cost, found = copies(self.task.size, self.task.replicas), []
        for many in range(len(self.asked)):
            standing, levels = balanced(self.task, self.asked[:many], has_cells=self._has_cells)
            least = cost.of(self.task.replicas, least_cost(standing, cost).left.table)
            found.append((standing, levels, least))
        return found

    def _trade(self, standing: Standing, place: int) -> Trade:
        if place in self._trades and standing is self._steps[place][0]:
            return self._trades[place]
        targets, later = self.asked[place][1], [each for _, each in self.asked[place + 1 :]]
        trade = Trade(self.task, standing, targets, later)
        if standing is self._steps[place][0]:
            self._trades[place] = trade
        return trade


def _fixed(task: PlacementTask, standing: Standing, targets: CountTargets, table: Ints) -> Standing:
    """Return the choices of which the counts are those of this table."""
    settled = standing.counts(are_cells=targets.is_cells)[0]
    count = task.counts(table, are_cells=targets.is_cells) - settled
    bounds = {"cell_low": count, "cell_high": count} if targets.is_cells else {"low": count, "high": count}
    return replace(standing, choices=replace(standing.choices, **bounds))


def curve_of(task: PlacementTask, cluster: DesiredCluster) -> CurveReport:
    """Return the curve of these partitions; every point is a plan that `--budget` makes."""
    curve = Curve(task, cluster.balance)
    tables = curve.points(POINTS)
    first, last = tables[0], tables[-1]
    rate = cluster.moves.throttle_bytes_per_second
    points = []
    for table in tables:
        of_table = {name: imbalance(task, targets, table) for name, targets in curve.asked}
        ways = [
            Way(name, imbalance(task, targets, first), of_table[name], imbalance(task, targets, last))
            for name, targets in curve.asked
        ]
        share = _share(ways)
        seconds = None if rate is None else -(-curve.busiest(table) // rate)
        points.append(
            CurvePoint(curve.copied(table), seconds, round(float(share), DIGITS), _over_mean(task, table), of_table)
        )
    return CurveReport(cluster.name, rate, points[0].bytes, points[-1].bytes, _knee(points), tuple(points))


def _share(ways: Sequence[Way]) -> Fraction:
    """Return how much of the way is gone: what is balanced later counts once all before it is whole."""
    share = Fraction(0)
    for way in ways:
        share += max(way.share, Fraction(0))
        if way.share < 1:
            break
    return share / len(ways) if ways else Fraction(1)


def _over_mean(task: PlacementTask, table: Ints) -> float:
    counts, capacity = task.base + task.counts(table), task.eligible.capacity["replicas"]
    if not counts.sum():
        return 1.0
    return round(float((counts / capacity).max() * capacity.sum() / counts.sum()), DIGITS)


def _knee(points: Sequence[CurvePoint]) -> int:
    """Return the bytes of the point that is farthest above the straight line from the first to the last."""
    span = points[-1].bytes - points[0].bytes
    above = [point.share - (point.bytes - points[0].bytes) / span if span else 0.0 for point in points]
    return points[int(np.argmax(np.round(above, DIGITS)))].bytes
