"""What a plan does to partitions."""

from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.problem import Location
from reconciler.model.topic_partition import TopicPartition


class Reason(StrEnum):
    """Why a partition moves: the rule or balance that asked for it."""

    ASSIGNMENT = "assignment"
    DRAINING = "draining"
    REPLICATION_FACTOR = "replicationFactor"
    RACKS = "racks"
    ELIGIBILITY = "eligibility"
    DEAD_BROKER = "deadBroker"
    BALANCE = "balance"
    LEADERS = "leaders"
    NEW_PARTITION = "newPartition"


@dataclass(frozen=True, slots=True)
class Move:
    """One partition from one whole ordered replica list to another.

    `bytes` is what this move copies: the partition's size times the replicas that are new; 0 for a reorder or a
    shrink. It is a lower bound where `is_size_known` is false.
    """

    topic_partition: TopicPartition
    from_replicas: tuple[int, ...]
    to_replicas: tuple[int, ...]
    bytes: int
    reason: Reason
    at: Location | None = None
    is_size_known: bool = True

    @property
    def added(self) -> tuple[int, ...]:
        """The replicas that must be copied, in the order of `to_replicas`."""
        return tuple(replica for replica in self.to_replicas if replica not in self.from_replicas)

    @property
    def removed(self) -> tuple[int, ...]:
        """The replicas that go, in the order of `from_replicas`."""
        return tuple(replica for replica in self.from_replicas if replica not in self.to_replicas)

    @property
    def is_reorder(self) -> bool:
        """Whether only the order changes, which Kafka does at once, whoever is alive or in sync."""
        return not self.added and not self.removed


@dataclass(frozen=True, slots=True)
class Election:
    """A preferred-leader election: `leader` is the first replica by then."""

    topic_partition: TopicPartition
    leader: int
