"""What is counted and compared by columns is what a set and a loop find."""

import random
from collections import Counter

import numpy as np
import pytest

from reconciler.model.columns import distinct, place_among_equals


@pytest.mark.parametrize("largest", [0, 5, 1 << 16, 1 << 31])
def test_distinct_numbers_are_those_of_the_set_ascending(largest: int) -> None:
    random.seed(largest)
    for count in (0, 1, 7, 50):
        numbers = [random.choice((-2, -1, random.randint(0, largest))) for _ in range(count)]
        assert distinct(np.array(numbers, dtype=np.int64)).tolist() == sorted({one for one in numbers if one >= 0})


def test_a_place_among_equals_is_how_many_came_before() -> None:
    random.seed(1)
    for count in (0, 1, 7, 50):
        numbers = sorted(random.randint(0, 9) for _ in range(count))
        seen: Counter[int] = Counter()
        expected = []
        for one in numbers:
            expected.append(seen[one])
            seen[one] += 1
        assert place_among_equals(np.array(numbers, dtype=np.int64)).tolist() == expected
