import pytest

from reconciler.render.units import counted, duration, number, percent, rate, size

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


def test_rates_read_as_the_yaml_writes_them() -> None:
    assert rate(50 * KIB**2) == "50MiB/s"
    assert rate(1.5 * KIB) == "1.5KiB/s"


def test_numbers_have_their_thousands_apart() -> None:
    assert number(1234567) == "1,234,567"
    assert counted(1, "move") == "1 move"
    assert counted(1200, "entry", "entries") == "1,200 entries"


def test_a_small_percentage_is_not_zero() -> None:
    assert percent(0.004) == "0.004 %"
    assert percent(0) == "0 %"
