"""Holds the arrays that the proof adds up, and sums them so that they cannot overflow."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[Any]
"""Whole numbers: of 64 bits, or Python's own where 64 bits may not do."""
Bools = NDArray[np.bool_]

SAFE = 1 << 60
"""A few numbers below it can be added in 64 bits."""
_HALF = 32


def exact_sum(values: Ints) -> int:
    """Return the sum, however large it is."""
    if values.dtype == object:
        return int(values.sum()) if values.size else 0
    high, low = values >> _HALF, values & ((1 << _HALF) - 1)
    return (int(high.sum()) << _HALF) + int(low.sum())
