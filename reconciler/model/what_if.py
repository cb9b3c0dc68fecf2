"""Describes a plan for a state that is not: what is supposed to have changed, and what that does at once."""

from dataclasses import dataclass
from typing import Annotated

from reconciler.model.codec import FILLED, REQUIRED

ESCAPED_COMMA = "\\,"
"""How a comma in the name of a rack is written, as commas stand between suppositions."""


def _written(rack: str) -> str:
    return rack.replace(",", ESCAPED_COMMA)


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
        return f"add={self.broker_id}" if self.rack is None else f"add={self.broker_id}@{_written(self.rack)}"


@dataclass(frozen=True, slots=True)
class FailBroker:
    """A broker dies: `fail=3`."""

    broker_id: int

    def __str__(self) -> str:
        return f"fail={self.broker_id}"


@dataclass(frozen=True, slots=True)
class FailRack:
    """Every broker of a rack dies: `fail-rack=a`."""

    rack: str

    def __str__(self) -> str:
        return f"fail-rack={_written(self.rack)}"


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


Supposition = DrainBroker | AddBroker | FailBroker | FailRack | SetReplicationFactor | SetPartitions


@dataclass(frozen=True, slots=True)
class Affected:
    """Some partitions."""

    count: Annotated[int, REQUIRED, "How many partitions."] = 0
    some: Annotated[tuple[str, ...], REQUIRED, "The first few of them."] = ()


@dataclass(frozen=True, slots=True)
class Health:
    """Which partitions are not well."""

    under_replicated: Annotated[Affected, REQUIRED, "A replica is not in sync."] = Affected()
    under_min_isr: Annotated[Affected, REQUIRED, "Led, with too few replicas in sync for a producer with acks=all."] = (
        Affected()
    )
    offline: Annotated[Affected, REQUIRED, "Without a leader: neither read nor written."] = Affected()


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What a plan supposes. Such a plan is never applied."""

    suppositions: Annotated[tuple[str, ...], FILLED, "As they were written."]
    assumptions: Annotated[tuple[str, ...], REQUIRED, "What was taken for granted beside them."] = ()
    before: Annotated[Health, REQUIRED, "Partitions as observed."] = Health()
    at_once: Annotated[Health, REQUIRED, "Partitions with all suppositions true and nothing moved yet."] = Health()
    after: Annotated[Health | None, "Partitions once the plan has run; not there: there is no plan."] = None
