"""Names what the whole proof uses: its arrays, a sum of them that cannot overflow, and the error that ends it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[Any]
"""Whole numbers: of 64 bits, or Python's own where 64 bits may not do."""
Bools = NDArray[np.bool_]


class NotProved(Exception):
    """A plan does not show what it says; the text is one sentence that names the first thing wrong."""


SAFE = 1 << 60
"""A few numbers below it can be added in 64 bits; where one is not below it, all are Python's own."""
_HALF = 32


def whole_numbers(values: Sequence[int]) -> Ints:
    """Return these numbers, of which a few can be added."""
    is_safe = max(values, default=0) < SAFE and min(values, default=0) > -SAFE
    return np.array(values, dtype=np.int64 if is_safe else object)


def exact_sum(values: Ints) -> int:
    """Return the sum, however large it is."""
    if values.dtype == object:
        return int(values.sum()) if values.size else 0
    high, low = values >> _HALF, values & ((1 << _HALF) - 1)
    return (int(high.sum()) << _HALF) + int(low.sum())
