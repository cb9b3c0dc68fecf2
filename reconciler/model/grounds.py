"""What a plan keeps so that each of its moves can be explained without the cluster: brokers, rules, other choices."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.model.desired import BrokerState, Spread
from reconciler.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerGround:
    """What the planner knew of a broker: where it stands, what is declared of it, whether it was alive.

    `is_cordoned`: Kafka cordons it, and nothing declares it active.
    """

    rack: str = ""
    state: BrokerState = BrokerState.ACTIVE
    capacity: int = 1
    is_alive: bool = True
    is_cordoned: bool = False


@dataclass(frozen=True, slots=True)
class PlacementGround:
    """A placement as it was declared, its names sorted; None: not written. `is_assigned`: replicas one by one."""

    spread: Spread | None = None
    racks_only: tuple[str, ...] | None = None
    racks_leader: tuple[str, ...] | None = None
    brokers_only: tuple[int, ...] | None = None
    brokers_except: tuple[int, ...] = ()
    is_assigned: bool = False


@dataclass(frozen=True, slots=True)
class TopicGround:
    """A topic once the plan has run: its partitions, and which of the placements holds for it (None: undeclared)."""

    partitions: int
    placement: int | None = None


class Swap(NamedTuple):
    """One replica given up by one broker and taken by another."""

    giver: int
    taker: int


@dataclass(frozen=True, slots=True)
class OtherMove:
    """The smallest partition that stays where it is, though the same swap would have been allowed for it."""

    topic_partition: TopicPartition
    bytes: int


@dataclass(frozen=True, slots=True)
class Grounds:
    """Everything that decided, beside prices and shares: each thing once, however many moves it explains.

    `topics` holds every topic of the cluster once the plan has run. `instead` maps the swaps that balance asked for to
    the smallest other partition that could have moved so.
    """

    brokers: Mapping[int, BrokerGround] = field(default_factory=dict)
    placements: tuple[PlacementGround, ...] = ()
    topics: Mapping[str, TopicGround] = field(default_factory=dict)
    instead: Mapping[Swap, OtherMove] = field(default_factory=dict)
