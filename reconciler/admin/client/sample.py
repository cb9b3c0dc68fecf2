"""One look at log dirs and end offsets, for `collect`: a missing answer or right hides only what it would have told."""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from kafka.protocol.admin import DescribeLogDirsRequest

from reconciler.admin.client import observe
from reconciler.admin.client.errors import AUTHORIZATION_FAILED, NONE, missing_right, name_of
from reconciler.admin.client.wire import Wire
from reconciler.model.cluster import Broker, Topic
from reconciler.model.problem import MissingRight
from reconciler.model.sample import ClusterSample, ReplicaOnDisk
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import few

if TYPE_CHECKING:
    from kafka.protocol.admin import DescribeLogDirsResponse


def sample(wire: Wire) -> ClusterSample:
    """Return what the log dirs of all live brokers hold, and every end offset; needs Describe on cluster and topics."""
    cluster_id, brokers = observe.cluster_id_and_brokers(wire)
    topics = observe.topics(wire, None)
    alive = [broker.id for broker in brokers.values() if not broker.is_fenced]
    answers = wire.read_each({broker: lambda: DescribeLogDirsRequest(topics=None) for broker in alive})
    replicas = sorted(replica for broker, answer in answers.items() for replica in replicas_told(broker, answer))
    leaders = {
        TopicPartition(topic.name, partition.partition): partition.leader
        for topic in topics.values()
        for partition in topic.partitions
    }
    end_offsets = observe.end_offsets(wire, leaders)
    untold = [
        *_silent(brokers, topics, answers),
        *_refused(answers),
        *_hidden(wire, topics, {replica.topic_partition.topic for replica in replicas}),
        *_offsets_missing([key for key in leaders if key not in end_offsets]),
    ]
    return ClusterSample(cluster_id, topics, tuple(replicas), dict(sorted(end_offsets.items())), tuple(untold))


def replicas_told(broker: int, answer: "DescribeLogDirsResponse") -> Iterator[ReplicaOnDisk]:
    """Yield the replicas that a broker tells of, in the order of its answer."""
    for result in answer.results:
        for topic in result.topics:
            for replica in topic.partitions:
                yield ReplicaOnDisk(
                    TopicPartition(topic.name, replica.partition_index),
                    broker,
                    result.log_dir,
                    _told(replica.partition_size),
                    _told(replica.offset_lag),
                    is_future=bool(replica.is_future_key),
                )


def _told(amount: int) -> int | None:
    return amount if amount >= 0 else None


def _silent(brokers: Mapping[int, Broker], topics: Mapping[str, Topic], answers: Collection[int]) -> Iterator[str]:
    """Name the brokers that told nothing, also those that hold replicas but are not listed (before Kafka 4.0)."""
    holders = {broker for topic in topics.values() for partition in topic.partitions for broker in partition.replicas}
    for broker in sorted((holders | brokers.keys()) - set(answers)):
        is_alive = broker in brokers and not brokers[broker].is_fenced
        what = "does not answer" if is_alive else "is not alive"
        yield f"broker {broker} {what}: what its log dirs hold is unknown"


def _refused(answers: "Mapping[int, DescribeLogDirsResponse]") -> Iterator[str]:
    # A broker has at least one log dir, so none means that the right is missing: before version 3 nothing else tells.
    if any(
        getattr(answer, "error_code", NONE) in AUTHORIZATION_FAILED or not answer.results for answer in answers.values()
    ):
        yield f"sizes are unknown: {missing_right('Describe', 'cluster', (), 'Reading log dirs')}"
    for broker, answer in answers.items():
        for result in answer.results:
            if result.error_code != NONE:
                why = name_of(result.error_code)
                yield f"broker {broker} cannot read its log dir {result.log_dir} ({why}): what it holds is unknown"


def _hidden(wire: Wire, topics: Collection[str], on_disk: Collection[str]) -> Iterator[str]:
    try:
        observe.check_for_hidden_topics(wire, topics, (TopicPartition(topic, 0) for topic in on_disk))
    except MissingRight as error:
        yield f"end offsets and leaders of some topics are unknown: {error}"


def _offsets_missing(keys: Collection[TopicPartition]) -> Iterator[str]:
    if keys:
        yield f"no leader told the end offset of {few(sorted(keys))}: unknown"
