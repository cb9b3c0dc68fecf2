"""Mutants of the code that decides: every one that lives on is shown to be equal, or a test is missing.

    .venv/bin/pytest -m deep tests/mutations/test_mutants.py -n 0

runs those that are judged already, one of each function in turn. `MUTANTS=1000` runs so many of each area, in the
same order, `MUTANTS=all` every one (hours). Where those beyond are judged, raise the area's `judged`.
Quick tests meet every mutant, an area's other tests those that quick tests left alive and nobody has shown to be equal.
Nothing is left in the checkout. What lives on is printed as an entry for `equal_mutants.toml`, without its reason.
"""

import ast
import inspect
import os
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name

import pytest
from helpers.figures import Tell
from mutations.mutants import (
    ALL,
    AREAS,
    KILLED,
    QUICK,
    TIMED_OUT,
    Area,
    Mutant,
    copied_checkout,
    drawn,
    mutants_of,
    run,
)

LISTED = tomllib.loads(Path(__file__).with_name("equal_mutants.toml").read_text(encoding="utf-8"))["equal"]
BY_QUICK = 0.85
"""The share of the mutants, without equal ones, that the quick tests have to kill."""
EQUAL = {(entry["function"], entry["right"], entry["wrong"]): entry["why"] for entry in LISTED}


def test_each_equal_mutant_is_listed_once_with_its_reason() -> None:
    assert len(EQUAL) == len(LISTED)
    assert all(EQUAL.values())


@pytest.mark.parametrize(("function", "right"), sorted({(function, right) for function, right, _ in EQUAL}))
def test_an_equal_mutant_stands_in_for_a_line_that_is_there(function: str, right: str) -> None:
    found = ast.parse(textwrap.dedent(inspect.getsource(resolve_name(f"reconciler.{function}"))))
    assert right in ast.unparse(found) or ast.unparse(ast.parse(right)) in ast.unparse(found)


@pytest.mark.deep
@pytest.mark.parametrize("area", AREAS)
def test_a_mutant_is_killed_or_shown_to_be_equal(area: str, tmp_path: Path, figures: Tell) -> None:
    chosen, by_quick = _run(tmp_path / "quick", area, QUICK)
    killed = _killed(by_quick)
    equal = {mutant for mutant in chosen if mutant.key in EQUAL}
    _, by_all = _run(tmp_path / "all", area, ALL, [mutant for mutant in chosen if mutant not in killed | equal])
    left = [mutant for mutant in chosen if mutant not in killed | equal | _killed(by_all)]
    unequal = len(chosen) - len(equal)
    figures(f"mutants of {area}", f"{len(chosen)} run, {len(equal)} equal, {len(left)} left")
    figures(f"mutants of {area}, quick", f"{len(killed)} of {unequal} killed by quick tests alone")
    assert not killed & equal, "these are listed as equal, but a test tells them apart"
    entries = [f"# {mutant.name}: {by_all[mutant]}\n{mutant}" for mutant in left]
    assert not left, "\n\n".join(["these live on:", *entries])
    assert len(killed) >= BY_QUICK * unequal


def _run(
    folder: Path, area: str, marks: str, mutants: Sequence[Mutant] | None = None
) -> tuple[Sequence[Mutant], Mapping[Mutant, str]]:
    """Return the mutants, drawn if none are given, and what became of each."""
    copy = copied_checkout(folder, AREAS[area], marks)
    made = mutants_of(copy)
    chosen = drawn(made, _size(AREAS[area])) if mutants is None else mutants
    return chosen, run(copy, chosen) if chosen else {}


def _killed(became: Mapping[Mutant, str]) -> set[Mutant]:
    return {mutant for mutant, status in became.items() if status in (KILLED, TIMED_OUT)}


def _size(area: Area) -> int | None:
    text = os.environ.get("MUTANTS", str(area.judged))
    return None if text == "all" else int(text)
