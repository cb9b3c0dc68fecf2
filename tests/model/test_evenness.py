"""What even means, on numbers that can be checked by eye."""

from math import sqrt

from reconciler.model.evenness import Evenness, evenness


def test_equal_loads_are_even() -> None:
    assert evenness([(3, 1), (3, 1), (3, 1)]) == Evenness(1.0, 0.0, 0.0)


def test_one_that_carries_all_is_as_uneven_as_can_be() -> None:
    assert evenness([(4, 1), (0, 1), (0, 1), (0, 1)]) == Evenness(4.0, sqrt(3), 0.75)


def test_known_figures() -> None:
    assert evenness([(1, 1), (2, 1), (3, 1), (4, 1)]) == Evenness(1.6, sqrt(1.25) / 2.5, 0.25)


def test_a_member_of_twice_the_capacity_counts_as_two_with_half_the_load() -> None:
    assert evenness([(4, 2), (1, 1)]) == evenness([(2, 1), (2, 1), (1, 1)])


def test_one_without_a_share_and_loads_of_nothing_are_left_out() -> None:
    assert evenness([(5, 0), (1, 1), (1, 1)]) == evenness([(1, 1), (1, 1)])
    assert evenness([(0, 1), (0, 1)]) is None
    assert evenness([]) is None


def test_scaling_all_loads_changes_nothing() -> None:
    loads = [(7, 1), (2, 3), (0, 1), (11, 2)]
    found, scaled = evenness(loads), evenness((1024 * load, capacity) for load, capacity in loads)
    assert found == scaled
