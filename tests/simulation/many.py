"""Many plays, and many crashes, the whole spread over processes: what became of each, in the order of the seeds."""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

from simulation.play import Play, SeedFailed, play

T = TypeVar("T")

CHUNK = 10


def in_processes(work: Callable[[int], T], seeds: Iterable[int]) -> Iterator[T]:
    """Yield what `work` returns for each seed; as many processes as there are processors share it."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        yield from pool.map(work, seeds, chunksize=CHUNK)


def played(seed: int) -> Play | str:
    """Return what became of a seed, or why it failed."""
    try:
        return play(seed)
    except SeedFailed as failed:
        return str(failed)


def corpus_seeds(corpus: Path) -> list[int]:
    """Return the seeds that failed once; each line of the file begins with one."""
    lines = corpus.read_text(encoding="utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line.strip() and not line.startswith("#")]


def kept(corpus: Path, seed: int, why: str) -> None:
    """Add a seed that failed to the corpus, unless it is there."""
    if seed not in corpus_seeds(corpus):
        with corpus.open("a", encoding="utf-8") as file:
            file.write(f"{seed} {why.splitlines()[0][:160]}\n")
