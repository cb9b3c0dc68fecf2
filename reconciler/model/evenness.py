"""Computes how even a load is, by plain definitions: what every other computation of these figures must equal.

A member of capacity `c` counts as `c` members that carry one `c`-th of its load each; a member of capacity 0 (a broker
that is to be empty) has no fair share, and is left out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Annotated


@dataclass(frozen=True, slots=True)
class Evenness:
    """How even a load is: 1.0, 0.0 and 0.0 where all carry the same; larger is worse."""

    max_over_mean: Annotated[float, "The most that one carries over the mean."]
    coefficient_of_variation: Annotated[
        float, "The standard deviation (of the whole population, not of a sample) over the mean."
    ]
    gini: Annotated[float, "Half the mean difference of two members, over the mean (Gini 1912): from 0 to below 1."]


def evenness(loads: Iterable[tuple[float, int]]) -> Evenness | None:
    """Return how even these (load, capacity) are; None where nobody has a capacity, or the loads come to nothing."""
    members = sorted((load / capacity, capacity) for load, capacity in loads if capacity > 0)
    capacity = sum(weight for _, weight in members)
    total = sum(value * weight for value, weight in members)
    if capacity == 0 or total <= 0:
        return None
    mean = total / capacity
    variance = sum(weight * (value - mean) ** 2 for value, weight in members) / capacity
    differences = sum(
        one_weight * other_weight * abs(one - other) for one, one_weight in members for other, other_weight in members
    )
    return Evenness(
        max_over_mean=members[-1][0] / mean,
        coefficient_of_variation=sqrt(variance) / mean,
        gini=differences / (2 * capacity * total),
    )
