"""When a disk is full, by hand: straight lines, rhythms of the week, levels, and how wide an interval is."""

from dataclasses import replace
from math import sqrt

import pytest

from reconciler.balance.model.disk_forecast import AHEAD_DAYS, DiskHistory, foretold

FOUR_WEEKS = 4 * 168 - 1
LINE = DiskHistory(ahead=tuple(100 * day for day in AHEAD_DAYS))
"""It grows by 100 a day, and nothing tells its past."""
KNOWN = replace(LINE, hours=FOUR_WEEKS, grown_first=0, grown_now=0, by_slot=((0, 0),) * 168)


@pytest.mark.parametrize(
    ("free", "days"),
    [
        (1000, 10.0),
        (1050, 10.5),
        (2500, 25.0),
        (36500, 365.0),
        (10, 0.1),
        (0, 0.0),
        (-5, 0.0),
        (10**9, None),
        (None, None),
    ],
)
def test_a_straight_line_is_full_after_what_is_free_over_the_growth(free: int | None, days: float | None) -> None:
    assert foretold(LINE, free).days == days


def test_without_two_weeks_there_is_no_interval() -> None:
    assert foretold(replace(KNOWN, hours=14 * 24 - 1), 1000).changes == ()
    assert foretold(replace(KNOWN, hours=14 * 24), 1000).changes != ()


def test_without_chance_the_interval_is_a_point_and_chance_makes_it_wider_the_further_it_is() -> None:
    sure = foretold(KNOWN, 1000)
    assert (sure.days, sure.earliest, sure.latest) == (10.0, 10.0, 10.0)
    assert sure.changes == ((700, 700, 700), (1400, 1400, 1400))
    chancy = foretold(replace(KNOWN, grown_chance=25.0), 1000)
    by = [1.886 * sqrt(25 * days * (1 + days / 7)) for days in (7, 14)]
    assert chancy.changes == (
        (700, round(700 - by[0]), round(700 + by[0])),
        (1400, round(1400 - by[1]), round(1400 + by[1])),
    )
    assert chancy.earliest is not None
    assert chancy.latest is not None
    assert chancy.earliest < 10 < chancy.latest


def test_the_less_history_the_wider() -> None:
    assert [replace(KNOWN, hours=weeks * 168 - 1).width for weeks in (2, 3, 4)] == [3.078, 3.078, 1.886]


def test_what_stands_goes_back_to_its_level_and_is_not_full_for_the_tooth_that_it_is_on() -> None:
    level = DiskHistory(ahead=(500,) * len(AHEAD_DAYS), hours=FOUR_WEEKS, standing_now=400, by_slot=((0, 500),) * 168)
    told = foretold(replace(level, standing_chance=4.0), 200)
    by = [1.886 * sqrt(4 * (3.5 + days)) for days in (7, 14)]
    assert told.changes == tuple((100, round(100 - one), round(100 + one)) for one in by)
    assert (told.days, told.earliest) == (None, None)
    assert foretold(level, 100).days is not None


def test_a_rhythm_of_the_week_shows_in_when_it_is_full_but_not_in_what_comes_in_a_week() -> None:
    # All of 700 a week come in on the first of the seven days from now on; slots count back from now.
    weekly = tuple((0 if slot < 145 else -700 * (slot - 144) // 24, 0) for slot in range(168))
    told = foretold(replace(KNOWN, grown_first=-700 * 4 + 1, by_slot=weekly), 690)
    assert told.changes[0][0] == 700
    assert told.days is not None
    assert told.days < 1.1
