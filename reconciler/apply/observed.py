"""What one turn of the executor sees: only what the stage touches."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from reconciler.admin.port import Admin, Reassignment
from reconciler.model.cluster import Broker, Partition, Topic
from reconciler.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Observed:
    """One look at the cluster. `configs` and `replica_bytes` are empty where they were not asked for."""

    topics: Mapping[str, Topic] = field(default_factory=dict)
    reassignments: Mapping[TopicPartition, Reassignment] = field(default_factory=dict)
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    replica_bytes: Mapping[tuple[TopicPartition, int], int] = field(default_factory=dict)

    def partition(self, topic_partition: TopicPartition) -> Partition | None:
        """Return that partition, None where it does not exist."""
        topic = self.topics.get(topic_partition.topic)
        return topic.partition(topic_partition.partition) if topic is not None else None

    def is_alive(self, broker_id: int) -> bool:
        """Whether that broker is registered and not fenced."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.is_fenced

    def dead_of(self, broker_ids: Collection[int]) -> tuple[int, ...]:
        """Return those of the brokers that are not alive, sorted."""
        return tuple(sorted(broker for broker in set(broker_ids) if not self.is_alive(broker)))


def look(admin: Admin, topics: Collection[str], *, with_configs_of: Collection[str] = ()) -> Observed:
    """Observe these topics, every reassignment and the brokers.

    The controller's list comes first: what it no longer lists, the later metadata may already show.
    """
    reassignments = admin.reassignments()
    names = sorted(topics)
    return Observed(
        topics=admin.topics(names) if names else {},
        reassignments=reassignments,
        brokers=admin.brokers(),
        configs=admin.topic_configs(sorted(with_configs_of)) if with_configs_of else {},
    )
