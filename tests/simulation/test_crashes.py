"""A run that is killed at any boundary, of any stage, and started again ends as one that never died."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import pytest
from helpers.depth import parts
from helpers.figures import Tell
from simulation.crashes import MOST_STAGES, POINTS, Crashes, crashed_everywhere, crashed_somewhere, plans_to_crash
from simulation.many import in_processes

from reconciler.apply.crash import CRASH_POINTS

PLANS, FEW = 20, 8
LEAST_RUNS = 1000
LEAST_RUNS_OF_PART = 40


def _somewhere(plans: Sequence[int]) -> Iterable[Crashes]:
    return map(crashed_somewhere, plans)


def _everywhere(plans: Sequence[int]) -> Iterable[Crashes]:
    return in_processes(crashed_everywhere, plans)


@pytest.mark.simulation
@parts("crashed", (_somewhere, FEW, LEAST_RUNS_OF_PART), deep=(_everywhere, PLANS, LEAST_RUNS))
def test_killed_at_each_boundary_of_each_stage_and_started_again_it_ends_the_same(
    crashed: tuple[Callable[[Sequence[int]], Iterable[Crashes]], int, int], figures: Tell
) -> None:
    crash, plans, least_runs = crashed
    told = list(crash(plans_to_crash(plans)))
    wrong = [text for one in told for text in one.wrong]
    assert not wrong, f"{len(wrong)} wrong\n" + "\n\n".join(wrong[:3])
    points: Counter[str] = sum((one.points for one in told), Counter())
    runs, places = sum(one.runs for one in told), sum(len(one.places) for one in told)
    figures(
        "crash points",
        f"{len(points)} points, {places:,} of them x stages of {plans} plans, {runs:,} crash and resume runs, "
        "none ended in another state",
    )
    assert runs >= least_runs
    assert set(points) <= set(POINTS)
    inside = {"dirs.before", "dirs.sent", "dirs.recorded"}  # see `tests/apply/test_dir_moves.py`
    assert set(CRASH_POINTS) - set(points) <= {"withdraw.before", "withdraw.sent", *inside}
    assert {stage for one in told for _, _, stage in one.places} >= set(range(1, MOST_STAGES + 1))
