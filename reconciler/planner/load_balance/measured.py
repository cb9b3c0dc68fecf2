"""Tells what each partition carries, from measured loads and the snapshot; what is unknown is estimated, and said."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from reconciler.model.desired import Balance, Even, Limits, Off
from reconciler.model.loads import Loads, PartitionLoad
from reconciler.model.problem import TOO_LARGE, InvalidInput, Location, Problem, warning
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import number
from reconciler.planner.to_place import PartitionsToPlace, PartitionToPlace

Carried = tuple[int, int, int]
"""Bytes on disk of one replica; bytes a second that the leader takes in; and those that it sends to consumers."""
MOST_EACH = 10**15
"""A petabyte, or as much a second: no partition carries it, so a larger figure is in another unit."""
MOST_IN_ALL = 10**17
"""Sums of so many bytes, times a few hundred for their shares, stay below 2^63."""
MOST_PARTS = 10_000
"""Each part of a topic on a broker, of its replicas or its leads, is a row of the linear program: more take minutes."""


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Measured:
    """What every partition carries, and what to tell of it."""

    of: Mapping[TopicPartition, Carried]
    warnings: tuple[Problem, ...]


_PLACE = {"disk": 0, "networkIn": 1, "networkOut": 2, "leaderIn": 1}
"""The place in Carried of what each word is about."""


def has_many_parts(balance: Balance, topics: int, brokers: int) -> bool:
    """Whether so many topics have more parts on brokers, of replicas and of leads, than are planned beside loads."""
    return not isinstance(balance.topics, Off) and 2 * topics * brokers > MOST_PARTS


def refuse_many_parts(balance: Balance, topics: int, brokers: int) -> None:
    """Raise InvalidInput for more topics than are balanced together with loads."""
    if has_many_parts(balance, topics, brokers):
        message = (
            f"balance.topics asks for {number(2 * topics * brokers)} parts of topics on brokers, and together with "
            f"loads at most {number(MOST_PARTS)} are planned: turn one of them off, or plan fewer topics with --only"
        )
        raise InvalidInput([Problem("KR304", message, balance.at.get("topics"))])


def has_loads(balance: Balance) -> bool:
    """Whether the balance asks for a measure that counts cannot tell: disk or network."""
    return any(not isinstance(balance.targets[word], Off) for word in _PLACE)


def refuse_without_loads(balance: Balance, limits: Limits, loads: Loads | None) -> None:
    """Raise InvalidInput for a balance, or limits of rates, that these loads cannot serve."""
    problems = []
    for word in _PLACE if loads is None else ():
        if word != "disk" and not isinstance(balance.targets[word], Off):
            message = f"balance.{word} needs measured loads: plan with --loads DIR, or turn it off"
            problems.append(Problem("KR341", message, balance.at.get(word)))
    for word in limits.rates if loads is None else ():
        message = f"limits.{word} needs measured loads: plan with --loads DIR, or take it out"
        problems.append(Problem("KR341", message, limits.at.get(word)))
    for word in _PLACE:
        if isinstance(balance.targets[word], Even):
            message = f"balance.{word}: measured loads are never even; write {{within: 10%}}"
            problems.append(Problem("KR342", message, balance.at.get(word)))
    if problems:
        raise InvalidInput(problems)


def measured(
    partitions: PartitionsToPlace | Sequence[PartitionToPlace],
    unmoved: Iterable[tuple[TopicPartition, int | None]],
    balance: Balance,
    loads: Loads | None,
    limits: Limits = NO_LIMITS,
) -> Measured:
    """Return what each partition to place, and each that stays put with its size, carries.

    Disk: the measured size, else the snapshot's. What is unknown of a partition counts as the mean of its topic's
    measured partitions or, where there are none, of the cluster's: never as nothing. A new partition is one of these.
    """
    sizes = {each.topic_partition: 0 if each.is_new else each.size for each in partitions} | dict(unmoved)
    new = {each.topic_partition for each in partitions if each.is_new}
    keys = sorted(sizes)
    known = [(loads.of if loads is not None else {}).get(key, PartitionLoad()) for key in keys]
    columns = (
        [load.size_bytes for load in known],
        [load.bytes_in for load in known],
        [load.bytes_out for load in known],
    )
    # Where no size was measured the snapshot's counts; an empty partition's is no measure of what it will hold.
    for place, key in enumerate(keys):
        if columns[0][place] is None and (loads is None or sizes[key] != 0):
            columns[0][place] = sizes[key]
    filled = [_estimated(keys, column) for column in columns]
    _refuse_too_large([*filled, [size or 0 for size in sizes.values()]])
    at = {f"balance.{word}": balance.at.get(word) for word in _PLACE if balance.targets[word] != Off()}
    at |= {f"limits.{word}": limits.at.get(word) for word in limits.rates}
    unknown = [
        [key for key, value in zip(keys, column, strict=True) if value is None and key not in new] for column in columns
    ]
    missing = {path: unknown[_PLACE[path.partition(".")[2]]] for path in at}
    return Measured(dict(zip(keys, zip(*filled, strict=True), strict=True)), tuple(_warnings(missing, at)))


def _refuse_too_large(columns: Sequence[Sequence[int]]) -> None:
    """Raise InvalidInput for amounts of which sums and costs would not fit whole 64-bit numbers."""
    if max(chain.from_iterable(columns), default=0) > MOST_EACH or sum(map(sum, columns)) > MOST_IN_ALL:
        what = f"loads or sizes of more than {MOST_EACH} bytes a partition, or {MOST_IN_ALL} in all"
        message = f"{what}, cannot be planned exactly: check the unit of what was measured"
        raise InvalidInput([Problem(TOO_LARGE, message)])


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


def _warnings(missing: Mapping[str, Sequence[TopicPartition]], at: Mapping[str, Location | None]) -> Iterator[Problem]:
    for path, keys in missing.items():
        if keys:
            count = f"{keys[0]} is" if len(keys) == 1 else f"{len(keys)} partitions ({keys[0]} and others) are"
            message = (
                f"{path}: the load of {count} unknown; each counts as the mean of its topic's measured "
                "partitions, else of the cluster's: measure longer for a balance that holds"
            )
            yield warning("KR841", message, at[path])
