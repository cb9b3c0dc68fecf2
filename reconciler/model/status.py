"""Holds where a run stands at one moment, beside the cluster that it runs on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from reconciler.model.lock import purpose_of_run
from reconciler.model.move import Move
from reconciler.model.run import RunEvent
from reconciler.model.starting import Start
from reconciler.model.tally import Tally
from reconciler.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class MoveStatus:
    """A move in flight, how much of it is copied, and how fast it went since the look before (None: not known)."""

    move: Move
    copied_bytes: int
    bytes_per_second: float | None = None

    @property
    def remaining_bytes(self) -> int:
        """Bytes that are still to copy."""
        return max(0, self.move.bytes - self.copied_bytes)

    @property
    def eta_seconds(self) -> float | None:
        """Time left at that rate, None where it is not known."""
        return self.remaining_bytes / self.bytes_per_second if self.bytes_per_second else None


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
    """A cluster as seen beside a plan."""

    time: datetime
    plan_id: str | None
    stage: int | None
    """The first that is not done, None where all are, or there is no plan."""
    stages: int
    stages_done: int
    moves: tuple[MoveStatus, ...] = ()
    """Those in flight alone; `tally` has the others."""
    bytes_per_second: float | None = None
    eta_seconds: float | None = None
    broker_throttles: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    topic_throttles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    foreign: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """Targets of the reassignments that are not the plan's."""
    safe_to_stop: tuple[int, ...] = ()
    blocking: Mapping[int, tuple[TopicPartition, ...]] = field(default_factory=dict)
    """For each broker that is not safe to stop, the partitions that would go under min ISR without it."""
    start: tuple[Start, ...] = ()
    """Dead brokers, in the order in which to start them."""
    last_event: RunEvent | None = None
    """The journal's last line."""
    is_open: bool = False
    """The journal tells of a start without an end."""
    holder: str | None = None
    """Who holds the cluster's lock, in words; None also where this user may not see it."""
    is_lock_told: bool = False
    """Whether this user may see who holds the lock."""
    tally: Tally | None = None
    has_leftovers: bool = False
    """Throttles, or cordons, that look like the plan's are on."""
    undoes: str | None = None
    """The id of the plan that this one rolls back."""
    is_rolled_back: bool = False
    """The journal tells of moves that were done, and none of the plan is any more."""
    started_by: str | None = None
    """As the run's record in the cluster tells, like the two below."""
    started_at: str | None = None
    """In ISO 8601."""
    rate_asked: int | None = None
    """Bytes per second, by `throttle`."""

    @property
    def phase(self) -> Phase | None:
        """What has become of the run, None without a plan."""
        if self.plan_id is None:
            return None
        if self.is_running:
            return Phase.RUNNING
        if (self.moves or self.has_leftovers) and self.has_begun and not self._is_end_told:
            return Phase.DEAD
        if self.stage is None:
            return Phase.DONE if self.undoes is None else Phase.ROLLED_BACK
        if self.is_rolled_back:
            return Phase.ROLLED_BACK
        return Phase.STOPPED if self.has_begun else Phase.NOT_BEGUN

    @property
    def is_running(self) -> bool:
        """Whether somebody holds the lock for that plan; where the lock is not told, whether its run seems to go on."""
        if self.holder is None and not self.is_lock_told:
            return self.stage is not None and (bool(self.moves) or self.is_open)
        return self.holder is not None and f" of plan {self.plan_id} " in self.holder

    @property
    def _is_end_told(self) -> bool:
        return self.last_event is not None and not self.is_open

    @property
    def slowest(self) -> tuple[MoveStatus, ...]:
        """The moves in flight, those that will take longest first: by time left, else by bytes left."""
        return tuple(sorted(self.moves, key=_slowest_first))

    @property
    def has_ended(self) -> bool:
        """Whether no run is going on: all is done, or nothing moves and nobody holds the lock.

        Where the lock is not told, its journal must tell of the run's end.
        """
        is_over = self.is_lock_told or self._is_end_told
        return self.stage is None or (is_over and self.holder is None and not self.moves)

    @property
    def has_begun(self) -> bool:
        """Whether anything shows a run of the plan: a journal, a record, a stage done, a move in flight, the lock."""
        is_running = self.holder is not None and self.holder.startswith(f"{purpose_of_run(self.plan_id or '')} ")
        return bool(self.last_event or self.started_by or self.stages_done or self.moves) or is_running

    @property
    def copied_bytes(self) -> int:
        """Bytes copied by the moves in flight."""
        return sum(move.copied_bytes for move in self.moves)

    @property
    def total_bytes(self) -> int:
        """Bytes that the moves in flight copy in all."""
        return sum(status.move.bytes for status in self.moves)


def _slowest_first(status: MoveStatus) -> tuple[float, int, TopicPartition]:
    """Order by time left; what stands still comes first, and where no rate is known, bytes decide."""
    is_still = status.bytes_per_second == 0 and status.remaining_bytes > 0
    seconds = math.inf if is_still else status.eta_seconds or 0.0
    return -seconds, -status.remaining_bytes, status.move.topic_partition
