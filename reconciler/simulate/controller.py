"""What the controller knows beside the partition it changes: who is registered, who lives, which rules it follows."""

from dataclasses import dataclass

from reconciler.model.cluster import Cluster
from reconciler.model.config_rule import version_of

DEFAULT_VERSION = (4, 1)


@dataclass(frozen=True, slots=True)
class Controller:
    """The brokers that exist and live, and the Kafka version whose rules hold."""

    registered: frozenset[int]
    alive: frozenset[int]
    version: tuple[int, int] = DEFAULT_VERSION

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
    """Return the controller of a cluster; of an unknown version it follows the rules of 4.1."""
    return Controller(
        registered=frozenset(cluster.brokers),
        alive=frozenset(broker.id for broker in cluster.brokers.values() if not broker.is_fenced),
        version=version_of(cluster.kafka_version) or DEFAULT_VERSION,
    )
