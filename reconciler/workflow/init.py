"""Writes the files that `init` begins a real cluster's desired state with: every field explained, most of them off."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from reconciler.files.inside import WRITTEN_THROUGH, required_inside
from reconciler.files.paths import is_folder, is_there
from reconciler.files.raw import write_atomically
from reconciler.files.schema_check import SCHEMA_FILES
from reconciler.model.cluster import Cluster
from reconciler.model.codec import HIDDEN, Key
from reconciler.model.problem import ReconcilerError
from reconciler.workflow.inputs import checked_name

DEFAULT_NAME = "my-cluster"
NOT_WRITTEN = "KR011"
EXISTS = "KR012"

CLUSTER = """\
# One cluster: how to reach it, what may be done to it, and how. Every field but `client` may be left out.
#   reconciler snapshot --cluster {name}    does it answer? writes what it observed; every verb takes that with --state
#   reconciler plan --cluster {name}        what differs, and what would be done about it
apiVersion: reconciler/v1
kind: Cluster
metadata: {{name: {name}}}
spec:
  # clusterId: MkU3OEVBNTcwNTJENDM2Qk       # any other cluster is refused
  client:                                   # Kafka client properties, unchanged; or {{file: client.properties}}
    bootstrap.servers: localhost:9092
    # security.protocol: SASL_SSL
    # sasl.mechanism: SCRAM-SHA-512
    # sasl.username: ${{env:KAFKA_USERNAME}}
    # sasl.password: ${{file:/run/secrets/kafka-password}}

  # brokers:                                # only those that differ from {{state: active, capacity: 1}}
  #   - {{id: 5, state: draining, reason: host retirement}}    # active, cordoned, maintenance, draining, absent
  #   - {{id: 7, capacity: 2}}                # its fair share is twice the others'; or {{replicas: 2, network: 3}}
  #   - {{id: 9, logDirs: [{{path: /d1, state: draining}}]}}    # a disk to be emptied onto the broker's others

  # elections: off                          # preferred, the default: who should lead and is in sync is elected

  topics:
    managed: listed                         # listed: a topic that no file names is left alone; all: it is drift
    ignore: ["__*"]
    delete: never                           # never, or allow: without it nothing is ever deleted

  balance:                                  # each: off, even, or {{within: 10%}}
    replicas: off                           # replicas per broker, by capacity
    leaders: off                            # preferred leaders per broker, by capacity; copies nothing
    logDirs: off                            # how full a broker's own disks are; copies inside the broker

  moves:
    throttle: 50MiB/s                       # per broker and direction; without one a plan warns
    perBroker: 10                           # copies in flight at one broker: received and, apart, served
    perPartition: 1                         # replicas of one partition copied in one stage
    perStage: 500                           # partitions in one stage
    electionBatch: 100                      # partitions in one preferred-leader election request
    timeout: 2h                             # a stage that makes no progress for so long stops the run

  limits:                                   # over one of these the plan is shown, but not applied
    changedPartitions: 20%
    # movedBytes: 2TiB
    deletedTopics: 1                        # topics that one plan may delete; `state: absent` counts too
    # deletedBytes: 0B                      # bytes of all replicas that a plan may delete
    # replicasPerBroker: 4000               # a rule of every placement
    diskUse: 80%                            # at the worst moment of the run

  # windows:                                # when `apply` may work; always, if none is given
  #   - {{days: [mon, tue, wed, thu], from: "22:00", to: "05:00", timezone: Europe/Berlin}}
"""

CLASSES = """\
# What many topics share. A topic's own fields win over its class.
apiVersion: reconciler/v1
kind: TopicClass
metadata: {name: standard}
spec:
  replicationFactor: 3
  placement: {racks: {spread: prefer}}      # strict: never two replicas in one rack that could be in two
  config: {min.insync.replicas: 2}
"""

TOPICS = """\
# One topic a document, any number of documents and files. What is not written here is neither compared nor changed.
apiVersion: reconciler/v1
kind: Topic
metadata: {name: example, labels: {owner: your-team}}
spec:
  class: standard
  partitions: 6                             # may only grow
  # replicationFactor: 3
  config: {retention.ms: 7d}                # Kafka's own keys; null removes an override
  # placement:
  #   racks: {spread: strict, only: [a, b, c], leader: [a, b]}    # or replicas: {a: 2, b: 1}, in place of spread
  #   brokers: {only: [1, 2, 3], except: [5]}
  # protect: [delete, grow, move]           # what a plan may never do to this topic
# ---
# apiVersion: reconciler/v1
# kind: Owner                               # a team: whose topics these are, whom to ask, how much they may have
# metadata: {name: your-team}
# spec: {contact: "#your-team", topics: ["example*"], limits: {topics: 40, partitions: 600, bytes: 2TiB}}
"""
SCHEMAS = "../../schemas"
"""Where editors find the schemas from a cluster's folder: beside the root, where `reconciler schemas` writes them."""
_README = """\
# Policies
Each `policies/*.sql`, of the desired-state root or of a cluster's folder, is one query in Spark SQL over the plan. Every row
that it returns is a violation: the plan is shown, `plan` exits with 3, and `apply` refuses it. Nothing in this folder holds:
copy what you want into `policies`. Policies need `pip install 'WHEEL[spark]'` and Java 17; `plan` takes some
10 seconds longer with them.

The comment that a file begins with is the rule in words, and heads each violation. The columns of a row follow, with their
names; one called `message` without. A policy can ask these tables and nothing else, not the clock, and not chance: joins, subqueries,
windows, and Spark's functions of arithmetic, texts, dates, lists, maps and aggregates. Each has 300 seconds.

| table | columns |
|---|---|
| `topics` | `topic`, `is_internal`, `is_declared`, `labels` (a map), and as the plan leaves them `partitions`, `replication_factor` (the least of its partitions'), `configs` (a map of overrides, no defaults), null for a topic that is deleted; as they are today `observed_partitions`, `observed_replication_factor`, `observed_configs`, null for a new one |
| `brokers` | `broker`, `rack`, `host`, `is_alive`, `state` and `capacity` (that of replicas) as declared, `total_bytes` and `usable_bytes` of its log dirs (null: not known), `configs` (a map of overrides) |
| `observed_replicas`, `planned_replicas` | `topic`, `partition`, `position` (0 is the preferred leader; null while a reassignment takes it away), `broker`, `rack`, `log_dir` and `size_bytes` (null: not known), `is_leader`, `is_in_sync` |
| `moves` | `stage`, `topic`, `partition`, `from_replicas`, `to_replicas` (whole ordered lists), `bytes`, `reason`, `at` (the line that asks for it) |
| `loads` | empty without `plan --loads`; `cluster`, `topic`, `partition`, `bytes_in_avg`, `bytes_in_p95`, `bytes_in_max`, `bytes_in_peak`, the same for `bytes_out` and `messages_in`, `size_bytes`, `growth_bytes_per_day`, `coverage` |
"""  # noqa: E501 - rows of a Markdown table

_RACKS_PER_TIER = """\
-- A partition of tier gold stands in three racks, one of tier silver in two.
-- The tier is a label of the topic: metadata: {name: orders, labels: {tier: gold}}
WITH tiers AS (
  SELECT * FROM VALUES ('gold', 3), ('silver', 2) AS tiers (tier, racks)
)
SELECT topic, partition, tiers.tier, count(DISTINCT rack) AS racks
FROM planned_replicas
JOIN topics USING (topic)
JOIN tiers ON tiers.tier = labels['tier']
WHERE position IS NOT NULL
GROUP BY topic, partition, tiers.tier, tiers.racks
HAVING count(DISTINCT rack) < tiers.racks
"""

_TOPIC_SHARE = """\
-- No topic holds more than 40 % of a broker's bytes.
WITH held AS (
  SELECT broker, topic, sum(size_bytes) AS bytes FROM planned_replicas GROUP BY broker, topic
), shares AS (
  SELECT broker, topic, 100 * bytes / sum(bytes) OVER (PARTITION BY broker) AS percent FROM held WHERE bytes > 0
)
SELECT broker, topic, round(percent, 1) AS percent FROM shares WHERE percent > 40
"""

_MIN_ISR = """\
-- A topic has more replicas than min.insync.replicas.
-- Otherwise nobody can write to it with acks=all while one broker is down.
WITH wanted AS (
  SELECT *, int(coalesce(configs['min.insync.replicas'], '1')) AS min_insync_replicas FROM topics WHERE NOT is_internal
)
SELECT topic, replication_factor, min_insync_replicas FROM wanted WHERE replication_factor <= min_insync_replicas
"""

EXAMPLE_POLICIES: Mapping[str, str] = {
    "policies.example/README.md": _README,
    "policies.example/min-insync-replicas.sql": _MIN_ISR,
    "policies.example/racks-per-tier.sql": _RACKS_PER_TIER,
    "policies.example/topic-share-of-broker.sql": _TOPIC_SHARE,
}
"""Texts by file name, below a cluster's folder."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written. `cluster` is the simulated one, if it has one."""

    folder: Annotated[str, "The cluster's folder."]
    name: Annotated[str, Key("cluster"), "The cluster's name."]
    files: Annotated[tuple[str, ...], "Files, below the folder."]
    cluster: Annotated[Cluster | None, HIDDEN] = None


def write_layout(root: str, name: str | None = None) -> Written:
    """Write a commented layout for a real cluster; what is there is never overwritten."""
    chosen = name or DEFAULT_NAME
    folder = new_folder(root, chosen)
    return Written(str(folder), chosen, write_files(folder, layout_files(chosen, schemas_beside(root))))


def new_folder(root: str, name: str) -> Path:
    """Return the folder of a cluster that is not there yet."""
    folder = Path(root) / checked_name(name)
    required_inside(Path(root), folder, f"{folder} {WRITTEN_THROUGH}", None)
    if is_there(folder):
        raise ReconcilerError(f"{folder} exists already and is left as it is; name another DIR", code=EXISTS)
    return folder


def write_files(folder: Path, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Write desired-state files, and return their names."""
    for name, text in sorted(texts.items()):
        write_atomically(folder / name, text.encode(), "desired-state file", NOT_WRITTEN)
    return tuple(sorted(texts))


def schemas_beside(root: str) -> str | None:
    """Return where editors find the schemas from a cluster's folder, None where they are not beside the root."""
    return SCHEMAS if is_folder(Path(os.path.realpath(root)).parent / "schemas") else None


def layout_files(name: str, schemas: str | None = None) -> Mapping[str, str]:
    """Return a commented layout for a cluster of that name, texts by file name; `schemas` as for the demo."""
    return {
        **EXAMPLE_POLICIES,
        "classes.yaml": modeline(schemas, "TopicClass") + CLASSES,
        "cluster.yaml": modeline(schemas, "Cluster") + CLUSTER.format(name=name),
        "topics/example.yaml": modeline(schemas, "Topic") + TOPICS,
    }


def modeline(schemas: str | None, kind: str) -> str:
    """Return that line for documents of one kind, with the schemas in that folder; nothing for None."""
    if schemas is None:
        return ""
    return f"# yaml-language-server: $schema={schemas}/{SCHEMA_FILES[kind]}\n"
