"""Computes what partitions cost, each with its figure, where the rule comes from, and whether it still holds."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from reconciler.groups.model.advice import Cost, Existing

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
        "partitions x replicationFactor, shared by the brokers",
        "arithmetic",
    )
    yield Cost(
        f"open files on {where}",
        segments * FILES_PER_SEGMENT,
        "3 a segment (.log, .index, .timeindex), a segment a replica at least; allow a broker 100,000 (ulimit -n)",
        "Kafka documentation, File descriptor limits; texts that count 2 are older than 0.10.1 (KIP-33)",
    )
    yield Cost(
        f"memory maps on {where}",
        segments * MAPS_PER_SEGMENT,
        "2 a segment, its indexes; Linux allows a process 65,530 (vm.max_map_count)",
        "Kafka documentation, OS",
    )
    if topic.brokers is not None:
        yield from _replication(topic, topic.brokers, existing)
        yield from _fail_over(topic)
    yield from _readers(topic)
    yield from _memory(topic)
    if topic.brokers is not None:
        yield Cost(
            "replicas on each broker, all topics" if existing else "replicas on each broker",
            _all_replicas(topic, existing),
            "4,000 was the most to advise, and 200,000 partitions a cluster, with ZooKeeper; KRaft has no such number",
            _BLOG_2018,
            is_outdated=True,
        )


def _replication(topic: Deployment, brokers: int, existing: Existing | None) -> Iterator[Cost]:
    if brokers == 1 or topic.replication_factor == 1:
        return
    followed = topic.partitions * (topic.replication_factor - 1)
    if existing is not None:
        others = existing.cluster_replicas - existing.cluster_partitions
        followed += max(0, others - existing.partitions * (existing.replication_factor - 1))
    yield Cost(
        "added to the latency of acks=all",
        _per(followed * LATENCY_MS_PER_1000, brokers * (brokers - 1) * 1000),
        "20 ms for 1,000 partitions between two brokers, fetched by one thread; num.replica.fetchers divides it"
        + ("; all topics counted" if existing else ""),
        _BLOG_2015,
        unit="ms",
    )


def _fail_over(topic: Deployment) -> Iterator[Cost]:
    yield Cost(
        "partitions without a leader when a broker dies",
        topic.leaders_per_broker,
        "for up to 9 s (broker.session.timeout.ms) however many they are; KRaft then elects them in batches",
        "Kafka 4 broker configuration",
    )
    yield Cost(
        "time to elect their leaders one by one",
        topic.leaders_per_broker * ZOOKEEPER_MS_PER_LEADER,
        "5 ms each with ZooKeeper, which is gone in 4.0",
        _BLOG_2015,
        unit="ms",
        is_outdated=True,
    )


def _readers(topic: Deployment) -> Iterator[Cost]:
    yield Cost(
        "consumers of one group that read at once, at most",
        topic.partitions,
        "one a partition, and a thread each, since a KafkaConsumer is used by one thread; more members read nothing",
        "Kafka documentation, Consumers; KafkaConsumer's javadoc",
    )
    if topic.brokers is not None:
        members = topic.members or topic.partitions
        yield Cost(
            "connections of one group on its busiest broker",
            min(members, topic.leaders_per_broker) + members,
            f"of {members} members: one from each whose partitions it leads, one from each to the group's coordinator; "
            "a producer has one to each broker that leads. A connection is an open file too",
            "Kafka protocol guide, Network; the Java consumer's connection to its coordinator is one of its own",
        )


def _memory(topic: Deployment) -> Iterator[Cost]:
    yield Cost(
        "batches in a producer",
        topic.partitions * topic.batch_bytes,
        f"batch.size ({topic.batch_bytes} bytes) a partition it writes to; buffer.memory (32 MiB) is its most",
        "producer configuration",
        unit="bytes",
    )
    yield Cost(
        "fetched records in a consumer",
        _per(topic.partitions, topic.members or 1) * FETCH_BYTES,
        "max.partition.fetch.bytes (1 MiB) a partition of "
        + ("one member" if topic.members else "a member that reads all")
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
