"""What a change destroys, or may cost beside: its class, in words, with bytes and readers (contract, section 4)."""

from dataclasses import dataclass
from enum import StrEnum


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
    def gravity(self) -> int:
        """Its place among the classes, 0 for the gravest."""
        return list(EffectClass).index(self)


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect of one change. `what`: it in words. `key`: the config that has it, None for the change as a whole.

    Of what destroys, `bytes` are those of all replicas that may go, None where they are unknown; `groups` are the
    consumer groups that read the topic, None where groups were not looked at; `live_groups` those with members now.
    `is_total`: not only some records go but all that there are.
    """

    kind: EffectClass
    what: str
    key: str | None = None
    bytes: int | None = None
    groups: tuple[str, ...] | None = None
    live_groups: tuple[str, ...] = ()
    is_total: bool = False


@dataclass(frozen=True, slots=True)
class Destruction:
    """What several changes destroy together. `bytes`: of all replicas, at least where `is_size_known` is false.

    `is_most`: some of it is an upper bound. `groups`: how many consumer groups read what is destroyed, None where
    groups were not looked at.
    """

    topics: int
    bytes: int
    is_size_known: bool
    groups: int | None
    is_most: bool = False
