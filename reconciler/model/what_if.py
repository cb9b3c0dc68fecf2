"""A plan for a state that is not: what is supposed to have changed, and what that does to partitions at once."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DrainBroker:
    """A broker is declared draining: `drain=5`."""

    broker_id: int

    def __str__(self) -> str:
        return f"drain={self.broker_id}"


@dataclass(frozen=True, slots=True)
class AddBroker:
    """An empty broker joins, in a rack or, where the cluster has none, in no rack: `add=9@b`."""

    broker_id: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"add={self.broker_id}@{self.rack}" if self.rack is not None else f"add={self.broker_id}"


@dataclass(frozen=True, slots=True)
class FailRack:
    """Every broker of a rack dies: `fail-rack=a`."""

    rack: str

    def __str__(self) -> str:
        return f"fail-rack={self.rack}"


@dataclass(frozen=True, slots=True)
class SetReplicationFactor:
    """A topic is declared with another replication factor: `replicationFactor=orders:3`."""

    topic: str
    replication_factor: int

    def __str__(self) -> str:
        return f"replicationFactor={self.topic}:{self.replication_factor}"


@dataclass(frozen=True, slots=True)
class SetPartitions:
    """A topic is declared with more partitions: `partitions=orders:24`."""

    topic: str
    partitions: int

    def __str__(self) -> str:
        return f"partitions={self.topic}:{self.partitions}"


Supposition = DrainBroker | AddBroker | FailRack | SetReplicationFactor | SetPartitions


@dataclass(frozen=True, slots=True)
class Affected:
    """How many partitions, and the names of the first few."""

    count: int = 0
    some: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Health:
    """Which partitions are not well.

    `under_replicated`: a replica is not in sync. `under_min_isr`: they have a leader, and too few replicas in sync for
    a producer with acks=all. `offline`: no leader, neither read nor written.
    """

    under_replicated: Affected = Affected()
    under_min_isr: Affected = Affected()
    offline: Affected = Affected()


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What a plan supposes, as it was written, what it takes for granted beside that, and how partitions fare.

    `before`: as observed. `at_once`: with all suppositions true and nothing moved yet. `after`: once the plan has run;
    None where there is no plan.
    """

    suppositions: tuple[str, ...]
    assumptions: tuple[str, ...] = ()
    before: Health = Health()
    at_once: Health = Health()
    after: Health | None = None
