"""Defines what a plan keeps so that its moves can be explained without the cluster: brokers, rules, other choices."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from reconciler.model.codec import ALWAYS, DISTINCT, AtLeast, By, Ids
from reconciler.model.desired import BrokerState, Spread
from reconciler.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerGround:
    """What the planner knew of a broker."""

    rack: Annotated[str, "Its rack; not there: none."] = ""
    state: Annotated[BrokerState, "Its declared state; not there: active."] = BrokerState.ACTIVE
    capacity: Annotated[int, AtLeast(1), "Its weight; not there: 1."] = 1
    weights: Annotated[
        Mapping[str, int],
        "Its weights by measure, those that differ from its capacity; that of disk may be the disks' size.",
    ] = field(default_factory=dict)
    foreign_bytes: Annotated[
        int, "Bytes on its disks that are not Kafka's, where disks weigh by their size; not there: 0."
    ] = 0
    is_alive: Annotated[bool, "Whether it was alive; not there: true."] = True
    is_cordoned: Annotated[bool, "Whether Kafka cordons it, and nothing declares it active; not there: false."] = False

    def weight(self, measure: str) -> int:
        """Return the weight of its fair share of that measure."""
        return self.weights.get(measure, self.capacity)


class RackReplicas(NamedTuple):
    """How many replicas of each partition a rack is to hold."""

    rack: str
    replicas: Annotated[int, AtLeast(1)]


@dataclass(frozen=True, slots=True)
class PlacementGround:
    """A placement as it was declared, its names sorted; what is not there was not written."""

    spread: Annotated[Spread | None, "How replicas spread over racks."] = None
    racks_only: Annotated[tuple[str, ...] | None, DISTINCT, "Racks that may hold replicas."] = None
    racks_leader: Annotated[tuple[str, ...] | None, DISTINCT, "Racks that preferred leaders stand in."] = None
    brokers_only: Annotated[Ids | None, "Brokers that may hold replicas."] = None
    brokers_except: Annotated[Ids, "Brokers that may not."] = ()
    is_assigned: Annotated[bool, "Replicas are written one by one."] = False
    racks_replicas: Annotated[tuple[RackReplicas, ...] | None, "How many replicas each rack holds exactly."] = None


UNDECLARED = -1
"""In place of a placement's position: the topic is not declared, or not touched."""


class TopicGround(NamedTuple):
    """A topic once the plan has run; `placement` is a position in the placements, or UNDECLARED."""

    name: str
    partitions: int
    placement: Annotated[int, AtLeast(UNDECLARED)] = UNDECLARED


class Swap(NamedTuple):
    """One replica given up by one broker and taken by another."""

    giver: int
    taker: int


class OtherMove(NamedTuple):
    """The smallest partition that stays where it is, though it could have moved from `giver` to `taker`."""

    giver: Annotated[int, "The broker that would give a replica up."]
    taker: Annotated[int, "The broker that would take it."]
    topic: Annotated[str, "The topic."]
    partition: Annotated[int, "The partition's number."]
    bytes: Annotated[int, "Bytes that would be copied."]

    @property
    def swap(self) -> Swap:
        """From which broker to which."""
        return Swap(self.giver, self.taker)

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class Grounds:
    """Everything that decided, beside prices and shares: each thing once, however many moves it explains."""

    brokers: Annotated[Mapping[int, BrokerGround], ALWAYS, "Broker to where it stood and what was declared of it."] = (
        field(default_factory=dict)
    )
    placements: Annotated[
        tuple[PlacementGround, ...], ALWAYS, "The different placements that topics are declared with."
    ] = ()
    topics: Annotated[
        Mapping[str, TopicGround],
        By("name"),
        ALWAYS,
        "Every topic once the plan has run: its name, its partitions, the position of its placement (-1: undeclared, "
        "or untouched).",
    ] = field(default_factory=dict)
    instead: Annotated[
        Mapping[Swap, OtherMove],
        By("swap"),
        ALWAYS,
        "Two brokers, and the smallest partition that stays though it could have moved from the one to the other: "
        "topic, partition, bytes.",
    ] = field(default_factory=dict)
