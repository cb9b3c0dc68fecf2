"""Where a run stands at one moment, beside the cluster that it runs on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.lock import purpose_of_run
from reconciler.model.move import Move
from reconciler.model.run import RunEvent
from reconciler.model.starting import Start
from reconciler.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class MoveStatus:
    """A move in flight and how much of it is copied."""

    move: Move
    copied_bytes: int


@dataclass(frozen=True, slots=True)
class Status:
    """A cluster as seen beside a plan.

    `stage`: the first that is not done, None where all are, or there is no plan. `blocking`: for each broker that is
    not safe to stop, the partitions that would go under min ISR without it. `foreign`: targets of the reassignments
    that are not the plan's. `start`: dead brokers, in the order in which to start them. `last_event`: the journal's
    last line. `is_open`: the journal tells of a start without an end. `holder`: who holds the cluster's lock, in words;
    `is_lock_told`: whether this user may see that.
    """

    time: datetime
    plan_id: str | None
    stage: int | None
    stages: int
    stages_done: int
    moves: tuple[MoveStatus, ...] = ()
    bytes_per_second: float | None = None
    eta_seconds: float | None = None
    broker_throttles: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    topic_throttles: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    foreign: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    safe_to_stop: tuple[int, ...] = ()
    blocking: Mapping[int, tuple[TopicPartition, ...]] = field(default_factory=dict)
    start: tuple[Start, ...] = ()
    last_event: RunEvent | None = None
    is_open: bool = False
    holder: str | None = None
    is_lock_told: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether no run is going on: all is done, or nothing moves and nobody holds the lock.

        Where the lock is not told, its journal must tell of the run's end.
        """
        is_over = self.is_lock_told or (self.last_event is not None and not self.is_open)
        return self.stage is None or (is_over and self.holder is None and not self.moves)

    @property
    def has_begun(self) -> bool:
        """Whether anything shows a run of the plan: a journal here, a stage done, a move in flight, or the lock."""
        is_running = self.holder is not None and self.holder.startswith(f"{purpose_of_run(self.plan_id or '')} ")
        return bool(self.last_event or self.stages_done or self.moves) or is_running

    @property
    def copied_bytes(self) -> int:
        """Bytes copied by the moves in flight."""
        return sum(move.copied_bytes for move in self.moves)

    @property
    def total_bytes(self) -> int:
        """Bytes that the moves in flight copy in all."""
        return sum(status.move.bytes for status in self.moves)
