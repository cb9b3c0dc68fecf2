"""Tells of each planted fault what notices it first: of the part that each run tries, and of the whole.

    PYTHONPATH=tests .venv/bin/python -m mutations.planted_faults    # prints it as a table

Nothing is looked at first because it is known to show a fault.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pytest
from mutations import test_executor_faults as executor
from mutations import test_planner_faults as planner
from mutations.faults import planted
from mutations.scrutiny import Case, cases, complaint
from mutations.watch_faults import unnoticed
from properties import test_imports as imports
from simulation import test_seeds as simulation
from staging import drawn as staging
from staging import test_mutants

from reconciler.files.desired_writer import is_writable

T = TypeVar("T")
NOBODY = "**nothing**"


@dataclass(frozen=True, slots=True)
class Noticed:
    """A fault, and what notices it first."""

    where: str
    what: str
    part: str
    whole: str


def noticed() -> Iterator[Noticed]:
    """Yield every planted fault, each tried with the part and with the whole."""
    yield from _executor()
    yield from _checkers()
    yield from _planner()
    yield from _staging()
    yield from _imports()


def _executor() -> Iterator[Noticed]:
    for fault in executor.FAULTS:
        with planted(fault, executor.APPLY):
            part, whole = _both(_played, simulation.PART, simulation.WHOLE)
        yield Noticed("executor", fault.what, part, whole)


def _played(seeds: Sequence[int]) -> str:
    return executor.complaint("", seeds) or NOBODY


def _checkers() -> Iterator[Noticed]:
    for fault in executor.CHECKER_FAULTS:
        with planted(fault, executor.CHECKERS):
            found = next(iter(unnoticed()), NOBODY)
        yield Noticed("checkers of the simulation", fault.what, found, found)


def _planner() -> Iterator[Noticed]:
    with pytest.MonkeyPatch.context() as patch:
        planner.take_every_path(patch)
        for fault in planner.FAULTS:
            with planted(fault, planner.PLANNER):
                part, whole = _both(_case, planner.of_each_run(), cases())
            yield Noticed("planner", fault.what, part, whole)


def _case(looked_at: Sequence[Case]) -> str:
    return (complaint(looked_at) or NOBODY).partition(":")[0]


def _staging() -> Iterator[Noticed]:
    for what, target, name, mutant in test_mutants.MUTANTS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(target, name, mutant)
            part, whole = _both(partial(_seed, test_mutants.caught_by), staging.PART, staging.WHOLE)
        yield Noticed("staging", what, part, whole)


def _imports() -> Iterator[Noticed]:
    for fault in imports.FAULTS:
        is_writable.cache_clear()
        with planted(fault, "reconciler"):
            part, whole = _both(partial(_seed, imports.first_to_notice), imports.PART, imports.WHOLE)
        is_writable.cache_clear()
        yield Noticed("import", fault.what, part, whole)


def _both(first: Callable[[Sequence[T]], str], part: Sequence[T], whole: Sequence[T]) -> tuple[str, str]:
    """Return what notices first, of the part and of the whole.

    The whole has the part's in the same order: what is first of the whole, and in the part, is first there too.
    """
    of_whole = first(whole)
    is_in_part = of_whole in {_called(one) for one in part}
    return (of_whole if is_in_part else first(part)), of_whole


def _called(one: object) -> str:
    return one.name if isinstance(one, Case) else f"seed {one}"


def _seed(first: Callable[[Sequence[int]], int | None], seeds: Sequence[int]) -> str:
    found = first(seeds)
    return NOBODY if found is None else f"seed {found}"


def table(rows: Iterable[Noticed]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| planted in | fault | the part notices by | the whole by |"
    yield "|---|---|---|---|"
    for row in rows:
        yield f"| {row.where} | {row.what} | {row.part} | {row.whole} |"


if __name__ == "__main__":
    for line in table(noticed()):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
