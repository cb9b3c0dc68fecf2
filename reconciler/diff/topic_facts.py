"""Finds out of each observed topic who declares, owns and reads it, and how it grew since an earlier snapshot."""

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from fractions import Fraction

from reconciler.diff.managed import covering_pattern, is_ignored
from reconciler.diff.owners import owners_by_pattern
from reconciler.model.cluster import Cluster, Group, Topic
from reconciler.model.desired import OWNER, Desired, DesiredTopic
from reconciler.model.problem import Location, Problem
from reconciler.model.topic_report import Declaration, Growth, Reader, TopicFacts, total

NOT_EARLIER = "KR205"
_DAY = 86400


def topic_facts(
    observed: Cluster, names: Collection[str], desired: Desired | None, earlier: Cluster | None = None
) -> tuple[TopicFacts, ...]:
    """Return what is told of these topics, by name; `desired` None: nobody knows what is declared.

    `earlier`: the same cluster before, of which `not_earlier` found nothing.
    """
    readers = _readers(observed, names) if observed.groups or observed.has_groups else None
    found = []
    for name in sorted(names):
        topic = observed.topics[name]
        declaration = declaration_of(desired, name) if desired is not None else None
        found.append(
            TopicFacts(
                topic,
                topic.configs,
                declaration,
                None if desired is None else declaration is not None,
                None if readers is None else tuple(_reader(group, topic) for group in readers[name]),
                _growth(topic, observed, earlier) if earlier is not None else None,
                owner_of(desired, name) if desired is not None and not topic.is_internal else None,
            )
        )
    return tuple(found)


def declaration_of(desired: Desired, name: str) -> Declaration | None:
    """Return what declares that topic: its own document, else a mirror, else the longest pattern; None for nothing.

    Whether the source of a mirror has such a topic is not looked at.
    """
    document = desired.topics.get(name)
    if document is not None:
        return _declaration("absent topic" if document.is_absent else "topic", document.where(""), document)
    if is_ignored(desired, name):
        return None
    for mirror in desired.mirrors:
        original = mirror.original_of(name)
        matching = None if original is None else mirror.pattern_for(original)
        if matching is not None:
            at = mirror.at.get(f"topics.{matching}", mirror.at.get(""))
            return _declaration(f"mirror {mirror.name}", at, mirror.like)
    pattern = covering_pattern(desired, name)
    return None if pattern is None else _declaration(f"pattern {pattern.name}", pattern.where(""), pattern)


def owner_of(desired: Desired, name: str) -> str | None:
    """Return who owns that topic: the label `owner` of what declares it, else the Owner of the longest pattern.

    None where there is neither, or where several Owners have patterns of that length.
    """
    declaration = declaration_of(desired, name)
    if declaration is not None and declaration.owner is not None:
        return declaration.owner
    owners = owners_by_pattern(desired, name)
    return owners[0].name if len(owners) == 1 else None


def _declaration(by: str, at: Location | None, document: DesiredTopic) -> Declaration:
    return Declaration(by, at, document.labels.get(OWNER))


def untold_readers(observed: Cluster) -> tuple[str, ...]:
    """Return the groups at work of which nobody can tell what they read, such as share groups."""
    return tuple(one.group_id for one in observed.groups if one.is_live and not one.topics and one.is_reading(""))


def not_earlier(earlier: Cluster, observed: Cluster, file: str) -> Problem | None:
    """Return why growth cannot be told from that earlier snapshot; None where it can."""
    if earlier.cluster_id != observed.cluster_id:
        message = f"it is of cluster {earlier.cluster_id}, and this cluster is {observed.cluster_id}"
    elif _time(earlier) is None or _time(observed) is None:
        which = "it" if _time(earlier) is None else "what it is compared with"
        message = f"{which} does not say when it was observed (observedAt)"
    elif _seconds(earlier, observed) <= 0:
        message = f"it was taken at {earlier.observed_at}, which is not before {observed.observed_at}"
    else:
        return None
    return Problem(NOT_EARLIER, f"{file}: no growth can be told since this snapshot: {message}; name an earlier one")


def _readers(observed: Cluster, names: Collection[str]) -> Mapping[str, list[Group]]:
    found: dict[str, list[Group]] = {name: [] for name in names}
    for group in sorted(observed.groups, key=lambda one: one.group_id):
        for name in group.topics & found.keys():
            found[name].append(group)
    return found


def _reader(group: Group, topic: Topic) -> Reader:
    members = [one for one in group.members if topic.name in one.subscription or topic.name in one.assignment]
    lags = [*_lags(group, topic)]
    return Reader(group.group_id, group.state or None, len(members), sum(lags) if lags else None)


def _lags(group: Group, topic: Topic) -> Iterator[int]:
    """Yield how far the group is behind in each partition of which both ends are known; a commit too far on is 0."""
    for number, committed in group.offsets.get(topic.name, {}).items():
        partition = topic.partition(number)
        if partition is not None and partition.end_offset is not None:
            yield max(0, partition.end_offset - committed)


def _growth(topic: Topic, observed: Cluster, earlier: Cluster) -> Growth:
    """Return how that topic grew; a topic that was not there, or was made again, has no growth that is known."""
    since = str(earlier.observed_at)
    before = earlier.topics.get(topic.name)
    if before is None or (before.topic_id and topic.topic_id and before.topic_id != topic.topic_id):
        return Growth(since, None, None, None)
    days = Fraction(_seconds(earlier, observed)) / _DAY
    old_bytes, new_bytes = (total(part.bytes_on_brokers for part in one.partitions) for one in (before, topic))
    records = _records(before, topic)
    written = total(records)
    return Growth(
        since,
        None if old_bytes is None or new_bytes is None else round((new_bytes - old_bytes) / days),
        None if written is None else round(written / days),
        False if any(records) else (None if written is None else True),
    )


def _records(before: Topic, topic: Topic) -> tuple[int | None, ...]:
    """Return how far each partition's end has moved: None where one end is unknown, or where it went back.

    A partition that was added since began at 0.
    """
    found: list[int | None] = []
    for one in topic.partitions:
        old = before.partition(one.partition)
        start = 0 if old is None else old.end_offset
        moved = None if start is None or one.end_offset is None else one.end_offset - start
        found.append(None if moved is None or moved < 0 else moved)
    return tuple(found)


def _seconds(earlier: Cluster, observed: Cluster) -> float:
    first, last = _time(earlier), _time(observed)
    return (last - first).total_seconds() if first is not None and last is not None else 0


def _time(observed: Cluster) -> datetime | None:
    """Return when it was observed, in UTC where no zone is written; None where that is no time."""
    try:
        time = datetime.fromisoformat(observed.observed_at or "")
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
