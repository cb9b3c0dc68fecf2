"""Describes who owns which partition in a consumer group: what an assignor is given, and what it returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Assignment = Mapping[str, Mapping[str, tuple[int, ...]]]
"""Member id -> topic -> its partitions, ascending. Every member is there; a topic without partitions is not."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member as its group's assignor sees it.

    `owned` maps a topic to the partitions that the member brings from before, `generation` says from which rebalance
    (-1: none). `instance_id` is `group.instance.id` of a static member, `rack` its `client.rack`.
    """

    member_id: str
    subscription: tuple[str, ...]
    instance_id: str | None = None
    rack: str | None = None
    owned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    generation: int = -1


@dataclass(frozen=True, slots=True)
class SubscribedTopic:
    """A topic as an assignor sees it.

    `topic_id` is Kafka's base64 text (22 characters), which decides the order inside the server's uniform assignor.
    `racks` holds, for each partition, the racks of its replicas; it is empty where they are unknown.
    """

    name: str
    partitions: int
    topic_id: str | None = None
    racks: tuple[frozenset[str], ...] = ()


class Assignor(Protocol):
    """One way to hand out partitions; a class of a user's own needs only this.

    `assign` is one rebalance: a pure function of the members, in the order in which they joined, and of the topics that
    exist, by name. It returns what each member gets from this rebalance; nothing is owned twice, and no member gets a
    partition of a topic that it does not subscribe to.
    """

    @property
    def name(self) -> str:
        """Return the assignor's name, as `partition.assignment.strategy` has it."""

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        """Return what each member gets."""
