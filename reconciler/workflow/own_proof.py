"""Checks the proof of a plan before anybody sees it: a plan says no more than its own proof shows."""

import tempfile
from dataclasses import replace
from pathlib import Path

from reconciler.files.plan_file import with_id, write_plan
from reconciler.files.snapshot import write_snapshot
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.model.loads import Loads
from reconciler.model.plan import Plan, Verdict
from reconciler.model.problem import STAGE_LIMIT, Problem, ReconcilerError, Severity, warning

UNPROVED = "KR847"


class UnsafePlan(ReconcilerError):
    """A plan of ours is not safe, or not what its proof says: our fault, found before anything is written."""

    code = "KR399"


def with_own_proof(plan: Plan, desired: Desired, observed: Cluster, loads: Loads | None) -> Plan:
    """Return the plan with a violation for a state above a limit, and a warning for an objective that is not proved.

    Raises UnsafePlan, and keeps the case in a folder of its own, if the plan is not what its proof says.
    """
    from reconciler.proof.check import prove

    verdict = prove(plan, desired, observed, loads)
    if verdict.is_limit_broken and verdict.wrong is not None:
        message = f"{verdict.wrong}: plan fewer topics at once, or give the brokers room"
        places = desired.cluster.limits.at.items()
        at = next((place for name, place in places if f"limits.{name}" in verdict.wrong), desired.cluster.at)
        violation = Problem(STAGE_LIMIT, message, at, Severity.VIOLATION)
        return with_id(replace(plan, violations=(*plan.violations, violation)))
    if verdict.wrong is not None:
        folder = Path(tempfile.mkdtemp(prefix="reconciler-"))
        write_snapshot(observed, folder / "snapshot.json")
        write_plan(plan, folder / "plan.json")
        message = f"internal error, please report it with your files and {folder}: the plan made is not proved"
        raise UnsafePlan(f"{message}: {verdict.wrong}")
    plan = _with_bounds(plan, verdict)
    if verdict.unproved:
        message = f"it is not proved that no other plan is better in {', '.join(verdict.unproved)}"
        return with_id(replace(plan, warnings=(*plan.warnings, warning(UNPROVED, message, desired.cluster.at))))
    return plan


def refuse_unsafe_return(plan: Plan, observed: Cluster, desired: Desired) -> None:
    """Raise UnsafePlan for a rollback whose moves do not fit the cluster, or that costs a leader or the min ISR."""
    from reconciler.proof.arithmetic import NotProved
    from reconciler.proof.demands import demands_of
    from reconciler.proof.reached import followed
    from reconciler.proof.snapshot import moves_of
    from reconciler.proof.states import refuse_broken_return

    demands, moves = demands_of(desired, observed), moves_of(plan)
    try:
        row, _ = followed(moves, demands.snapshot)
        refuse_broken_return(plan, observed, demands, moves, row)
    except NotProved as wrong:
        raise UnsafePlan(f"internal error, please report it: the rollback made is not safe: {wrong}") from None


def _with_bounds(plan: Plan, verdict: Verdict) -> Plan:
    """Return the plan with the bounds that its proof shows, where these are higher than it knew."""
    bounds = {level.objective: level.lower_bound for level in verdict.levels}
    proof = plan.proof
    levels = tuple(replace(level, lower_bound=bounds.get(level.objective, level.lower_bound)) for level in proof.levels)
    if levels == proof.levels:
        return plan
    first = bounds.get(proof.objective, proof.lower_bound)
    return with_id(replace(plan, proof=replace(proof, lower_bound=first, levels=levels)))
