"""Figures told by tests stand at the end of the run."""

import pytest
from helpers import figures as plugin

pytest_plugins = ("pytester",)


def test_figures_are_printed_at_the_end_once_a_name_and_sorted(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_one(figures):
            figures("seeds", "1 tried")

        def test_two(figures):
            figures("seeds", "2 tried")
            figures("crash points", "3 tried")
        """
    )
    told = pytester.runpytest("-p", plugin.__name__)
    told.assert_outcomes(passed=2)
    told.stdout.fnmatch_lines(["*= figures =*", "crash points: 3 tried", "seeds: 2 tried"], consecutive=True)


def test_a_run_without_figures_prints_no_heading(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_one(): pass")
    pytester.runpytest("-p", plugin.__name__).stdout.no_fnmatch_line("*= figures =*")
