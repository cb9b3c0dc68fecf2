"""Holds why a plan moves one partition as it does: as data, so that text and JSON say the same."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, NamedTuple

from reconciler.model.codec import HIDDEN, INLINE, OBJECT, REQUIRED, Ids, Key, When
from reconciler.model.grounds import OtherMove
from reconciler.model.move import DirMove, Reason
from reconciler.model.problem import Location
from reconciler.model.topic_partition import TopicPartition


class Judgement(StrEnum):
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
    """What a broker holds, replicas or preferred leaders."""

    before: Annotated[int, "Today."]
    after: Annotated[int, "Once the plan has run."]
    share: Annotated[float | None, REQUIRED, "Its fair share then; null: it is not to hold anything."] = None
    bytes_before: Annotated[int | None, "Bytes today; told where the plan balances loads."] = None
    bytes_after: Annotated[int | None, "Bytes once the plan has run."] = None


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another broker that the rules would have allowed in the same place."""

    broker_id: Annotated[int, Key("broker"), "The broker."]
    verdict: Annotated[Judgement, "Why not that one."]
    counts: Annotated[Counts, Key("replicas"), "Replicas that it holds."]
    extra: Annotated[int, HIDDEN] = 0
    """By how much more the whole plan would copy at least: bytes, or replicas where sizes are unknown."""
    is_counted_in_replicas: Annotated[bool, HIDDEN] = False

    @property
    def at_least_more_bytes(
        self,
    ) -> Annotated[
        int, When(lambda one: not one.is_counted_in_replicas), "By how much more the plan would copy at least."
    ]:
        """By how many bytes more the whole plan would copy at least."""
        return self.extra

    @property
    def at_least_more_replicas(
        self,
    ) -> Annotated[int, When(lambda one: one.is_counted_in_replicas), "The same in replicas, where sizes are unknown."]:
        """By how many replicas more the whole plan would copy at least."""
        return self.extra


@dataclass(frozen=True, slots=True)
class Barred:
    """A broker that may not get a replica."""

    broker_id: Annotated[int, Key("broker"), "The broker."]
    why: Annotated[str, "What forbids it: not alive, draining, cordoned, not in brokers.only and so on."]


class FullRack(NamedTuple):
    """A rack that holds all that it may of the partition."""

    rack: Annotated[str, "The rack; empty: the brokers without one."]
    brokers: Annotated[Ids, "Who holds a replica there."]


@dataclass(frozen=True, slots=True)
class Added:
    """A broker that gets a replica, with what could have taken it instead."""

    broker_id: Annotated[int, Key("broker"), "The broker."]
    rack: Annotated[str, "Its rack; empty: none."]
    counts: Annotated[Counts, Key("replicas"), "Replicas that it holds."]
    in_place_of: Annotated[int | None, REQUIRED, "The broker whose replica it takes over; null: nobody's."] = None
    full: Annotated[
        tuple[Annotated[FullRack, OBJECT], ...], Key("fullRacks"), REQUIRED, "Racks that hold all they may."
    ] = ()
    alternatives: Annotated[tuple[Alternative, ...], REQUIRED, "The nearest few others."] = ()
    others: Annotated[int, Key("otherAlternatives"), REQUIRED, "How many more there are."] = 0
    barred: Annotated[tuple[Barred, ...], REQUIRED, "Brokers that a rule forbids."] = ()
    instead: Annotated[
        OtherMove | None,
        OBJECT,
        REQUIRED,
        "The smallest other partition that the same two brokers could have swapped, where balance asked for it.",
    ] = None


@dataclass(frozen=True, slots=True)
class Removed:
    """A broker that gives its replica up."""

    broker_id: Annotated[int, Key("broker"), "The broker."]
    cause: Annotated[Cause, "Why it gives its replica up."]
    counts: Annotated[Counts, Key("replicas"), "Replicas that it holds."]


@dataclass(frozen=True, slots=True)
class NewLeader:
    """A change of the preferred leader."""

    old: Annotated[int | None, Key("from"), "The preferred leader before; null for a new partition."]
    new: Annotated[int, Key("to"), "After."]
    cause: Annotated[Cause, "Why."]
    old_counts: Annotated[Counts | None, Key("leadersOfFrom"), "Preferred leaders of the first."]
    new_counts: Annotated[Counts, Key("leadersOfTo"), "Preferred leaders of the second."]


class StepKind(StrEnum):
    """What a stage does to a partition."""

    CREATE = "create"
    REASSIGN = "reassign"
    ELECT = "elect"
    LOG_DIRS = "logDirs"


@dataclass(frozen=True, slots=True)
class StepOfPartition:
    """What one stage does to the partition."""

    stage: Annotated[int, "The stage."]
    to_replicas: Annotated[tuple[int, ...], Key("to"), "Its ordered replicas then."] = ()
    added: Annotated[tuple[int, ...], "Brokers that get a replica."] = ()
    removed: Annotated[tuple[int, ...], "Brokers that give theirs up."] = ()
    bytes: Annotated[int, "Bytes copied."] = 0
    source: Annotated[
        int | None,
        Key("sourceBroker"),
        "Who leads when the stage begins, and so serves the copies; not there: nobody does.",
    ] = None
    elected: Annotated[int | None, Key("leader"), "Who is elected."] = None
    log_dirs: Annotated[
        tuple[DirMove, ...], Key("logDirs"), "Replicas that go to another log dir of their broker."
    ] = ()
    is_created: Annotated[bool, HIDDEN] = False

    @property
    def kind(self) -> Annotated[StepKind, "What is done."]:
        """What is done."""
        if self.elected is not None:
            return StepKind.ELECT
        if self.log_dirs:
            return StepKind.LOG_DIRS
        return StepKind.CREATE if self.is_created else StepKind.REASSIGN


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a partition goes where it goes; without steps the plan does not touch it."""

    topic_partition: Annotated[TopicPartition, INLINE]
    before: Annotated[tuple[int, ...], Key("from"), REQUIRED, "Ordered replicas before."] = ()
    after: Annotated[tuple[int, ...], Key("to"), REQUIRED, "Ordered replicas after."] = ()
    steps: Annotated[tuple[StepOfPartition, ...], REQUIRED, "What is done, in order."] = ()
    bytes: Annotated[int, REQUIRED, "Bytes copied."] = 0
    is_size_known: Annotated[bool, REQUIRED, "Its size is known; if not, bytes are the replicas' share of what is."] = (
        True
    )
    reason: Annotated[Reason | None, REQUIRED, "Why it moves: the reason of its first move."] = None
    at: Annotated[Location | None, REQUIRED, "The file and line that ask for it."] = None
    added: Annotated[tuple[Added, ...], REQUIRED, "New replicas."] = ()
    removed: Annotated[tuple[Removed, ...], REQUIRED, "Replicas that go."] = ()
    leader: Annotated[NewLeader | None, REQUIRED, "A change of its preferred leader; null for none."] = None
    is_least: Annotated[bool, REQUIRED, "No plan that keeps the rules and the balance copies less in all."] = False

    @property
    def is_touched(self) -> Annotated[bool, "The plan does something to it; if not, little else is told."]:
        """Whether the plan does anything to it."""
        return bool(self.steps)
