"""Space is a rule of every placement: what an exhaustive search finds within `limits.diskUse`, the planner finds."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from helpers.depth import parts
from planner.tight_clusters import SHARE, Tight, least_bytes, most_even, tight_cluster

from reconciler.model.budget import Budget
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Balance, DesiredCluster, Even, Limits, Off
from reconciler.model.disk_space import NO_SPACE
from reconciler.model.plan import Plan
from reconciler.model.problem import DISK_USE, Location
from reconciler.proof.check import prove
from reconciler.workflow.plan import Planner


def _codes(plan: Plan) -> set[str]:
    return {problem.code for problem in (*plan.violations, *plan.warnings)}


@pytest.mark.long
@pytest.mark.parametrize("dirs", [1, 2], ids=["one disk a broker", "two disks a broker"])
@parts("seeds", range(0, 900, 100), deep=range(1000))
def test_a_plan_keeps_the_limit_wherever_one_can_and_copies_the_least_that_does(seeds: range, dirs: int) -> None:
    seen = Counter[str]()
    for seed in seeds:
        case = tight_cluster(seed, dirs)
        plan, least = Planner().plan(case.desired, case.observed), least_bytes(case)
        if least is None:
            assert DISK_USE in _codes(plan), seed
            seen["refused"] += 1
            continue
        assert (DISK_USE in _codes(plan), plan.summary.bytes) == (False, least), seed
        verdict = prove(plan, case.desired, case.observed)
        assert verdict.wrong is None, (seed, verdict.wrong)
        seen["dearer" if plan.proof.value > plan.proof.lower_bound else "kept"] += 1
    assert min(seen[kind] for kind in ("refused", "kept")) > 2
    assert seen["dearer"] or len(seeds) < 100


@pytest.mark.long
@parts("seeds", range(0, 500, 130), deep=range(500))
def test_a_balance_yields_to_the_limit_and_stays_as_even_as_it_allows(seeds: range) -> None:
    for seed in seeds:
        case = tight_cluster(seed, balance=Balance(replicas=Even()))
        plan, best = Planner().plan(case.desired, case.observed), most_even(case)
        assert (DISK_USE in _codes(plan)) == (best is None), seed
        if best is not None:
            even = sum(share.replicas**2 for share in plan.balance_after.values())
            assert (even, plan.summary.bytes) == best, seed
        assert prove(plan, case.desired, case.observed).wrong is None, seed


@pytest.mark.long
@pytest.mark.parametrize("dirs", [1, 2], ids=["one disk a broker", "two disks a broker"])
@parts("seeds", range(0, 120, 30), deep=range(200))
def test_balances_of_topics_yield_to_the_limit_wherever_it_can_be_kept(seeds: range, dirs: int) -> None:
    for seed in seeds:
        case = tight_cluster(seed, dirs, Balance(replicas=Even(), topics=Even()))
        plan = Planner().plan(case.desired, case.observed)
        assert (DISK_USE in _codes(plan)) == (least_bytes(case) is None), seed
        assert prove(plan, case.desired, case.observed).wrong is None, seed


@pytest.mark.long
def test_within_the_bytes_of_a_plan_the_same_one_is_found_and_within_one_fewer_another() -> None:
    for seed in (10, 17, 29):
        case = tight_cluster(seed, balance=Balance(replicas=Even()))
        whole = Planner().plan(case.desired, case.observed)
        same, other = (
            Planner(budget=Budget(bytes=most)).plan(case.desired, case.observed)
            for most in (whole.summary.bytes, whole.summary.bytes - 1)
        )
        assert (same.stages, _codes(same)) == (whole.stages, _codes(whole)), seed
        # What rules and disks need is never cut.
        assert (other.summary.bytes < whole.summary.bytes) != ("KR870" in _codes(other)), seed
        assert DISK_USE not in _codes(other), seed


@pytest.mark.long
def test_where_no_disks_have_room_the_plan_is_as_even_as_the_least_excess_allows_and_says_so() -> None:
    case = tight_cluster(12, balance=Balance(replicas=Even()))
    codes = _codes(Planner().plan(case.desired, case.observed))
    assert {DISK_USE, NO_SPACE} <= codes
    assert "KR842" not in codes


def _with_limit(case: Tight, share: Fraction) -> tuple[DesiredCluster, Cluster]:
    return replace(case.desired.cluster, limits=Limits(disk_use=share)), case.observed


def test_what_moves_for_the_limits_sake_has_its_line_and_not_that_of_a_balance_that_is_off() -> None:
    cluster, observed = _with_limit(case := tight_cluster(2), Fraction(9, 16))
    limits, off = Location("cluster.yaml", 9), Balance(replicas=Off(), at={"replicas": Location("cluster.yaml", 5)})
    cluster = replace(cluster, balance=off, limits=replace(cluster.limits, at={"diskUse": limits}))
    plan = Planner().plan(replace(case.desired, cluster=cluster), observed)
    assert {move.at for move in plan.every_move()} == {limits}


def test_what_was_too_full_before_is_mended_where_it_can_be_and_else_is_named() -> None:
    mended = 0
    for seed in range(0, 60, 2):
        case = tight_cluster(seed)
        if case.leaving or case.is_strict or case.factor != len(case.partitions[0].replicas):
            continue
        for share in (SHARE * 3 / 4, SHARE / 100):
            cluster, observed = _with_limit(case, share)
            plan = Planner().plan(replace(case.desired, cluster=cluster), observed)
            is_named = {DISK_USE, NO_SPACE} <= _codes(plan)
            assert is_named == bool({DISK_USE, NO_SPACE} & _codes(plan)), seed
            assert prove(plan, replace(case.desired, cluster=cluster), observed).wrong is None, seed
            mended += bool(plan.summary.bytes) and not is_named
            assert share != SHARE / 100 or is_named, seed
    assert mended
