"""What is fuzzed: a small good file of each kind, where it goes, and the call that reads it."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconciler.model.run import RunEvent

DESIRED = """\
# What a cluster and its topics can say.
apiVersion: reconciler/v1
kind: Cluster
metadata: {name: c, labels: {environment: prod}}
spec:
  clusterId: MkU3OEVBNTcwNTJENDM2Qk
  simulation: snapshot.json
  brokers:
    - {id: 3, state: cordoned, reason: new disk}
    - {id: 2, capacity: 2}
  topics: {managed: listed, ignore: ["__*"], delete: never}
  balance: {replicas: even, leaders: even, topics: off, disk: {within: 10%}}
  moves: {throttle: 50MiB/s, perBroker: 10, perPartition: 1, perStage: 500, electionBatch: 100, timeout: 2h}
  limits: {changedPartitions: 20%, movedBytes: 2TiB, diskUse: 80%}
  windows:
    - {days: [mon, tue], from: "22:00", to: "05:00", timezone: Europe/Berlin}
"""
TOPICS = """\
apiVersion: reconciler/v1
kind: TopicClass
metadata: {name: standard}
spec:
  replicationFactor: 2
  placement: {racks: {spread: prefer}}
  config: {min.insync.replicas: 1}
---
apiVersion: reconciler/v1
kind: Topic
metadata: {name: orders, labels: {owner: team}}
spec:
  class: standard
  partitions: 2
  config: {retention.ms: 7d, segment.bytes: 1GiB, cleanup.policy: null}
  placement:
    racks: {spread: prefer, only: [a, b], leader: [a]}
    brokers: {only: [1, 2, 3]}
  protect: [delete, grow]
---
apiVersion: reconciler/v1
kind: Topic
metadata: {names: ["metrics.*"]}
spec: {placement: {racks: {spread: prefer}}}
"""
SNAPSHOT: dict[str, Any] = {
    "formatVersion": "1.0",
    "clusterId": "MkU3OEVBNTcwNTJENDM2Qk",
    "observedAt": "2026-11-21T14:02:11Z",
    "kafkaVersion": "4.1",
    "controllerId": 2,
    "brokers": [
        {
            "id": number,
            "rack": rack,
            "host": f"k{number}",
            "port": 9092,
            "fenced": False,
            "logDirs": [{"path": "/d1", "totalBytes": 1 << 40, "usableBytes": 1 << 39}],
            "configs": {"leader.replication.throttled.rate": "1"},
        }
        for number, rack in ((1, "a"), (2, "b"), (3, "a"))
    ],
    "topics": [
        {
            "name": "orders",
            "topicId": "PPcPWInQuIF2V8AgmfnzbA",
            "internal": False,
            "configs": {"retention.ms": "1000"},
            "partitions": [
                {
                    "partition": number,
                    "leader": 1,
                    "replicas": [1, 2],
                    "isr": [1, 2],
                    "sizes": [5, 5],
                    "logDirs": ["/d1", "/d1"],
                    "endOffset": 42,
                }
                for number in range(2)
            ],
        }
    ],
    "groups": [
        {
            "groupId": "g",
            "state": "Empty",
            "protocol": "range",
            "coordinator": 1,
            "members": [],
            "offsets": {"orders": {"0": 40, "1": 2}},
        }
    ],
}
SCENARIO = {
    "id": "one",
    "topics": [{"name": "t", "partitions": 6}, {"name": "u", "partitions": 3}],
    "steps": [
        {"members": [{"id": "m1", "topics": ["t"]}, {"id": "m2", "topics": ["t", "u"], "rack": "a"}]},
        {
            "members": [{"id": "m2", "topics": ["t", "u"]}, {"id": "m3", "topics": ["u"]}],
            "topics": [{"name": "t", "partitions": 9}],
        },
    ],
}
PROPERTIES = """\
# how to reach it
bootstrap.servers=kafka-1:9093,kafka-2:9093
security.protocol=SASL_PLAINTEXT
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
  username="ada" password="s3\\u0041cret";
request.timeout.ms=5000
client.id=me
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file: its good one in `good/`, its form, where a fuzzed one goes, and the arguments that read it."""

    file: str
    form: str
    target: str
    arguments: tuple[str, ...] = ()

    def place(self, folder: Path) -> Path:
        """Return where the fuzzed file goes."""
        return folder / self.target

    def call(self, folder: Path) -> int:
        """Read it through the command line; client properties as far as a connection is made."""
        from reconciler.cli.main import main

        os.chdir(folder)
        return main(self.arguments) if self.arguments else _properties(folder / self.target)


KINDS: Mapping[str, Kind] = {
    "desired cluster": Kind("cluster.yaml", "yaml", "desired-state/c/cluster.yaml", ("diff", "--cluster", "c")),
    "desired topics": Kind("topics.yaml", "yaml", "desired-state/c/topics.yaml", ("diff", "--cluster", "c")),
    "desired, validated": Kind(
        "topics.yaml", "yaml", "desired-state/c/topics.yaml", ("validate", "--cluster", "c", "-o", "json")
    ),
    "journal": Kind("run.jsonl", "lines", "fuzzed.jsonl", ("status", "--cluster", "c", "--journal", "fuzzed.jsonl")),
    "offsets": Kind(
        "offsets.csv",
        "lines",
        "fuzzed.csv",
        ("groups", "reset-offsets", "g", "--cluster", "c", "--from-file", "fuzzed.csv"),
    ),
    "plan": Kind("plan.json", "json", "fuzzed.json", ("show", "fuzzed.json")),
    "plan, as Markdown": Kind("plan.json", "json", "fuzzed.json", ("show", "fuzzed.json", "-o", "markdown")),
    "properties": Kind("client.properties", "lines", "fuzzed.properties"),
    "scenario": Kind("scenario.json", "json", "fuzzed.json", ("groups", "simulate", "--scenario", "fuzzed.json")),
    "snapshot": Kind("snapshot.json", "json", "fuzzed.json", ("diff", "--cluster", "c", "--state", "fuzzed.json")),
    "snapshot, planned": Kind(
        "snapshot.json", "json", "fuzzed.json", ("plan", "--cluster", "c", "--state", "fuzzed.json")
    ),
    "desired, planned": Kind("topics.yaml", "yaml", "desired-state/c/topics.yaml", ("plan", "--cluster", "c")),
    "snapshot, its groups": Kind(
        "snapshot.json", "json", "fuzzed.json", ("groups", "describe", "g", "--state", "fuzzed.json")
    ),
}


def resigned(content: bytes) -> bytes:
    """Return a plan with the digest that fits its content, so that the rest of the reader has to judge it."""
    from helpers.plans.resealed import resealed as with_fitting_digest

    try:
        document = json.loads(content)
        return json.dumps(with_fitting_digest(document)).encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        return content


def write_good(folder: Path) -> None:
    """Write every good file, and the cluster that they are read beside."""
    from helpers.plans.sample_plan import sample_plan

    from reconciler.files.journal import RunJournal
    from reconciler.files.plan_file import plan_text

    good, cluster = folder / "good", folder / "desired-state" / "c"
    good.mkdir()
    cluster.mkdir(parents=True)
    files = {
        "cluster.yaml": DESIRED,
        "topics.yaml": TOPICS,
        "snapshot.json": json.dumps(SNAPSHOT, indent=1),
        "scenario.json": json.dumps(SCENARIO, indent=1),
        "client.properties": PROPERTIES,
        "offsets.csv": 'orders,0,40\ng,"orders",1,7\n',
        "plan.json": plan_text(sample_plan()),
    }
    for name, text in files.items():
        (good / name).write_text(text, "utf-8")
    for name in ("cluster.yaml", "topics.yaml", "snapshot.json"):
        (cluster / name).write_text(files[name], "utf-8")
    beside = replace(sample_plan(), cluster_name="c", cluster_id=SNAPSHOT["clusterId"])
    (folder / f"fuzzed.c.{beside.id}.plan.json").write_text(plan_text(beside), "utf-8")
    journal = RunJournal(good / "run.jsonl", beside.id)
    for event in events():
        journal.append(event)


def events() -> "list[RunEvent]":
    """Return a short run's events."""
    from datetime import UTC, datetime

    from reconciler.model.run import Outcome, RunEvent

    at = datetime(2026, 11, 21, 14, 2, tzinfo=UTC)
    return [RunEvent(at, stage, "run", Outcome.DONE, {"what": "x"}) for stage in range(4)]


def _properties(path: Path) -> int:
    from reconciler.admin.client.properties import translate
    from reconciler.files.properties import read_properties
    from reconciler.model.problem import InvalidInput

    try:
        translate(read_properties(path, {}))
    except InvalidInput as error:
        sys.stderr.write("".join(f"error: {problem}\n" for problem in error.problems))
        return 1
    return 0
