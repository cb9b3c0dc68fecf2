"""Whatever may happen to a run, in every state that it can come to, each invariant holds, and the run comes to an end.

Two partitions on three brokers, moved in two stages. What may happen is bounded: see `exhaustive.bounds`.
"""

import pytest
from exhaustive.bounds import LONG, ONE_EACH, PAIRS, QUICK, searched, told
from helpers.figures import Tell

NAMES = (
    *QUICK,
    *(pytest.param(name, marks=pytest.mark.long) for name in LONG),
    *(pytest.param(name, marks=pytest.mark.deep) for name in (*PAIRS, *ONE_EACH) if name not in {*QUICK, *LONG}),
)


@pytest.mark.parametrize("name", NAMES)
def test_whatever_may_happen_each_invariant_holds_and_the_run_ends(name: str, figures: Tell) -> None:
    report = searched(name)
    assert report.trace is None, f"\n{report.trace}"
    figures(f"exhaustive, {name}", told(name, report))
