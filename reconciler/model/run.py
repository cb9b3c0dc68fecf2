"""Holds a plan's execution: the events of its journal, its progress, its result, its figures, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from reconciler.model.codec import HIDDEN, INLINE, REQUIRED, AtLeast, Key
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, ReconcilerError, ReportedProblem
from reconciler.model.tally import Tally
from reconciler.model.topic_partition import PartitionObject

UNDECIDED = "KR724"
"""The code of a value that is on the cluster and may be a run's, or somebody else's."""
RECORDED = "KR726"
"""The code of what only the record in the cluster says, which others can write: nothing is put back by it unasked."""


class Outcome(StrEnum):
    """How a step went."""

    STARTED = "started"
    ONGOING = "ongoing"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One line of the run journal."""

    time: Annotated[datetime, "When it happened, ISO 8601."]
    stage: Annotated[int, "In which stage; 0: before the first."]
    step: Annotated[str, "What was done."]
    outcome: Annotated[Outcome, "How it went."]
    detail: Annotated[
        Mapping[str, object],
        REQUIRED,
        "What a run that goes on needs to know of it, as far as the cluster cannot tell.",
    ] = field(default_factory=dict)
    plan: Annotated[str | None, "The id of the plan that ran; not there while the event is in no journal."] = None


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
    """How a run, a dry run of it, or a cancel ended."""

    state: Annotated[RunState, "How it ended; checked: it was a dry run, and nothing forbids the run."]
    stages_done: Annotated[int, "Stages that are done, by earlier parts of the run too."]
    stages: Annotated[int, "Stages of the plan."]
    writes: Annotated[int, "Requests that changed something."]
    seconds: Annotated[float, "How long it took; on a simulated cluster, by its clock."]
    messages: Annotated[
        tuple[str, ...], REQUIRED, "What a person is told; of a dry run, each step that would be done."
    ] = ()
    leftover_throttles: Annotated[tuple[Problem, ...], HIDDEN] = ()
    """Throttles that it could not take off."""
    left: Annotated[
        tuple[PartitionObject, ...],
        REQUIRED,
        "Partitions whose moves are left to do, or that a cancel could not take back.",
    ] = ()
    tally: Annotated[
        Tally | None,
        Key("moves"),
        REQUIRED,
        "How many moves of the plan stand how, and which; null where nobody looked.",
    ] = None
    is_idle: Annotated[bool, HIDDEN] = False
    """A cancel that found nothing to do, as its messages say."""
    undoes: Annotated[str | None, HIDDEN] = None
    """The id of the plan that this one rolls back."""

    @property
    def reported_throttles(
        self,
    ) -> Annotated[
        tuple[ReportedProblem, ...],
        Key("leftoverThrottles"),
        "Throttles that could not be put back, or whose they are could not be decided (KR724, KR726).",
    ]:
        """The leftover throttles as JSON tells them."""
        return tuple(map(ReportedProblem.of, self.leftover_throttles))

    @property
    def has_undecided(self) -> bool:
        """Whether something may be left of a run, and nobody can decide it (exit code 5)."""
        return any(one.code in {UNDECIDED, RECORDED} for one in self.leftover_throttles)

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
class RollbackRun:
    """One plan of a rollback, and how its run ended."""

    plan: Annotated[Plan, HIDDEN]
    result: Annotated[RunResult, INLINE]

    @property
    def plan_id(self) -> Annotated[str, "The id of the rollback's plan."]:
        """The plan's id."""
        return self.plan.id

    @property
    def warnings(self) -> Annotated[tuple[ReportedProblem, ...], "Warnings of that plan."]:
        """The plan's warnings as JSON tells them."""
        return tuple(map(ReportedProblem.of, self.plan.warnings))


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a rollback did."""

    undone: Annotated[Plan, HIDDEN]
    cancelled: Annotated[
        RunResult | None, REQUIRED, "How what was in flight was taken back first; null: it did not come to that."
    ] = None
    runs: Annotated[tuple[RollbackRun, ...], REQUIRED, "Each plan that ran, with how it ended."] = ()
    is_declined: Annotated[bool, REQUIRED, "Somebody was shown a plan and did not want it."] = False
    is_simulated: Annotated[bool, HIDDEN] = False
    """Whether the cluster, and so its time, is simulated."""

    @property
    def undoes(self) -> Annotated[str, "The id of the plan that is undone."]:
        """The id of the plan that is undone."""
        return self.undone.id


@dataclass(frozen=True, slots=True)
class AskedThrottle:
    """What became of another rate that a run was asked for."""

    plan_id: Annotated[str, "The plan whose run was asked."]
    locked_by: Annotated[str, "Who runs it."]
    throttle_bytes_per_second: Annotated[int, AtLeast(1), "The rate asked for, per broker and direction."]
    is_taken_up: Annotated[bool, "Whether the run has told that it goes on at that rate."]


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
