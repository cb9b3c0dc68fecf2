"""A spread that is not strict yields to `replicasPerBroker` and `diskUse`, by the fewest replicas that can be."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from random import Random

import pytest
from helpers.clusters.random_clusters import random_cluster
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts
from helpers.plans.oracle import Problem, is_feasible, least_placement, most_of, problem_of, worth_of
from helpers.plans.planning import cluster_after, planned, replicas_after
from helpers.plans.proving import plan_of_placed
from planner.tight_clusters import Tight, nearest, tight_cluster

from reconciler.model.budget import Budget
from reconciler.model.cluster import Broker, Cluster, LogDir
from reconciler.model.desired import (
    Balance,
    BalanceTarget,
    Desired,
    DesiredCluster,
    DesiredTopic,
    Even,
    Limits,
    Placement,
    Spread,
    Within,
)
from reconciler.model.move import Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import Location, PlacementInfeasible
from reconciler.model.stage import ReassignStage
from reconciler.proof.check import prove, prove_end
from reconciler.workflow.plan import Planner, plan_of

AT = Location("cluster.yaml", 30)


def lopsided(seed: int) -> tuple[Desired, Cluster]:
    """Return a random cluster with one or two brokers in a rack of their own, and most topics on two replicas."""
    random = Random(f"lopsided {seed}")
    desired, observed = random_cluster(seed)
    ids = random.sample(sorted(observed.brokers), len(observed.brokers))
    alone = random.choice([1, 1, 1, 2])
    racks = ["a" if place < alone else random.choice("bbbc") for place in range(len(ids))]
    rack_of = dict(zip(ids, racks, strict=True))
    brokers = {broker_id: replace(broker, rack=rack_of[broker_id]) for broker_id, broker in observed.brokers.items()}
    topics = {name: _preferring(topic, random) for name, topic in desired.topics.items()}
    return replace(desired, topics=topics), replace(observed, brokers=brokers)


def _preferring(topic: DesiredTopic, random: Random) -> DesiredTopic:
    spread = random.choice([Spread.PREFER] * 4 + [None, Spread.STRICT])
    is_whole = topic.placement.racks_replicas is not None or topic.placement.assignment is not None
    placement = replace(topic.placement, racks_spread=spread, racks_leader=None, racks_only=None)
    factor = topic.replication_factor if random.random() < 0.2 else random.choice([2, 2, 3])
    return topic if is_whole else replace(topic, placement=placement, replication_factor=factor)


def full(seed: int) -> tuple[Desired, Cluster, Problem, int] | None:
    """Return such a cluster with hardly more places than replicas; None where other rules cannot hold."""
    desired, observed = lopsided(seed)
    problem = problem_of(desired, observed)
    if not is_feasible(problem) or not problem.brokers:
        return None
    each = -(-sum(demand.need for demand in problem.demands) // len(problem.brokers))
    limit = max(1, each + Random(seed).randint(0, 1))
    limits = Limits(replicas_per_broker=limit, at={"replicasPerBroker": AT})
    return replace(desired, cluster=replace(desired.cluster, limits=limits)), observed, problem, limit


@pytest.mark.long
@parts("seeds", range(200), deep=range(4000))
def test_a_plan_exists_if_and_only_if_it_does_without_the_spread_and_is_the_nearest_to_it(seeds: range) -> None:
    counts = Counter[str]()
    for seed in seeds:
        case = full(seed)
        if case is None:
            continue
        desired, observed, problem, limit = case
        target = desired.cluster.balance.replicas
        least = least_placement(problem, target, most_of(problem, limit))
        if least is None:
            with pytest.raises(PlacementInfeasible) as refusal:
                planned(desired, observed)
            assert [found.code for found in refusal.value.problems] == ["KR361"], seed
            counts["refused"] += 1
            continue
        placed = planned(desired, observed)
        found = worth_of(problem, target, replicas_after(observed, placed))
        assert found.least_of(problem, target) == least.least_of(problem, target), seed
        assert (least.off_spread > 0) == any(each.code == "KR806" for each in placed.warnings), seed
        plan = plan_of_placed(desired, observed, placed)
        assert prove_end(plan, desired, observed).wrong is None, seed
        if least.off_spread:
            assert prove_end(_without_the_level(plan), desired, observed).wrong is not None, seed
        again = planned(desired, cluster_after(observed, placed.moves, placed.topic_changes))
        assert (len(again.moves), again.topic_changes) == (0, ()), seed
        counts["yielding" if least.off_spread else "spread"] += 1
    assert min(counts["refused"], counts["yielding"]) >= len(seeds) // 60


def _without_the_level(plan: Plan) -> Plan:
    levels = tuple(level for level in plan.proof.levels if level.objective != "racks spread")
    return replace(plan, proof=replace(plan.proof, levels=levels))


def in_two_racks(*lists: str) -> Cluster:
    """Return a cluster in which broker 1 alone is in rack a."""
    observed = small_cluster(*(f"t-{n}: {replicas} size 10" for n, replicas in enumerate(lists)), brokers=(1, 2, 3, 4))
    racks = {1: "a", 2: "b", 3: "b", 4: "b"}
    return replace(observed, brokers={one: Broker(one, rack=rack) for one, rack in racks.items()})


def wanted(spread: Spread | None, limit: int = 2, balance: Balance = Balance()) -> Desired:  # noqa: B008 - frozen
    limits = Limits(replicas_per_broker=limit, at={"replicasPerBroker": AT})
    topic = DesiredTopic("t", replication_factor=2, placement=Placement(racks_spread=spread))
    return Desired(DesiredCluster("c", limits=limits, balance=balance), {"t": topic})


FITTING = in_two_racks("1,2", "1,3", "2,4", "3,4")


def test_what_keeps_the_limit_stays_and_a_warning_names_the_rule_that_spread_yields_to() -> None:
    plan = plan_of(wanted(Spread.PREFER), FITTING)
    assert not plan.stages
    (warning,) = plan.warnings
    assert (warning.code, warning.at) == ("KR806", AT)
    assert warning.message == (
        "2 partitions are not spread over the racks as placement.racks.spread would have it (t-2, t-3): it is not"
        " strict, and yields to limits.replicasPerBroker, 2 (cluster.yaml:30). Broker 1, rack a, can take no more:"
        " raise the limit, or add brokers there"
    )
    assert [(level.objective, level.value) for level in plan.proof.levels[:2]] == [("racks spread", 4), ("bytes", 0)]


def test_a_move_for_the_limit_names_it_though_its_partition_stays_off_its_spread() -> None:
    (move,) = planned(wanted(Spread.PREFER), in_two_racks("1,2", "1,3", "2,3", "3,4")).moves
    assert (move.reason, move.at) == (Reason.BALANCE, AT)


def test_a_strict_spread_does_not_yield() -> None:
    with pytest.raises(
        PlacementInfeasible, match="racks, and who may hold what, leave 2 of 8 replicas without a place"
    ):
        planned(wanted(Spread.STRICT), FITTING)


def test_with_one_place_more_the_spread_is_kept_as_far_as_that() -> None:
    placed = planned(wanted(Spread.PREFER, limit=3), FITTING)
    assert [each.message.split(" not ")[0] for each in placed.warnings] == ["1 partition is"]
    assert sum(1 in replicas for replicas in replicas_after(FITTING, placed).values()) == 3
    assert not planned(wanted(Spread.PREFER, limit=4), FITTING).warnings


@pytest.mark.parametrize("target", [Even(), Within(Fraction(1, 10))])
@pytest.mark.parametrize("spread", [Spread.PREFER, None])
def test_the_spread_of_new_partitions_yields_too_and_the_plan_is_proved(
    spread: Spread | None, target: BalanceTarget
) -> None:
    desired = wanted(spread, balance=Balance(replicas=target, topics=Even(), leaders=Even()))
    desired = replace(desired, topics={"t": replace(desired.topics["t"], partitions=4)})
    observed = in_two_racks("1,2", "1,3")
    plan = plan_of(desired, observed)
    assert [each.code for each in plan.warnings if each.code in {"KR806", "KR847"}] == ["KR806"]
    assert prove(plan, desired, observed).is_proved


@pytest.mark.parametrize("budget", [0, 10, 1000])
def test_a_budget_mends_the_limit_first_and_yields_as_the_whole_plan(budget: int) -> None:
    observed = in_two_racks("1,2", "1,3", "2,3", "3,4")
    desired = wanted(Spread.PREFER, balance=Balance(replicas=Even()))
    plan = Planner(budget=Budget(bytes=budget)).plan_or_remedies(desired, observed)
    assert plan.proof.levels[0].objective == "racks spread"
    assert prove(plan, desired, observed).wrong is None


@pytest.mark.long
def test_loads_are_balanced_beside_a_spread_that_yields_only_as_far_as_it_stays_the_nearest() -> None:
    yielding = 0
    for seed in range(200):
        case = full(seed)
        if case is None:
            continue
        desired, observed, problem, limit = case
        balance = replace(desired.cluster.balance, disk=Within(Fraction(1, 10)))
        desired = replace(desired, cluster=replace(desired.cluster, balance=balance))
        least = least_placement(problem, balance.replicas, most_of(problem, limit))
        if least is None or not least.off_spread:
            continue
        placed = planned(desired, observed)
        found = worth_of(problem, balance.replicas, replicas_after(observed, placed))
        assert found.off_spread == least.off_spread, seed
        assert prove_end(plan_of_placed(desired, observed, placed), desired, observed).wrong is None, seed
        yielding += 1
    assert yielding >= 5


def test_the_proof_refuses_a_plan_that_is_farther_from_the_spread_than_the_limit_asks() -> None:
    plan = plan_of(wanted(Spread.PREFER), FITTING)
    verdict = prove_end(plan, wanted(Spread.PREFER, limit=4), FITTING)
    assert verdict.wrong == "racks spread: the prices prove only 0, but the plan reaches 4"
    assert prove_end(plan, replace(wanted(Spread.PREFER), cluster=DesiredCluster("c")), FITTING).wrong == (
        "t-2 ends on brokers [2, 4]: they do not spread over the racks as they must"
    )


def _off_spread(case: Tight, way: Sequence[Sequence[int]]) -> int | None:
    """Return how many replicas are too many, and too few, in racks; None if brokers are missing for the spread."""
    room = Counter(rack for broker, rack in case.rack_of.items() if broker not in case.leaving)
    low, high = case.factor // len(room), -(-case.factor // len(room))
    if min(room.values()) < low or sum(min(there, high) for there in room.values()) < case.factor:
        return None
    held = [Counter(case.rack_of[broker] for broker in chosen) for chosen in way]
    return sum(max(0, each[rack] - high) + max(0, low - each[rack]) for each in held for rack in room)


def _imbalance(case: Tight, way: Sequence[Sequence[int]]) -> int:
    return _off_spread(case, way) or 0


@pytest.mark.long
@parts("seeds", range(18), deep=range(300))
def test_the_spread_yields_to_disks_by_as_little_as_any_run_within_them_does(seeds: range) -> None:
    yielding = 0
    for seed in seeds:
        case = tight_cluster(seed)
        if case.is_strict or _off_spread(case, ()) is None:
            continue
        topic = replace(case.desired.topics["t"], placement=Placement(racks_spread=Spread.PREFER))
        plan = Planner().plan_or_remedies(replace(case.desired, topics={"t": topic}), case.observed)
        ends = {partition.partition: partition.replicas for partition in case.partitions}
        moves = [move for stage in plan.stages if isinstance(stage, ReassignStage) for move in stage.moves]
        ends |= {move.topic_partition.partition: move.to_replicas for move in moves}
        best = nearest(case, partial(_imbalance, case))
        reached = _off_spread(case, [*ends.values()]), sum(move.bytes for move in moves)
        assert (None if any(each.code == "KR413" for each in plan.violations) else reached) == best, seed
        if best is None:
            continue
        is_off = best[0] > 0
        assert is_off == any(each.code == "KR806" and "limits.diskUse" in each.message for each in plan.warnings), seed
        yielding += is_off
    assert yielding >= len(seeds) // 10


def test_a_spread_that_disks_do_not_forbid_is_not_proved_where_the_plan_leaves_it() -> None:
    roomy = {one: replace(broker, log_dirs=(LogDir("/d", 1000, 990),)) for one, broker in FITTING.brokers.items()}
    observed = replace(FITTING, brokers=roomy)
    ignored, preferred = (
        replace(wanted(spread), cluster=DesiredCluster("c", limits=Limits(disk_use=Fraction(1, 2))))
        for spread in (Spread.IGNORE, Spread.PREFER)
    )
    plan = plan_of(ignored, observed)
    assert plan.is_empty
    verdict = prove_end(plan, preferred, observed)
    assert (verdict.wrong, verdict.unproved) == (None, ("racks spread",))


@pytest.mark.parametrize("balance", [Balance(), Balance(disk=Within(Fraction(1, 10)))])
def test_a_spread_yields_to_disks_whatever_the_balance_and_the_bands_that_are_missed_are_named(
    balance: Balance,
) -> None:
    held = {1: 30, 2: 10, 3: 10, 4: 10}
    brokers = {one: (LogDir("/d", 40, 40 - used),) for one, used in held.items()}
    observed = in_two_racks("1,2", "1,3", "1,4")
    sized = {one: replace(broker, log_dirs=brokers[one]) for one, broker in observed.brokers.items()}
    limits = Limits(disk_use=Fraction(1, 2), at={"diskUse": AT})
    desired = replace(wanted(Spread.PREFER), cluster=DesiredCluster("c", limits=limits, balance=balance))
    observed = replace(observed, brokers=sized)
    plan = Planner().plan_or_remedies(desired, observed)
    said = {each.code: each.message for each in plan.warnings}
    assert (plan.summary.bytes, plan.violations) == (10, ())
    assert "yields to limits.diskUse (cluster.yaml:30). No placement that keeps both was found: " in said["KR806"]
    assert said["KR806"].endswith("raise the limit, or add brokers in rack a")
    assert ("KR842" in said) == (balance != Balance())
    assert prove_end(plan, desired, observed).wrong is None
    assert "racks spread" in prove_end(plan, desired, observed).unproved
