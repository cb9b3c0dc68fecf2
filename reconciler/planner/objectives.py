"""Solves one objective at a time: counts as even as asked for, or the least cost.

What all optimal solutions of an objective share is fixed, and the next objective chooses among the rest (complementary
slackness, see `sparse_flow`). So objectives never need weights against each other, which would have to be so large
that 64 bits could not hold them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from math import lcm

import numpy as np

from reconciler.model.columns import Bools, Ints
from reconciler.model.desired import Balance, BalanceTarget, Off, Within
from reconciler.model.plan import PriceLevel
from reconciler.planner.costs import Cost, no_cost
from reconciler.planner.face import Solved
from reconciler.planner.flow import FlowInfeasibleError
from reconciler.planner.pieces import Pieces, Sinks, flat, flat_sinks, outside, rising
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.rows import Choices, Placed, Range, Rows, Standing, free_choices, one_a_class
from reconciler.planner.sparse_flow import solve

BROKER_WINDOW, CELL_WINDOW = 64, 2
"""Counts have one arc a unit so far from the fair share. The rules seldom force a broker further; a topic's part of a
broker is a handful of replicas, and there are as many of them as topics times brokers."""
NEXT_WHOLE = Within(Fraction(0))
"""A band of the two whole numbers next to each fair share."""


@dataclass(frozen=True, slots=True)
class CountTargets:
    """Counts to be kept even, arrays by place: a broker or, with `is_cells`, each topic's part of a broker."""

    base: Ints  # replicas that stay, whatever is chosen
    capacity: Ints  # the weight of the place
    is_cells: bool = False
    band: Range | None = None  # from the first to the second nothing is asked; None: as even as can be
    times: Ints | None = None  # [places]: how many alike places share each entry; None: one

    def imbalance(self, standing: Standing) -> int:
        """Return how far the counts are from their shares: squares over capacity, or replicas outside the band."""
        # Alike places share what they get evenly: some get one more than the others.
        share, more = np.divmod(sum(standing.counts(are_cells=self.is_cells)), self.many)
        parts = (self.base + share, self.many - more), (self.base + share + 1, more)
        return sum(self.imbalance_of(counts, times) for counts, times in parts)

    def imbalance_of(self, counts: Ints, times: Ints) -> int:
        """Return the same for so many places of each of these counts."""
        if self.band is not None:
            low, high = self.band
            return int(((np.maximum(low - counts, 0) + np.maximum(counts - high, 0)) * times).sum())
        weight = weights(self.capacity, int(counts.sum()))
        columns = zip(counts.tolist(), weight.tolist(), times.tolist(), strict=True)
        return sum(count * count * each * many for count, each, many in columns)

    @property
    def many(self) -> Ints:
        """How many alike places share each entry."""
        return np.ones_like(self.base) if self.times is None else self.times

    def alike(self, group: Ints) -> "CountTargets":
        """Return the targets of one topic of each group of alike ones; `group` [topics]."""
        brokers, first = len(self.base) // len(group), np.unique(group, return_index=True)[1]

        def picked(array: Ints) -> Ints:
            return array.reshape(-1, brokers)[first].ravel()

        band = None if self.band is None else (picked(self.band[0]), picked(self.band[1]))
        times = np.repeat(np.bincount(group), brokers)
        return CountTargets(picked(self.base), picked(self.capacity), is_cells=True, band=band, times=times)


def least_cost(standing: Standing, cost: Cost) -> Solved:
    """Minimise the sum of the costs of the replicas placed; `cost` is of all rows."""
    choices, demand, own = standing.choices, standing.demand, cost.take(standing.number)
    if standing.before is not None and own.turns is None and not (choices.named == 0).any():
        # Of the brokers that a row names all is decided, and the others cost it the same: so each choice does.
        value = own.of(demand.named, standing.before.table(len(demand.rule), standing.held.shape[1]))
        nothing = np.zeros(choices.places, dtype=np.int64)
        return Solved(standing, nothing, np.zeros_like(choices.low), value, value)
    return solve(standing, own, flat_sinks(choices))


def evened(standing: Standing, targets: CountTargets, *, near: Cost | None = None) -> Solved:
    """Bring the counts as near to their shares as the choices allow; the search starts from what costs least `near`."""
    choices, cost = standing.choices, no_cost(standing.demand.named)
    near = None if near is None else near.take(standing.number)
    targets = replace(targets, base=targets.base + standing.counts(are_cells=targets.is_cells)[0])
    if targets.band is not None:
        return _in_band(standing, targets, cost, targets.band, near=near)
    low, high = choices.bounds(are_cells=targets.is_cells)
    price, freely = _freely_even(standing, targets)
    if targets.is_cells and not ((freely[0] < low) | (freely[1] > high)).any():
        # Where nothing but who may hold a replica binds a topic's parts, a flow within bounds serves, without rising
        # costs: all that can be taken of the topic has one price.
        sinks = Sinks(flat(choices.low, choices.high), flat(*freely).times(targets.many))
        try:
            found = solve(standing, cost, sinks, near=near)
            return replace(found, price=np.resize(found.price, len(price)) + price)
        except FlowInfeasibleError:
            pass
    centre = np.clip(freely[1], low, high)
    width = CELL_WINDOW if targets.is_cells else BROKER_WINDOW
    return _in_window(standing, targets, cost, (centre - width, centre + width), near=near)


def traded(standing: Standing, targets: CountTargets, cost: Cost, times: int) -> Solved:
    """Minimise `times` the imbalance of the counts and the costs of the replicas together; `cost` is of all rows."""
    choices, demand, cost = standing.choices, standing.demand, cost.take(standing.number)
    targets = replace(targets, base=targets.base + standing.counts(are_cells=targets.is_cells)[0])
    if targets.band is not None:
        return _in_band(standing, targets, cost, targets.band, times=times)
    low, high = choices.bounds(are_cells=targets.is_cells)
    share = _freely_even(standing, targets)[1][1]
    # Where little is copied counts are near the present ones, as far as these may stay, where much is, near the shares.
    row, seat = np.nonzero((choices.named >= 0) & (demand.named >= 0))
    present = choices.counts(demand, Placed.of(row, demand.named[row, seat], demand.count[row]))
    present = present if targets.is_cells else present.reshape(-1, len(low)).sum(axis=0)
    present, share = np.clip(present, low, high), np.clip(share, low, high)
    width = CELL_WINDOW if targets.is_cells else BROKER_WINDOW
    window = np.minimum(present, share) - width, np.maximum(present, share) + width
    return _in_window(standing, targets, cost, window, times=times)


def _in_band(
    standing: Standing, targets: CountTargets, cost: Cost, band: Range, *, near: Cost | None = None, times: int = 1
) -> Solved:
    """Minimise `times` what is outside the band, and `cost`; the targets' `base` has what is settled."""
    low, high = standing.choices.bounds(are_cells=targets.is_cells)
    floor, roof = (np.clip(limit - targets.base, low, high) for limit in band)
    pieces = outside(low, high, floor, roof).times(targets.many).weighed(times)
    return solve(standing, cost, _sinks(standing.choices, targets, pieces), near=near)


def _in_window(
    standing: Standing, targets: CountTargets, cost: Cost, window: Range, *, near: Cost | None = None, times: int = 1
) -> Solved:
    """Minimise `times` the sum over places of (base + placed)^2 / capacity, and `cost`; `base` has what is settled.

    Units with rising cost stand only within the window, from its first to its last count; it moves until the solution
    is inside it, where it is exact.
    """
    choices = standing.choices
    low, high = choices.bounds(are_cells=targets.is_cells)
    weight = weights(targets.capacity, standing.demand.total + int(targets.base.sum()))
    settled = standing.counts(are_cells=targets.is_cells)[0]
    width = int((window[1] - window[0]).max(initial=0)) // 2
    window = np.clip(window[0], low, high), np.clip(window[1], low, high)
    while True:
        pieces = rising(low, high, window, targets.base, weight).times(targets.many).weighed(times)
        found = solve(standing, cost, _sinks(choices, targets, pieces), near=near)
        units = sum(found.left.counts(are_cells=targets.is_cells)) - settled
        placed, most = units // targets.many, -(-units // targets.many)
        is_inside = ((placed >= window[0]) | (window[0] == low)) & ((most < window[1]) | (window[1] == high))
        if is_inside.all():
            return found
        width *= 2
        window = np.clip(placed - width, low, high), np.clip(placed + width, low, high)


def evened_by_class(rules: Rows, count: Ints, targets: CountTargets, most: Ints | None = None) -> Standing:
    """Return so many partitions of each of these classes, placed as near to their shares as the rules allow.

    `most` [brokers]: what each may get of them. Raises FlowInfeasibleError where these cannot take all.
    """
    demand = one_a_class(rules, count)
    standing = Standing.of(demand, free_choices(demand, most=most), np.arange(len(count)), len(count))
    return evened(standing, targets).left


def _freely_even(standing: Standing, targets: CountTargets) -> tuple[Ints, Range]:
    """Return the price of the dearest unit, and the fewest and most units, of places that are as even as can be.

    That is if only who may hold a replica bound them: of all brokers, or of each topic's parts.
    """
    demand = standing.demand
    weight = weights(targets.capacity, demand.total + int(targets.base.sum()))
    is_open = np.ones(len(weight), dtype=np.bool_)
    brokers, total = demand.rules.brokers, np.full(1, demand.total)
    if targets.is_cells:
        is_open = standing.choices.reached(demand)
        total = demand.of_topics(len(weight) // brokers) // targets.many[::brokers]
    most = 2 * (total[:, None] + targets.base.reshape(-1, brokers)) * weight.reshape(-1, brokers)
    below, above = 0 * most[:, :1], most.max(axis=1, keepdims=True)

    def units(price: Ints) -> Ints:
        # The unit that makes it n costs (2n - 1) * weight.
        taken = np.maximum((price + weight) // (2 * weight) - targets.base, 0)
        return np.where(is_open, taken, 0).astype(np.int64)

    while (above - below > 1).any():
        middle = (below + above) // 2
        is_enough = units(np.repeat(middle, brokers)).reshape(-1, brokers).sum(axis=1) >= total
        below, above = np.where(is_enough[:, None], (below, middle), (middle, above))
    price = np.repeat(above, brokers)
    # A place whose settled units are as dear already gets no other: its price lies between its last unit and the next.
    is_full = ~is_open | ((2 * targets.base - 1) * weight >= price)
    price = np.where(is_full, 2 * targets.base * weight, price)
    return price, (units(price - 1), units(price))


def _sinks(choices: Choices, targets: CountTargets, pieces: Pieces) -> Sinks:
    if targets.is_cells:
        return Sinks(flat(choices.low, choices.high), pieces)
    return Sinks(pieces, flat(choices.cell_low, choices.cell_high) if choices.has_cells else None)


def weights(capacity: Ints, most: int) -> Ints:
    """Return whole numbers in the proportion of 1 / capacity, for counts up to `most`."""
    common = lcm(*set(capacity.tolist()))
    # The dearest unit costs (2n - 1) * weight, and no weight is more than the common multiple.
    is_wide = common * 2 * most > np.iinfo(np.int64).max
    weighed: Ints = common // (capacity.astype(object) if is_wide else capacity)
    return weighed


@dataclass(frozen=True, slots=True)
class InOrder:
    """What objectives come to that are solved one after another."""

    table: Ints  # [all rows, most]: the brokers of each in the end
    bound: int  # what the prices of the first objective prove
    levels: list[PriceLevel]  # the prices of all that have a name
    faces: list[Standing]  # what each of these leaves


def solved_in_order(
    task: PlacementTask,
    standing: Standing,
    named: Ints,
    first: tuple[str, Cost],
    ties: Iterable[tuple[str, Cost | CountTargets]],
) -> InOrder:
    """Solve the first objective, then what decides between equals, one by one.

    Those with a name are always solved, as a proof must have their prices; the others while anything is left to choose.
    Costs are of all rows, which name `named`.
    """
    bound, levels, faces = 0, list[PriceLevel](), list[Standing]()
    # What is assigned leaves no choice, but its copies count in each level that has a name.
    is_assigned = bool((task.need == 0).any())
    for place, (name, tie) in enumerate(chain([first], ties)):
        if place and not name and not is_assigned and not standing.choices.many(standing.demand, 0).any():
            continue
        found = evened(standing, tie) if isinstance(tie, CountTargets) else least_cost(standing, tie)
        standing = found.left
        if name:
            value = tie.imbalance(standing) if isinstance(tie, CountTargets) else tie.of(named, standing.table)
            levels.append(price_level(name, value, task, found))
            faces.append(standing)
        if not place:
            bound = found.bound + levels[0].value - found.value
    return InOrder(standing.table, bound, levels, faces)


def price_level(objective: str, value: int, task: PlacementTask, solved: Solved) -> PriceLevel:
    """Return an objective that was solved to its optimum, with the prices of its solution.

    Value and bound are the same number here: the flow ends when no row has a cheaper set. That the prices really prove
    it is for `reconciler.proof` to find, which shares no code with this.
    """
    ids = task.eligible.ids
    broker_price = solved.broker_price.tolist()
    topic_prices = {}
    if len(solved.price) == len(ids) * len(task.topics) and ids:
        of_topic = (solved.price.reshape(-1, len(ids)) - solved.broker_price).tolist()
        topic_prices = {
            topic: {broker_id: price for broker_id, price in zip(ids, prices, strict=True) if price}
            for topic, prices in zip(task.topics, of_topic, strict=True)
            if any(prices)
        }
    return PriceLevel(objective, value, value, dict(zip(ids, broker_price, strict=True)), topic_prices)


def asked_of_replicas(task: PlacementTask, balance: Balance) -> Iterator[tuple[str, CountTargets]]:
    """Yield what is asked of the replicas' counts, by its name in the proof: of brokers first, then of each topic."""
    if not isinstance(balance.replicas, Off):
        total = int(task.need.sum() + task.base.sum())
        capacity = task.eligible.capacity["replicas"]
        yield "replicas balance", CountTargets(task.base, capacity, band=_band_of(total, capacity, balance.replicas))
    if not isinstance(balance.topics, Off):
        base = task.base_of_topic
        placed = np.bincount(task.topic, weights=task.need, minlength=len(task.topics)).astype(np.int64)
        totals = placed + base.sum(axis=1)
        yield "topics balance", _cell_targets(task, "replicas", base, totals, balance.topics)


def asked_of_leaders(task: PlacementTask, balance: Balance) -> Iterator[tuple[str, CountTargets]]:
    """Yield what is asked of the preferred leaders' counts, in the same order."""
    if not isinstance(balance.leaders, Off):
        total = len(task.partitions) + int(task.led.sum())
        capacity = task.eligible.capacity["leaders"]
        yield "leaders balance", CountTargets(task.led, capacity, band=_band_of(total, capacity, balance.leaders))
    if not isinstance(balance.topics, Off):
        base = task.led_of_topic
        totals = np.bincount(task.topic, minlength=len(task.topics)).astype(np.int64) + base.sum(axis=1)
        yield "topic leaders balance", _cell_targets(task, "leaders", base, totals, balance.topics)


def band(total: int, capacity: Ints, target: Within, *, is_count: bool = True) -> Range:
    """Return the fewest and most [brokers] within the target of each fair share.

    Of counts, the next whole numbers are included: no share of replicas is nearer than they are.
    """
    whole = int(capacity.sum())
    numerator, denominator = target.fraction.numerator, target.fraction.denominator
    low, high = [], []
    for weight in capacity.tolist():
        share = total * weight
        least = -(-share * (denominator - numerator) // (whole * denominator))
        most = share * (denominator + numerator) // (whole * denominator)
        if is_count:
            least, most = min(least, share // whole), max(most, -(-share // whole))
        low.append(max(0, least))
        high.append(most)
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)


def _band_of(total: int, capacity: Ints, target: BalanceTarget) -> Range | None:
    return band(total, capacity, target) if isinstance(target, Within) else None


def _cell_targets(task: PlacementTask, measure: str, base: Ints, totals: Ints, target: BalanceTarget) -> CountTargets:
    """Return the shares of each topic over the brokers that may hold it, by their capacity for that measure."""
    weights_of = task.eligible.capacity[measure]
    capacity = np.tile(weights_of, len(base))
    if not isinstance(target, Within):
        return CountTargets(base.ravel(), capacity, is_cells=True)
    low, high = np.zeros_like(base), np.zeros_like(base)
    for number, may_hold in enumerate(eligible_by_topic(task)):
        some = np.flatnonzero(may_hold)
        if len(some):
            low[number, some], high[number, some] = band(int(totals[number]), weights_of[some], target)
    return CountTargets(base.ravel(), capacity, is_cells=True, band=(low.ravel(), high.ravel()))


def eligible_by_topic(task: PlacementTask) -> Bools:
    """Return [topics, brokers] which brokers may hold a replica of a topic, or hold one that stays."""
    found: Bools = task.base_of_topic > 0
    for topic, rule_class in np.unique(np.stack([task.topic, task.rule_class], axis=1), axis=0):
        found[topic] |= task.rule_classes.rows.allowed[rule_class]
    return found
