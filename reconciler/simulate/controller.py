"""Says which rules the simulated controller follows, and what form its answers have."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from reconciler.model.cluster import CORDONS_REFUSED_SINCE, Cluster
from reconciler.model.config_rule import version_of

K = TypeVar("K", bound=Hashable)

DEFAULT_VERSION = (4, 1)
"""For a cluster of unknown version: its rules are the stricter ones, so that no plan counts on what 4.3 relaxed."""

MAX_RECORDS = 10_000
"""How many records the controller writes for one request: Kafka's MAX_RECORDS_PER_USER_OP."""


@dataclass(frozen=True, slots=True)
class Denied:
    """Kafka's refusal of one item: the protocol's name of the error, and its text where there is more to say."""

    error: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[K]):
    """The cluster after a request; `answers` maps each item to its refusal, None where it was accepted."""

    cluster: Cluster
    answers: Mapping[K, Denied | None]


@dataclass(frozen=True, slots=True)
class Controller:
    """What the controller knows beside the partition it changes: the brokers that exist and live, and its version."""

    registered: frozenset[int]
    alive: frozenset[int]
    version: tuple[int, int] = DEFAULT_VERSION
    cordoned: frozenset[int] = frozenset()
    """The brokers that no list may name, as all their log dirs are cordoned (KIP-1066; since 4.4)."""

    @property
    def is_every_target_awaited(self) -> bool:
        """Whether each target replica, kept ones too, must be in sync before any reassignment ends (until 4.2).

        From 4.3 on only the added ones must, unless more replicas go than come.
        """
        return self.version < (4, 3)

    @property
    def has_eligible_leaders(self) -> bool:
        """Whether it keeps who left a small ISR as eligible to lead (KIP-966), so that an ISR may be empty."""
        return self.version >= (4, 1)

    @property
    def has_replication_factor_guard(self) -> bool:
        """Whether a request may forbid a change of the replication factor (KIP-860)."""
        return self.version >= (4, 1)


def controller_of(cluster: Cluster) -> Controller:
    """Return the controller of a cluster."""
    version = version_of(cluster.kafka_version) or DEFAULT_VERSION
    cordoned = (broker.id for broker in cluster.brokers.values() if broker.is_cordoned)
    return Controller(
        registered=frozenset(cluster.brokers),
        alive=frozenset(broker.id for broker in cluster.brokers.values() if not broker.is_fenced),
        version=version,
        cordoned=frozenset(cordoned) if version >= CORDONS_REFUSED_SINCE else frozenset(),
    )
