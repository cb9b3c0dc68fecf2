from fractions import Fraction

import pytest

from reconciler.model.words import counted, duration, labelled, listed, named_some, number, percent, rate, size

KIB = 1024


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (KIB**2 - 1, "1.0 MiB"),
        (48 * KIB**3, "48.0 GiB"),
        (5 * KIB**6, "5.0 EiB"),
        (5000 * KIB**6, "5000.0 EiB"),
    ],
)
def test_sizes_read_in_the_unit_that_fits(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.4, "59 s"), (60, "1 min"), (164, "3 min"), (3600, "1h"), (4200, "1h10m"), (187200, "2d4h")],
)
def test_durations_have_at_most_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_rates_read_as_sizes_do_and_are_whole_where_they_can_be() -> None:
    assert rate(50 * KIB**2) == "50 MiB/s"
    assert rate(1.5 * KIB) == "1.5 KiB/s"


def test_numbers_have_their_thousands_apart() -> None:
    assert number(1234567) == "1,234,567"
    assert counted(1, "move") == "1 move"
    assert counted(1200, "entry", "entries") == "1,200 entries"


def test_a_small_percentage_is_not_zero() -> None:
    assert percent(0.00004) == "0.004%"
    assert percent(0) == "0%"
    assert percent(Fraction(1, 8)) == "12.5%"


def test_names_that_are_many_are_counted() -> None:
    assert named_some(["a", "b"], 2) == "a, b"
    assert named_some(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert named_some(["a", "b", "c"], 1, "; ") == "a; and 2 more"


def test_names_read_as_in_a_sentence() -> None:
    assert [listed([]), listed([1]), listed([1, 2]), listed([1, 2, 3])] == ["", "1", "1 and 2", "1, 2 and 3"]
    assert [labelled("broker", [4]), labelled("broker", [4, 5])] == ["broker 4", "brokers 4, 5"]
    assert labelled("topic", ["a", "b", "c"], 2) == "topics a, b and 1 more"
