"""A topic whose replicas move on real brokers, slowly enough that a fault falls into the move.

run = LiveRun(tmp_path, kafka, "orders", before, after)   # the topic is made and filled, the move planned: plan.json
with run.delivery() as delivery:
    applying = run.start()                                # `reconciler apply plan.json`, a process of its own
    run.wait_in_flight(6)                                 # broker 6 has bytes of a replica that is being added
    ...                                                   # the fault
    applying.ended(expect=0)
    run.elect()                                           # a fault moves leaders, which is not the plan's business
    run.checker.finished(run.folder, PLAN, delivery)
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import AdminClient
from helpers.brokers.by_hand import create
from helpers.brokers.checker import Checker
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.controller import reassignments
from helpers.brokers.declared import assigned, declare
from helpers.brokers.delivery import Delivery
from helpers.brokers.observer import Observer
from helpers.program.warm import Ended, reconciler
from helpers.waiting import HANG

PLAN = "plan.json"
MB = 1_000_000
SMOOTH = {
    "replica.fetch.max.bytes": "65536",
    "replica.fetch.response.max.bytes": "131072",
    "replication.quota.window.num": "3",
    "alter.log.dirs.replication.quota.window.num": "3",
}
"""Settings of brokers on which a throttle holds from the third second, with small topics.

By default one fetch takes 10 MB at once, and what ten seconds allow is let through at once.
"""
SLOW = "250kB/s"
Lists = Mapping[int, tuple[int, ...]]


def replaced(brokers: Sequence[int], destination: int, partitions: int = 8) -> tuple[Lists, Lists]:
    """Return lists of three of `brokers`, and others with the last one replaced: every second one by `destination`."""
    ring = [tuple(brokers[(number + step) % len(brokers)] for step in range(4)) for number in range(partitions)]
    before = {number: (a, b, c) for number, (a, b, c, _) in enumerate(ring)}
    after = {number: (a, b, d if number % 2 else destination) for number, (a, b, _, d) in enumerate(ring)}
    return before, after


@dataclass
class Applying:
    """A running `apply`."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    @property
    def told(self) -> str:
        """What it has said so far."""
        return self.out.read_text() + self.err.read_text()

    def ended(self, *expect: int) -> int:
        """Wait for its end and return the exit code, one of those expected."""
        code = self.process.wait(HANG)
        assert code in expect, f"apply ended with {code}, not {expect}\n{self.told}"
        return code


@dataclass
class LiveRun:
    """One topic and the plan that moves it; see the module's docstring."""

    folder: Path
    kafka: KafkaCluster
    topic: str
    before: Lists
    after: Lists
    partition_bytes: int = 3 * MB
    throttle: str = "1MB/s"
    per_broker: int = 100
    client: Mapping[str, str] | None = None
    """How the program reaches the brokers, in Kafka's properties; by default as its user does."""
    prefix: Sequence[str] = ()
    """What an apply's command begins with: where it runs, or with what before it."""
    starts: int = field(default=0, init=False)
    _last: Applying = field(init=False)

    def __post_init__(self) -> None:
        create(self.kafka, {self.topic: self.before}, {"min.insync.replicas": "2"})
        for number in self.before:
            self.kafka.produce(self.topic, number, size=self.partition_bytes)
        self.write(self.after)
        self.reconciler("plan", "--out", PLAN, "--detailed-exitcode", expect=2)
        self.checker = Checker(self.kafka, self.topic)

    def write(self, lists: Lists) -> None:
        """Write a desired state with these lists."""
        moves = f"moves: {{throttle: {self.throttle}, perBroker: {self.per_broker}}}"
        client = json.dumps(self.client or self.kafka.client)
        declare(self.folder, self.kafka, moves, {self.topic: assigned(lists)}, client=client)

    def reconciler(self, *arguments: str, expect: int = 0) -> Ended:
        """Run one command to its end."""
        return reconciler(*arguments, cwd=self.folder, expect=expect)

    def start(self, then: str = "") -> Applying:
        """Start an apply of the plan; `then` is what a shell is to do with it, and it ends as the apply does."""
        self.starts += 1
        out, err = (self.folder / f"apply-{self.starts}.{name}" for name in ("out", "err"))
        environment = {key: value for key, value in os.environ.items() if not key.startswith("RECONCILER_")}
        command = [*self.prefix, sys.executable, "-m", "reconciler", "apply", PLAN, "--yes"]
        if then:
            command = ["/bin/bash", "-c", f"set -o pipefail; {shlex.join(command)} {then}"]
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = subprocess.Popen(command, cwd=self.folder, env=environment, stdout=out_file, stderr=err_file)
        self._last = Applying(process, out, err)
        return self._last

    @contextmanager
    def delivery(self) -> Iterator[Delivery]:
        """Yield the traffic on this topic; an apply that a failed test leaves behind ends with it."""
        try:
            with Delivery(self.kafka.bootstrap, self.topic, len(self.before)) as delivery:
                yield delivery
        finally:
            if self.starts and not self._has_ended():
                self._last.process.terminate()
                self._last.process.wait(HANG)

    def moved_to(self, broker: int) -> frozenset[str]:
        """Return the partitions that come to a broker."""
        return frozenset(
            f"{self.topic}-{number}"
            for number in self.before
            if broker in self.after[number] and broker not in self.before[number]
        )

    def wait_in_flight(self, broker: int, *, least: int = 200_000) -> None:
        """Wait until replicas are being added to a broker and some of their bytes are there."""
        self.kafka.wait_for(
            lambda: self._has_ended() or (broker in self._adding() and self._bytes_on(broker) >= least),
            f"a move to {broker} to be in flight",
        )
        assert not self._has_ended(), f"apply ended before it moved anything to {broker}\n{self._last.told}"

    def assert_in_flight(self, *, to: int | None = None) -> None:
        """Assert that the fault fell into the move; with `to`, that none of those to that broker has ended."""
        assert self._adding(), "the moves had ended before the fault: give them more data"
        if to is not None:
            left = {name for name, (adding, _) in reassignments(self.kafka.bootstrap).items() if to in adding}
            assert self.moved_to(to) <= left, "some moves had ended before the fault: give them more data"

    def leader(self, partition: int) -> int:
        """Return who leads a partition now."""
        return self._observer.topic(self.topic)[partition].leader

    def wait_until_replicated(self) -> None:
        """Wait until every replica that a partition had before is in sync; those that are added may still be behind."""
        self.kafka.wait_for(self._has_its_old_replicas, "the old replicas to be in sync")

    def elect(self) -> None:
        """Have the preferred replicas lead again, as an operator does after brokers were down."""
        self.kafka.wait_for(self._is_in_sync, "all replicas to be in sync", seen=self._what_is_seen)
        self.kafka.wait_for(self._is_led_well, "the preferred leaders to lead")

    @property
    def _observer(self) -> Observer:
        return Observer(self.kafka.bootstrap)  # a new one: it asks none but brokers that are there now

    def _has_ended(self) -> bool:
        return self._last.process.poll() is not None

    def _adding(self) -> frozenset[int]:
        listed = reassignments(self.kafka.bootstrap)
        return frozenset(broker for name, (adding, _) in listed.items() if self._is_ours(name) for broker in adding)

    def _is_ours(self, name: str) -> bool:
        return name.rpartition("-")[0] == self.topic

    def _bytes_on(self, broker: int) -> int:
        folders = [log_dir / name for log_dir in self.kafka.log_dirs(broker) for name in self.moved_to(broker)]
        return sum(log.stat().st_blocks * 512 for folder in folders for log in folder.glob("*.log"))

    def _is_in_sync(self) -> bool:
        return all(state.isr == set(state.replicas) for state in self._observer.partitions(self.topic))

    def _what_is_seen(self) -> str:
        observer = self._observer
        throttles = observer.throttles((self.topic,), self.kafka.alive)
        return f"{observer.topic(self.topic)}, moves {reassignments(self.kafka.bootstrap)}, throttles {throttles}"

    def _has_its_old_replicas(self) -> bool:
        states = self._observer.topic(self.topic)
        return all(set(state.replicas) & set(self.before[number]) <= state.isr for number, state in states.items())

    def _is_led_well(self) -> bool:
        if all(state.leader == state.replicas[0] for state in self._observer.partitions(self.topic)):
            return True
        with suppress(KafkaException):
            admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
            admin.elect_leaders(ElectionType.PREFERRED, None).result(HANG)
        return False
