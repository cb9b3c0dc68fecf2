"""How a rollback ended."""

from dataclasses import dataclass

from reconciler.model.plan import Plan
from reconciler.model.run import RunResult


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
