"""A plan's execution, as it is recorded and told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

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
    """Where a run stands: bytes copied of the stage's bytes, per second, seconds to go (None: not known yet)."""

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
    """What a run, or a cancel, left: what it wrote, what is still owed (`debts`: throttles it could not remove).

    `left`: partitions whose moves are left to do, or that a cancel could not take back. `tally`: where every move
    stands, None where nobody looked. `is_idle`: a cancel that found nothing to do, as its messages say. `undoes`: the
    plan that this one rolls back.
    """

    state: RunState
    stages_done: int
    stages: int
    writes: int
    seconds: float
    messages: tuple[str, ...] = ()
    leftover_throttles: tuple[Problem, ...] = ()
    left: tuple[TopicPartition, ...] = ()
    tally: Tally | None = None
    is_idle: bool = False
    undoes: str | None = None

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
