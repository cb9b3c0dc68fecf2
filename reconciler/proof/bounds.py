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
from reconciler.proof.basics import Bools, Ints, NotProved, whole_numbers
from reconciler.proof.cheapest import NoLegalSet, Objective, cheapest_leaders, cheapest_sets, price_row
from reconciler.proof.counts import Banded, Box, CountCost, Free, count_cost_of, squares_of
from reconciler.proof.demands import NOBODY, Demands
from reconciler.proof.reached import Reached

REPLICAS_BALANCE, TOPICS_BALANCE, EVENNESS = "replicas balance", "topics balance", "evenness"
LEADERS_BALANCE, TOPIC_LEADERS_BALANCE = "leaders balance", "topic leaders balance"
BYTES, COPIES, LEADERS_CHANGED = "bytes", "replicas", "leaders changed"


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is counted, replicas or preferred leaders: `settled` whatever the plan, `open` still to be given, `final`.

    Arrays are [topics, brokers], `open` is [topics]. `weighed` [topics] are those of which a plan decides anything:
    only these are judged topic by topic.
    """

    settled: Ints
    open: Ints
    final: Ints
    weighed: Bools
    limit: int | None = None  # the most of a broker, unless what is settled there is more already

    @property
    def box(self) -> Box:
        """The counts that brokers may end with [brokers]."""
        low = self.settled.astype(object).sum(axis=0)
        high = low + int(self.open.sum())
        return Box(low, high if self.limit is None else np.maximum(low, np.minimum(high, self.limit)))


@dataclass(frozen=True, slots=True)
class Measure:
    """One objective: what a copied replica (or another leader) costs, how counts are judged, what the plan reaches."""

    copy: Ints
    brokers: CountCost
    topics: CountCost
    constant: int
    value: int

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
    sizes = _sizes(demands)
    is_copied = demands.is_copied
    assigned = [each for each in demands.decided.values() if each.is_assigned and each.now]
    forced = [len(set(each.replicas).difference(each.now)) for each in assigned]
    forced_bytes = sum(copies * (each.size or 0) for copies, each in zip(forced, assigned, strict=True))
    holdings = _replica_holdings(demands, end)
    _refuse_crowded(demands, holdings)
    none = np.zeros_like(is_copied)
    capacity, targets = demands.brokers.capacity.replicas, (balance.replicas, balance.topics)
    measures = _balances(holdings, demands, capacity, targets, (REPLICAS_BALANCE, TOPICS_BALANCE))
    measures[BYTES] = Measure(sizes * is_copied, Free(), Free(), forced_bytes, end.bytes)
    measures[COPIES] = Measure(is_copied, Free(), Free(), sum(forced), end.copies)
    squares = squares_of(demands.brokers.capacity.replicas)
    measures[EVENNESS] = Measure(none, squares, Free(), 0, squares.value(holdings.final.sum(axis=0)))
    return holdings, measures


def leader_measures(demands: Demands, balance: Balance, end: Reached) -> tuple[Holdings, Mapping[str, Measure]]:
    """Return what the choice of preferred leaders among the reached replicas is measured by."""
    holdings = _leader_holdings(demands, end)
    names = (LEADERS_BALANCE, TOPIC_LEADERS_BALANCE)
    measures = _balances(holdings, demands, demands.brokers.capacity.leaders, (balance.leaders, balance.topics), names)
    assigned = (each for each in demands.decided.values() if each.is_assigned and each.now)
    forced = sum(each.replicas[0] != each.now[0] for each in assigned)
    pairs = zip(end.replicas, demands.rows.now, strict=True)
    changed = sum(bool(now) and after[0] != now[0] for after, now in pairs)
    measures[LEADERS_CHANGED] = Measure(demands.is_copied, Free(), Free(), forced, forced + changed)
    return holdings, measures


def _balances(
    holdings: Holdings,
    demands: Demands,
    capacity: tuple[int, ...],
    targets: Sequence[BalanceTarget],
    names: Sequence[str],
) -> dict[str, Measure]:
    none = np.zeros(len(demands.rows.keys), dtype=np.int64)
    counts = holdings.final.sum(axis=0)
    found = {}
    if not isinstance(targets[0], Off):
        of_brokers = count_cost_of(targets[0], capacity, counts, np.ones(len(capacity), dtype=np.bool_))
        found[names[0]] = Measure(none, of_brokers, Free(), 0, of_brokers.value(counts))
    if not isinstance(targets[1], Off):
        cells = holdings.final[holdings.weighed]
        of_topics = count_cost_of(targets[1], capacity, cells, _sharing(demands)[holdings.weighed])
        found[names[1]] = Measure(none, Free(), of_topics, 0, of_topics.value(cells))
    return found


def paid_for_topics(demands: Demands, end: Reached, target: BalanceTarget, prices: Ints) -> int:
    """Return what prices of topics' parts [topics, brokers] pay back at most, within bands as wide as the end is."""
    holdings = _replica_holdings(demands, end)
    settled, final = (each.astype(object) for each in (holdings.settled, holdings.final))
    low, high = settled, settled + holdings.open[:, None]
    if not isinstance(target, Off):
        near = target if isinstance(target, Within) else Within(Fraction(0))
        bands = count_cost_of(near, demands.brokers.capacity.replicas, holdings.final, _sharing(demands))
        is_weighed = holdings.weighed[:, None] & isinstance(bands, Banded)
        if isinstance(bands, Banded):
            low = np.where(is_weighed, np.minimum(bands.low, final), low)
            high = np.where(is_weighed, np.maximum(bands.high, final), high)
    most = np.maximum(prices * low, prices * high) - prices * settled
    return int(most.sum())


def _sharing(demands: Demands) -> Bools:
    """Return [topics, brokers]: who may get or keep a replica of a topic, or has one that stays."""
    found = np.array([demands.brokers.mask(allowed.takers) for allowed in demands.allowed], dtype=np.bool_)
    for topic, now in zip(demands.rows.topics, demands.rows.now, strict=True):
        found[topic, demands.brokers.columns(demands.allowed[topic].holders.intersection(now))] = True
    staying = [(each.topic, each.replicas) for each in demands.decided.values()]
    staying += [(demands.rows.topics[row], kept) for row, kept in demands.rows.kept.items()]
    _count(found, demands, [(topic, replica) for topic, replicas in staying for replica in replicas])
    return found


def replica_bounds(
    demands: Demands,
    holdings: Holdings,
    measures: Mapping[str, Measure],
    levels: Sequence[PriceLevel],
    fixed: Collection[str] = (),
) -> list[int]:
    """Return the lower bound of each level; raise NotProved where a partition has no legal set at all.

    `fixed` are the balances whose counts are those of the plan: the bounds hold among the plans with the same ones.
    """
    try:
        return _bounds(demands, holdings, measures, levels, lambda found: cheapest_sets(demands, found), fixed=fixed)
    except NoLegalSet as none:
        message = f"no replica set of {demands.rows.keys[none.row]} keeps every rule"
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
    fixed: Collection[str] = (),
) -> list[int]:
    objectives = [_objective(demands, measures[level.objective], level) for level in levels]
    settled = holdings.settled.astype(object)
    box = holdings.box
    weighed = holdings.weighed
    cells = settled[weighed]
    topic_box = Box(cells, cells + holdings.open[weighed].astype(object)[:, None])
    if fixed:
        final = holdings.final.astype(object)
        box = Box(final.sum(axis=0), final.sum(axis=0))
        topic_box = Box(final[weighed], final[weighed]) if TOPICS_BALANCE in fixed else topic_box
    bounds = []
    for level, objective, sets in zip(levels, objectives, cheapest(objectives), strict=True):
        measure = measures[level.objective]
        counts, box = measure.brokers.cheapest(box, objective.prices.astype(object))
        bound = sets + counts + measure.constant + int((objective.prices * settled).sum())
        if objective.topic_prices is not None or not isinstance(measure.topics, Free):
            prices = np.zeros_like(cells)
            if objective.topic_prices is not None:
                prices = objective.topic_prices[weighed].astype(object)
            counts, topic_box = measure.topics.cheapest(topic_box, prices)
            bound += counts + int((prices * cells).sum())
        bounds.append(bound)
    return bounds


def _objective(demands: Demands, measure: Measure, level: PriceLevel) -> Objective:
    return Objective(measure.copy, price_row(demands, level, level.prices), topic_price_table(demands, level))


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
    return whole_numbers([size or 0 for size in demands.rows.sizes])


def _replica_holdings(demands: Demands, end: Reached) -> Holdings:
    settled = np.zeros((len(demands.topics), len(demands.brokers.ids)), dtype=np.int64)
    lists = [(each.topic, each.replicas) for each in demands.decided.values()]
    lists += [(demands.rows.topics[row], kept) for row, kept in demands.rows.kept.items()]
    _count(settled, demands, [(topic, replica) for topic, replicas in lists for replica in replicas])
    given = np.bincount(demands.topic, weights=demands.need(), minlength=len(demands.topics)).astype(np.int64)
    final = settled.copy()
    for row, kept in demands.rows.kept.items():
        np.subtract.at(final, (demands.rows.topics[row], demands.brokers.columns(kept)), 1)
    rows, places = np.nonzero(end.table != NOBODY)
    np.add.at(final, (demands.topic[rows], end.table[rows, places]), 1)
    return Holdings(settled, given, final, _weighed(demands), demands.brokers.capacity.most_replicas)


def _refuse_crowded(demands: Demands, holdings: Holdings) -> None:
    final, most = holdings.final.sum(axis=0), holdings.box.high
    for broker_id, count, allowed in zip(demands.brokers.ids, final.tolist(), most.tolist(), strict=True):
        if count > allowed:
            raise NotProved(
                f"broker {broker_id} ends with {count} replicas, where limits.replicasPerBroker allows {allowed}"
            )


def _leader_holdings(demands: Demands, end: Reached) -> Holdings:
    settled = np.zeros((len(demands.topics), len(demands.brokers.ids)), dtype=np.int64)
    _count(settled, demands, [(each.topic, each.replicas[0]) for each in demands.decided.values() if each.replicas])
    final = settled.copy()
    if len(end.table):
        np.add.at(final, (demands.topic, end.table[:, 0]), 1)
    given = np.bincount(demands.topic, minlength=len(demands.topics)).astype(np.int64)
    return Holdings(settled, given, final, _weighed(demands))


def _weighed(demands: Demands) -> Bools:
    found = np.zeros(len(demands.topics), dtype=np.bool_)
    found[[each.topic for each in demands.decided.values() if each.is_assigned]] = True
    found[demands.topic] = True
    return found


def _count(counts: Ints, demands: Demands, held: Sequence[tuple[int, int]]) -> None:
    """Add one for each topic and broker that is named, brokers that take no part left out."""
    column = demands.brokers.column
    found = [(topic, column[replica]) for topic, replica in held if replica in column]
    if found:
        topic, at = np.array(found, dtype=np.int64).T
        np.add.at(counts, (topic, at), 1)
