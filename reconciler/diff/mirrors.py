"""Makes ordinary declared topics of mirrors: what a source has, or is to have, becomes what is declared of its copy.

It happens before anything is compared, so that all that follows knows topics and no mirrors. Decision 0069 says why.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reconciler.diff.managed import is_ignored, managed_topics
from reconciler.model.cluster import Cluster
from reconciler.model.config_value import is_same_value
from reconciler.model.desired import MIRROR_MAKERS_RENAME, Desired, DesiredMirror, DesiredTopic
from reconciler.model.problem import Location, Problem
from reconciler.model.words import in_brackets

_HEARTBEATS = "heartbeats"


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """A topic of a source as its files want it and, where they say nothing, as it was observed.

    `partitions`: the larger of the two counts, 0 for not known; `observed`: how many it has now. `config`: overrides;
    a key that is not there has none where `is_whole`, else nobody knows. `at`: places in the source's files, as those
    of a DesiredTopic.
    """

    partitions: int
    config: Mapping[str, str | None]
    is_whole: bool
    observed: int = 0
    at: Mapping[str, Location] = field(default_factory=dict)

    @property
    def is_to_grow(self) -> bool:
        """Whether its files want more partitions than it has."""
        return 0 < self.observed < self.partitions


class Copy(NamedTuple):
    """That a mirror wants a topic of its source here."""

    mirror: DesiredMirror
    topic: str
    source: SourceTopic

    @property
    def at(self) -> Location | None:
        """The place that asks for it: the pattern that matches the topic."""
        return self.mirror.at.get(f"topics.{self.mirror.pattern_for(self.topic)}", self.mirror.at.get(""))

    @property
    def followed(self) -> Mapping[str, str | None]:
        """The configs that follow, as far as they are known; None: without an override."""
        config, is_whole = self.source.config, self.source.is_whole
        return {key: config.get(key) for key in self.mirror.config if key in config or is_whole}

    def __str__(self) -> str:
        return f"mirror {self.mirror.name}{in_brackets(self.at)}"


Sources = Mapping[str, Mapping[str, SourceTopic]]
"""Cluster to its topics, by name."""


def source_topics(declared: Desired, observed: Cluster | None) -> Mapping[str, SourceTopic]:
    """Return the topics of a source that its files do not want gone; None: nobody looked at it, files alone speak.

    Files go first: of one commit that changes a topic, the plans of source and target then reach the same.
    """
    topics = observed.topics if observed is not None else {}
    managed = managed_topics(declared, observed or Cluster(""))
    found = {}
    for name in sorted({*topics, *managed}):
        document, topic = managed.get(name, DesiredTopic(name)), topics.get(name)
        if document.is_absent or (topic is not None and topic.is_internal):
            continue
        written, there = _partitions_of(document), len(topic.partitions) if topic is not None else 0
        config = {**(topic.configs if topic is not None else {}), **document.config}
        found[name] = SourceTopic(max(written, there), config, observed is not None, there, document.at)
    return found


def _partitions_of(document: DesiredTopic) -> int:
    return document.partitions or len(document.placement.assignment or ())


def copies(desired: Desired, sources: Sources, clusters: Iterable[str]) -> Mapping[str, Sequence[Copy]]:
    """Return what is to exist here, by the copy's name and sorted; `clusters`: all names that a copy may come from."""
    clusters = sorted(clusters, key=lambda name: (-len(name), name))
    found: dict[str, list[Copy]] = {}
    for mirror in desired.mirrors:
        tellers = _tellers(mirror, clusters)
        for topic, source in sources.get(mirror.source, {}).items():
            if source.is_whole and not source.partitions:
                continue  # it is yet to be made, and only its own cluster's brokers say how large
            if _is_to_copy(mirror, topic, clusters) and desired.cluster.name not in dict(_way_of(topic, tellers)):
                found.setdefault(mirror.copy_of(topic), []).append(Copy(mirror, topic, source))
    return {name: found[name] for name in sorted(found) if not is_ignored(desired, name)}


def _is_to_copy(mirror: DesiredMirror, topic: str, clusters: Sequence[str]) -> bool:
    """Whether the mirror names that topic, and neither Kafka nor MirrorMaker 2 keeps it for itself.

    MirrorMaker 2 names heartbeats in one way, whatever its policy of names.
    """
    if topic.startswith("__") or mirror.pattern_for(topic) is None:
        return False
    is_kept = is_kept_by_mirror_maker(topic)
    if topic.endswith(_HEARTBEATS):
        way = _way_of(topic, _tellers(replace(mirror, rename=MIRROR_MAKERS_RENAME), clusters))
        is_kept |= _HEARTBEATS in {topic, *(name for _, name in way)}
    return topic in mirror.topics or not is_kept


def is_kept_by_mirror_maker(topic: str) -> bool:
    """Whether MirrorMaker 2 keeps that topic for itself: offset syncs, checkpoints, and what Connect needs there."""
    return topic.endswith(".checkpoints.internal") or (topic.startswith("mm2") and topic.endswith(".internal"))


def is_mirror_makers(desired: Desired, name: str) -> bool:
    """Whether MirrorMaker 2 makes that topic by itself, so that no file declares it: nobody may think it unwanted.

    In the cluster that is copied from, too, where no document tells of mirrors.
    """
    copied = {f"{mirror.source}." for mirror in desired.mirrors}
    is_heartbeats = name.endswith(f".{_HEARTBEATS}") and any(map(name.startswith, copied))
    return name == _HEARTBEATS or is_heartbeats or is_kept_by_mirror_maker(name)


class _Teller(NamedTuple):
    """What stands around the name of a topic where it tells that the topic was copied from that cluster."""

    cluster: str
    before: str
    behind: str


def _tellers(mirror: DesiredMirror, clusters: Sequence[str]) -> Sequence[_Teller]:
    return [_Teller(cluster, *mirror.around(cluster)) for cluster in clusters if mirror.is_source_told]


def _way_of(topic: str, tellers: Sequence[_Teller]) -> Iterator[tuple[str, str]]:
    """Yield each cluster that a topic's name says it came through, the last first, and its name there."""
    while True:
        found = next((each for each in tellers if topic.startswith(each.before) and topic.endswith(each.behind)), None)
        if found is None or len(topic) <= len(found.before) + len(found.behind):
            return
        topic = topic[len(found.before) : len(topic) - len(found.behind)]
        yield found.cluster, topic


def is_copy(desired: Desired, name: str) -> bool:
    """Whether that topic may be the copy of a topic which its source no longer has: it stays, whoever manages what."""
    return _maker_of(desired, name) is not None


def _maker_of(desired: Desired, name: str) -> DesiredMirror | None:
    """Return the first mirror that could have made that topic."""
    originals = ((mirror, mirror.original_of(name)) for mirror in desired.mirrors)
    return next((mirror for mirror, each in originals if each is not None and mirror.pattern_for(each)), None)


def with_classes(desired: Desired, observed: Cluster) -> Desired:
    """Return the desired state in which each topic that a mirror could have made is declared as the mirror's class is.

    For what must work without the source: what follows from that is left out.
    """
    others = (name for name in observed.topics if name not in desired.topics and not is_ignored(desired, name))
    found = {name: mirror for name in others if (mirror := _maker_of(desired, name)) is not None}
    made = {name: replace(mirror.like, name=name) for name, mirror in found.items()}
    return replace(desired, topics=dict(sorted({**desired.topics, **made}.items())))


def with_copies(
    desired: Desired, wanted: Mapping[str, Sequence[Copy]], observed: Cluster | None = None
) -> tuple[Desired, tuple[Problem, ...]]:
    """Return the desired state with each copy as a declared topic, and where two documents want different things.

    A copy has at least as many partitions as its topic: more that are observed stay. None: nobody looked at the target.
    """
    topics, problems = dict(desired.topics), list[Problem]()
    for name, asked in wanted.items():
        document = desired.topics.get(name)
        problems += _contradictions(name, document, asked)
        there = observed.topics.get(name) if observed is not None else None
        topics[name] = _copied(name, document, asked, len(there.partitions) if there is not None else 0)
    return replace(desired, topics=dict(sorted(topics.items()))), tuple(problems)


def _copied(name: str, document: DesiredTopic | None, asked: Sequence[Copy], there: int) -> DesiredTopic:
    """Return what is declared of a copy: its own document, else its mirror's class, under what follows the source."""
    largest = max(asked, key=lambda copy: copy.source.partitions)
    base = document or largest.mirror.like
    config, at = dict(base.config), dict(base.at)
    for copy in reversed(asked):
        config |= copy.followed
        at |= {f"config.{key}": copy.mirror.at[f"config.{key}"] for key in copy.followed}
    partitions = base.partitions
    if largest.at is not None and document is None:
        at[""] = largest.at
    if not _partitions_of(base):
        partitions = max(largest.source.partitions, there) or None
        at |= {"partitions": largest.at} if largest.at is not None else {}
    return replace(base, name=name, partitions=partitions, config=dict(sorted(config.items())), at=at)


def _contradictions(name: str, document: DesiredTopic | None, asked: Sequence[Copy]) -> Iterator[Problem]:
    """Yield each thing that two documents want differently of one topic."""
    first, by_key = asked[0], dict[str, Copy]()
    for copy in asked:
        if document is not None:
            yield from _denied(document, copy)
        elif _class_of(copy) != _class_of(first):
            yield _told(name, f"{first} and {copy} give it other classes: give both one class", copy.at, first.at)
        for key, value in copy.followed.items():
            other = by_key.setdefault(key, copy)
            if not is_same_value(key, other.followed[key], value):
                both = f"{_followed(other, key)} by {other}, and {_followed(copy, key)} by {copy}"
                at, places = copy.mirror.at[f"config.{key}"], (other.at, *_places(other, key), *_places(copy, key))
                yield _told(name, f"{key} follows {both}: let it follow one of them", at, *places)


def _class_of(copy: Copy) -> object:
    like = copy.mirror.like
    return like.replication_factor, like.config, like.placement, like.protect


def _followed(copy: Copy, key: str) -> str:
    """Return what a config follows: `orders of us (is 1000; us/orders.yaml:7)`."""
    return (
        f"{copy.topic} of {copy.mirror.source} ({'; '.join([_is(copy.followed[key]), *map(str, _places(copy, key))])})"
    )


def _places(copy: Copy, key: str) -> Sequence[Location]:
    """Return where the source's files write that config, if they do."""
    at = copy.source.at.get(f"config.{key}")
    return () if at is None else (at,)


def _denied(document: DesiredTopic, copy: Copy) -> Iterator[Problem]:
    """Yield what a topic's own document denies its mirror."""
    name, source = document.name, f"{copy.topic} of {copy.mirror.source}"
    if document.is_absent:
        message = f"it is to be absent, and {copy} copies {source}: drop one of the two"
        yield _told(name, message, document.where("state"), copy.at)
        return
    written, wanted = _partitions_of(document), copy.source.partitions
    if 0 < written < wanted:
        path, there = "partitions" if document.partitions else "placement.assignment", copy.source.at.get("partitions")
        message = f"partitions are {written}, and {source} has {wanted}{in_brackets(there)}, by {copy}"
        way_out = f"declare at least {wanted}, or leave them out"
        yield _told(name, f"{message}: {way_out}", document.where(path), copy.at, there)
    for key, value in copy.followed.items():
        if key in document.config and not is_same_value(key, document.config[key], value):
            message = f"{key} {_is(document.config[key])}, and follows {_followed(copy, key)} by {copy}"
            at, places = document.where(f"config.{key}"), (copy.at, *_places(copy, key))
            yield _told(name, f"{message}: drop it in one of the two places", at, *places)


def _is(value: str | None) -> str:
    return "has no override" if value is None else f"is {value}"


def _told(name: str, message: str, at: Location | None, *others: Location | None) -> Problem:
    return Problem("KR115", f"topic {name}: {message}", at, beside=tuple(each for each in others if each is not None))
