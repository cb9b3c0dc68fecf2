"""Tells which cluster goes first where a topic grows that is copied: the copy grows before its topic.

A record with a key goes to a partition by the count of partitions, and a mirror writes it to the same partition of the
copy. Were the topic larger, for however long, the copy would have no place for some of them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reconciler.diff.mirrors import Copy
from reconciler.model.change import CreatePartitions, TopicChange
from reconciler.model.desired import DesiredMirror
from reconciler.model.problem import Problem, warning
from reconciler.model.words import FEW, in_brackets, named_some

SAME_PARTITIONS = "so that records keep their partition in both"


class GrowsFirst(NamedTuple):
    """A copy that has to grow before its topic does."""

    target: str
    copy: str
    source: str
    topic: str

    def __str__(self) -> str:
        return f"{self.copy} of {self.target} grows before {self.topic} of {self.source}, {SAME_PARTITIONS}"


def grow_first(
    source: str, growing: Iterable[str], mirrors: Mapping[str, Sequence[DesiredMirror]]
) -> Iterator[tuple[GrowsFirst, DesiredMirror]]:
    """Yield the copies of growing topics of a cluster, by topic; `mirrors`: those of other clusters, by target."""
    for topic in growing:
        for target in sorted(mirrors):
            for mirror in mirrors[target]:
                if mirror.source == source and mirror.pattern_for(topic) is not None:
                    yield GrowsFirst(target, mirror.copy_of(topic), source, topic), mirror


def ahead_of_source(wanted: Mapping[str, Sequence[Copy]], changes: Iterable[TopicChange]) -> Iterator[Problem]:
    """Yield a warning for each copy that grows before its topic has: this plan goes first."""
    for change in _growing(changes):
        for copy in wanted.get(change.topic, ()):
            if copy.source.is_to_grow:
                topic, place = f"{copy.topic} of {copy.mirror.source}", in_brackets(copy.source.at.get("partitions"))
                message = f"topic {change.topic} grows as {topic} is to{place}: apply this plan before that of "
                yield warning("KR839", f"{message}{copy.mirror.source}, {SAME_PARTITIONS}", change.at)


def after_copies(
    cluster: str, changes: Iterable[TopicChange], mirrors: Mapping[str, Sequence[DesiredMirror]]
) -> Iterator[Problem]:
    """Yield a warning for each topic that grows, and is copied to other clusters: their plans go first."""
    for change in _growing(changes):
        copied = list(grow_first(cluster, [change.topic], mirrors))
        if copied:
            names = (f"{each.copy} of {each.target}{in_brackets(mirror.at.get(''))}" for each, mirror in copied)
            clusters = ",".join(sorted({each.target for each, _ in copied}))
            message = f"topic {change.topic} grows, and is copied as {named_some(names, FEW)}: apply the plan of "
            yield warning("KR838", f"{message}{clusters} first, {SAME_PARTITIONS}", change.at)


def _growing(changes: Iterable[TopicChange]) -> Iterator[CreatePartitions]:
    return (change for change in changes if isinstance(change, CreatePartitions))


def order(clusters: Sequence[str], firsts: Collection[GrowsFirst]) -> tuple[tuple[str, ...], tuple[GrowsFirst, ...]]:
    """Return the clusters in an order that lets every copy grow first, and what no order can keep.

    Where nothing is said, they stay in the order that they came in.
    """
    left, ordered, broken = list(clusters), list[str](), list[GrowsFirst]()
    while left:
        waiting = {each.source for each in firsts if each.target in left and each.source != each.target}
        free = [cluster for cluster in left if cluster not in waiting]
        chosen = (free or left)[0]
        if not free:
            broken += [each for each in firsts if each.source == chosen and each.target in left]
        left.remove(chosen)
        ordered.append(chosen)
    return tuple(ordered), tuple(broken)
