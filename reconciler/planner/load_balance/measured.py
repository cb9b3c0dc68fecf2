"""What each partition carries, from measured loads and the snapshot; what is unknown is estimated, and told."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.desired import Balance, Even, Off
from reconciler.model.loads import Loads, PartitionLoad
from reconciler.model.problem import InvalidInput, Location, Problem, Severity
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.placement_task import PartitionToPlace

Carried = tuple[int, int, int]
"""Bytes on disk of one replica; bytes a second that the leader takes in; and those that it sends to consumers."""
MOST_EACH = 10**15
MOST_IN_ALL = 10**17
_WORDS = ("disk", "networkIn", "networkOut")


@dataclass(frozen=True, slots=True)
class Measured:
    """What every partition carries, and what to tell of it."""

    of: Mapping[TopicPartition, Carried]
    warnings: tuple[Problem, ...]


def has_loads(balance: Balance) -> bool:
    """Whether the balance asks for a measure that counts cannot tell: disk or network."""
    return any(not isinstance(target, Off) for target in (balance.disk, balance.network_in, balance.network_out))


def refuse_without_loads(balance: Balance, loads: Loads | None) -> None:
    """Raise InvalidInput for a balance that these loads cannot serve."""
    targets = zip(_WORDS, (balance.disk, balance.network_in, balance.network_out), strict=True)
    asked = [(word, target) for word, target in targets if not isinstance(target, Off)]
    problems = [
        Problem(
            "KR341", f"balance.{word} needs measured loads: plan with --loads DIR, or turn it off", _at(balance, word)
        )
        for word, _ in asked
        if loads is None and word != "disk"
    ]
    problems += [
        Problem("KR342", f"balance.{word}: measured loads are never even; write {{within: 10%}}", _at(balance, word))
        for word, target in asked
        if isinstance(target, Even)
    ]
    if asked and not isinstance(balance.topics, Off):
        message = f"balance.topics and balance.{asked[0][0]} cannot be planned together yet: turn one of them off"
        problems.append(Problem("KR304", message, _at(balance, "topics")))
    if problems:
        raise InvalidInput(problems)


def measured(
    partitions: Sequence[PartitionToPlace],
    unmoved: Iterable[tuple[TopicPartition, int | None]],
    balance: Balance,
    loads: Loads | None,
) -> Measured:
    """Return what each partition, and each partition that stays put with its size, carries.

    Disk: the measured size, else the snapshot's. What is unknown of a partition counts as the mean of its topic's
    measured partitions or, where there are none, of the cluster's: never as nothing. A new partition is one of these.
    """
    sizes: dict[TopicPartition, int | None] = {
        partition.topic_partition: 0 if partition.is_new else partition.size for partition in partitions
    }
    sizes |= dict(unmoved)
    keys = sorted(sizes)
    known = loads.of if loads is not None else {}
    none = PartitionLoad()
    columns = (
        [
            size if (size := known.get(key, none).size_bytes) is not None else _unless_new(sizes[key], loads)
            for key in keys
        ],
        [known.get(key, none).bytes_in for key in keys],
        [known.get(key, none).bytes_out for key in keys],
    )
    filled = [_estimated(keys, column) for column in columns]
    asked = (balance.disk, balance.network_in, balance.network_out)
    existing = {key for key, size in sizes.items()} - {
        partition.topic_partition for partition in partitions if partition.is_new
    }
    missing = [
        (word, [key for key, value in zip(keys, column, strict=True) if value is None and key in existing])
        for word, column, target in zip(_WORDS, columns, asked, strict=True)
        if not isinstance(target, Off)
    ]
    of = dict(zip(keys, zip(*filled, strict=True), strict=True))
    _refuse_too_large(filled, sizes.values())
    return Measured(of, tuple(_warnings(missing, balance)))


def _refuse_too_large(columns: Iterable[Sequence[int]], sizes: Iterable[int | None]) -> None:
    """Raise InvalidInput for amounts of which sums and costs would not fit whole 64-bit numbers."""
    amounts = [*columns, [size or 0 for size in sizes]]
    if (
        max((max(column, default=0) for column in amounts), default=0) > MOST_EACH
        or sum(map(sum, amounts)) > MOST_IN_ALL
    ):
        message = (
            f"loads or sizes of more than {MOST_EACH} bytes a partition, or {MOST_IN_ALL} in all, cannot be planned"
        )
        raise InvalidInput([Problem("KR343", f"{message} exactly: check the unit of what was measured")])


def _unless_new(size: int | None, loads: Loads | None) -> int | None:
    """Return the snapshot's size; an empty partition's is no measure of what it will hold once loads are known."""
    return None if loads is not None and size == 0 else size


def _estimated(keys: Sequence[TopicPartition], column: Sequence[int | None]) -> list[int]:
    """Return the column with means, rounded up, in the place of what is unknown."""
    of_topic: dict[str, list[int]] = {}
    for key, value in zip(keys, column, strict=True):
        if value is not None:
            of_topic.setdefault(key.topic, []).append(value)
    overall = _mean([value for values in of_topic.values() for value in values])
    means = {topic: _mean(values) for topic, values in of_topic.items()}
    return [means.get(key.topic, overall) if value is None else value for key, value in zip(keys, column, strict=True)]


def _mean(values: Sequence[int]) -> int:
    return -(-sum(values) // len(values)) if values else 0


def _warnings(missing: Iterable[tuple[str, Sequence[TopicPartition]]], balance: Balance) -> Iterator[Problem]:
    for word, keys in missing:
        if keys:
            count = f"{keys[0]} is" if len(keys) == 1 else f"{len(keys)} partitions ({keys[0]} and others) are"
            message = (
                f"balance.{word}: the load of {count} unknown; each counts as the mean of its topic's measured "
                "partitions, else of the cluster's: measure longer for a balance that holds"
            )
            yield Problem("KR841", message, _at(balance, word), Severity.WARNING)


def _at(balance: Balance, word: str) -> Location | None:
    return balance.at.get(word)
