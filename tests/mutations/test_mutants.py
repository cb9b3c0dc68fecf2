"""Mutants of the code that decides: every one that lives on is shown to be equal, or a test is missing.

    .venv/bin/pytest -m deep tests/mutations/test_mutants.py -n 0

runs those that are judged already, one of each function in turn. `MUTANTS=1000` runs so many of each area, in the
same order, `MUTANTS=all` every one (hours). Where those beyond are judged, raise the area's `judged`.
Nothing is left in the checkout. What lives on is told as an entry for `equal_mutants.toml`, without its reason.
"""

import ast
import inspect
import os
import textwrap
import tomllib
from collections import Counter
from pathlib import Path
from pkgutil import resolve_name

import pytest
from helpers.figures import Tell
from mutations.mutants import AREAS, KILLED, TIMED_OUT, Area, copied_checkout, drawn, mutants_of, run

LISTED = tomllib.loads(Path(__file__).with_name("equal_mutants.toml").read_text(encoding="utf-8"))["equal"]
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
    size = _size(AREAS[area])
    folder = copied_checkout(tmp_path, AREAS[area])
    mutants = mutants_of(folder)
    made = sum(map(len, mutants.values()))
    became = run(folder, drawn(mutants, size))
    killed = {mutant for mutant, status in became.items() if status in (KILLED, TIMED_OUT)}
    equal = {mutant for mutant in became if mutant.key in EQUAL}
    left = [mutant for mutant in became if mutant not in killed | equal]
    counts = ", ".join(f"{count} {status}" for status, count in sorted(Counter(became.values()).items()))
    told = f"{made} in {len(mutants)} functions, {len(became)} run ({counts}), {len(equal)} equal, {len(left)} left"
    figures(f"mutants of {area}", f"{told}; score {len(killed)} of {len(killed) + len(left)}")
    assert not killed & equal, "these are listed as equal, but a test tells them apart"
    entries = [f"# {mutant.name}: {became[mutant]}\n{mutant}" for mutant in left]
    assert not left, "\n\n".join(["these live on:", *entries])


def _size(area: Area) -> int | None:
    text = os.environ.get("MUTANTS", str(area.judged))
    return None if text == "all" else int(text)
