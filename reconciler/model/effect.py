"""Classes what a change destroys, or may cost beside, with bytes and readers (contract, section 4)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from reconciler.model.codec import ALWAYS, HIDDEN, AtLeast, Key, When


class EffectClass(StrEnum):
    """The classes of destruction, the gravest first."""

    DESTROYS = "destroys"
    """Records are deleted, or may be: a topic, shorter retention, a clean-up policy that deletes, tiered data."""
    IRREVERSIBLE = "irreversible"
    """No records are lost, but Kafka cannot take it back: more partitions."""
    AVAILABILITY = "availability"
    """Producers or consumers may be refused: min.insync.replicas above what is in sync."""
    CLIENTS = "clients"
    """Clients may see something else: a smaller max.message.bytes, other timestamps."""
    HARMLESS = "harmless"

    @property
    def rank(self) -> int:
        """Its place among the classes, 0 for the gravest."""
        return list(EffectClass).index(self)


# What only an effect that destroys has; written whatever it is, as null says that it is unknown.
_OF_DESTRUCTION = When(lambda effect: effect.kind is EffectClass.DESTROYS)


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect of one change."""

    kind: Annotated[EffectClass, Key("class"), "The class, destroys being the gravest."]
    what: Annotated[str, "The effect in words."]
    key: Annotated[str | None, "The config that has it; not there: the change as a whole."] = None
    bytes: Annotated[int | None, ALWAYS, _OF_DESTRUCTION, "Bytes of all replicas that may go; null: unknown."] = None
    groups: Annotated[
        tuple[str, ...] | None, ALWAYS, _OF_DESTRUCTION, "Consumer groups that read the topic; null: not looked at."
    ] = None
    live_groups: Annotated[tuple[str, ...], ALWAYS, _OF_DESTRUCTION, "Those of them that have members."] = ()
    is_total: Annotated[bool, ALWAYS, _OF_DESTRUCTION, "Whether all records go, not only some."] = False


@dataclass(frozen=True, slots=True)
class Destruction:
    """What several changes destroy together."""

    topics: Annotated[int, AtLeast(1), "Topics that lose records."]
    bytes: Annotated[int, "Bytes of all their replicas that may go, as far as they are known."]
    is_size_known: Annotated[
        bool, When(lambda found: not found.is_size_known), "False: it is more, by an unknown amount."
    ]
    groups: Annotated[int | None, "Consumer groups that read them; null: not looked at."]
    is_most: Annotated[bool, HIDDEN] = False
    """Some of the bytes are an upper bound: they may go."""
