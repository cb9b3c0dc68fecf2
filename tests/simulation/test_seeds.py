"""Whole runs in a bad world, decided by one seed each: whatever happens, nothing unsafe does, and they end as planned.

pytest tests/simulation --seeds 10000                more of them
pytest tests/simulation --first-seed 4711 --seeds 1  one again, with its diary
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from helpers.figures import Tell
from simulation.many import corpus_seeds, in_processes, kept, played
from simulation.play import Play

pytestmark = pytest.mark.long

CORPUS = Path(__file__).with_name("corpus.txt")
QUICK_SEEDS = 50
SHOWN = 3


def judged(outcomes: Iterable[tuple[int, Play | str]]) -> list[Play]:
    """Return the plays that ended as they must; fail with the others, which the corpus keeps."""
    plays, failed = [], []
    for seed, outcome in outcomes:
        if isinstance(outcome, Play):
            plays.append(outcome)
        else:
            failed.append(f"{outcome}\nAgain: pytest tests/simulation --first-seed {seed} --seeds 1")
            kept(CORPUS, seed, outcome.partition(": ")[2])
    if failed:
        pytest.fail(f"{len(failed)} of {len(failed) + len(plays)} seeds failed\n" + "\n\n".join(failed[:SHOWN]))
    return plays


def test_seeds_that_failed_once_and_a_few_others_end_as_they_must() -> None:
    judged((seed, played(seed)) for seed in [*corpus_seeds(CORPUS), *range(QUICK_SEEDS)])


def test_a_seed_means_the_same_each_time() -> None:
    assert [played(seed) for seed in range(5)] == [played(seed) for seed in range(5)]


@pytest.mark.simulation
def test_whatever_happens_a_run_does_nothing_unsafe_and_ends_as_planned(
    pytestconfig: pytest.Config, figures: Tell
) -> None:
    first, count = int(pytestconfig.getoption("--first-seed")), int(pytestconfig.getoption("--seeds"))
    seeds = range(first, first + count)
    plays = judged(zip(seeds, in_processes(played, seeds), strict=True))
    ends = Counter(end for play in plays for end in play.ends)
    figures(
        "simulation",
        f"{len(plays):,} seeds from {first}: {sum(ends.values()):,} runs, "
        f"{ends['killed']:,} killed, {sum(play.faults for play in plays):,} faults, "
        f"{sum(play.requests for play in plays):,} writes, {sum(play.calls for play in plays):,} calls, none wrong",
    )
    if first == 0 and count >= 1000:
        assert ends["done"] > count / 2
        assert len(ends) > 8, ends
