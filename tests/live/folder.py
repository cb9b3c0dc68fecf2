"""An operator's folder for a live cluster: explicit assignments, the program's commands, and healing afterwards."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from helpers.brokers.by_hand import delete
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.controller import reassignments
from helpers.brokers.declared import LIVE, assigned, declare
from helpers.brokers.observer import THROTTLES, Observer
from helpers.program.warm import Ended, environment, reconciler
from helpers.waiting import HANG
from live.killing import killed_at

Assignment = Mapping[int, tuple[int, ...]]
CLUSTER = LIVE


@dataclass
class LiveFolder:
    """A folder with the desired state of the cluster `live`; `brokers`: what it declares of brokers."""

    path: Path
    kafka: KafkaCluster
    moves: str = "throttle: 1MiB/s, perStage: 4, perPartition: 3"
    brokers: str = ""
    observer: Observer = field(init=False)
    admin: AdminClient = field(init=False)

    def __post_init__(self) -> None:
        self.observer = Observer(self.kafka.bootstrap)
        self.admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})

    def write(self, topics: Mapping[str, Assignment], *, config: str = "") -> None:
        """Write the desired state: these topics, with these replicas in this order."""
        documents = {name: f"config: {{{config}}}, {assigned(lists)}" for name, lists in topics.items()}
        declare(self.path, self.kafka, f"moves: {{{self.moves}}}, brokers: [{self.brokers}]", documents)

    def run(self, *arguments: str | Path, expect: int | None = 0, cwd: Path | None = None) -> Ended:
        """Run one command to its end."""
        return reconciler(*arguments, cwd=cwd or self.path, expect=expect)

    def plan(self, name: str, topics: Mapping[str, Assignment], *, config: str = "") -> str:
        """Write the desired state and plan it into a file; there must be changes. Return the file's name."""
        self.write(topics, config=config)
        self.run("plan", "--out", f"{name}.json", "--detailed-exitcode", expect=2)
        return f"{name}.json"

    def create(self, topics: Mapping[str, Assignment], *, size: int = 0, config: str = "") -> None:
        """Create topics through a plan, with that many bytes in each partition."""
        self.run("apply", self.plan("create", topics, config=config), "--yes")
        for name, assignment in topics.items():
            for number in assignment if size else ():
                self.kafka.produce(name, number, size=size)

    def kill(self, points: str, *arguments: str | Path) -> Ended:
        """Run a command until it kills itself at one of these crash points."""
        return killed_at(points, *arguments, cwd=self.path)

    def set_throttles(self, values: Mapping[tuple[ResourceType, str], Mapping[str, str]]) -> None:
        """Set throttle keys of topics and brokers, as an operator does by hand; an empty mapping removes them.

        It returns when the brokers show them: what comes next may ask any of them.
        """
        self.admin.list_topics(timeout=HANG)  # only a client that knows a broker can ask it
        for (kind, name), keys in values.items():
            entries = [_entry(key, keys.get(key)) for key in THROTTLES if kind_of(key) is kind]
            resource = ConfigResource(kind, name, incremental_configs=entries)
            for answer in self.admin.incremental_alter_configs([resource]).values():
                answer.result(timeout=HANG)
            self.kafka.wait_for(lambda k=kind, n=name, v=keys: self._throttles(k, n) == v, f"throttles of {name}")  # type: ignore[misc]

    def _throttles(self, kind: ResourceType, name: str) -> Mapping[str, str]:
        return {key: value for key, value in self.observer.overrides(kind, name).items() if key in THROTTLES}

    def heal(self, *topics: str) -> None:
        """Remove these topics, and with them their reassignments, and every broker's throttle."""
        delete(self.kafka, *topics)
        self.set_throttles({(ResourceType.BROKER, str(broker)): {} for broker in self.kafka.alive})

    @contextlib.contextmanager
    def started(self, *arguments: str | Path) -> Iterator["subprocess.Popen[str]"]:
        """Start a command and yield the process; it does not outlive the block."""
        command = [sys.executable, "-m", "reconciler", *map(str, arguments)]
        running = subprocess.Popen(
            command, cwd=self.path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        with running:
            try:
                yield running
            finally:
                if running.poll() is None:
                    running.kill()

    def state(self, topic: str) -> dict[int, tuple[tuple[int, ...], int]]:
        """Return each partition's ordered replicas and leader."""
        return {number: (found.replicas, found.leader) for number, found in self.observer.topic(topic).items()}

    def wait_in_flight(self, running: "subprocess.Popen[str]", topic: str) -> None:
        """Wait until the controller lists a reassignment of a topic; fail once the run has ended."""
        self.kafka.wait_for(lambda: running.poll() is not None or topic in self._moving(), f"{topic} to move")
        assert running.poll() is None, f"the run ended before its moves were seen\n{running.communicate()}"

    def _moving(self) -> set[str]:
        return {name.rpartition("-")[0] for name in reassignments(self.kafka.bootstrap)}


def kind_of(key: str) -> ResourceType:
    """Return what a throttle key is set on."""
    return ResourceType.TOPIC if key.endswith("replicas") else ResourceType.BROKER


def _entry(key: str, value: str | None) -> ConfigEntry:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    return ConfigEntry(key, value, incremental_operation=operation)


def led_by_the_first(assignment: Assignment) -> dict[int, tuple[tuple[int, ...], int]]:
    """Return what `state` shows of partitions with these replicas whose first ones lead."""
    return {number: (replicas, replicas[0]) for number, replicas in assignment.items()}
