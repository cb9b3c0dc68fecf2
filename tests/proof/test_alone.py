"""A fault in what the planner computes with cannot hide in the proof: it is refused, or its plan is as good."""

import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from random import Random

import pytest
from helpers.clusters.mixed_clusters import mixed_cluster
from helpers.figures import Tell
from mutations.faults import Fault, planted
from proof.naive_states import complaints
from proof.planted_everywhere import FAULTS
from proof.test_tampering import SHOP, SHOP_OBSERVED
from proof.worsening import Worsener

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError
from reconciler.proof.check import prove
from reconciler.workflow.plan import plan_of


@cache
def cases(seeds: range) -> Sequence[tuple[Desired, Cluster, Plan]]:
    """Return the shop and clusters of these seeds, each with its plan."""
    found = []
    for desired, observed in [(SHOP, SHOP_OBSERVED), *map(mixed_cluster, seeds)]:
        try:
            found.append((desired, observed, plan_of(desired, observed)))
        except ReconcilerError:
            continue
    return found


@pytest.mark.parametrize("seeds", [range(16), pytest.param(range(120), marks=pytest.mark.deep)], ids=["part", "deep"])
def test_a_fault_in_what_the_planner_computes_with_is_refused_or_does_no_harm(seeds: range, figures: Tell) -> None:
    outcomes = {}
    for package, fault in FAULTS:
        outcomes[fault.what] = Counter(_outcome(package, fault, *case) for case in cases(seeds))
    for what, counts in outcomes.items():
        figures(what, ", ".join(f"{outcome} {count}" for outcome, count in sorted(counts.items())))
    assert [what for what, counts in outcomes.items() if counts["worse, and proved"]] == []
    assert sum(counts["refused"] > 0 for counts in outcomes.values()) > len(FAULTS) // 2


@contextmanager
def _ended_if_it_hangs() -> Iterator[None]:
    """Raise TimeoutError where a plan takes far more CPU time than any of these does: a fault may never end."""

    def end(_signal: int, _frame: object) -> None:
        raise TimeoutError

    previous = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, 5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def _outcome(package: str, fault: Fault, desired: Desired, observed: Cluster, right: Plan) -> str:
    # What was computed from the states before is not kept.
    desired, observed = deepcopy(desired), deepcopy(observed)
    object.__setattr__(observed, "made_table", None)
    with planted(fault, package):
        try:
            with _ended_if_it_hangs():
                plan = plan_of(desired, observed)
        except Exception:  # noqa: BLE001 - whatever is raised, no plan is written
            return "no plan"
        verdict = prove(plan, desired, observed)
    # `apply` refuses a plan with a violation.
    if not verdict.is_proved or len(plan.violations) > len(right.violations):
        return "refused"
    is_as_good = Worsener(desired, observed, Random(0)).is_as_good(plan, right)
    is_as_good &= not [*complaints(plan, desired, observed, Random(0))]
    return "as good" if is_as_good else "worse, and proved"
