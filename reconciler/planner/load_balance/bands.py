"""Computes the bands: the least and the most of each measure that a broker may end with, by its capacity.

A band of loads is the fair share times (1 ± X). Counts are whole: the numbers next to a fair share are always inside,
and where the rules allow no such counts, the band is what the most even counts leave.
"""

from dataclasses import dataclass

import numpy as np

from reconciler.model.columns import Bools, Ints, alike
from reconciler.model.desired import Balance, BalanceTarget, Even, Within
from reconciler.planner.load_balance.task import (
    COUNTS,
    DISK,
    LEADERS,
    MEASURES,
    NETWORK_IN,
    NETWORK_OUT,
    REPLICAS,
    LoadTask,
)
from reconciler.planner.objectives import NEXT_WHOLE, CountTargets, band, evened_by_class
from reconciler.planner.rows import Floats, Rows


@dataclass(frozen=True, slots=True)
class Bands:
    """What is asked for, of each measure and broker."""

    asked: Bools  # [measures]: the others have bands that say nothing
    low: Ints  # [measures, brokers]
    high: Ints  # [measures, brokers]
    share: Floats  # [measures, brokers]: fair shares, at least 1; for weighing only, never to decide what is inside

    def only(self, *measures: int) -> "Bands":
        """Return these bands with no others asked for."""
        asked = np.zeros_like(self.asked)
        asked[list(measures)] = self.asked[list(measures)]
        return Bands(asked, self.low, self.high, self.share)

    def narrowed(self, part: int) -> "Bands":
        """Return the bands of loads narrower by one such part of their width at each end; counts stay as they are."""
        margin = (self.high - self.low) // part
        margin[list(COUNTS)] = 0
        return Bands(self.asked, self.low + margin, self.high - margin, self.share)

    def as_wide_as(self, loads: Ints) -> "Bands":
        """Return the bands, wider where these loads [measures, brokers] are outside."""
        return Bands(self.asked, np.minimum(self.low, loads), np.maximum(self.high, loads), self.share)

    def excess(self, loads: Ints) -> Ints:
        """Return [measures, brokers] by how much loads are above (positive) or below (negative) what is asked for."""
        found: Ints = np.maximum(loads - self.high, 0) - np.maximum(self.low - loads, 0)
        found[~self.asked] = 0
        return found

    def outside(self, loads: Ints) -> Floats:
        """Return [measures, brokers]: what is outside the bands, in parts of the fair share."""
        found: Floats = np.abs(self.excess(loads)) / self.share
        return found

    def are_kept(self, loads: Ints) -> bool:
        """Whether no load is outside."""
        return not self.excess(loads).any()


def bands_of(task: LoadTask, balance: Balance) -> Bands:
    """Return the bands of a balance."""
    total = task.base.sum(axis=1) + (task.weights.replica * task.need[:, None] + task.weights.leader).sum(axis=0)
    capacity, shape = task.eligible.capacity, (len(MEASURES), task.brokers)
    low, high = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    asked = np.zeros(len(MEASURES), dtype=np.bool_)
    targets: dict[int, BalanceTarget] = {
        REPLICAS: balance.replicas,
        LEADERS: balance.leaders,
        DISK: balance.disk,
        NETWORK_IN: balance.network_in,
        NETWORK_OUT: balance.network_out,
    }
    for measure, target in targets.items():
        amount = int(total[measure])
        high[measure] = amount
        asked[measure] = isinstance(target, Within | Even)
        if isinstance(target, Within):
            low[measure], high[measure] = band(amount, capacity, target, is_count=measure in COUNTS)
        elif isinstance(target, Even):
            low[measure], high[measure] = _even(task, measure, amount)
    weights = capacity.tolist()
    share = np.array([[max(1.0, int(amount) * weight / sum(weights)) for weight in weights] for amount in total])
    return Bands(asked, low, high, share)


def _even(task: LoadTask, measure: int, amount: int) -> tuple[Ints, Ints]:
    """Return the whole numbers next to each fair share or, of replicas, the most even counts where rules force more."""
    low, high = band(amount, task.eligible.capacity, NEXT_WHOLE)
    if measure != REPLICAS:
        return low, high
    targets = CountTargets(task.base[REPLICAS], task.eligible.capacity)
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
    rack, capacity = task.eligible.rack, task.eligible.capacity
    for broker in range(task.brokers):
        peers = counts[(rack == rack[broker]) & (capacity == capacity[broker])]
        if int(peers.max() - peers.min()) <= 1:
            low[broker], high[broker] = peers.min(), peers.max()
    return low, high


def _even_counts(task: LoadTask, targets: CountTargets) -> Ints:
    """Return [brokers] the replica counts with the least sum of count^2 / capacity that the rules allow."""
    first, of_row = alike([task.need, *task.low.T, *task.high.T, *task.allowed.T.astype(np.int64)])
    allowed = task.allowed[first]
    rules = Rows(
        need=task.need[first],
        allowed=allowed,
        low=task.low[first],
        high=np.minimum(task.high[first], task.by_rack(allowed)),
        rack=task.eligible.rack,
        topic=np.zeros_like(first),
    )
    standing = evened_by_class(rules, np.bincount(of_row), targets)
    return targets.base + sum(standing.counts(are_cells=False))
