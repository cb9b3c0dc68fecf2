"""Computes the bands: the least and the most of each measure that a broker may end with, by its capacity.

A band of loads is the fair share times (1 ± X). Counts are whole: the numbers next to a fair share are always inside,
and where the rules allow no such counts, the band is what the most even counts leave.

A cap is a rule: the most that a broker may ever end with. A band is a wish: no load goes above a cap for its sake.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from reconciler.model.columns import Bools, Ints, alike
from reconciler.model.desired import Balance, Even, Within
from reconciler.planner.load_balance.task import CAPACITY_OF, COUNTS, MEASURES, REPLICAS, TOPICS, LoadTask
from reconciler.planner.objectives import NEXT_WHOLE, CountTargets, band, evened_by_class
from reconciler.planner.rows import Floats, Rows

Caps = Mapping[int, Mapping[int, int]]
"""The most that brokers may end with: of each measure, by broker id. A broker that is not there may end with any."""
NO_CAPS: Caps = MappingProxyType({})
NO_CAP = 1 << 60
"""More than any load: see `measured.MOST_IN_ALL`."""
TIMES_A_BAND = 1e6
"""What is above a cap weighs so many times what is outside a band, where one number is to tell both."""
HARDLY = 1e-15
"""Less than one byte is of any fair share: no more than rounding."""


@dataclass(frozen=True, slots=True)
class Bands:
    """What is asked for, of each measure and broker."""

    asked: Bools  # [measures]: the others have bands that say nothing
    low: Ints  # [measures, brokers]
    high: Ints  # [measures, brokers]: never above the cap
    share: Floats  # [measures, brokers]: fair shares, at least 1; for weighing only, never to decide what is inside
    counts: tuple[int, ...]  # the measures that are counts
    cap: Ints | None = None  # [measures, brokers]: the rule; None: there is none

    def only(self, *measures: int) -> "Bands":
        """Return these bands with no others asked for."""
        asked = np.zeros_like(self.asked)
        asked[list(measures)] = self.asked[list(measures)]
        return replace(self, asked=asked)

    def at(self, brokers: Ints) -> "Bands":
        """Return the bands of these brokers."""
        cap = None if self.cap is None else self.cap[:, brokers]
        low, high = self.low[:, brokers], self.high[:, brokers]
        return replace(self, low=low, high=high, share=self.share[:, brokers], cap=cap)

    def narrowed(self, part: int) -> "Bands":
        """Return the bands of loads narrower by one such part of their width at each end; counts stay as they are."""
        margin = (self.high - self.low) // part
        margin[list(self.counts)] = 0
        # A cap alone has no low end.
        below = margin if self.cap is None else np.where(self.low > 0, margin, 0)
        return replace(self, low=self.low + below, high=self.high - margin)

    def excess(self, loads: Ints) -> Ints:
        """Return [measures, brokers] by how much loads are above (positive) or below (negative) what is asked for."""
        found: Ints = np.maximum(loads - self.high, 0) - np.maximum(self.low - loads, 0)
        found[~self.asked] = 0
        return found

    def above_caps(self, loads: Ints) -> Ints:
        """Return [measures, brokers] by how much loads are above what a rule allows."""
        found = np.zeros_like(loads) if self.cap is None else np.maximum(loads - self.cap, 0)
        found[~self.asked] = 0
        return found

    def outside(self, loads: Ints) -> Floats:
        """Return [measures, brokers]: what is outside, in parts of the fair share; above a cap counts many times."""
        found: Floats = np.abs(self.excess(loads)) / self.share
        if self.cap is not None:
            found += TIMES_A_BAND * self.above_caps(loads) / self.share
        return found

    def are_kept(self, loads: Ints) -> bool:
        """Whether no load is outside."""
        return not self.excess(loads).any()

    def distance(self, loads: Ints) -> tuple[float, float]:
        """Return all that is above caps, then all that is outside bands, in parts of fair shares: the less the better.

        What is above caps is rounded to a few digits, as a sum of floats is no measure of the last ones.
        """
        above = float((self.above_caps(loads) / self.share).sum())
        return float(f"{above:.9g}"), float((np.abs(self.excess(loads)) / self.share).sum())

    def farther(self, measure: int | Ints, broker: Ints, before: Ints, moved: Ints) -> Floats:
        """Return [2, changes] how much farther outside its band, and above its cap, each broker is with so much more.

        In parts of fair shares; negative: closer.
        """
        low, high, after = self.low[measure, broker], self.high[measure, broker], before + moved
        outside_after = np.maximum(after - high, 0) + np.maximum(low - after, 0)
        outside_before = np.maximum(before - high, 0) + np.maximum(low - before, 0)
        change = np.zeros((2, len(broker)))
        change[0] = outside_after - outside_before
        if self.cap is not None:
            most = self.cap[measure, broker]
            change[1] = np.maximum(after - most, 0) - np.maximum(before - most, 0)
        farther: Floats = change / self.share[measure, broker]
        return farther

    def weighed(self, change: Floats) -> Floats:
        """Return such a change as one number, of which the sign is that of the caps' part where there is one."""
        of_bands: Floats = change[0]
        of_caps: Floats = change[1]
        if self.cap is None:
            return of_bands
        heavy = TIMES_A_BAND * of_caps
        light = np.clip(of_bands, -np.abs(heavy) / 2, np.abs(heavy) / 2)
        weighed: Floats = np.where(np.abs(of_caps) <= HARDLY, of_bands, heavy + light)
        return weighed


def bands_of(task: LoadTask, balance: Balance, caps: Caps = NO_CAPS) -> Bands:
    """Return the bands of a balance, which end at these caps; of a measure with neither nothing is asked."""
    total = task.base[:TOPICS].sum(axis=1)
    total += (task.weights.replica * task.need[:, None] + task.weights.leader).sum(axis=0)
    shape = (len(MEASURES), task.brokers)
    capacity = np.array([task.eligible.capacity[word] for word in CAPACITY_OF])
    low, high = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    asked = np.zeros(len(MEASURES), dtype=np.bool_)
    for measure, word in enumerate(MEASURES):
        target, amount = balance.targets[word], int(total[measure])
        high[measure] = amount
        asked[measure] = isinstance(target, Within | Even)
        if isinstance(target, Within):
            low[measure], high[measure] = band(amount, capacity[measure], target, is_count=measure in COUNTS)
        elif isinstance(target, Even):
            low[measure], high[measure] = _even(task, measure, amount)
    weights = zip(total, capacity.tolist(), strict=True)
    share = np.array([[max(1.0, int(amount) * one / sum(of)) for one in of] for amount, of in weights])
    if task.topics and isinstance(balance.topics, Within | Even):
        of_topics = _of_topics(task, balance.topics)
        asked, low, high, share = (
            np.concatenate(pair) for pair in zip((asked, low, high, share), of_topics, strict=True)
        )
    bands = Bands(asked, low, high, share, task.counts)
    is_capped = caps or task.eligible.most is not None
    return _capped(bands, task, caps) if is_capped else bands


def _of_topics(task: LoadTask, target: Within | Even) -> tuple[Bools, Ints, Ints, Floats]:
    """Return what is asked, the least, the most, and the shares of each topic's replicas and leads, by the brokers.

    Of brokers that may not hold it a topic asks nothing, nor where no placement is outside the band.
    """
    topics, may_hold = len(task.topics), np.zeros((len(task.topics) + 1, task.brokers), dtype=np.bool_)
    np.logical_or.at(may_hold, task.topic, task.allowed)
    may_hold |= task.base[TOPICS : TOPICS + topics + 1] > 0
    base = task.base[TOPICS:]
    low, high = np.zeros_like(base), np.full_like(base, NO_CAP)
    share, asked = np.ones(base.shape), np.zeros(len(base), dtype=np.bool_)
    partitions = np.bincount(task.topic, minlength=topics + 1)
    replicas = np.bincount(task.topic, weights=task.need, minlength=topics + 1).astype(np.int64)
    kinds = ((0, replicas, "replicas"), (topics + 1, partitions, "leaders"))
    for first, given, measure in kinds:
        for topic in range(topics):
            some, row = np.flatnonzero(may_hold[topic]), first + topic
            total, capacity = int(given[topic] + base[row].sum()), task.eligible.capacity[measure][some]
            band_of = target if isinstance(target, Within) else NEXT_WHOLE
            low[row, some], high[row, some] = band(total, capacity, band_of)
            share[row, some] = np.maximum(1.0, total * capacity / capacity.sum())
            most = base[row, some] + partitions[topic]
            asked[row] = bool(low[row, some].any() or (high[row, some] < most).any())
    return asked, low, high, share


def _capped(bands: Bands, task: LoadTask, caps: Caps) -> Bands:
    cap = np.full(bands.high.shape, NO_CAP, dtype=np.int64)
    for measure, most in caps.items():
        cap[measure] = [min(most.get(broker_id, NO_CAP), NO_CAP) for broker_id in task.eligible.ids]
    if task.eligible.most is not None:
        cap[REPLICAS] = np.maximum(task.eligible.most, task.base[REPLICAS])
    asked, high = bands.asked | (cap < NO_CAP).any(axis=1), np.minimum(bands.high, cap)
    return replace(bands, asked=asked, low=np.minimum(bands.low, high), high=high, cap=cap)


def _even(task: LoadTask, measure: int, amount: int) -> tuple[Ints, Ints]:
    """Return the whole numbers next to each fair share or, of replicas, the most even counts where rules force more."""
    capacity = task.eligible.capacity[CAPACITY_OF[measure]]
    low, high = band(amount, capacity, NEXT_WHOLE)
    if measure != REPLICAS:
        return low, high
    targets = CountTargets(task.base[REPLICAS], capacity)
    counts = _even_counts(task, targets)
    if bool(((low <= counts) & (counts <= high)).all()):
        return low, high
    # Other counts may be just as even. Those of today then stand, so that a plan's end is a plan's fixed point.
    if task.stays.all():
        present = task.loads(task.held, task.leader)[REPLICAS]
        if targets.imbalance_of(present, targets.many) == targets.imbalance_of(counts, targets.many):
            counts = present
    return _like_peers(task, counts)


def _like_peers(task: LoadTask, counts: Ints) -> tuple[Ints, Ints]:
    """Return bounds in which brokers of one rack and capacity may trade places, where they differ by one at most."""
    low, high = counts.copy(), counts.copy()
    rack, capacity = task.eligible.rack, task.eligible.capacity["replicas"]
    for broker in range(task.brokers):
        peers = counts[(rack == rack[broker]) & (capacity == capacity[broker])]
        if int(peers.max() - peers.min()) <= 1:
            low[broker], high[broker] = peers.min(), peers.max()
    return low, high


def _even_counts(task: LoadTask, targets: CountTargets) -> Ints:
    """Return [brokers] the replica counts with the least sum of count^2 / capacity that the rules allow."""
    first, of_row = alike([task.need, *task.low.T, *task.high.T, *task.allowed.T.astype(np.int64)])
    rules = Rows.within(
        task.need[first], task.allowed[first], task.low[first], task.high[first], rack=task.eligible.rack
    )
    most = None if task.eligible.most is None else np.maximum(task.eligible.most - targets.base, 0)
    standing = evened_by_class(rules, np.bincount(of_row), targets, most)
    return targets.base + sum(standing.counts(are_cells=False))
