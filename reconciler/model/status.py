"""Where a run stands at one moment, beside the cluster that it runs on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.model.move import Move
from reconciler.model.run import RunEvent
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
    that are not the plan's. `last_event`: the journal's last line. `is_open`: the journal tells
    of a start without an end. `holder`: who holds the cluster's lock, in words.
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
    last_event: RunEvent | None = None
    is_open: bool = False
    holder: str | None = None

    @property
    def has_ended(self) -> bool:
        """Whether there is no run to wait for: none is known, all is done, or its journal tells that it stopped."""
        is_over = self.last_event is not None and not self.is_open and not self.moves and self.holder is None
        return self.stage is None or is_over

    @property
    def copied_bytes(self) -> int:
        """Bytes copied by the moves in flight."""
        return sum(move.copied_bytes for move in self.moves)

    @property
    def total_bytes(self) -> int:
        """Bytes that the moves in flight copy in all."""
        return sum(status.move.bytes for status in self.moves)
