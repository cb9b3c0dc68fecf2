"""Holds a plan's execution: the events of its journal, its progress, its result, its figures, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, ReconcilerError
from reconciler.model.tally import Tally
from reconciler.model.topic_partition import TopicPartition


class Outcome(StrEnum):
    """How a step went."""

    STARTED = "started"
    ONGOING = "ongoing"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One line of the run journal: what happened when, in which stage (0: before the first), in a run of which plan.

    `plan`: that plan's id, None while the event is not in a journal.
    """

    time: datetime
    stage: int
    step: str
    outcome: Outcome
    detail: Mapping[str, object] = field(default_factory=dict)
    plan: str | None = None


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Where a run stands in its stage; None is not known yet."""

    stage: int
    stages: int
    done_moves: int
    moves: int
    copied_bytes: int
    total_bytes: int
    bytes_per_second: float | None = None
    eta_seconds: float | None = None


class RunState(StrEnum):
    """How a run ended; CHECKED: it was a dry run, and nothing forbids it."""

    CHECKED = "checked"
    DONE = "done"
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run, or a cancel, came to."""

    state: RunState
    stages_done: int
    stages: int
    writes: int
    seconds: float
    messages: tuple[str, ...] = ()
    leftover_throttles: tuple[Problem, ...] = ()
    """Throttles that it could not take off; JSON and journals call them `debts`."""
    left: tuple[TopicPartition, ...] = ()
    """Partitions whose moves are left to do, or that a cancel could not take back."""
    tally: Tally | None = None
    """Where every move stands, None where nobody looked."""
    is_idle: bool = False
    """A cancel that found nothing to do, as its messages say."""
    undoes: str | None = None
    """The id of the plan that this one rolls back."""

    @property
    def told(self) -> tuple[str, ...]:
        """What a person is told of a cancel before something else: where the moves stand, and its messages."""
        moves = (str(self.tally),) if self.tally is not None and self.tally.moves else ()
        return () if self.is_idle else (*moves, *self.messages)


class RunEnded(ReconcilerError):
    """A run ended before its plan did; `result` says what it did and what it leaves, None where it had not begun."""

    def __init__(self, message: str, *, code: str | None = None, result: RunResult | None = None) -> None:
        super().__init__(message, code=code)
        self.result = result


class RunFailed(RunEnded):
    """A run met something it could not put right; the text says what, and how to go on."""

    code = "KR700"


class StoppedEarly(RunEnded):
    """A run ended on purpose with work left (exit code 5)."""

    code = "KR710"


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What undoing a plan came to: what was cancelled first, and each plan that ran, with its result.

    `cancelled` is None where it did not come to that; `is_declined`: somebody was shown a plan and did not want it;
    `is_simulated`: the cluster, and so its time, is simulated.
    """

    undone: Plan
    cancelled: RunResult | None = None
    runs: tuple[tuple[Plan, RunResult], ...] = ()
    is_declined: bool = False
    is_simulated: bool = False


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """A run in figures. Bytes and moves count over all stages; times are seconds, moments seconds since 1970.

    None is not known, or not yet: no rate before two looks, no exit code before the end, no success ever.
    """

    cluster_name: str
    plan_id: str
    started_at: float
    updated_at: float
    stages: int
    moves: int
    total_bytes: int
    estimated_seconds: int
    warnings: int
    is_active: bool = True
    stage: int = 0
    stages_done: int = 0
    done_moves: int = 0
    copied_bytes: int = 0
    bytes_per_second: float | None = None
    stage_seconds_left: float | None = None
    throttle_bytes_per_second: int | None = None
    leftover_throttles: int = 0
    exit_code: int | None = None
    last_success_at: float | None = None
