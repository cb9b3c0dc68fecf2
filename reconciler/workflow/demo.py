"""The demo's files: desired state for the simulated cluster, which is wrong on purpose in five ways."""

from collections.abc import Iterable, Mapping

from reconciler.files.snapshot import snapshot_text
from reconciler.workflow.demo_cluster import (
    CLUSTER_ID,
    COMPACTED,
    DAY,
    ONE_REPLICA_SHORT,
    PLATFORM,
    SHOP,
    WEB,
    DemoTopic,
    demo_cluster,
)
from reconciler.workflow.example_policies import EXAMPLE_POLICIES
from reconciler.workflow.modeline import modeline

__all__ = ["demo_cluster", "demo_files"]

CLUSTER = f"""\
# The demo: six simulated brokers in three racks, kept in snapshot.json. No Kafka is needed, and nothing can break.
#   reconciler plan --cluster demo --out plan.json      what is wrong, what would be done, how many bytes
#   reconciler apply plan.json                          does exactly that
#   reconciler plan --cluster demo                      No changes.
# Then change something here and plan again.
apiVersion: reconciler/v1
kind: Cluster
metadata: {{name: demo, labels: {{environment: demo}}}}
spec:
  clusterId: {CLUSTER_ID}   # any other cluster is refused
  simulation: snapshot.json           # a real cluster has `client:` with its Kafka client properties instead
  # brokers:                          # try this: what would it cost to empty broker 5?
  #   - {{id: 5, state: draining, reason: host retirement}}
  topics:
    managed: listed                   # a topic that no file names is left alone
    delete: never
  balance:
    replicas: even                    # replicas per broker, as even as the rules allow
    leaders: even                     # preferred leaders per broker; reached by order alone, copies nothing
  moves:
    throttle: 50MiB/s                 # per broker and direction, while replicas move
    perBroker: 10                     # replicas arriving at, and leaving, one broker in one stage
  limits:                             # over one of these the plan is shown, but not applied
    changedPartitions: 60%
    movedBytes: 250GiB
    diskUse: 80%
"""

CLASSES = """\
apiVersion: reconciler/v1
kind: TopicClass
metadata: {name: standard}
spec:
  replicationFactor: 3
  placement: {racks: {spread: strict}}  # one replica in each rack; two partitions of `sessions` break this
  config: {min.insync.replicas: 2}
---
# Topics that keep the last value of each key.
apiVersion: reconciler/v1
kind: TopicClass
metadata: {name: compacted}
spec:
  replicationFactor: 3
  placement: {racks: {spread: strict}}
  config: {cleanup.policy: compact, min.insync.replicas: 2}
"""

CLICKS = """\
apiVersion: reconciler/v1
kind: Topic
metadata: {name: clicks, labels: {owner: team-web}}
spec:
  class: standard
  partitions: 12
  # It has two replicas a partition today; the plan names the broker of each third one.
  replicationFactor: 3
"""

WISHLISTS = """\
# New: it does not exist yet, and is created with an explicit assignment.
apiVersion: reconciler/v1
kind: Topic
metadata: {name: wishlists, labels: {owner: team-web}}
spec: {class: compacted, partitions: 6}
"""

LEDGER = """\
apiVersion: reconciler/v1
kind: Topic
metadata: {name: payments.ledger, labels: {owner: team-payments}}
spec:
  class: compacted
  partitions: 12
  protect: [delete, grow]  # no plan may ever do this to the ledger
"""

METRICS_PATTERN = """\
# One document for every topic of that name: placement and config only.
apiVersion: reconciler/v1
kind: Topic
metadata: {names: ["metrics.*"], labels: {owner: team-platform}}
spec:
  placement: {racks: {spread: prefer}}
  config: {retention.ms: 2d}
"""

WRITTEN_BY_HAND: Mapping[str, str] = {"clicks": CLICKS, "payments.ledger": LEDGER}
WANTED: Mapping[str, str] = {
    "orders.events": "  config: {retention.ms: 7d}  # it keeps three days today",
    "pageviews": "  partitions: 18                # it has 12; keys map elsewhere from then on",
}
"""What a topic's document asks for and the cluster has not got."""


def demo_files(schemas: str | None = "../../schemas") -> Mapping[str, str]:
    """Return the demo's texts by file name; `schemas`: where editors find the schemas, None for nowhere."""
    return {
        **EXAMPLE_POLICIES,
        "classes.yaml": modeline(schemas, "TopicClass") + CLASSES,
        "cluster.yaml": modeline(schemas, "Cluster") + CLUSTER,
        "platform.yaml": modeline(schemas, "Topic") + _documents(PLATFORM, "team-platform", METRICS_PATTERN),
        "shop.yaml": modeline(schemas, "Topic") + _documents(SHOP, "team-shop"),
        "snapshot.json": snapshot_text(demo_cluster()),
        "web.yaml": modeline(schemas, "Topic") + _documents(WEB, "team-web", WISHLISTS),
    }


def _documents(topics: Iterable[DemoTopic], owner: str, *more: str) -> str:
    first = sorted(topics, key=lambda topic: (topic.name != ONE_REPLICA_SHORT, topic.name))
    written = [WRITTEN_BY_HAND.get(topic.name) or _document(topic, owner) for topic in first]
    return "---\n".join((*written, *more))


def _document(topic: DemoTopic, owner: str) -> str:
    head = f"apiVersion: reconciler/v1\nkind: Topic\nmetadata: {{name: {topic.name}, labels: {{owner: {owner}}}}}\n"
    return head + _spec(topic)


def _spec(topic: DemoTopic) -> str:
    kind = "compacted" if topic.configs == COMPACTED else "standard"
    wanted = WANTED.get(topic.name)
    if wanted is None:
        retention = topic.configs.get("retention.ms")
        config = f", config: {{retention.ms: {int(retention) // DAY}d}}" if retention else ""
        return f"spec: {{class: {kind}, partitions: {topic.partitions}{config}}}\n"
    lines = [f"  class: {kind}"]
    if not wanted.startswith("  partitions"):
        lines.append(f"  partitions: {topic.partitions}")
    return "\n".join(("spec:", *lines, wanted)) + "\n"
