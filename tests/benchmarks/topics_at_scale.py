"""Thousands of topics and the repository that declares them: a file a team, two classes, a little drift."""

import json
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from helpers.clusters.flat_clusters import STRICT
from helpers.program.documents import document

RACKS = ("a", "b", "c")
TEAM = 100
"""Topics in one file."""
CLUSTER_ID = "bWFueS10b3BpY3MtMDAwMQ"
CLUSTER = "balance: {replicas: even, leaders: even}, moves: {throttle: 50MiB/s}"
EVENTS = "config: {retention.ms: 7d, segment.bytes: 64MiB}"


@dataclass(frozen=True, slots=True)
class ManyTopics:
    """So many topics of so many partitions. Every hundredth topic is declared with another retention than it has."""

    topics: int
    partitions: int = 3
    brokers: int = 9
    factor: int = 3

    def names(self) -> list[str]:
        """Return the topics' names."""
        return [f"team-{number // TEAM:03}.topic-{number:05}" for number in range(self.topics)]

    def replicas(self, topic: int, partition: int) -> list[int]:
        """Return where a partition lies: one replica a rack, every broker the same number of them."""
        first = topic * self.partitions + partition
        return [(first + step) % self.brokers + 1 for step in range(self.factor)]

    def configs(self, topic: int) -> dict[str, str]:
        """Return a topic's own configs; odd topics are of the class `events`."""
        return {"retention.ms": "604800000", "segment.bytes": str(64 * 1024**2)} if topic % 2 else {}

    def write(self, folder: Path, *, bootstrap: str | None = None) -> Path:
        """Write the desired state into `folder/desired-state/many`, and return `folder/desired-state`."""
        root = folder / "desired-state"
        (root / "many" / "topics").mkdir(parents=True)
        client = "" if bootstrap is None else f'client: {{bootstrap.servers: "{bootstrap}"}}, '
        standard = f"replicationFactor: {self.factor}, {STRICT}"
        documents = (
            document("Cluster", "many", f"{{{client}{CLUSTER}}}"),
            document("TopicClass", "standard", f"{{{standard}}}"),
            document("TopicClass", "events", f"{{{standard}, {EVENTS}}}"),
        )
        (root / "many" / "cluster.yaml").write_text("---\n".join(documents), "utf-8")
        names = self.names()
        for start in range(0, self.topics, TEAM):
            topics = [self._document(n, names[n]) for n in range(start, min(start + TEAM, self.topics))]
            (root / "many" / "topics" / f"team-{start // TEAM:03}.yaml").write_text("---\n".join(topics), "utf-8")
        return root

    def write_snapshot(self, folder: Path) -> Path:
        """Write what is observed, and return the file."""
        path = folder / "snapshot.json"
        topics = [self._observed(number, name) for number, name in enumerate(self.names())]
        brokers = [{"id": number + 1, "rack": RACKS[number % len(RACKS)]} for number in range(self.brokers)]
        seen = {"formatVersion": "1.0", "clusterId": CLUSTER_ID, "brokers": brokers, "topics": topics}
        path.write_text(json.dumps(seen), "utf-8")
        return path

    def create(self, bootstrap: str, *, batch: int = 250) -> None:
        """Create the topics on real brokers, so many a request, each once the one before is done."""
        admin = AdminClient({"bootstrap.servers": bootstrap})
        names = self.names()
        for start in range(0, self.topics, batch):
            numbers = range(start, min(start + batch, self.topics))
            topics = [self._new(n, names[n]) for n in numbers]
            for done in admin.create_topics(topics, operation_timeout=120, request_timeout=120).values():
                done.result(180)

    def _new(self, number: int, name: str) -> NewTopic:
        places = [self.replicas(number, partition) for partition in range(self.partitions)]
        return NewTopic(name, len(places), replica_assignment=places, config=self.configs(number))

    def _document(self, number: int, name: str) -> str:
        kind = "events" if number % 2 else "standard"
        drift = ", config: {retention.ms: 3d}" if number % 100 == 1 else ""
        spec = f"{{class: {kind}, partitions: {self.partitions}{drift}}}"
        return document("Topic", name, spec, f"{{owner: team-{number // TEAM:03}}}")

    def _observed(self, number: int, name: str) -> dict[str, object]:
        partitions = []
        for partition in range(self.partitions):
            replicas = self.replicas(number, partition)
            size = 1_000_000 * (1 + (number * 7919 + partition) % 1000)
            partitions.append(
                {
                    "partition": partition,
                    "leader": replicas[0],
                    "replicas": replicas,
                    "isr": replicas,
                    "sizes": [size] * len(replicas),
                }
            )
        return {"name": name, "configs": self.configs(number), "partitions": partitions}
