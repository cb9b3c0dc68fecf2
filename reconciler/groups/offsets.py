"""Computes what a reset of committed offsets would do: where each partition would go on, within what its log holds."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.groups.model.state import OffsetChange
from reconciler.model.cluster import Group, Topic
from reconciler.model.problem import InvalidInput, Problem, Severity
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import named_some

ABOVE_LATEST = "KR902"
BELOW_EARLIEST = "KR903"
NO_RECORD_THAT_LATE = "KR904"
TOPIC_GONE = "KR905"
NOTHING_TO_SHIFT = "KR906"
NO_LEADER = "KR907"
NO_SUCH_PARTITION = "KR908"


@dataclass(frozen=True, slots=True)
class ToEarliest:
    """The first record that is still there."""


@dataclass(frozen=True, slots=True)
class ToLatest:
    """Behind the last record: only what comes from now on."""


@dataclass(frozen=True, slots=True)
class ToCurrent:
    """What is committed already; the latest where nothing is."""


@dataclass(frozen=True, slots=True)
class ToOffset:
    """One number for every partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class ToTime:
    """The first record at or after a time, in milliseconds since 1970."""

    milliseconds: int


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """So many records on, or back."""

    records: int


@dataclass(frozen=True, slots=True)
class ToOffsets:
    """An offset for each partition, as a file has them."""

    offsets: Mapping[TopicPartition, int]


Target = ToEarliest | ToLatest | ToCurrent | ToOffset | ToTime | ShiftBy | ToOffsets


@dataclass(frozen=True, slots=True)
class TopicScope:
    """A topic to reset, with all its partitions or some."""

    topic: str
    partitions: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Log:
    """What the partitions' logs hold; `at_time` maps to None where no record is that late."""

    earliest: Mapping[TopicPartition, int] = field(default_factory=dict)
    latest: Mapping[TopicPartition, int] = field(default_factory=dict)
    at_time: Mapping[TopicPartition, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reset:
    """What would be committed, by topic and partition, and what is to be said of it."""

    changes: tuple[OffsetChange, ...]
    warnings: tuple[Problem, ...] = ()


def scope(
    group: Group, asked: Sequence[TopicScope] | None, topics: Mapping[str, Topic]
) -> tuple[tuple[TopicPartition, ...], tuple[Problem, ...]]:
    """Return the partitions that a reset is about, and warnings; `asked` None: all that the group has committed.

    Raises InvalidInput for a topic or a partition that does not exist, every one of them at once.
    """
    if asked is None:
        there = tuple(key for key in group.committed if _exists(key, topics))
        gone = [key for key in group.committed if not _exists(key, topics)]
        return there, _about(TOPIC_GONE, gone, "has a committed offset but is gone: left out")
    problems = [*_unknown(asked, topics)]
    if problems:
        raise InvalidInput(problems)
    numbers = {
        each.topic: each.partitions
        if each.partitions is not None
        else tuple(partition.partition for partition in topics[each.topic].partitions)
        for each in asked
    }
    found = {TopicPartition(each.topic, number) for each in asked for number in numbers[each.topic]}
    return tuple(sorted(found)), ()


def reset(group: Group, keys: Collection[TopicPartition], target: Target, log: Log) -> Reset:
    """Return where each of these partitions would go on; outside its log, the nearest end with a warning.

    What is committed already stays as it is with ToCurrent. Raises InvalidInput where a partition has no leader to ask,
    or nothing committed that could be shifted.
    """
    ordered = sorted(keys)
    silent = [key for key in ordered if key not in log.earliest or key not in log.latest]
    problems = list(
        _about(NO_LEADER, silent, "has no leader to tell its offsets: wait for it, or leave it out", Severity.ERROR)
    )
    if isinstance(target, ShiftBy):
        empty = [key for key in ordered if key not in group.committed]
        problems += _about(NOTHING_TO_SHIFT, empty, "has no committed offset to shift: leave it out", Severity.ERROR)
    if problems:
        raise InvalidInput(problems)
    wanted = {key: _wanted(key, target, group.committed, log) for key in ordered}
    is_kept = isinstance(target, ToCurrent)  # as it is, even where records have gone since
    new = {
        key: offset if is_kept and offset is not None else _within(key, offset, log) for key, offset in wanted.items()
    }
    committed = group.committed
    changes = tuple(
        OffsetChange(key, committed.get(key), new[key], log.earliest[key], log.latest[key]) for key in ordered
    )
    return Reset(changes, () if is_kept else tuple(_warnings(wanted, log)))


def _wanted(key: TopicPartition, target: Target, committed: Mapping[TopicPartition, int], log: Log) -> int | None:
    """Return the offset that is asked for, which may lie outside the log; None where no record is that late."""
    offset: int | None
    match target:
        case ToEarliest():
            offset = log.earliest[key]
        case ToLatest():
            offset = log.latest[key]
        case ToCurrent():
            offset = committed.get(key, log.latest[key])
        case ToOffset(number):
            offset = number
        case ShiftBy(records):
            offset = committed[key] + records
        case ToOffsets(offsets):
            offset = offsets[key]
        case ToTime():
            offset = log.at_time.get(key)
    return offset


def _within(key: TopicPartition, wanted: int | None, log: Log) -> int:
    if wanted is None:
        return log.latest[key]
    return max(log.earliest[key], min(log.latest[key], wanted))


def _warnings(wanted: Mapping[TopicPartition, int | None], log: Log) -> Iterator[Problem]:
    late = [key for key, offset in wanted.items() if offset is None]
    above = [key for key, offset in wanted.items() if offset is not None and offset > log.latest[key]]
    below = [key for key, offset in wanted.items() if offset is not None and offset < log.earliest[key]]
    yield from _about(NO_RECORD_THAT_LATE, late, "has no record at or after that time: set to its latest offset")
    yield from _about(ABOVE_LATEST, above, "ends before that offset: set to its latest offset")
    yield from _about(BELOW_EARLIEST, below, "begins after that offset: set to its earliest offset")


def _about(
    code: str, keys: Sequence[TopicPartition], what: str, severity: Severity = Severity.WARNING
) -> tuple[Problem, ...]:
    """Return one problem for all of them, none for none: `orders-0, orders-1 and 3 more: …`."""
    if not keys:
        return ()
    return (Problem(code, f"{named_some(keys)}: {'each ' if len(keys) > 1 else ''}{what}", severity=severity),)


def _exists(key: TopicPartition, topics: Mapping[str, Topic]) -> bool:
    return key.topic in topics and topics[key.topic].partition(key.partition) is not None


def _unknown(asked: Iterable[TopicScope], topics: Mapping[str, Topic]) -> Iterator[Problem]:
    for each in asked:
        if each.topic not in topics:
            yield Problem(NO_SUCH_PARTITION, f"there is no topic {each.topic}: check its name")
            continue
        count = len(topics[each.topic].partitions)
        for number in each.partitions or ():
            if topics[each.topic].partition(number) is None:
                message = f"topic {each.topic} has no partition {number}: they are numbered 0 to {count - 1}"
                yield Problem(NO_SUCH_PARTITION, message)
