"""Questions to Kafka's controller, and to one broker, that confluent-kafka cannot ask, written out byte by byte.

Any broker passes the first two on to the active controller: versions 0, which every broker with KRaft has. What a
broker shows of a topic is its own image, which lags behind the controller's.
"""

import itertools
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helpers.waiting import ATTEMPT, asked_again

METADATA, DESCRIBE_ACLS, LIST_REASSIGNMENTS, DESCRIBE_QUORUM, DESCRIBE_TOPIC_PARTITIONS = 3, 29, 46, 55, 75
METADATA_VERSION, ACLS_VERSION = 9, 2
METADATA_TOPIC = b"__cluster_metadata"
NO_TAGS = b"\0"
NONE, UNKNOWN_TOPIC = 0, 3


def reassignments(bootstrap: str) -> Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the adding and removing replicas of each partition that the controller lists as being reassigned."""
    answer = _ask(bootstrap, LIST_REASSIGNMENTS, struct.pack(">i", 10_000) + b"\0" + NO_TAGS)
    answer.number(4)  # throttle time
    error = answer.number(2)
    assert error == 0, f"the controller lists no reassignments: error {error}"
    answer.text()
    found = {}
    for _ in range(answer.count()):
        topic = answer.text()
        for _ in range(answer.count()):
            number = answer.number(4)
            _, adding, removing = answer.numbers(), answer.numbers(), answer.numbers()
            answer.tags()
            found[f"{topic}-{number}"] = adding, removing
        answer.tags()
    return found


def active_controller(bootstrap: str) -> int:
    """Return the leader of the metadata quorum; the controller that Metadata names is any live broker."""
    partition = b"\x02" + struct.pack(">i", 0) + NO_TAGS
    topic = b"\x02" + bytes([len(METADATA_TOPIC) + 1]) + METADATA_TOPIC + partition + NO_TAGS
    answer = _ask(bootstrap, DESCRIBE_QUORUM, topic + NO_TAGS)
    error = answer.number(2)
    assert error == 0, f"no quorum is told: error {error}"
    answer.count(), answer.text(), answer.count(), answer.number(4), answer.number(2)
    return answer.number(4)


@dataclass(frozen=True)
class PartitionState:
    """One partition as Metadata shows it."""

    replicas: tuple[int, ...]
    isr: frozenset[int]
    leader: int


def topic_shown_by(address: str, name: str) -> dict[int, PartitionState]:
    """Return the partitions of a topic as the broker at that address shows them; empty where it knows of none."""
    topic = b"\x02" + bytes([len(name) + 1]) + name.encode() + NO_TAGS
    answer = _ask_one(address, METADATA, topic + bytes(3) + NO_TAGS, METADATA_VERSION)  # creates none, tells no rights
    answer.number(4)  # throttle time
    for _ in range(answer.count()):
        answer.number(4), answer.text(), answer.number(4), answer.text()  # a broker
        answer.tags()
    answer.text(), answer.number(4), answer.count()  # the cluster, its controller; one topic
    error = answer.number(2)
    assert error in {NONE, UNKNOWN_TOPIC}, f"{address} does not show {name}: error {error}"
    answer.text(), answer.number(1)
    found = {}
    for _ in range(answer.count()):
        answer.number(2)
        number, leader, _ = answer.number(4), answer.number(4), answer.number(4)
        replicas, isr, _ = answer.numbers(), answer.numbers(), answer.numbers()
        answer.tags()
        found[number] = PartitionState(replicas, frozenset(isr), leader)
    return dict(sorted(found.items()))


def brokers_shown_by(address: str) -> frozenset[int]:
    """Return the brokers that the broker at that address counts as alive."""
    answer = _ask_one(address, METADATA, b"\x01" + bytes(3) + NO_TAGS, METADATA_VERSION)  # of no topic
    answer.number(4)  # throttle time
    found = set()
    for _ in range(answer.count()):
        found.add(answer.number(4))
        answer.text(), answer.number(4), answer.text()  # where it is
        answer.tags()
    return frozenset(found)


def acls_shown_by(address: str) -> int:
    """Return how many ACLs of users the broker at that address knows."""
    any_acl = b"\x01\0\x01\0\0\x01\x01"  # any resource, name, pattern, principal, host, operation and permission
    return _ask_one(address, DESCRIBE_ACLS, any_acl + NO_TAGS, ACLS_VERSION).data.count(b"User:")


@dataclass(frozen=True)
class Eligible:
    """Who may lead a partition, as DescribeTopicPartitions shows it (KIP-966); `leader` is -1 where nobody leads."""

    leader: int
    isr: frozenset[int]
    elr: frozenset[int]
    last_known_elr: tuple[int, ...]


def eligible_shown_by(address: str, name: str) -> dict[int, Eligible]:
    """Return who may lead each partition of a topic, as the broker at that address shows it."""
    topic = b"\x02" + bytes([len(name) + 1]) + name.encode() + NO_TAGS
    no_cursor = b"\xff"
    body = topic + struct.pack(">i", 2_000) + no_cursor + NO_TAGS
    answer = _ask_one(address, DESCRIBE_TOPIC_PARTITIONS, body)
    answer.number(4), answer.count()  # throttle time; one topic
    error = answer.number(2)
    assert error == NONE, f"{address} does not show {name}: error {error}"
    answer.text(), answer.number(16), answer.number(1)
    found = {}
    for _ in range(answer.count()):
        answer.number(2)
        number, leader, _ = answer.number(4), answer.number(4), answer.number(4)
        _, isr, elr, last, _ = (answer.numbers() for _ in range(5))
        answer.tags()
        found[number] = Eligible(leader, frozenset(isr), frozenset(elr), last)
    return found


@dataclass(slots=True)
class _Answer:
    """An answer's bytes, read from the front."""

    data: bytes

    def number(self, width: int) -> int:
        taken, self.data = self.data[:width], self.data[width:]
        return int.from_bytes(taken, "big", signed=True)

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[0]
            self.data = self.data[1:]
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def count(self) -> int:
        return max(0, self.varint() - 1)

    def text(self) -> str:
        length = self.count()
        taken, self.data = self.data[:length], self.data[length:]
        return taken.decode()

    def numbers(self) -> tuple[int, ...]:
        return tuple(self.number(4) for _ in range(self.count()))

    def tags(self) -> None:
        assert self.varint() == 0, "these versions have no tagged fields"


def _ask(bootstrap: str, key: int, body: bytes) -> _Answer:
    """Return the answer of the first broker that gives one: each in turn, one that is frozen gives none."""
    addresses = itertools.cycle(bootstrap.split(","))
    return asked_again(lambda: _ask_one(next(addresses), key, body), OSError, pause=0.1)


def _ask_one(address: str, key: int, body: bytes, version: int = 0) -> _Answer:
    host, _, port = address.partition(":")
    header = struct.pack(">hhih", key, version, 1, -1) + NO_TAGS  # key, version, correlation, no client id
    with socket.create_connection((host, int(port)), timeout=ATTEMPT) as connection:
        connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        length = struct.unpack(">i", _exactly(connection, 4))[0]
        answer = _Answer(_exactly(connection, length))
    answer.number(4)  # correlation
    answer.tags()
    return answer


def _exactly(connection: socket.socket, length: int) -> bytes:
    parts: Sequence[bytes] = ()
    while (missing := length - sum(map(len, parts))) > 0:
        part = connection.recv(missing)
        if not part:
            raise ConnectionError("the broker closed the connection")
        parts = (*parts, part)
    return b"".join(parts)
