"""Whole runs in a bad world, decided by one seed each: whatever happens, nothing unsafe does, and they end as planned.

pytest tests/simulation --seeds 10000                more of them
pytest tests/simulation --first-seed 4711 --seeds 1  one again, with its diary
"""

from collections.abc import Iterable
from pathlib import Path

import pytest
from helpers.simulated_many import corpus_seeds, kept, played
from helpers.simulated_play import Play

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
