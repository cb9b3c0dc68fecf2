"""Whatever may happen to a run, in every state that it can come to, each invariant holds, and the run comes to an end.

Two partitions on three brokers, moved in two stages. What may happen is bounded: see `exhaustive.bounds`.
"""

import pytest
from exhaustive.bounds import LONG, ONE_EACH, PAIRS, QUICK, searched, told
from helpers.figures import Tell


def check(name: str, figures: Tell) -> None:
    report = searched(name)
    assert report.trace is None, f"\n{report.trace}"
    figures(f"exhaustive, {name}", told(name, report))


@pytest.mark.parametrize("name", QUICK)
def test_a_run_to_which_nothing_happens(name: str, figures: Tell) -> None:
    check(name, figures)


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_a_run_to_which_one_thing_happens(name: str, figures: Tell) -> None:
    check(name, figures)


@pytest.mark.deep
@pytest.mark.parametrize("name", PAIRS)
def test_a_run_to_which_two_things_happen(name: str, figures: Tell) -> None:
    check(name, figures)


@pytest.mark.deep
@pytest.mark.parametrize("name", [name for name in ONE_EACH if name not in {*QUICK, *LONG}])
def test_a_run_to_which_something_else_happens(name: str, figures: Tell) -> None:
    check(name, figures)
