"""Computes the lower bound of each objective: no plan that is best in the objectives before it goes below.

The bounds of leaders hold among the plans that have this plan's replica sets.

Each replica that is chosen is charged its broker's price, and the broker's count is credited with price x count. So a
partition costs at least its cheapest legal set (`cheapest`), and a broker at least what its cheapest count does
(`counts`). The bound is the sum of all these least costs. Where it equals the plan's value nothing is better. Whatever
is as good then takes only sets and counts that are cheapest at these prices: the next objective is bounded among those.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from reconciler.model.desired import Balance, BalanceTarget, Off, Within
from reconciler.model.plan import PriceLevel
from reconciler.proof.arithmetic import SAFE, Bools, Ints, NotProved, exact_product, exact_sum, is_among
from reconciler.proof.cheapest import NoLegalSet, Objective, cheapest_leaders, cheapest_sets, price_row
from reconciler.proof.counts import Banded, Box, CountCost, Free, Squares, count_cost_of, is_fair, squares_of
from reconciler.proof.demands import NOBODY, Demands, columns_of
from reconciler.proof.objectives import (
    BYTES,
    COPIES,
    EVENNESS,
    LEADERS_BALANCE,
    LEADERS_CHANGED,
    REPLICAS_BALANCE,
    SPREAD,
    TOPIC_LEADERS_BALANCE,
    TOPICS_BALANCE,
)
from reconciler.proof.reached import Reached


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is counted, replicas or preferred leaders: `fixed` whatever the plan, `open` still to be given, `final`.

    Arrays are [topics, brokers], `open` is [topics]. `weighed` [topics] are those of which a plan decides anything:
    only these are judged topic by topic.
    """

    fixed: Ints
    open: Ints
    final: Ints
    weighed: Bools
    limit: int | None = None  # the most of a broker, unless what is fixed there is more already

    @property
    def box(self) -> Box:
        """The counts that brokers may end with [brokers]."""
        low = self.fixed.astype(object).sum(axis=0)
        high = low + int(self.open.sum())
        return Box(low, high if self.limit is None else np.maximum(low, np.minimum(high, self.limit)))


@dataclass(frozen=True, slots=True)
class Measure:
    """One objective: what a copied replica (or another leader) costs, how counts are judged, what the plan reaches.

    `is_ideal`: no counts at all would be better, whatever the rules. `is_spread`: what racks hold is judged.
    """

    copy: Ints
    brokers: CountCost
    topics: CountCost
    constant: int
    value: int
    is_ideal: bool = False
    is_spread: bool = False

    def against(self, copied: "Measure", level: PriceLevel) -> "Measure":
        """Return this balance and what is copied in one sum, with the level's weights."""
        return Measure(
            copied.copy.astype(object) * level.byte_weight,
            self.brokers.weighed(level.weight),
            self.topics.weighed(level.weight),
            copied.constant * level.byte_weight,
            self.value * level.weight + copied.value * level.byte_weight,
        )


def replica_measures(demands: Demands, balance: Balance, end: Reached) -> tuple[Holdings, Mapping[str, Measure]]:
    """Return what the choice of replicas is measured by, objective by objective."""
    sizes, is_copied, forced = _sizes(demands), demands.is_copied, demands.fixed.forced
    forced_bytes = exact_sum(exact_product(forced, np.maximum(demands.fixed.size, 0)))
    holdings = _replica_holdings(demands, end)
    _refuse_crowded(demands, holdings)
    none = np.zeros_like(is_copied)
    spread = _spread_measure(demands, end)
    capacity, targets = demands.brokers.capacity.replicas, (balance.replicas, balance.topics)
    measures = _balances(holdings, demands, capacity, targets, (REPLICAS_BALANCE, TOPICS_BALANCE))
    if spread.value:
        measures[SPREAD] = spread
    measures[BYTES] = Measure(sizes * is_copied, Free(), Free(), forced_bytes, end.bytes)
    measures[COPIES] = Measure(is_copied, Free(), Free(), int(forced.sum()), end.copies)
    squares = squares_of(demands.brokers.capacity.replicas)
    measures[EVENNESS] = Measure(none, squares, Free(), 0, squares.value(holdings.final.sum(axis=0)))
    return holdings, measures


def _spread_measure(demands: Demands, end: Reached) -> Measure:
    """Return how far the racks of all rows are from a spread that is preferred: replicas too many, and too few."""
    low, _, is_strict = demands.racks
    chosen = np.where(is_among(end.replicas, demands.rows.fixed), NOBODY, end.table)
    kind, none = demands.rows.kind, np.zeros(len(demands.rows), dtype=np.int64)
    value = int(demands.off_spread(chosen)[~is_strict[kind]].sum())
    # What a rack should have at least is a saving for each that it has: all of it is the constant.
    constant = int(low.sum(axis=1)[kind][~is_strict[kind]].sum())
    return Measure(none, Free(), Free(), constant, value, is_spread=True)


def leader_measures(demands: Demands, balance: Balance, end: Reached) -> tuple[Holdings, Mapping[str, Measure]]:
    """Return what the choice of preferred leaders among the reached replicas is measured by."""
    holdings = _leader_holdings(demands, end)
    names = (LEADERS_BALANCE, TOPIC_LEADERS_BALANCE)
    measures = _balances(holdings, demands, demands.brokers.capacity.leaders, (balance.leaders, balance.topics), names)
    rows, fixed = demands.rows, demands.fixed
    forced = int((fixed.is_assigned & fixed.is_there & (fixed.replicas[:, 0] != fixed.now[:, 0])).sum())
    changed = int((rows.is_there & (end.replicas[:, 0] != rows.now[:, 0])).sum())
    measures[LEADERS_CHANGED] = Measure(demands.is_copied, Free(), Free(), forced, forced + changed)
    return holdings, measures


def _balances(
    holdings: Holdings,
    demands: Demands,
    capacity: tuple[int, ...],
    targets: Sequence[BalanceTarget],
    names: Sequence[str],
) -> dict[str, Measure]:
    none = np.zeros(len(demands.rows), dtype=np.int64)
    counts = holdings.final.sum(axis=0)
    found = {}
    if not isinstance(targets[0], Off):
        of_brokers = count_cost_of(targets[0], capacity, counts, np.ones(len(capacity), dtype=np.bool_))
        value = of_brokers.value(counts)
        is_ideal = not value or (isinstance(of_brokers, Squares) and is_fair(capacity, counts.tolist()))
        found[names[0]] = Measure(none, of_brokers, Free(), 0, value, is_ideal)
    if not isinstance(targets[1], Off):
        cells, sharing = holdings.final[holdings.weighed], _sharing(demands)[holdings.weighed]
        of_topics = count_cost_of(targets[1], capacity, cells, sharing)
        value, weights = of_topics.value(cells), (sharing * np.array(capacity, dtype=object)).tolist()
        are_fair = all(is_fair(*each) for each in zip(weights, cells.tolist(), strict=True))
        is_ideal = not value or (isinstance(of_topics, Squares) and are_fair)
        found[names[1]] = Measure(none, Free(), of_topics, 0, value, is_ideal)
    return found


def paid_for_topics(demands: Demands, end: Reached, target: BalanceTarget, prices: Ints) -> int:
    """Return what prices of topics' parts [topics, brokers] pay back at most, within bands as wide as the end is."""
    holdings = _replica_holdings(demands, end)
    fixed, final = (each.astype(object) for each in (holdings.fixed, holdings.final))
    low, high = fixed, fixed + holdings.open[:, None]
    if not isinstance(target, Off):
        near = target if isinstance(target, Within) else Within(Fraction(0))
        bands = count_cost_of(near, demands.brokers.capacity.replicas, holdings.final, _sharing(demands))
        is_weighed = holdings.weighed[:, None] & isinstance(bands, Banded)
        if isinstance(bands, Banded):
            low = np.where(is_weighed, np.minimum(bands.low, final), low)
            high = np.where(is_weighed, np.maximum(bands.high, final), high)
    most = np.maximum(prices * low, prices * high) - prices * fixed
    return int(most.sum())


def _sharing(demands: Demands) -> Bools:
    """Return [topics, brokers]: who may get or keep a replica of a topic, or has one that stays."""
    takers = demands.brokers.masks([each.takers for each in demands.allowed])
    holders = demands.brokers.masks([each.holders for each in demands.allowed])
    is_held = _counts(demands, demands.rows.topic, demands.now) > 0
    return takers | (holders & is_held) | (_fixed(demands) > 0) | (_fixed_replicas(demands) > 0)


def replica_bounds(
    demands: Demands,
    holdings: Holdings,
    measures: Mapping[str, Measure],
    levels: Sequence[PriceLevel],
    same_counts: Collection[str] = (),
) -> list[int]:
    """Return the lower bound of each level; raise NotProved where a partition has no legal set at all.

    `same_counts` are the balances whose counts are the plan's: the bounds hold among the plans with the same counts.
    """
    try:
        return _bounds(
            demands,
            holdings,
            measures,
            levels,
            lambda found: cheapest_sets(demands, found, is_yielding=SPREAD in measures),
            same_counts=same_counts,
        )
    except NoLegalSet as none:
        message = f"no replica set of {demands.rows.key(none.row)} keeps every rule"
        raise NotProved(message) from None


def leader_bounds(
    demands: Demands, holdings: Holdings, measures: Mapping[str, Measure], levels: Sequence[PriceLevel], end: Reached
) -> list[int]:
    """Return the lower bound of each level of the preferred leaders, given the replicas reached."""
    return _bounds(demands, holdings, measures, levels, lambda found: cheapest_leaders(demands, end, found))


def _bounds(
    demands: Demands,
    holdings: Holdings,
    measures: Mapping[str, Measure],
    levels: Sequence[PriceLevel],
    cheapest: Callable[[Sequence[Objective]], list[int]],
    *,
    same_counts: Collection[str] = (),
) -> list[int]:
    objectives = [_objective(demands, measures[level.objective], level) for level in levels]
    fixed, weighed, box = holdings.fixed.astype(object), holdings.weighed, holdings.box
    fixed_cells = fixed[weighed]
    topic_box = Box(fixed_cells, fixed_cells + holdings.open[weighed].astype(object)[:, None])
    if same_counts:
        final = holdings.final.astype(object)
        box = Box(final.sum(axis=0), final.sum(axis=0))
        topic_box = Box(final[weighed], final[weighed]) if TOPICS_BALANCE in same_counts else topic_box
    bounds = []
    for level, objective, of_sets in zip(levels, objectives, cheapest(objectives), strict=True):
        measure = measures[level.objective]
        # The four summands of the formula in `reconciler.proof`: what partitions pay at least for their sets (priced
        # above, with all levels at once), what brokers take off at most for their counts, what assignments copy, and
        # the prices of fixed replicas, which are in no set and yet in the counts.
        of_counts, box = measure.brokers.cheapest(box, objective.prices.astype(object))
        of_fixed = int((objective.prices * fixed).sum())
        if objective.topic_prices is not None or not isinstance(measure.topics, Free):
            prices = np.zeros_like(fixed_cells)
            if objective.topic_prices is not None:
                prices = objective.topic_prices[weighed].astype(object)
            of_cells, topic_box = measure.topics.cheapest(topic_box, prices)
            of_counts, of_fixed = of_counts + of_cells, of_fixed + int((prices * fixed_cells).sum())
        # The boxes are narrower now. If this bound is the value, every best plan has counts that are cheapest at these
        # prices, so the next level need not look at others; a wider box would only make its bound weaker.
        bounds.append(of_sets + of_counts + measure.constant + of_fixed)
    return bounds


def _objective(demands: Demands, measure: Measure, level: PriceLevel) -> Objective:
    prices, of_topics = price_row(demands, level, level.prices), topic_price_table(demands, level)
    return Objective(measure.copy, prices, of_topics, is_spread=measure.is_spread)


def topic_price_table(demands: Demands, level: PriceLevel) -> Ints | None:
    """Return the prices of each topic's parts [topics, brokers], None where there are none."""
    topic_prices = None
    if level.topic_prices:
        number = {topic: position for position, topic in enumerate(demands.topics)}
        unknown = [topic for topic in level.topic_prices if topic not in number]
        if unknown:
            raise NotProved(f"{level.objective}: there are prices of topic {unknown[0]}, which has no part in the plan")
        rows = {number[topic]: price_row(demands, level, prices) for topic, prices in level.topic_prices.items()}
        is_wide = any(row.dtype == object for row in rows.values())
        shape = len(demands.topics), len(demands.brokers.ids)
        topic_prices = np.zeros(shape, dtype=object if is_wide else np.int64)
        topic_prices[list(rows)] = list(rows.values())
    return topic_prices


def _sizes(demands: Demands) -> Ints:
    sizes = np.maximum(demands.rows.size, 0)
    return sizes.astype(object) if int(sizes.max(initial=0)) >= SAFE else sizes


def _replica_holdings(demands: Demands, end: Reached) -> Holdings:
    rows, fixed = demands.rows, _fixed(demands)
    fixed, final = fixed + _fixed_replicas(demands), fixed + _counts(demands, rows.topic, end.table)
    given = np.bincount(rows.topic, weights=demands.need(), minlength=len(demands.topics)).astype(np.int64)
    return Holdings(fixed, given, final, _weighed(demands), demands.brokers.capacity.most_replicas)


def _refuse_crowded(demands: Demands, holdings: Holdings) -> None:
    final, most = holdings.final.sum(axis=0), holdings.box.high
    for broker_id, count, allowed in zip(demands.brokers.ids, final.tolist(), most.tolist(), strict=True):
        if count > allowed:
            raise NotProved(
                f"broker {broker_id} ends with {count} replicas, where limits.replicasPerBroker allows {allowed}"
            )


def _leader_holdings(demands: Demands, end: Reached) -> Holdings:
    assigned, topic = demands.fixed, demands.rows.topic
    fixed = _counts(demands, assigned.topic, columns_of(assigned.replicas[:, :1], demands.brokers))
    final = fixed + _counts(demands, topic, end.table[:, :1])
    given = np.bincount(topic, minlength=len(demands.topics)).astype(np.int64)
    return Holdings(fixed, given, final, _weighed(demands))


def _weighed(demands: Demands) -> Bools:
    found = np.zeros(len(demands.topics), dtype=np.bool_)
    found[demands.fixed.topic[demands.fixed.is_assigned]] = True
    found[demands.rows.topic] = True
    return found


def _counts(demands: Demands, topic: Ints, columns: Ints) -> Ints:
    """Return [topics, brokers] how often these columns [rows, width] name each broker, those that take part alone."""
    rows, places = np.nonzero(columns >= 0)
    counts = np.zeros((len(demands.topics), len(demands.brokers.ids)), dtype=np.int64)
    np.add.at(counts, (topic[rows], columns[rows, places]), 1)
    return counts


def _fixed(demands: Demands) -> Ints:
    """Return [topics, brokers] the replicas of partitions that are fixed."""
    return _counts(demands, demands.fixed.topic, columns_of(demands.fixed.replicas, demands.brokers))


def _fixed_replicas(demands: Demands) -> Ints:
    """Return [topics, brokers] the replicas that no plan may move."""
    return _counts(demands, demands.rows.topic, columns_of(demands.rows.fixed, demands.brokers))
