"""Finds loops: mirrors by which a topic would come back to the cluster that it was copied from, and be copied again.

Where all mirrors of a loop write the source into a copy's name, and in the same way, the names tell where a topic has
been, and it is not copied back (`diff.mirrors`). All other loops are errors, unless no name gets through all patterns.
"""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from string import ascii_letters, digits
from typing import NamedTuple

from reconciler.model.desired import DesiredMirror
from reconciler.model.problem import Problem

_LETTERS = frozenset(ascii_letters + digits + "._-")
"""What topics' names are made of."""


class Link(NamedTuple):
    """A mirror, and the cluster in whose folder it stands."""

    target: str
    mirror: DesiredMirror


Glob = tuple[frozenset[str] | None, ...]
"""A shell pattern, place by place: the letters that may stand there; None for any number of any letters."""
Names = tuple[Glob, ...]
"""All names that match each of these: a pattern of every mirror on the way, renamed since."""


def loops(mirrors: Mapping[str, Sequence[DesiredMirror]]) -> Iterator[Problem]:
    """Yield an error for each mirror, by target, that is part of a loop; the shortest one is told."""
    links = [Link(target, mirror) for target in sorted(mirrors) for mirror in mirrors[target]]
    for first in links:
        is_itself = first.target == first.mirror.source
        way = (first,) if is_itself else _way_back(first, _in_circles_with(first, links))
        if way:
            told = ", ".join(f"{each.mirror.name} ({each.mirror.at.get('')})" for each in way[1:])
            round_trip = " -> ".join([first.mirror.source, *(each.target for each in way)])
            message = (
                f"mirror {first.mirror.name} copies topics in a loop, {round_trip}{f', with {told}' if told else ''}"
            )
            way_out = "let all of them write {source} into the names of copies, in the same way, or narrow topics"
            beside = tuple(at for each in way[1:] if (at := each.mirror.at.get("")) is not None)
            yield Problem("KR114", f"{message}: {way_out}", first.mirror.at.get(""), beside=beside)


def _in_circles_with(first: Link, links: Sequence[Link]) -> Sequence[Link]:
    """Return the links that one can go over from a link's target to its source and back; none where all is told."""
    after, before = {first.target}, {first.mirror.source}
    for _ in links:
        after |= {each.target for each in links if each.mirror.source in after}
        before |= {each.mirror.source for each in links if each.target in before}
    found = [each for each in links if each.target in before and each.mirror.source in after]
    return () if _is_told([first, *found]) else found


def _is_told(way: Sequence[Link]) -> bool:
    """Whether the names of copies tell every cluster on that way."""
    return way[0].mirror.is_source_told and len({each.mirror.rename for each in way}) == 1


def _way_back(first: Link, links: Sequence[Link]) -> tuple[Link, ...]:
    """Return the shortest way on which a topic goes over this link and comes to it again; empty for none."""
    begun: list[tuple[tuple[Link, ...], Sequence[Names]]] = [((first,), _over(first, [()]))]
    while begun:
        longer: list[tuple[tuple[Link, ...], Sequence[Names]]] = []
        for way, reached in begun:
            if way[-1].target == first.mirror.source:
                # From wherever on the way a topic begins, it goes all the way round: else it does so once at the most.
                if not _is_told(way) and all(_is_round((*way[at:], *way[:at])) for at in range(len(way))):
                    return way
                continue
            passed = {each.target for each in way}
            next_links = (each for each in links if each.mirror.source == way[-1].target and each.target not in passed)
            further = ((link, _over(link, reached)) for link in next_links)
            longer += [((*way, link), names) for link, names in further if names]
        begun = longer
    return ()


def _is_round(way: Sequence[Link]) -> bool:
    """Whether some topic goes over all of these links, and then over the first of them again."""
    reached: Sequence[Names] = [()]
    for link in (*way, way[0]):
        reached = _over(link, reached)
    return bool(reached)


def _over(link: Link, reached: Sequence[Names]) -> Sequence[Names]:
    """Return what the names of copies are, made over this link of topics with such names."""
    before, behind = (tuple(frozenset(letter) for letter in part) for part in link.mirror.around())
    met = ((*globs, globbed(pattern)) for globs in reached for pattern in link.mirror.topics)
    return [tuple((*before, *glob, *behind) for glob in globs) for globs in met if have_common_name(globs)]


@lru_cache(maxsize=1 << 12)
def globbed(pattern: str) -> Glob:
    """Return a shell pattern, as `fnmatch` takes it, place by place."""
    places: list[frozenset[str] | None] = []
    at = 0
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "[":
            # A bracket right behind the first, or behind its `!`, is a letter of the class.
            closing = pattern.find("]", at + 2 + (pattern[at + 1 : at + 2] == "!"))
            end = closing + 1 if closing > 0 else end
        part = pattern[at:end]
        places.append(None if part == "*" else frozenset(each for each in _LETTERS if fnmatchcase(each, part)))
        at = end
    return tuple(places)


def have_common_name(globs: Sequence[Glob]) -> bool:
    """Whether there is a name that matches all of these."""
    told = {
        letter
        for glob in globs
        for place in glob
        if place is not None and len(place) < len(_LETTERS)
        for letter in place
    }
    letters = sorted(told | set(sorted(_LETTERS - told)[:1]))
    ends = tuple(map(len, globs))
    waiting, seen = [(0,) * len(globs)], set[tuple[int, ...]]()
    while waiting:
        at = waiting.pop()
        if at == ends:
            return True
        if at in seen:
            continue
        seen.add(at)
        places = [glob[place : place + 1] for glob, place in zip(globs, at, strict=True)]
        waiting += [(*at[:i], at[i] + 1, *at[i + 1 :]) for i, place in enumerate(places) if place == (None,)]
        if () in places:
            continue
        for letter in letters:
            if all(place is None or letter in place for (place,) in places):
                waiting.append(tuple(each + (place != (None,)) for each, place in zip(at, places, strict=True)))
    return False
