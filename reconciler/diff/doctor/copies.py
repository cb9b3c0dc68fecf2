"""Finds what is wrong with copies of another cluster's topics: missing, small, still, or of a topic made again.

Only what both clusters show counts. That a copy stands still takes two looks, some seconds apart: a record that is on
its way is no fault, and neither is a source where nothing is written.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from reconciler.model.cluster import Cluster
from reconciler.model.diagnosis import Finding
from reconciler.model.problem import Severity
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import counted, few

MANY_MINUTES_MS = 5 * 60 * 1000
"""A copy that is behind by less may be about to be copied to: MirrorMaker 2 restarts, or its tasks are dealt anew."""
Times = Mapping[TopicPartition, int | None]
"""The latest time of each partition's records, in ms since 1970; None: it holds none. Left out: nobody told."""


class Pair(NamedTuple):
    """A copy, and the topic of the source that it is of; names of topics."""

    copy: str
    topic: str


class Parts(NamedTuple):
    """The same of a partition."""

    copy: TopicPartition
    topic: TopicPartition


@dataclass(frozen=True, slots=True)
class Behind:
    """A partition of a copy that lacks records of its topic: the latest time of records in both; None: it has none."""

    parts: Parts
    newest: int | None
    newest_there: int

    def __str__(self) -> str:
        mine = "no record" if self.newest is None else f"newest record {_time(self.newest)}"
        return f"{self.parts.copy} ({mine}, that of {self.parts.topic} {_time(self.newest_there)})"


@dataclass(frozen=True, slots=True)
class MadeAgain:
    """A partition of a topic that ends before a record that was copied from it: made again, or robbed of records."""

    parts: Parts
    end: int
    copied: int

    def __str__(self) -> str:
        return f"{self.parts.topic} ends at {self.end}, and its record {self.copied} was copied to {self.parts.copy}"


def parts_of(pairs: Iterable[Pair], there: Cluster, here: Cluster) -> Sequence[Parts]:
    """Return the partitions that both the copy and its topic have."""
    return [
        Parts(TopicPartition(pair.copy, number), TopicPartition(pair.topic, number))
        for pair in pairs
        for number in range(min(_count(there, pair.topic), _count(here, pair.copy)))
    ]


def behind(parts: Sequence[Parts], there: Times, here: Times, ends: Times, now: int) -> Sequence[Behind]:
    """Return the partitions of copies that may stand still: what is newest in them is minutes older than in the source.

    `ends`: the end offsets of the copies. A newest record of the source that is minutes old would be copied by now.
    """
    found = []
    for each in parts:
        newest, newest_there = here.get(each.copy), there.get(each.topic)
        if newest_there is None or not _is_told(each, there, here, ends):
            continue
        is_old = newest is not None and max(newest_there - newest, now - newest_there) > MANY_MINUTES_MS
        if newest is None or (newest < newest_there and is_old):
            found.append(Behind(each, newest, newest_there))
    return found


def not_told(parts: Sequence[Parts], there: Times, here: Times, ends: Times) -> int:
    """Return of how many partitions of copies nobody can say whether they stand still."""
    return sum(not _is_told(each, there, here, ends) for each in parts)


def _is_told(each: Parts, there: Times, here: Times, ends: Times) -> bool:
    """Whether it is known how new the records of both are; of a copy that held some, and holds none now, it is not."""
    if each.topic not in there or each.copy not in here or each.copy not in ends:
        return False
    return there[each.topic] is None or here[each.copy] is not None or ends[each.copy] == 0


def longer(parts: Sequence[Parts], there: Times, here: Times) -> Sequence[Parts]:
    """Return the partitions whose copy ends behind its topic, by the end offsets of both.

    Records that were copied twice do that too: it proves nothing, but only there a topic made again is looked for.
    """
    return [each for each in parts if (here.get(each.copy) or 0) > (there.get(each.topic, 0) or 0)]


def made_again(parts: Sequence[Parts], copied: Mapping[TopicPartition, int], ends: Times) -> Sequence[MadeAgain]:
    """Return the partitions of topics that end before the last record that MirrorMaker 2 says it copied.

    `copied`: the offset of that record. `ends`: where topics end, looked at later; only a log that was cut ends before.
    """
    found = ((each, ends.get(each.topic), copied.get(each.topic)) for each in parts)
    return [
        MadeAgain(each, end, last) for each, end, last in found if end is not None and last is not None and last >= end
    ]


def findings(
    source: str,
    pairs: Sequence[Pair],
    there: Cluster,
    here: Cluster,
    *,
    hidden: Collection[str] = (),
    still: Sequence[Behind] = (),
    again: Sequence[MadeAgain] = (),
) -> Iterator[Finding]:
    """Yield what is wrong with the copies of one source's topics; `hidden`: topics here that this user may not see."""
    missing = sorted({pair.copy for pair in pairs if pair.copy not in here.topics and pair.copy not in hidden})
    if missing:
        what = f"{counted(len(missing), 'copy', 'copies')} of topics of {source} not there: {few(missing)}"
        advice = "plan and apply make them, else MirrorMaker 2 does, as its own settings say"
        yield Finding("KR690", Severity.WARNING, what, advice, topics=tuple(missing))
    smaller = {
        pair.copy: f"{pair.copy} has {_count(here, pair.copy)}, {pair.topic} {_count(there, pair.topic)}"
        for pair in pairs
        if 0 < _count(here, pair.copy) < _count(there, pair.topic)
    }
    if smaller:
        copies = f"{counted(len(smaller), 'copy', 'copies')} of topics of {source}"
        what = f"{copies} with fewer partitions than their topics: {few(smaller[name] for name in sorted(smaller))}"
        advice = "plan and apply: records of the partitions that lack are copied once these are there"
        yield Finding("KR691", Severity.WARNING, what, advice, topics=tuple(sorted(smaller)))
    if still:
        keys = tuple(sorted({each.parts.copy for each in still}))
        what = f"{counted(len(keys), 'partition')} of copies of topics of {source} standing still: {few(still)}"
        advice = f"see whether MirrorMaker 2 runs, copies these topics, and reaches {source}: its tasks, its log"
        topics = tuple(sorted({key.topic for key in keys}))
        yield Finding("KR692", Severity.WARNING, what, advice, topics=topics, partitions=keys)

    if again:
        topics = tuple(sorted({each.parts.copy.topic for each in again}))
        what = (
            f"{counted(len(again), 'partition')} of topics of {source} made again, or robbed of records: {few(again)}"
        )
        advice = (
            "see that MirrorMaker 2 begins anew before the topic is that long again: it would pass over what is new"
        )
        keys = tuple(sorted({each.parts.copy for each in again}))
        yield Finding("KR693", Severity.WARNING, what, advice, topics=topics, partitions=keys)


def _count(cluster: Cluster, topic: str) -> int:
    found = cluster.topics.get(topic)
    return len(found.partitions) if found is not None else 0


def _time(milliseconds: int) -> str:
    """Return the time in words; what a producer wrote may be no date at all, such as microseconds."""
    try:
        return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"
