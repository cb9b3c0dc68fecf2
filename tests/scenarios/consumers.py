"""Real consumers of one group, kept polling in the background: who joined, who owns what, who leaves.

    with Consumers(kafka.bootstrap, "group-1", ["orders"], strategy="range") as consumers:
        consumers.join("ada"); consumers.join("bob")
        consumers.wait_until_all_is_owned(7)
        consumers.owned()                         # {"ada": {"orders": (0, 1, 2, 3)}, "bob": {"orders": (4, 5, 6)}}
        consumers.leave("bob")

A consumer's client id is its name. `strategy` is `partition.assignment.strategy` of librdkafka, or `sticky`, which
librdkafka lacks, of kafka-python; with `protocol="consumer"` it is the server-side assignor of a KIP-848 group.
"""

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

from confluent_kafka import Consumer
from helpers.waiting import HANG, wait_for
from kafka import KafkaConsumer
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

Owned = dict[str, dict[str, tuple[int, ...]]]
STABLE_LOOKS = 15


class _Member(Protocol):
    """One consumer; `poll` keeps it in the group."""

    def poll(self) -> None:
        """Take part in rebalances."""

    def owned(self) -> dict[str, tuple[int, ...]]:
        """Return what it owns."""

    def close(self) -> None:
        """Leave the group."""


@dataclass
class Consumers(AbstractContextManager["Consumers"]):
    """A group's consumers; see the module's docstring."""

    bootstrap: str
    group_id: str
    topics: Sequence[str]
    strategy: str = "range"
    protocol: str = "classic"
    members: dict[str, _Member] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Let everybody leave."""
        self._has_ended.set()
        self._thread.join(HANG)
        for member in self.members.values():
            member.close()

    def join(self, *names: str) -> None:
        """Let consumers join."""
        for name in names:
            member = self._member(name)
            with self._lock:
                self.members[name] = member

    def leave(self, name: str) -> None:
        """Let a consumer leave in good order."""
        with self._lock:
            self.members.pop(name).close()

    def owned(self) -> Owned:
        """Return what each consumer says that it owns."""
        with self._lock:
            return {name: member.owned() for name, member in sorted(self.members.items())}

    def wait_until_all_is_owned(self, partitions: int) -> Owned:
        """Wait until so many partitions are owned, each once, some by each consumer, at several looks; return whose."""
        seen: Owned = {}
        looks = 0

        def is_stable() -> bool:
            nonlocal seen, looks
            now = self.owned()
            looks = looks + 1 if now == seen else 0
            seen = now
            keys = [(topic, number) for owned in now.values() for topic, found in owned.items() for number in found]
            is_whole = len(keys) == len(set(keys)) == partitions and all(now.values())
            return is_whole and looks >= STABLE_LOOKS

        wait_for(
            is_stable, f"{partitions} partitions to be owned", pause=0.1, seen=lambda: (seen, self.errors),
            meanwhile=self._fail_if_nobody_polls,
        )  # fmt: skip
        return seen

    def _fail_if_nobody_polls(self) -> None:
        assert self._thread.is_alive(), f"nobody polls any more: {self.errors}"

    def _member(self, name: str) -> _Member:
        if self.protocol == "classic" and self.strategy == "sticky":
            return _PythonMember(self, name)
        return _LibrdkafkaMember(self, name)

    def _poll(self) -> None:
        while not self._has_ended.wait(0.01):
            with self._lock:
                for name, member in self.members.items():
                    try:
                        member.poll()
                    except Exception as error:
                        self.errors.append(f"{name}: {error!r}")
                        raise


class _LibrdkafkaMember:
    def __init__(self, group: Consumers, name: str) -> None:
        common = {"bootstrap.servers": group.bootstrap, "group.id": group.group_id, "client.id": name, "log_level": 0}
        if group.protocol == "consumer":
            options: dict[str, Any] = {"group.protocol": "consumer", "group.remote.assignor": group.strategy}
        else:
            options = {
                "partition.assignment.strategy": group.strategy,
                "session.timeout.ms": 10_000,
                "heartbeat.interval.ms": 500,
            }
        self._consumer = Consumer({**common, **options, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
        self._consumer.subscribe(list(group.topics))

    def poll(self) -> None:
        self._consumer.poll(0.01)

    def owned(self) -> dict[str, tuple[int, ...]]:
        return _by_topic((each.topic, each.partition) for each in self._consumer.assignment())

    def close(self) -> None:
        self._consumer.close()


class _PythonMember:
    """kafka-python's; it polls by itself, at length: 3.0 throws a join away that ends between two short polls."""

    def __init__(self, group: Consumers, name: str) -> None:
        self._consumer = KafkaConsumer(
            *group.topics, bootstrap_servers=group.bootstrap.split(","), group_id=group.group_id, client_id=name,
            partition_assignment_strategy=[StickyPartitionAssignor], enable_auto_commit=False,
            session_timeout_ms=10_000, heartbeat_interval_ms=500, auto_offset_reset="earliest",
        )  # fmt: skip
        self._is_leaving = threading.Event()
        self._errors: list[Exception] = []
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _poll(self) -> None:
        try:
            while not self._is_leaving.is_set():
                self._consumer.poll(timeout_ms=HANG * 1000)
        except Exception as error:  # noqa: BLE001 - `poll` raises it where it is seen
            self._errors.append(error)

    def poll(self) -> None:
        for error in self._errors:
            raise error

    def owned(self) -> dict[str, tuple[int, ...]]:
        return _by_topic((each.topic, each.partition) for each in self._consumer.assignment())

    def close(self) -> None:
        self._is_leaving.set()
        self._consumer.close(autocommit=False)  # which ends the poll
        self._thread.join(HANG)


def _by_topic(keys: Any) -> dict[str, tuple[int, ...]]:  # noqa: ANN401 - both libraries are untyped
    found: dict[str, list[int]] = {}
    for topic, number in sorted(keys):
        found.setdefault(topic, []).append(number)
    return {topic: tuple(numbers) for topic, numbers in found.items()}
