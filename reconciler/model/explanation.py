"""Why a plan moves one partition as it does: as data, so that text and JSON say the same."""

from dataclasses import dataclass
from enum import StrEnum

from reconciler.model.grounds import OtherMove
from reconciler.model.move import Reason
from reconciler.model.problem import Location
from reconciler.model.topic_partition import TopicPartition


class Verdict(StrEnum):
    """Why another broker was not taken."""

    LESS_EVEN = "lessEven"
    COSTS_MORE = "costsMore"
    AS_GOOD = "asGood"
    LOADS = "loads"


class Cause(StrEnum):
    """Why a broker gives its replica up, or why the preferred leader changes."""

    DEAD = "dead"
    DRAINING = "draining"
    ABSENT = "absent"
    NOT_ALLOWED = "notAllowed"
    ASSIGNMENT = "assignment"
    FEWER_REPLICAS = "fewerReplicas"
    RACKS = "racks"
    BALANCE = "balance"
    MAINTENANCE = "maintenance"
    LEADER_RACKS = "leaderRacks"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Counts:
    """A broker's replicas, or preferred leaders, now and once the plan has run; `share`: its fair share then.

    `bytes_before` and `bytes_after` are told where the plan balances loads, and are known.
    """

    before: int
    after: int
    share: float | None = None
    bytes_before: int | None = None
    bytes_after: int | None = None


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another broker that the rules would have allowed in the same place.

    `extra`: by how much more the whole plan would copy at least, in bytes, or in replicas where sizes are unknown.
    """

    broker_id: int
    verdict: Verdict
    counts: Counts
    extra: int = 0


@dataclass(frozen=True, slots=True)
class Barred:
    """A broker that may not get a replica, and why not: dead, draining, cordoned, brokers.only and so on."""

    broker_id: int
    why: str


@dataclass(frozen=True, slots=True)
class Added:
    """A broker that gets a replica.

    `in_place_of`: who gives one up for it. `full`: each rack that holds all it may, with the brokers that hold it.
    `alternatives`: the nearest few others, `others` how many more there are. `instead`: the smallest other partition
    that the same two brokers could have swapped, where balance asked for it.
    """

    broker_id: int
    rack: str
    counts: Counts
    in_place_of: int | None = None
    full: tuple[tuple[str, tuple[int, ...]], ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    others: int = 0
    barred: tuple[Barred, ...] = ()
    instead: OtherMove | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    """A broker that gives its replica up."""

    broker_id: int
    cause: Cause
    counts: Counts


@dataclass(frozen=True, slots=True)
class NewLeader:
    """Another preferred leader; `old` is None for a new partition. Counts are of preferred leaders."""

    old: int | None
    new: int
    cause: Cause
    old_counts: Counts | None
    new_counts: Counts


@dataclass(frozen=True, slots=True)
class StepOfPartition:
    """What one stage does to the partition: copies to `added`, drops `removed`, or elects `elected`.

    `source` leads it when the stage begins, and so serves the copies; None: nobody does.
    """

    stage: int
    to_replicas: tuple[int, ...] = ()
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    bytes: int = 0
    source: int | None = None
    elected: int | None = None
    is_created: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """One partition's whole way through a plan, and why; without steps, the plan does not touch it.

    `is_least`: the plan's proof shows that no plan which keeps the rules and the balance copies less.
    """

    topic_partition: TopicPartition
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    steps: tuple[StepOfPartition, ...] = ()
    bytes: int = 0
    is_size_known: bool = True
    reason: Reason | None = None
    at: Location | None = None
    added: tuple[Added, ...] = ()
    removed: tuple[Removed, ...] = ()
    leader: NewLeader | None = None
    is_least: bool = False
    is_counted_in_replicas: bool = False
