"""A run that is killed at any boundary, of any stage, and started again ends as one that never died."""

from collections import Counter

import pytest
from helpers.figures import Tell
from simulation.crashes import POINTS, crashed_everywhere, plans_to_crash
from simulation.many import in_processes

from reconciler.apply.crash import CRASH_POINTS

PLANS = 20
LEAST_RUNS = 1000


def test_a_plan_killed_at_some_boundaries_ends_the_same() -> None:
    crashes = crashed_everywhere(6, every=4)
    assert crashes.wrong == []


@pytest.mark.simulation
def test_killed_at_each_boundary_of_each_stage_and_started_again_it_ends_the_same(figures: Tell) -> None:
    told = list(in_processes(crashed_everywhere, plans_to_crash(PLANS)))
    wrong = [text for one in told for text in one.wrong]
    assert not wrong, f"{len(wrong)} wrong\n" + "\n\n".join(wrong[:3])
    points: Counter[str] = sum((one.points for one in told), Counter())
    runs, places = sum(one.runs for one in told), sum(len(one.places) for one in told)
    figures(
        "crash points",
        f"{len(points)} points, {places:,} of them x stages of {PLANS} plans, {runs:,} crash and resume runs, "
        "none ended in another state",
    )
    assert runs >= LEAST_RUNS
    assert set(points) <= set(POINTS)
    assert set(CRASH_POINTS) - set(points) <= {"withdraw.before", "withdraw.sent"}
