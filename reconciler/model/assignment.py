"""Describes who owns which partition in a consumer group: what an assignor is given, and what it returns."""

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Protocol

from reconciler.model.codec import FILLED, NULLABLE, AtLeast, Check, Closed, Key, Malformed, Of, Pattern

MAX_PARTITIONS = 1_000_000
"""Of all topics that one scenario has."""
_TOPIC_ID = re.compile("^[A-Za-z0-9_-]{22}$")


def _refuse_no_base64(text: str | None) -> None:
    try:
        b64decode(text or "", validate=True)
    except ValueError:
        raise Malformed("", "must be bytes in base64, not {}", text) from None


BASE64_FORM = Pattern("^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")
BASE64 = Check(_refuse_no_base64)
"""Together: a text stands for bytes."""
Assignment = Mapping[str, Mapping[str, tuple[int, ...]]]
"""Member id -> topic -> its partitions, ascending. Every member is there; a topic without partitions is not."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member as its group's assignor sees it.

    `owned` maps a topic to the partitions that the member brings from before, `generation` says from which rebalance
    (-1: none). `instance_id` is `group.instance.id` of a static member, `rack` its `client.rack`. `user_data` is what
    the member's own assignor class sent with its subscription (Kafka's `subscriptionUserData`), None for nothing.
    `client_id` and `host` are empty where unknown; Kafka tells its `assign` neither, so a class that is to run there
    too has them in its user data.
    """

    member_id: str
    subscription: tuple[str, ...]
    instance_id: str | None = None
    rack: str | None = None
    owned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    generation: int = -1
    user_data: bytes | None = None
    client_id: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class Received:
    """What one member is told after a rebalance, as Kafka's `onAssignment(Assignment, ConsumerGroupMetadata)` tells it.

    `partitions` maps a topic to all that the member owns now, `user_data` is what `assign` returned for it.
    `generation` is counted from the first rebalance of the simulation: no client can ask for the real one. `group_id`
    is the group's, of a scenario its `id`, None where it has none.
    """

    member_id: str
    partitions: Mapping[str, tuple[int, ...]]
    user_data: bytes | None
    generation: int
    group_id: str | None = None
    instance_id: str | None = None


def _refuse_no_topic_id(topic_id: str | None) -> None:
    if topic_id is not None and not _TOPIC_ID.fullmatch(topic_id):
        raise Malformed("", "must be a topic id as Kafka writes it, 22 characters of base64, not {}", topic_id)


@dataclass(frozen=True, slots=True)
class SubscribedTopic:
    """A topic as an assignor sees it.

    `topic_id` is Kafka's base64 text (22 characters), which decides the order inside the server's uniform assignor.
    `racks` holds, for each partition, the racks of its replicas; it is empty where they are unknown.
    """

    FORM: ClassVar = Closed()

    name: Annotated[str, FILLED, "Its name."]
    partitions: Annotated[int, AtLeast(0, MAX_PARTITIONS), "How many partitions it has."]
    topic_id: Annotated[
        str | None,
        Key("id"),
        Pattern(_TOPIC_ID.pattern),
        Check(_refuse_no_topic_id),
        "Its id as Kafka writes it, base64 of 16 bytes; decides the order of topics inside server-uniform alone.",
    ] = None
    racks: Annotated[
        tuple[Annotated[frozenset[str], Of("racks"), "The racks of one partition's replicas."], ...],
        NULLABLE,
        "For each partition, in order, the racks of its replicas; left out where they are unknown.",
    ] = ()


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
