"""Whole runs in a bad world, decided by one seed each: whatever happens, nothing unsafe does, and they end as planned.

pytest tests/simulation                              the first seeds, and those that found something once
pytest tests/simulation -m deep                      the whole
pytest tests/simulation --seeds 10000                more of them
pytest tests/simulation --first-seed 4711 --seeds 1  one again, with its diary
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from helpers.depth import parts
from helpers.figures import Tell
from simulation.many import corpus_seeds, in_processes, kept, played
from simulation.play import DEEDS, Play
from simulation.world import READ_FATES, WRITE_FATES

pytestmark = [pytest.mark.long, pytest.mark.simulation]

CORPUS = Path(__file__).with_name("corpus.txt")
SHOWING = (30, 265)
"""The first has a deed that none before it has, the other shows a fault planted in the executor."""
PART = sorted({*corpus_seeds(CORPUS), *range(25), *SHOWING})
WHOLE = sorted({*corpus_seeds(CORPUS), *range(1000)})
SHARED_OUT = 300
"""From so many seeds on, other processes are worth their start."""
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


def asked_for(config: pytest.Config) -> Sequence[int]:
    """Return the seeds that the command line asks for; none where it does not."""
    first, count = config.getoption("--first-seed"), config.getoption("--seeds")
    if first is None and count is None:
        return ()
    return range(int(first or 0), int(first or 0) + int(count or 1))


def test_a_seed_means_the_same_each_time() -> None:
    assert [played(seed) for seed in range(2)] == [played(seed) for seed in range(2)]


@parts("seeds", PART, deep=WHOLE)
def test_whatever_happens_a_run_does_nothing_unsafe_and_ends_as_planned(
    seeds: Sequence[int], pytestconfig: pytest.Config, figures: Tell
) -> None:
    asked = asked_for(pytestconfig) or seeds
    outcomes = in_processes(played, asked) if len(asked) > SHARED_OUT else map(played, asked)
    plays = judged(zip(asked, outcomes, strict=True))
    ends = Counter(end for play in plays for end in play.ends)
    kinds = sum((play.kinds for play in plays), Counter[str]())
    figures(
        "simulation",
        f"{len(plays):,} seeds from {asked[0]}: {sum(ends.values()):,} runs, "
        f"{ends['killed']:,} killed, {sum(play.faults for play in plays):,} faults of {len(kinds)} kinds, "
        f"{sum(play.requests for play in plays):,} writes, {sum(play.calls for play in plays):,} calls, none wrong",
    )
    if asked is seeds:
        assert ends["done"] > len(seeds) / 2
        assert len(ends) > 7, ends
        assert set(kinds) == {*READ_FATES, *WRITE_FATES, "half", *DEEDS}, kinds
