"""A keyed idempotent producer (acks=all) that runs through a test's faults, and what its records must have become.

with Delivery(kafka.bootstrap, "orders", 8) as delivery:   # one record is acknowledged on each partition by now
    ...                                                    # faults
delivery.faults(observer.records("orders"))                # what is wrong with what the brokers hold; empty when well
"""

import json
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType
from typing import NamedTuple, Self

from confluent_kafka import KafkaException, Message, Producer
from helpers.waiting import HANG, wait_for

MOST = 5
STATISTICS_SECONDS = 1
Place = tuple[int, int]


class Ack(NamedTuple):
    """A record that the brokers acknowledged: where it is, what it is, and when (monotonic seconds).

    `offset`: None where the brokers knew it already when it was sent again: they do not say where it stands.
    """

    partition: int
    offset: int | None
    value: bytes
    at: float


@dataclass(frozen=True, slots=True)
class Sent:
    """What a producer was told: its acknowledgements in the order they came, and the errors of the other records.

    `epochs`: how many producer ids or epochs it went through. The brokers know a record that is sent again by its
    number within one epoch, so a producer that had to begin another may have written records twice.
    """

    acks: Sequence[Ack]
    failures: Sequence[str] = ()
    epochs: int = 1


def delivery_faults(sent: Sent, read: Mapping[Place, bytes], partitions: int) -> list[str]:
    """Return what is wrong with the records that the brokers hold, against what a producer was told.

    `read` holds each record's value by (partition, offset). A record that stands twice is wrong only where no delivery
    failed (KAFKA-18905) and the producer kept its epoch.
    """
    silent = sorted(set(range(partitions)) - {ack.partition for ack in sent.acks})
    faults = [f"partition {number} never acknowledged a record" for number in silent]
    faults += _lost(sent.acks, read)
    faults += _falling(sent.acks)
    faults += _disordered(sent.acks, read)
    if not sent.failures and sent.epochs == 1:
        faults += _repeated(sent.acks, read)
    return faults


def duplicates(acks: Iterable[Ack], read: Mapping[Place, bytes]) -> int:
    """Return how many copies too many there are of acknowledged values."""
    times = Counter(read.values())
    return sum(times[value] - 1 for value in {ack.value for ack in acks} if times[value] > 1)


def longest_pause(acks: Sequence[Ack]) -> float:
    """Return the longest time without an acknowledgement, in seconds."""
    moments = sorted(ack.at for ack in acks)
    return max((later - earlier for earlier, later in pairwise(moments)), default=0.0)


def _lost(acks: Iterable[Ack], read: Mapping[Place, bytes]) -> list[str]:
    """Return the acknowledged places that hold another value, or none."""
    faults = []
    values = frozenset(read.values())
    for ack in acks:
        if ack.offset is None:
            if ack.value not in values:
                faults.append(f"partition {ack.partition} acknowledged {ack.value!r}, and nothing holds it")
            continue
        found = read.get((ack.partition, ack.offset))
        if found != ack.value:
            faults.append(f"partition {ack.partition} offset {ack.offset} holds {found!r}, acknowledged {ack.value!r}")
    return _few(faults)


def _falling(acks: Iterable[Ack]) -> list[str]:
    """Return where a partition's acknowledged offsets do not rise, in the order in which they were acknowledged."""
    faults = []
    last: dict[int, int] = {}
    for ack in acks:
        if ack.offset is None:
            continue
        if ack.offset <= last.get(ack.partition, -1):
            faults.append(f"partition {ack.partition} acknowledged {ack.offset} after {last[ack.partition]}")
        last[ack.partition] = ack.offset
    return _few(faults)


def _disordered(acks: Iterable[Ack], read: Mapping[Place, bytes]) -> list[str]:
    """Return the partitions whose acknowledged values do not stand in the order in which they were sent."""
    order = {ack.value: number for number, ack in enumerate(acks)}
    held: defaultdict[int, list[int]] = defaultdict(list)
    seen: set[bytes] = set()
    for (partition, _), value in sorted(read.items()):
        if value in order and value not in seen:
            seen.add(value)
            held[partition].append(order[value])
    return [f"partition {number} holds records in another order" for number in sorted(held) if _falls(held[number])]


def _falls(numbers: Sequence[int]) -> bool:
    return any(later < earlier for earlier, later in pairwise(numbers))


def _repeated(acks: Iterable[Ack], read: Mapping[Place, bytes]) -> list[str]:
    """Return the acknowledged values that stand at several places."""
    places: defaultdict[bytes, list[Place]] = defaultdict(list)
    for place, value in sorted(read.items()):
        places[value].append(place)
    return _few(
        [
            f"{ack.value!r} stands at {places[ack.value]} in one epoch, and no delivery failed"
            for ack in acks
            if len(places[ack.value]) > 1
        ]
    )


def _few(faults: Sequence[str]) -> list[str]:
    """Return the first faults and how many more there are."""
    return [*faults[:MOST], *([f"and {len(faults) - MOST} more"] if len(faults) > MOST else [])]


class Delivery:
    """Produces keyed records to every partition of a topic, from `with` on until its end."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, *, records_per_second: int = 50) -> None:
        self.topic, self.partitions = topic, partitions
        self._acks: list[Ack] = []
        self._failures: list[str] = []
        self._epochs = 1
        self._pause = 1 / records_per_second
        self._mark = uuid.uuid4().hex[:16]
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._produce, name="delivery")
        settings = {"acks": "all", "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        patience = {"reconnect.backoff.max.ms": 1_000, "topic.metadata.refresh.interval.ms": 5_000}
        statistics = {"statistics.interval.ms": STATISTICS_SECONDS * 1_000, "stats_cb": self._measured}
        self._producer = Producer({"bootstrap.servers": bootstrap, **settings, **patience, **statistics})

    @property
    def sent(self) -> Sent:
        """What the producer was told so far."""
        return Sent(tuple(self._acks), tuple(self._failures), self._epochs)

    @property
    def longest_pause(self) -> float:
        """The longest time without an acknowledgement so far, in seconds."""
        return longest_pause(tuple(self._acks))

    def __enter__(self) -> Self:
        """Return the running producer once each partition has acknowledged a record."""
        self._thread.start()
        every = set(range(self.partitions))
        what = f"a record on every partition of {self.topic}"
        try:
            wait_for(lambda: {ack.partition for ack in tuple(self._acks)} == every, what, seen=self._failures.copy)
        except AssertionError:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop, and wait for the answers that are due; what has none is a failed delivery."""
        self._stop()

    def _stop(self) -> None:
        self._is_over.set()
        self._thread.join(HANG)

    def _produce(self) -> None:
        number = 0
        while not self._is_over.wait(self._pause):
            value = f"{self._mark} {number}".encode()
            key = f"key {number % self.partitions}".encode()
            try:
                self._producer.produce(
                    self.topic, value, key=key, partition=number % self.partitions, on_delivery=self._told
                )
            except (BufferError, KafkaException) as error:
                self._failures.append(str(error))
            self._producer.poll(0)
            number += 1
        left = self._producer.flush(HANG)
        self._failures += ["no answer"] * left
        self._producer.poll(2 * STATISTICS_SECONDS)

    def _measured(self, statistics: str) -> None:
        self._epochs = max(1, json.loads(statistics).get("eos", {}).get("epoch_cnt", 1))

    def _told(self, error: object, message: Message) -> None:
        if error is None:
            self._acks.append(Ack(message.partition(), message.offset(), message.value(), time.monotonic()))
        else:
            self._failures.append(str(error))
