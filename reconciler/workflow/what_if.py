"""Plans for a state that is supposed (`plan --what-if`), and tells what that state does to partitions at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.admin.port import ProgressHook
from reconciler.diff.what_if import NotASupposition, Supposed, health, suppose, suppositions
from reconciler.files.policies import read_policies
from reconciler.model.budget import Budget
from reconciler.model.cluster import Cluster
from reconciler.model.codec import to_json
from reconciler.model.desired import Desired, Off
from reconciler.model.plan import Plan
from reconciler.model.problem import InvalidInput, PlacementInfeasible, Problem, Severity
from reconciler.model.what_if import AddBroker, Health, Supposition, WhatIf
from reconciler.simulate.reach import reach_all
from reconciler.simulate.storage import with_metadata
from reconciler.workflow.diff import with_readers
from reconciler.workflow.inputs import Inputs, cluster_name
from reconciler.workflow.mirrors import with_mirrors
from reconciler.workflow.plan import (
    Growth,
    LoadsAt,
    OpenJudge,
    Planned,
    Planner,
    looked_at,
    no_growth,
    no_judge,
    planner_of,
)
from reconciler.workflow.sources import desired_state, observed_state

__all__ = ["NotASupposition", "Unplannable", "plan_if", "suppositions"]


@dataclass(frozen=True, slots=True)
class Unplannable:
    """What is supposed, and why there is no plan for it."""

    what_if: WhatIf
    refusal: PlacementInfeasible


def plan_if(
    inputs: Inputs,
    supposed: Sequence[Supposition],
    *,
    only: Sequence[str] = (),
    loads: LoadsAt | None = None,
    progress: ProgressHook | None = None,
    open_judge: OpenJudge = no_judge,
    growth: Growth = no_growth,
    budget: Budget | None = None,
) -> Planned | Unplannable:
    """Return what follows if all of this were so; nothing is changed, and the plan says that it is never applied.

    Raises InvalidInput where a supposition makes no sense for this cluster.
    """
    desired = desired_state(inputs)
    policies = read_policies(Path(inputs.root), cluster_name(inputs))
    judge = open_judge(policies) if policies else None
    observed = observed_state(inputs, desired, progress)
    mirrored = with_mirrors(inputs, desired, observed, progress)
    at = suppose(mirrored.desired, observed, supposed)
    _refuse_meaningless(mirrored.desired, at.desired)
    what_if = WhatIf(tuple(map(str, supposed)), at.assumptions, before=health(observed), at_once=health(at.observed))
    readable, unread = with_readers(inputs, at.desired, at.observed)
    planner = planner_of(inputs, only, loads, budget).told(growth, unread, inputs, mirrored)
    outcome = outcome_of(replace(at, observed=readable), supposed, what_if, planner)
    if isinstance(outcome, Unplannable) or judge is None:
        return outcome
    plan = judge(outcome.plan, at.desired, readable, loads.folder if loads is not None else None)
    return replace(outcome, plan=plan, policies=len(policies))


def outcome_of(
    at: Supposed, supposed: Sequence[Supposition], what_if: WhatIf, planner: Planner
) -> Planned | Unplannable:
    """Return the plan of the supposed states, or why there is none; a function of its arguments alone."""
    from reconciler.files.plan_file import with_id

    try:
        plan = planner.plan_or_remedies(at.desired, at.observed, is_thorough=True)
    except PlacementInfeasible as refusal:
        return Unplannable(what_if, refusal)
    plan = replace(
        plan,
        warnings=(*plan.warnings, *_left_empty(plan, at, supposed)),
        what_if=replace(what_if, after=_health_after(plan, at.observed)),
    )
    return looked_at(with_id(plan), at.desired, at.observed, planner.only)


def _refuse_meaningless(desired: Desired, supposed: Desired) -> None:
    """Raise InvalidInput where files that said what is supposed would be refused."""
    from reconciler.files.semantics import semantic_problems

    known = set(semantic_problems(desired))
    problems = [problem for problem in semantic_problems(supposed) if problem not in known]
    if problems:
        raise InvalidInput(problems)


def what_if_json(what_if: WhatIf) -> str:
    """Return what is supposed, as a plan's file has it, where there is no plan."""
    from reconciler.files.json_text import readable_json

    return readable_json({"whatIf": to_json(what_if)})


def _health_after(plan: Plan, supposed: Cluster) -> Health:
    """Return how partitions are once the plan has run; without a leader nothing is copied, so those stay as they are.

    Topics that the plan creates or deletes are left out: they are well, or no more.
    """
    reached = {key: partition for step in reach_all(supposed, plan) for key, partition in step.items()}
    gone = {key.topic for key, partition in reached.items() if partition is None}
    kept = replace(supposed, topics={name: topic for name, topic in supposed.topics.items() if name not in gone})
    led = {
        key: partition
        for key, partition in reached.items()
        if partition is not None
        and key.topic in kept.topics
        and ((was := supposed.partition(key)) is None or was.leader is not None)
    }
    return health(with_metadata(kept, led))


def _left_empty(plan: Plan, at: Supposed, supposed: Sequence[Supposition]) -> Iterator[Problem]:
    """Yield a warning for each broker that joins and gets nothing."""
    balance = at.desired.cluster.balance
    for one in supposed:
        if isinstance(one, AddBroker) and not plan.balance_after[one.broker_id].replicas:
            off = isinstance(balance.replicas, Off)
            why = "balance.replicas is off" if off else "no rule lets a replica go there"
            message = f"broker {one.broker_id} joins and stays empty: {why}, so nothing moves to it"
            yield Problem("KR819", message, balance.at.get("replicas") if off else None, Severity.WARNING)
