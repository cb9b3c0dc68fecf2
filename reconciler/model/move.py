"""Describes what a plan does to partitions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from reconciler.model.codec import FILLED, HIDDEN, INLINE, Ids, Key
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
    LOG_DIRS = "logDirs"


NONE_ASKED: Mapping[int, str] = {}
"""One for all moves: there are very many."""


@dataclass(frozen=True, slots=True)
class Move:
    """One partition from one whole ordered list of replicas to another."""

    topic_partition: Annotated[TopicPartition, INLINE]
    from_replicas: Annotated[Ids, Key("from"), FILLED, "The replicas before."]
    to_replicas: Annotated[Ids, Key("to"), FILLED, "The replicas after; the first is the preferred leader."]
    bytes: Annotated[
        int, "What is copied: the partition's size times the replicas that are new; 0 for a reorder or a shrink."
    ]
    reason: Annotated[Reason, "The rule or balance that asks for it."]
    at: Annotated[Location | None, "File and line that ask for it."] = None
    is_size_known: Annotated[bool, "False: a size is not known, and bytes is a lower bound; not there: true."] = True
    log_dirs: Annotated[
        Mapping[int, str],
        Key("logDirs"),
        "The log dir that each new replica is asked to go to; a broker not there: Kafka chooses.",
    ] = field(default_factory=lambda: NONE_ASKED, hash=False)
    made_added: Annotated[tuple[int, ...] | None, HIDDEN, "What is added, once it was asked for."] = field(
        default=None, init=False, compare=False, repr=False
    )

    @property
    def added(self) -> tuple[int, ...]:
        """The replicas that must be copied, in the order of `to_replicas`."""
        if self.made_added is None:
            added = tuple([replica for replica in self.to_replicas if replica not in self.from_replicas])
            # What follows from a frozen value may be kept in it.
            object.__setattr__(self, "made_added", added)
        return self.made_added  # type: ignore[return-value] # just made

    @property
    def removed(self) -> tuple[int, ...]:
        """The replicas that go, in the order of `from_replicas`."""
        return tuple([replica for replica in self.from_replicas if replica not in self.to_replicas])

    @property
    def is_reorder(self) -> bool:
        """Whether only the order changes, which Kafka does at once, whoever is alive or in sync."""
        return not self.added and not self.removed


@dataclass(frozen=True, slots=True)
class DirMove:
    """One replica from one log dir of its broker to another (KIP-113): copied inside the broker, over no network."""

    topic_partition: Annotated[TopicPartition, INLINE]
    broker: Annotated[int, "The broker that has the replica, before and after."]
    from_dir: Annotated[str, Key("fromDir"), "The log dir before."]
    to_dir: Annotated[str, Key("toDir"), "The log dir after."]
    bytes: Annotated[int, "What is copied from disk to disk: the size of the replica."]
    reason: Annotated[Reason, "logDirs for a balance, draining for a log dir that is declared draining."]
    at: Annotated[Location | None, "File and line that ask for it."] = None
    is_size_known: Annotated[bool, "False: the size is not known, and bytes is a lower bound; not there: true."] = True
    replicas: Annotated[Ids, "The partition's ordered replicas meanwhile."] = ()

    @property
    def replica(self) -> tuple[TopicPartition, int]:
        """The replica that moves: its partition and its broker."""
        return self.topic_partition, self.broker

    def __str__(self) -> str:
        return f"{self.topic_partition} on broker {self.broker}"


@dataclass(frozen=True, slots=True)
class Election:
    """A preferred-leader election."""

    topic_partition: Annotated[TopicPartition, INLINE]
    leader: Annotated[int, "The first replica by then."]
