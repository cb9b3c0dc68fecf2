"""Where a run stands, and how it ended, as a monitoring system keeps it."""

from dataclasses import dataclass


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
