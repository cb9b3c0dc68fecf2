"""Keeps the figures of a run in a file for Prometheus (`apply --metrics`), which is whole at every moment."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from reconciler.files.raw import write_atomically
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import RunMetrics, RunProgress, RunResult
from reconciler.model.stage import CopyingStage
from reconciler.render.as_metrics import LAST_SUCCESS, metrics

UNWRITTEN = "KR019"


@dataclass(slots=True)
class MetricsFile:
    """Keeps the file; `warn` is told once where it cannot be written any more, and the run goes on.

    Where `path` is None nothing is kept. Only the first end counts.
    """

    path: Path | None
    plan: Plan
    warn: Callable[[str], None]
    now: Callable[[], float] = time.time
    seen: RunMetrics = field(init=False)
    told: dict[int, RunProgress] = field(default_factory=dict)
    is_over: bool = False
    """Whether nothing more is written: the run's end was, or the file cannot be."""

    def __post_init__(self) -> None:
        summary, now = self.plan.summary, self.now()
        self.seen = RunMetrics(
            cluster_name=self.plan.cluster_name,
            plan_id=self.plan.id,
            started_at=now,
            updated_at=now,
            stages=summary.stages,
            moves=sum(len(stage.moves) for stage in _copying(self.plan).values()),
            total_bytes=summary.bytes + summary.dir_bytes,
            estimated_seconds=summary.estimated_seconds,
            warnings=len(self.plan.warnings),
            last_success_at=_last_success(self.path) if self.path is not None else None,
        )

    def begin(self) -> None:
        """Write that the run begins; raise ReconcilerError where that is not possible, before anything is done."""
        self._write()

    def progress(self, seen: RunProgress) -> None:
        """Write where the run stands."""
        if self.path is None or self.is_over:
            return
        self.told[seen.stage] = seen
        stage = _copying(self.plan)[seen.stage]
        self.seen = replace(
            self._counted(seen.stage),
            updated_at=self.now(),
            stage=seen.stage,
            stages_done=seen.stage - 1,
            bytes_per_second=seen.bytes_per_second,
            stage_seconds_left=seen.eta_seconds,
            throttle_bytes_per_second=stage.throttle_bytes_per_second,
        )
        self._write_if_possible()

    def end(self, exit_code: int, result: RunResult | None = None) -> None:
        """Write how the run ended; without a result it had not begun."""
        if self.path is None or self.is_over:
            return
        now = self.now()
        is_done = exit_code == 0
        stages_done = result.stages_done if result is not None else self.seen.stages_done
        self.seen = replace(
            self._counted(self.seen.stages + 1 if is_done else self.seen.stage),
            updated_at=now,
            is_active=False,
            stages_done=self.seen.stages if is_done else stages_done,
            bytes_per_second=None,
            stage_seconds_left=None,
            throttle_bytes_per_second=None,
            leftover_throttles=len(result.leftover_throttles) if result is not None else 0,
            exit_code=exit_code,
            last_success_at=now if is_done else self.seen.last_success_at,
        )
        self._write_if_possible()
        self.is_over = True

    def _counted(self, current: int) -> RunMetrics:
        """Return the figures with bytes and moves, done and in all; stages before the current one are done."""
        copied = total = moves = 0
        for number, stage in _copying(self.plan).items():
            told = self.told.get(number)
            known = max(stage.bytes, told.total_bytes if told is not None else 0)
            total += known
            if number < current:
                copied += known
                moves += len(stage.moves)
            elif told is not None:
                copied += told.copied_bytes
                moves += told.done_moves
        return replace(self.seen, copied_bytes=copied, total_bytes=total, done_moves=moves)

    def _write_if_possible(self) -> None:
        try:
            self._write()
        except ReconcilerError as error:
            self.is_over = True
            self.warn(f"warning: {error} ({error.code}); the run goes on without it")

    def _write(self) -> None:
        if self.path is not None:
            write_atomically(self.path, metrics(self.seen).encode(), "file of metrics", UNWRITTEN)


def _copying(plan: Plan) -> Mapping[int, CopyingStage]:
    return {stage.number: stage for stage in plan.stages if isinstance(stage, CopyingStage)}


def _last_success(path: Path) -> float | None:
    """Return when a run was last done, as the file of an earlier one says."""
    with suppress(OSError, ValueError):
        for line in path.read_text("utf-8").splitlines():
            if line.startswith(LAST_SUCCESS):
                return float(line.rpartition(" ")[2])
    return None
