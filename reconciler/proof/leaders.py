"""Finds for each partition the cheapest preferred leader among its replicas, at given prices."""

from collections.abc import Sequence

import numpy as np

from reconciler.proof.arrays import exact_sum
from reconciler.proof.cheapest import Objective
from reconciler.proof.demands import NOBODY, Demands, padded
from reconciler.proof.reached import Reached, leader_candidates


def cheapest_leaders(demands: Demands, end: Reached, objectives: Sequence[Objective]) -> list[int]:
    """Return, for each objective, the sum over all rows of their cheapest leaders, the first objective deciding first.

    `copy` of an objective is what another leader than the present one costs.
    """
    if not len(end.table):
        return [0] * len(objectives)
    now = padded([replicas[:1] for replicas in demands.rows.now], demands.brokers)
    is_other = end.table != (now[:, :1] if now.shape[1] else NOBODY)
    column = np.maximum(end.table, 0)
    is_open = leader_candidates(demands, end.table)
    sums = []
    for each in objectives:
        key = each.prices[column] + each.copy[:, None] * is_other
        if each.topic_prices is not None:
            key = key + each.topic_prices[demands.topic[:, None], column]
        least = np.where(is_open, key, np.iinfo(np.int64).max).min(axis=1)
        is_open = is_open & (key == least[:, None])
        sums.append(exact_sum(least))
    return sums
