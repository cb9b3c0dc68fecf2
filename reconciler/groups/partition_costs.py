"""What partitions cost, each with its figure, where the rule comes from, and whether it still holds."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from reconciler.model.advice import Cost, Existing

BATCH_BYTES = 16 << 10  # batch.size
FETCH_BYTES = 1 << 20  # max.partition.fetch.bytes
SEGMENT_BYTES = 1 << 30  # segment.bytes
FILES_PER_SEGMENT = 3
MAPS_PER_SEGMENT = 2
LATENCY_MS_PER_1000 = 20
ZOOKEEPER_MS_PER_LEADER = 5
_BLOG_2015 = "J. Rao, How to choose the number of topics/partitions in a Kafka cluster, 2015"
_BLOG_2018 = "J. Rao, Apache Kafka supports 200K partitions per cluster, 2018"


@dataclass(frozen=True, slots=True)
class Deployment:
    """A topic as it would stand: `brokers` and `members` None where they are not known, `total_bytes` one copy."""

    partitions: int
    replication_factor: int
    brokers: int | None
    members: int | None
    batch_bytes: int = BATCH_BYTES
    segment_bytes: int = SEGMENT_BYTES
    total_bytes: int = 0

    @property
    def replicas_per_broker(self) -> int:
        """The most replicas that one broker holds, spread evenly; without known brokers, all of them."""
        return _per(self.partitions * self.replication_factor, self.brokers or 1)

    @property
    def leaders_per_broker(self) -> int:
        """The most partitions that one broker leads, spread evenly."""
        return _per(self.partitions, self.brokers or 1)

    @property
    def segments_per_broker(self) -> int:
        """The segments of its replicas: at least one each."""
        return self.replicas_per_broker * max(1, _per(_per(self.total_bytes, self.partitions), self.segment_bytes))


def costs(after: Deployment, existing: Existing | None) -> tuple[Cost, ...]:
    """Return each cost with the advice and, where the topic exists, now."""
    if existing is None:
        return tuple(_costs(after, None))
    after = replace(after, total_bytes=existing.total_bytes or 0)
    now = replace(
        after,
        partitions=max(existing.partitions, 1),
        replication_factor=existing.replication_factor,
        brokers=existing.brokers,
    )
    before = {cost.name: cost.after for cost in _costs(now, existing)}
    return tuple(replace(cost, now=before.get(cost.name)) for cost in _costs(after, existing))


def _costs(topic: Deployment, existing: Existing | None) -> Iterator[Cost]:
    where = "each broker" if topic.brokers else "all brokers together"
    segments = topic.segments_per_broker
    yield Cost(
        f"replicas on {where}",
        topic.replicas_per_broker,
        "each is fetched, checked and kept in memory on its own",
        "partitions x replicationFactor / brokers",
    )
    yield Cost(
        f"open files on {where}",
        segments * FILES_PER_SEGMENT,
        "3 a segment: .log, .index and .timeindex, at least one segment a replica; allow 100,000 (ulimit -n)",
        "Kafka documentation, File descriptor limits; texts that count 2 are from before 0.10.1 (KIP-33)",
    )
    yield Cost(
        f"memory maps on {where}",
        segments * MAPS_PER_SEGMENT,
        "2 a segment, both indexes; Linux allows 65,530 to a process (vm.max_map_count)",
        "Kafka documentation, OS",
    )
    yield from _replication(topic, existing)
    yield from _fail_over(topic)
    yield from _memory(topic)
    yield Cost(
        "replicas on each broker, all topics" if existing else f"replicas on {where}, this topic alone",
        _all_replicas(topic, existing),
        "once 4,000 at most, and 200,000 partitions a cluster; KRaft has no such limit, but each still costs the above",
        _BLOG_2018,
        is_outdated=True,
    )


def _replication(topic: Deployment, existing: Existing | None) -> Iterator[Cost]:
    brokers = topic.brokers
    if brokers is None or brokers == 1 or topic.replication_factor == 1:
        return
    followed = topic.partitions * (topic.replication_factor - 1)
    if existing is not None and existing.cluster_partitions:
        others = existing.cluster_replicas - existing.cluster_partitions
        followed += max(0, others - existing.partitions * (existing.replication_factor - 1))
    pairs = brokers * (brokers - 1)
    yield Cost(
        "replication adds to the latency of acks=all",
        _per(followed * LATENCY_MS_PER_1000, pairs * 1000),
        "about 20 ms for 1,000 partitions between two brokers with one fetcher; num.replica.fetchers divides it"
        + ("; all topics counted" if existing else ""),
        _BLOG_2015,
        unit="ms",
    )


def _fail_over(topic: Deployment) -> Iterator[Cost]:
    where = "a broker" if topic.brokers else "the cluster"
    yield Cost(
        f"partitions without a leader when {where} dies",
        topic.leaders_per_broker,
        "for up to 9 s (broker.session.timeout.ms), however many; then the controller elects them in batches",
        "KRaft, Kafka 4",
    )
    yield Cost(
        f"time to elect their leaders, when {where} dies",
        topic.leaders_per_broker * ZOOKEEPER_MS_PER_LEADER,
        "5 ms each, one after the other, with ZooKeeper, which is gone in 4.0",
        _BLOG_2015,
        unit="ms",
        is_outdated=True,
    )


def _memory(topic: Deployment) -> Iterator[Cost]:
    yield Cost(
        "batches in a producer",
        topic.partitions * topic.batch_bytes,
        f"batch.size ({topic.batch_bytes} bytes) a partition that it writes to; buffer.memory (32 MiB) is the most",
        "producer configuration",
        unit="bytes",
    )
    yield Cost(
        "fetched records in a consumer",
        _per(topic.partitions, topic.members or 1) * FETCH_BYTES,
        "max.partition.fetch.bytes (1 MiB) a partition of one member"
        + ("" if topic.members else ", here one member that reads all")
        + "; fetch.max.bytes (50 MiB) is the most from one broker",
        "consumer configuration",
        unit="bytes",
    )


def _all_replicas(topic: Deployment, existing: Existing | None) -> int:
    if existing is None:
        return topic.replicas_per_broker
    others = existing.cluster_replicas - existing.partitions * existing.replication_factor
    return _per(max(0, others) + topic.partitions * topic.replication_factor, topic.brokers or 1)


def _per(count: int, parts: int) -> int:
    """Return the count shared out evenly, rounded up."""
    return -(-count // parts)
