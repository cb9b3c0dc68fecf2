"""Writes the demo: six simulated brokers in three racks, wrong on purpose in five ways, and their desired state."""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.files.snapshot import snapshot_text
from reconciler.model.cluster import Broker, Cluster, Group, GroupMember, LogDir, Partition, Topic
from reconciler.model.problem import ReconcilerError
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.init import (
    EXAMPLE_POLICIES,
    EXISTS,
    Written,
    modeline,
    new_folder,
    schemas_beside,
    write_files,
)

GIB = 1024**3
MIB = 1024**2
DAY = 24 * 60 * 60 * 1000

DEMO = "demo"
CLUSTER_ID = "ZGVtby1kZW1vLWRlbW8tMQ"
OBSERVED_AT = "2026-11-01T14:00:00Z"
RACKS: Mapping[int, str] = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
SIDES = ((1, 2, 3), (4, 5, 6))
LOG_DIRS = ("/var/lib/kafka/d1", "/var/lib/kafka/d2")
LOG_DIR_BYTES = 100 * GIB

STANDARD: Mapping[str, str] = {"min.insync.replicas": "2"}
COMPACTED: Mapping[str, str] = {"cleanup.policy": "compact", "min.insync.replicas": "2"}

# Wrong on purpose.
ONE_REPLICA_SHORT = "clicks"
TWO_IN_ONE_RACK = {TopicPartition("sessions", 4): 5, TopicPartition("sessions", 9): 2}
"""Partitions whose last replica stands on this broker, beside another of the same rack."""
NOT_LED_BY_THE_FIRST = (
    TopicPartition("carts", 3),
    TopicPartition("invoices", 7),
    TopicPartition("orders.events", 2),
    TopicPartition("orders.events", 17),
    TopicPartition("payments.transactions", 11),
)


@dataclass(frozen=True, slots=True)
class DemoTopic:
    """A topic of the demo; `mib` is the size of its partitions, by and large."""

    name: str
    partitions: int
    mib: int
    configs: Mapping[str, str] = field(default_factory=lambda: STANDARD)


WEB = (
    DemoTopic("carts", 12, 300),
    DemoTopic("clicks", 12, 2048),
    DemoTopic("experiments", 6, 60),
    DemoTopic("impressions", 24, 1200),
    DemoTopic("pageviews", 12, 1800),
    DemoTopic("recommendations", 6, 220),
    DemoTopic("searches", 12, 640),
    DemoTopic("sessions", 12, 1536),
    DemoTopic("web.errors", 6, 90),
)
SHOP = (
    DemoTopic("catalog.products", 6, 180, COMPACTED),
    DemoTopic("customers.consents", 6, 40, COMPACTED),
    DemoTopic("customers.profiles", 12, 420, COMPACTED),
    DemoTopic("inventory.changes", 12, 380),
    DemoTopic("inventory.levels", 6, 70, COMPACTED),
    DemoTopic("invoices", 12, 510),
    DemoTopic("orders.commands", 12, 240),
    DemoTopic("orders.events", 24, 900, {**STANDARD, "retention.ms": str(3 * DAY)}),
    DemoTopic("orders.state", 12, 350, COMPACTED),
    DemoTopic("payments.ledger", 12, 460, COMPACTED),
    DemoTopic("payments.refunds", 6, 50),
    DemoTopic("payments.transactions", 24, 820),
    DemoTopic("prices", 6, 30, COMPACTED),
    DemoTopic("returns", 6, 80),
    DemoTopic("shipments", 12, 270),
    DemoTopic("shipments.tracking", 24, 610),
)
PLATFORM = (
    DemoTopic("audit", 12, 760, {**STANDARD, "retention.ms": str(90 * DAY)}),
    DemoTopic("cdc.customers", 12, 330),
    DemoTopic("cdc.orders", 24, 540),
    DemoTopic("cdc.products", 6, 120),
    DemoTopic("deadletters", 6, 20),
    DemoTopic("emails", 6, 110),
    DemoTopic("logs.access", 6, 980),
    DemoTopic("logs.app", 24, 700),
    DemoTopic("notifications", 12, 190),
    DemoTopic("sms", 6, 15),
)
METRICS = tuple(
    DemoTopic(name, partitions, mib, {**STANDARD, "retention.ms": str(2 * DAY)})
    for name, partitions, mib in (
        ("metrics.business", 6, 25),
        ("metrics.hosts", 24, 450),
        ("metrics.jvm", 12, 260),
        ("metrics.network", 6, 140),
        ("metrics.services", 24, 520),
    )
)


def write_demo(root: str, name: str | None = None) -> Written:
    """Write the demo: a simulated cluster, kept in a file, and its desired state."""
    if name not in {None, DEMO}:
        raise ReconcilerError(f"the demo's cluster is called {DEMO}, not {name}; leave --cluster out", code=EXISTS)
    folder = new_folder(root, DEMO)
    return Written(str(folder), DEMO, write_files(folder, demo_files(schemas_beside(root))), demo_cluster())


def demo_cluster() -> Cluster:
    """Return the demo's cluster: 6 brokers, 40 topics, 480 partitions; the same one every time."""
    topics = dict(sorted(_topics()))
    return Cluster(
        CLUSTER_ID,
        brokers=_brokers(topics),
        topics=topics,
        groups=(_group("billing", "orders.events", 4), _group("web-analytics", "pageviews", 3)),
        observed_at=OBSERVED_AT,
        kafka_version="4.3",
        controller_id=1,
    )


def _topics() -> Iterator[tuple[str, Topic]]:
    """Yield every topic, its leaders and replicas dealt out evenly over racks and brokers, save for what is wrong."""
    dealt = 0
    for topic in (*WEB, *SHOP, *PLATFORM, *METRICS):
        partitions = tuple(_partition(topic, index, dealt + index) for index in range(topic.partitions))
        dealt += topic.partitions
        yield topic.name, Topic(topic.name, partitions, topic_id=_topic_id(topic.name), configs=topic.configs)


def _topic_id(name: str) -> str:
    """Return an id in Kafka's form: 16 bytes as URL-safe base64."""
    return base64.urlsafe_b64encode(hashlib.sha256(name.encode()).digest()[:16]).decode().rstrip("=")


def _partition(topic: DemoTopic, number: int, dealt: int) -> Partition:
    key = TopicPartition(topic.name, number)
    replicas = _replicas(dealt)
    if key.topic == ONE_REPLICA_SHORT:
        replicas = replicas[:2]
    if key in TWO_IN_ONE_RACK:
        replicas = (*replicas[:2], TWO_IN_ONE_RACK[key])
    size = _size(topic, number)
    return Partition(
        number,
        leader=replicas[1] if key in NOT_LED_BY_THE_FIRST else replicas[0],
        replicas=replicas,
        isr=replicas,
        sizes=(size,) * len(replicas),
        log_dirs=tuple(LOG_DIRS[(dealt // 12 + number // 2 + broker_id) % 2] for broker_id in replicas),
        end_offset=size // 400,
    )


def _replicas(dealt: int) -> tuple[int, ...]:
    """Return one broker of each rack; over twelve in turn each broker leads two, and each stands second in four."""
    side, shift = dealt // 3, dealt % 3
    sides = (side % 2, side // 2 % 2, (side + side // 2) % 2)
    one_a_rack = tuple(SIDES[sides[rack]][rack] for rack in range(3))
    return one_a_rack[shift:] + one_a_rack[:shift]


def _size(topic: DemoTopic, number: int) -> int:
    """Return the topic's size, give or take a tenth; exactly that where the demo's story counts the bytes."""
    if topic.name in {"clicks", "sessions"}:
        return topic.mib * MIB
    return topic.mib * MIB * (90 + number * 7 % 21) // 100


def _brokers(topics: Mapping[str, Topic]) -> Mapping[int, Broker]:
    held: Counter[tuple[int, str]] = Counter()
    for topic in topics.values():
        for partition in topic.partitions:
            for broker_id, path, size in zip(partition.replicas, partition.log_dirs, partition.sizes, strict=True):
                held[broker_id, path or ""] += size or 0
    return {broker_id: _broker(broker_id, held) for broker_id in RACKS}


def _broker(broker_id: int, held: Mapping[tuple[int, str], int]) -> Broker:
    log_dirs = tuple(LogDir(path, LOG_DIR_BYTES, LOG_DIR_BYTES - held[broker_id, path]) for path in LOG_DIRS)
    return Broker(broker_id, rack=RACKS[broker_id], host=f"broker-{broker_id}.demo", port=9092, log_dirs=log_dirs)


def _group(group_id: str, topic: str, members: int) -> Group:
    """Return a group whose members share the topic in ranges, a little behind."""
    found = next(one for one in (*WEB, *SHOP) if one.name == topic)
    share = found.partitions // members
    blank = GroupMember("", subscription=(topic,))
    return Group(
        group_id,
        state="Stable",
        protocol="range",
        coordinator=2,
        members=tuple(
            replace(
                blank,
                member_id=f"{group_id}-{index}-member",
                client_id=f"{group_id}-{index}",
                host=f"/10.0.0.{index + 1}",
                assignment={topic: tuple(range(index * share, (index + 1) * share))},
            )
            for index in range(members)
        ),
        offsets={topic: {number: _size(found, number) // 400 - 100 for number in range(found.partitions)}},
    )


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
    perBroker: 10                     # copies in flight at one broker: received and, apart, served
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
