"""Loops of mirrors: those that names tell are none, those that no name gets through are none, all others are told."""

from fnmatch import fnmatchcase
from itertools import product

import pytest
from helpers.depth import parts

from reconciler.diff.mirror_loops import globbed, have_common_name, loops
from reconciler.model.desired import MIRROR_MAKERS_RENAME, DesiredMirror
from reconciler.model.problem import Location

SAME = "{topic}"


def mirror(source: str, rename: str = MIRROR_MAKERS_RENAME, *topics: str) -> DesiredMirror:
    return DesiredMirror(f"from-{source}", source, topics or ("*",), rename, at={"": Location("m.yaml", 1)})


def circle(*mirrors: tuple[str, DesiredMirror]) -> dict[str, list[DesiredMirror]]:
    found: dict[str, list[DesiredMirror]] = {}
    for target, one in mirrors:
        found.setdefault(target, []).append(one)
    return found


@pytest.mark.parametrize(
    ("mirrors", "count"),
    [
        (circle(("a", mirror("b")), ("b", mirror("a"))), 0),
        (circle(("a", mirror("b", SAME)), ("b", mirror("a", SAME))), 2),
        (circle(("a", mirror("b", SAME)), ("b", mirror("a"))), 2),
        (circle(("a", mirror("b", "x.{topic}")), ("b", mirror("a", "x.{topic}"))), 2),
        (circle(("a", mirror("b", "{topic}-{source}")), ("b", mirror("a", "{topic}-{source}"))), 0),
        (circle(("a", mirror("b", "{topic}-{source}")), ("b", mirror("a"))), 2),
        (circle(("a", mirror("b", SAME, "x*")), ("b", mirror("a", SAME, "y*"))), 0),
        (circle(("a", mirror("b", SAME, "x*")), ("b", mirror("a", SAME, "*y"))), 2),
        (circle(("a", mirror("b", SAME, "x*", "z")), ("b", mirror("a", SAME, "y*", "z"))), 2),
        (circle(("a", mirror("b", "m.{topic}", "x*")), ("b", mirror("a", SAME, "*"))), 0),
        (circle(("a", mirror("b", "m.{topic}", "[!a]*")), ("b", mirror("a", SAME, "*"))), 2),
        (circle(("a", mirror("a"))), 1),
        (circle(("a", mirror("c", SAME)), ("b", mirror("a", SAME)), ("c", mirror("b", SAME))), 3),
        (circle(("a", mirror("c")), ("b", mirror("a")), ("c", mirror("b"))), 0),
        (circle(("a", mirror("c")), ("b", mirror("a")), ("c", mirror("b", SAME))), 3),
        (circle(("a", mirror("c", SAME)), ("b", mirror("a", SAME)), ("d", mirror("b", SAME))), 0),
    ],
)
def test_a_loop_is_told_once_for_each_of_its_mirrors(mirrors: dict[str, list[DesiredMirror]], count: int) -> None:
    found = list(loops(mirrors))
    assert [problem.code for problem in found] == ["KR114"] * count, found


def test_the_shortest_way_is_told() -> None:
    others = [("c", mirror("b", SAME)), ("a", mirror("c", SAME))]
    (first, *_) = loops(circle(("a", mirror("b", SAME)), ("b", mirror("a", SAME)), *others))
    assert "in a loop, b -> a -> b, with from-a (m.yaml:1): let all of them" in first.message


@pytest.mark.long
def test_twelve_clusters_that_all_copy_from_each_other_are_looked_through_at_once() -> None:
    names = [f"c{number}" for number in range(12)]
    assert list(loops({each: [mirror(other) for other in names if other != each] for each in names})) == []
    apart = {each: [mirror(other, SAME, f"{other}.*") for other in names if other != each] for each in names}
    assert list(loops(apart)) == []


PLACES = ("", "a", "b", "?", "*", "[ab]", "[!a]", ".")
NAMES = ["".join(letters) for length in range(1, 5) for letters in product("abc.", repeat=length)]


@pytest.mark.long
@parts("step", 97, deep=3)
def test_patterns_meet_where_a_name_matches_both(step: int) -> None:
    patterns = sorted({"".join(each) for each in product(PLACES, repeat=3)} - {""})
    matched = {pattern: frozenset(name for name in NAMES if fnmatchcase(name, pattern)) for pattern in patterns}
    pairs = list(product(patterns, repeat=2))[::step]
    wrong = [
        (one, other)
        for one, other in pairs
        if have_common_name((globbed(one), globbed(other))) != bool(matched[one] & matched[other])
    ]
    assert wrong == []
