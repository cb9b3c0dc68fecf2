"""Holds where a run stands at one moment, beside the cluster that it runs on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from reconciler.model.codec import HIDDEN, INLINE, REQUIRED, Ids, Key, Value
from reconciler.model.lock import purpose_of_run
from reconciler.model.move import DirMove, Move
from reconciler.model.run import Outcome
from reconciler.model.several import Failed, Outcomes
from reconciler.model.starting import StartOrder
from reconciler.model.tally import Standing, Tally
from reconciler.model.topic_partition import PartitionObject, TopicPartition
from reconciler.model.vitals import Quorum


@dataclass(frozen=True, slots=True)
class MoveStatus:
    """A move in flight."""

    move: Annotated[Move, HIDDEN]
    copied_bytes: Annotated[int, "Bytes copied so far."]
    bytes_per_second: Annotated[
        float | None, REQUIRED, "Rate of copying since the look before; null where it is not known."
    ] = None

    @property
    def topic_partition(self) -> Annotated[TopicPartition, INLINE]:
        """The partition that is moved."""
        return self.move.topic_partition

    @property
    def from_replicas(self) -> Annotated[tuple[int, ...], Key("from"), "The replicas before."]:
        """The replicas before."""
        return self.move.from_replicas

    @property
    def to_replicas(self) -> Annotated[tuple[int, ...], Key("to"), "The replicas after."]:
        """The replicas after."""
        return self.move.to_replicas

    @property
    def bytes(self) -> Annotated[int, "Bytes to copy."]:
        """Bytes that the move copies in all."""
        return self.move.bytes

    @property
    def remaining_bytes(self) -> int:
        """Bytes that are still to copy."""
        return max(0, self.move.bytes - self.copied_bytes)

    @property
    def eta_seconds(self) -> Annotated[float | None, "Time left at that rate."]:
        """Time left at that rate, None where it is not known."""
        return self.remaining_bytes / self.bytes_per_second if self.bytes_per_second else None


@dataclass(frozen=True, slots=True)
class DirMoveStatus:
    """A replica that is being copied to another log dir of its broker."""

    move: Annotated[DirMove, HIDDEN]
    copied_bytes: Annotated[int, "Bytes copied so far."]
    bytes_per_second: Annotated[
        float | None, REQUIRED, "Rate of copying since the look before; null where it is not known."
    ] = None

    @property
    def topic_partition(self) -> Annotated[TopicPartition, INLINE]:
        """The partition whose replica is moved."""
        return self.move.topic_partition

    @property
    def broker(self) -> Annotated[int, "The broker."]:
        """The broker that has the replica."""
        return self.move.broker

    @property
    def from_dir(self) -> Annotated[str, Key("fromDir"), "The log dir before."]:
        """The log dir before."""
        return self.move.from_dir

    @property
    def to_dir(self) -> Annotated[str, Key("toDir"), "The log dir after."]:
        """The log dir after."""
        return self.move.to_dir

    @property
    def bytes(self) -> Annotated[int, "Bytes to copy."]:
        """Bytes that the move copies in all."""
        return self.move.bytes

    @property
    def remaining_bytes(self) -> int:
        """Bytes that are still to copy."""
        return max(0, self.move.bytes - self.copied_bytes)

    @property
    def eta_seconds(self) -> Annotated[float | None, "Time left at that rate."]:
        """Time left at that rate, None where it is not known."""
        return self.remaining_bytes / self.bytes_per_second if self.bytes_per_second else None


@dataclass(frozen=True, slots=True)
class LastEvent:
    """The last event of a run's journal, without its detail."""

    time: Annotated[datetime, "When, ISO 8601."]
    step: Annotated[str, "Which step."]
    outcome: Annotated[Outcome, "How it went."]


class Phase(StrEnum):
    """What has become of a run. DEAD: nobody runs it, its end is not told, and it has left moves or throttles."""

    NOT_BEGUN = "notBegun"
    RUNNING = "running"
    STOPPED = "stopped"
    DEAD = "dead"
    DONE = "done"
    ROLLED_BACK = "rolledBack"


@dataclass(frozen=True, slots=True)
class Status:
    """A cluster as seen beside a plan. None, which is null in JSON, is unknown, or none."""

    cluster_name: Annotated[str, Key("cluster"), "The cluster's name; its id where it was not named."]
    time: Annotated[datetime, "When it was looked at, ISO 8601."]
    plan_id: Annotated[str | None, "The plan that runs, or ran last."]
    stage: Annotated[int | None, "The first stage that is not done; null where all are, or there is no plan."]
    stages: Annotated[int, "Stages of the plan."]
    stages_done: Annotated[int, "Stages that are done."]
    moves: Annotated[tuple[MoveStatus, ...], REQUIRED, "Moves in flight."] = ()
    """Those alone; `tally` has the others."""
    dir_moves: Annotated[
        tuple[DirMoveStatus, ...], Key("logDirMoves"), "Replicas on their way to other log dirs; not there: none."
    ] = ()
    bytes_per_second: Annotated[float | None, REQUIRED, "Rate of copying."] = None
    eta_seconds: Annotated[float | None, REQUIRED, "Time left for the stage."] = None
    broker_throttles: Annotated[
        Mapping[int, Annotated[Mapping[str, str], "Keys and values."]], REQUIRED, "Throttles on brokers, by broker id."
    ] = field(default_factory=dict)
    topic_throttles: Annotated[
        Mapping[str, Annotated[Mapping[str, str], "Keys and values."]], REQUIRED, "Throttles on topics, by topic."
    ] = field(default_factory=dict)
    foreign: Annotated[
        Mapping[TopicPartition, tuple[int, ...]],
        Value("to", "Where it goes."),
        REQUIRED,
        "Reassignments that are not the plan's: somebody else started them.",
    ] = field(default_factory=dict)
    safe_to_stop: Annotated[Ids, REQUIRED, "Brokers that may be stopped, one at a time."] = ()
    blocking: Annotated[
        Mapping[int, Annotated[tuple[PartitionObject, ...], "Partitions."]],
        REQUIRED,
        "By broker id, the partitions that would be short of replicas or leaderless without it.",
    ] = field(default_factory=dict)
    start: StartOrder = ()
    quorum: Annotated[
        Quorum | None, REQUIRED, "The active controller and its quorum; null where this user may not see it."
    ] = None
    last_event: Annotated[LastEvent | None, REQUIRED, "The last line of the run's journal."] = None
    is_open: Annotated[bool, REQUIRED, "The journal tells of a start without an end."] = False
    locked_by: Annotated[
        str | None, REQUIRED, "Who holds the cluster's lock, in words; null also where this user may not see it."
    ] = None
    is_lock_told: Annotated[bool, HIDDEN] = False
    """Whether this user may see who holds the lock."""
    tally: Annotated[Tally | None, HIDDEN] = None
    leftovers: Annotated[tuple[str, ...], HIDDEN] = ()
    """What the run has left of throttles and cordons: where, and which key."""
    """Throttles, or cordons, that look like the plan's are on."""
    undoes: Annotated[str | None, REQUIRED, "The id of the plan that this one rolls back."] = None
    is_rolled_back: Annotated[bool, HIDDEN] = False
    """The journal tells of moves that were done, and none of the plan is any more."""
    started_by: Annotated[str | None, REQUIRED, "Who started the run, as its record in the cluster tells."] = None
    started_at: Annotated[str | None, REQUIRED, "When, ISO 8601, as its record in the cluster tells."] = None
    throttle_bytes_per_second: Annotated[
        int | None, REQUIRED, "The rate that `reconciler throttle` asked it for; null: the plan's own holds."
    ] = None

    @property
    def move_counts(
        self,
    ) -> Annotated[
        Mapping[Standing, int] | None,
        "How many moves of the plan stand how; null without a plan. What was taken back is to do again.",
    ]:
        """How many moves of the plan stand how."""
        return None if self.tally is None else self.tally.counts

    @property
    def state(
        self,
    ) -> Annotated[
        Phase | None,
        "What has become of the run; dead: nobody runs it, its end is not told, and it left moves in flight or "
        "throttles. Null without a plan.",
    ]:
        """What has become of the run, None without a plan."""
        if self.plan_id is None:
            return None
        if self.is_running:
            return Phase.RUNNING
        if (self.in_flight or self.leftovers) and self.has_begun and not self._is_end_told:
            return Phase.DEAD
        if self.stage is None:
            return Phase.DONE if self.undoes is None else Phase.ROLLED_BACK
        if self.is_rolled_back:
            return Phase.ROLLED_BACK
        return Phase.STOPPED if self.has_begun else Phase.NOT_BEGUN

    @property
    def is_running(self) -> bool:
        """Whether somebody holds the lock for that plan; where the lock is not told, whether its run seems to go on."""
        if self.locked_by is None and not self.is_lock_told:
            return self.stage is not None and (bool(self.in_flight) or self.is_open)
        return self.locked_by is not None and f" of plan {self.plan_id} " in self.locked_by

    @property
    def _is_end_told(self) -> bool:
        return self.last_event is not None and not self.is_open

    @property
    def in_flight(self) -> tuple[MoveStatus | DirMoveStatus, ...]:
        """All that is in flight: between brokers, and between log dirs."""
        return (*self.moves, *self.dir_moves)

    @property
    def slowest(self) -> tuple[MoveStatus | DirMoveStatus, ...]:
        """The moves in flight, those that will take longest first: by time left, else by bytes left."""
        return tuple(sorted(self.in_flight, key=_slowest_first))

    @property
    def has_ended(self) -> bool:
        """Whether no run is going on: all is done, or nothing moves and nobody holds the lock.

        Where the lock is not told, its journal must tell of the run's end.
        """
        is_over = self.is_lock_told or self._is_end_told
        return self.stage is None or (is_over and self.locked_by is None and not self.in_flight)

    @property
    def has_begun(self) -> bool:
        """Whether anything shows a run of the plan: a journal, a record, a stage done, a move in flight, the lock."""
        is_running = self.locked_by is not None and self.locked_by.startswith(f"{purpose_of_run(self.plan_id or '')} ")
        return bool(self.last_event or self.started_by or self.stages_done or self.in_flight) or is_running

    @property
    def copied_bytes(self) -> int:
        """Bytes copied by the moves in flight."""
        return sum(move.copied_bytes for move in self.in_flight)

    @property
    def total_bytes(self) -> int:
        """Bytes that the moves in flight copy in all."""
        return sum(status.move.bytes for status in self.in_flight)


def _slowest_first(status: MoveStatus | DirMoveStatus) -> tuple[float, int, TopicPartition]:
    """Order by time left; what stands still comes first, and where no rate is known, bytes decide."""
    is_still = status.bytes_per_second == 0 and status.remaining_bytes > 0
    seconds = math.inf if is_still else status.eta_seconds or 0.0
    return -seconds, -status.remaining_bytes, status.move.topic_partition


@dataclass(frozen=True, slots=True)
class StatusesReport:
    """What `status` tells of several clusters."""

    clusters: Annotated[tuple[Status, ...], "Where the run on each stands."]
    failed: Failed
    summary: Outcomes
