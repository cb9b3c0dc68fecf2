"""Plans within a budget, held against plain enumeration of all that the budget can buy; and one after another."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from random import Random

import pytest
from helpers.clusters.flat_clusters import CASE_A, CASE_B, FlatCase
from helpers.clusters.loads_clusters import A_ADD
from helpers.clusters.random_clusters import random_cluster, shuffled, with_unknown_sizes
from helpers.depth import parts
from helpers.plans.oracle import Problem, is_feasible, problem_of
from helpers.plans.planning import cluster_after, planned, replicas_after
from helpers.plans.proving import plan_of_placed
from planner.budget_oracle import best_within, imbalance, least_bytes
from planner.test_topics_balance import topics_case, topics_placements, topics_worth

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.budget import Budget, CurveReport
from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import (
    Balance,
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    MovePolicy,
    Off,
    Within,
)
from reconciler.model.problem import InvalidInput, Location
from reconciler.model.words import size
from reconciler.planner import budget_search
from reconciler.planner.place import Placed, plan_curve, plan_placement
from reconciler.proof.check import prove_end

deep, long = pytest.mark.deep, pytest.mark.long

TENTHS = range(11)
JOINING, LEAVING = replace(CASE_A, topics=10), replace(CASE_B, topics=10)


def _crowded(seed: int) -> tuple[Desired, Cluster]:
    """Return a cluster whose replicas stand on few of its brokers, with sizes of all magnitudes."""
    random = Random(seed)
    brokers = range(1, random.choice((3, 4, 4, 5)) + 1)
    racks = "ab" if seed % 3 == 0 else "a"
    crowded = [1, 2] if seed % 2 else [1, 2, 3]
    topics = {}
    for name in ("a", "b"):
        factor = random.choice((1, 2))
        partitions = []
        for number in range(random.randint(3, 7)):
            replicas = tuple(random.sample(crowded, factor))
            size = int(random.lognormvariate(3, 1)) + 1 if seed % 5 else random.choice((1, 2, 3))
            partitions.append(Partition(number, replicas[0], replicas, replicas, sizes=(size,) * factor))
        topics[name] = Topic(name, tuple(partitions))
    balance = Balance(replicas=Within(Fraction(1, 10)) if seed % 7 == 0 else Even(), leaders=Even())
    states = {2: DesiredBroker(2, capacity=2)} if seed % 4 == 0 else {}
    if seed % 11 == 0 and len(brokers) > 3:
        states = {2: DesiredBroker(2, BrokerState.DRAINING)}
    desired = Desired(
        DesiredCluster("c", balance=balance, brokers=states), {name: DesiredTopic(name) for name in topics}
    )
    return desired, Cluster("c", {b: Broker(b, racks[b % len(racks)]) for b in brokers}, topics)


def _cases(count: int) -> Iterator[tuple[object, Desired, Cluster, Problem]]:
    """Yield so many clusters of which something is to be balanced and can be."""
    for seed in range(count):
        for name, (desired, observed) in (("crowded", _crowded(seed)), ("random", random_cluster(seed))):
            problem = problem_of(desired, observed)
            is_asked = not isinstance(desired.cluster.balance.replicas, Off)
            if is_asked and is_feasible(problem) and problem.is_size_known:
                yield (name, seed), desired, observed, problem


def _within(desired: Desired, observed: Cluster, budget: int) -> Placed:
    return planned(desired, observed, budget=Budget(bytes=budget))


def _copied(placed: Placed) -> int:
    return sum(move.bytes for move in placed.moves)


@long
@parts("count", 2, deep=400)
def test_at_every_tenth_of_the_bytes_no_placement_within_the_budget_is_more_even_and_none_as_even_copies_less(
    count: int,
) -> None:
    tried = 0
    for case, desired, observed, problem in _cases(count):
        target, known = desired.cluster.balance.replicas, least_bytes(problem)
        whole = _copied(planned(desired, observed))
        for tenth in TENTHS:
            budget = whole * tenth // 10
            placed = _within(desired, observed, budget)
            held = Counter(b for replicas in replicas_after(observed, placed).values() for b in replicas)
            reached = imbalance(problem, target, tuple(held[b] for b in problem.brokers))
            assert (reached, _copied(placed)) == best_within(problem, target, known, budget), (case, tenth)
            tried += 1
    assert tried > 10 * count


@long
@parts("count", 3, deep=300)
def test_each_plan_within_a_budget_is_proved_and_a_better_balance_than_it_has_is_not(count: int) -> None:
    tight, refused = 0, 0
    for case, desired, observed, _ in _cases(count):
        whole = _copied(planned(desired, observed))
        for tenth in (0, 3, 7, 10):
            budget = Budget(bytes=whole * tenth // 10)
            placed = planned(desired, observed, budget=budget)
            plan = plan_of_placed(desired, observed, placed, budget)
            verdict = prove_end(plan, desired, observed)
            assert verdict.wrong is None, (case, tenth, verdict.wrong)
            bought = [level for level in placed.proof.levels if level.weight]
            tight += any(level.value == level.lower_bound for level in bought)
            for level in bought:
                bolder = replace(level, lower_bound=level.value)
                levels = tuple(bolder if each is level else each for each in placed.proof.levels)
                other = replace(plan, proof=replace(plan.proof, levels=levels))
                is_proved = prove_end(other, desired, observed).wrong is None
                assert is_proved <= (level.lower_bound == level.value), (case, tenth)
                refused += not is_proved
    assert tight
    assert refused


def test_a_plan_that_copies_more_than_its_budget_or_buys_nothing_for_it_is_not_proved() -> None:
    desired, observed = JOINING.build()
    whole = _copied(planned(desired, observed))
    budget = Budget(bytes=whole // 4)
    plan = plan_of_placed(desired, observed, planned(desired, observed, budget=budget), budget)
    assert prove_end(plan, desired, observed).wrong is None
    assert plan.budgeted is not None
    less = replace(plan.budgeted, bytes=whole // 5)
    told = replace(plan, budgeted=less, source=replace(plan.source, budget=Budget(bytes=whole // 5)))
    assert "more than its budget" in str(prove_end(told, desired, observed).wrong)
    assert "not what it was made with" in str(prove_end(replace(plan, budgeted=less), desired, observed).wrong)
    nothing = planned(desired, observed, budget=Budget(bytes=0))
    assert nothing.warnings[0].code == "KR871"
    assert nothing.warnings[0].message.startswith("a budget of 0 B brings the balance no nearer: each step copies more")
    idle = plan_of_placed(desired, observed, nothing, budget)
    assert idle.budgeted is not None
    idle = replace(idle, budgeted=replace(idle.budgeted, bytes=whole // 4))
    assert "less than its budget" in str(prove_end(idle, desired, observed).wrong)


@long
@parts("seeds", (3, 6), deep=range(80))
def test_topics_come_after_brokers_and_both_are_as_even_as_the_budget_allows(seeds: Sequence[int]) -> None:
    for seed in seeds:
        desired, observed = topics_case(seed)
        every = [topics_worth(observed, desired, placed) for placed in topics_placements(observed)]
        whole = _copied(planned(desired, observed))
        for tenth in TENTHS:
            budget = Budget(bytes=whole * tenth // 10)
            placed = planned(desired, observed, budget=budget)
            found = topics_worth(observed, desired, replicas_after(observed, placed))
            assert found == min(one for one in every if one[2] <= whole * tenth // 10), (seed, tenth)
            verdict = prove_end(plan_of_placed(desired, observed, placed, budget), desired, observed)
            assert verdict.wrong is None, (seed, tenth, verdict.wrong)


def test_what_mends_rules_is_never_cut_and_its_excess_is_told() -> None:
    desired, observed = CASE_B.build()
    whole, off = planned(desired, observed), replace(desired.cluster, balance=Balance())
    mended = _copied(planned(replace(desired, cluster=off), observed))
    placed = _within(desired, observed, mended // 2)
    assert _copied(placed) == mended
    assert placed.budgeted is not None
    assert placed.budgeted.excess == mended - mended // 2
    excess = f"{size(placed.budgeted.excess)} more than the budget: the plan is made of that alone"
    assert [(each.code, excess in each.message) for each in placed.warnings] == [("KR870", True)]
    assert _copied(whole) > mended


def _six_and_three(balance: Balance) -> FlatCase:
    return FlatCase("x", 6, 3, 12, 12, joining=3, balance=balance)


@long
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(JOINING, id="brokers join"),
        pytest.param(LEAVING, id="a broker leaves"),
        pytest.param(_six_and_three(Balance(replicas=Within(Fraction(1, 10)))), id="within a band", marks=deep),
        pytest.param(_six_and_three(Balance(topics=Even())), id="topics", marks=deep),
    ],
)
def test_ten_plans_one_after_another_end_as_the_whole_one_does_and_copy_nearly_as_little(
    monkeypatch: pytest.MonkeyPatch, case: FlatCase
) -> None:
    monkeypatch.setattr(budget_search, "EFFORT", 0.05)
    desired, observed = case.build()
    whole = planned(desired, observed)
    tenth = -(-_copied(whole) // 10)
    copied, plans = 0, 0
    while (placed := _within(desired, observed, tenth)).moves:
        copied, plans = copied + _copied(placed), plans + 1
        assert plans < 15
        observed = cluster_after(observed, placed.moves, placed.topic_changes)
    assert copied <= 1.02 * _copied(whole)
    assert not planned(desired, observed).moves
    held = {b: share.replicas for b, share in placed.balance_after.items()}
    assert sorted(held.values()) == sorted(share.replicas for share in whole.balance_after.values())


def test_enough_budget_gives_the_plan_without_one_and_the_same_inputs_give_the_same_plan() -> None:
    desired, observed = JOINING.build()
    whole = planned(desired, observed)
    placed = _within(desired, observed, _copied(whole))
    assert (placed.moves, placed.proof) == (whole.moves, whole.proof)
    quarter = _copied(whole) // 4
    assert _within(shuffled(desired, 7), observed, quarter) == _within(desired, observed, quarter)


def _curve(desired: Desired, observed: Cluster) -> CurveReport:
    rules = topic_rules(desired, observed)
    return plan_curve(desired, observed, rules, compare(desired, observed, rules))


@long
@pytest.mark.parametrize("case", [JOINING, LEAVING, replace(JOINING, balance=Balance(replicas=Even(), topics=Even()))])
def test_the_curve_gets_better_with_each_byte_and_its_points_are_what_a_budget_of_their_bytes_buys(
    case: FlatCase,
) -> None:
    desired, observed = case.build()
    report = _curve(desired, observed)
    assert len(report.points) > 2 * bool(case.joining)
    for less, more in pairwise(report.points):
        assert less.bytes < more.bytes
        assert less.share < more.share
        assert [*less.imbalance.values()] > [*more.imbalance.values()]
    assert report.points[-1].share == 1
    for point in report.points[:: max(1, len(report.points) // 3)]:
        placed = _within(desired, observed, point.bytes)
        assert placed.budgeted is not None
        assert {way.measure: way.reached for way in placed.budgeted.ways} == point.imbalance
        assert _copied(placed) == point.bytes


@long
@parts("count", 3, deep=20)
def test_the_curve_of_a_small_cluster_lies_on_what_enumeration_finds(count: int) -> None:
    for case, desired, observed, problem in _cases(count):
        target, known = desired.cluster.balance.replicas, least_bytes(problem)
        for point in _curve(desired, observed).points:
            best = best_within(problem, target, known, point.bytes)
            assert (point.imbalance["replicas balance"], point.bytes) == best, case


def test_a_budget_of_time_needs_a_throttle_and_one_of_bytes_needs_sizes() -> None:
    desired, observed = JOINING.build()
    at = Location("c/cluster.yaml", 1)
    placed = replace(desired, cluster=replace(desired.cluster, at=at))
    with pytest.raises(
        InvalidInput, match=r": --budget: a time needs a rate, and moves\.throttle is not written"
    ) as no_rate:
        planned(placed, observed, budget=Budget(seconds=60))
    assert [(one.code, one.at) for one in no_rate.value.problems] == [("KR371", at)]
    unknown = with_unknown_sizes(observed, 1)
    with pytest.raises(
        InvalidInput, match=r"^--budget: the size of \d+ partitions is unknown \(topic-\d+-\d+ and others\)"
    ) as no_size:
        planned(desired, unknown, budget=Budget(bytes=1))
    assert [one.code for one in no_size.value.problems] == ["KR370"]
    with pytest.raises(InvalidInput, match=r"^--curve: the size of \d+ partitions is unknown"):
        _curve(desired, unknown)


@pytest.mark.parametrize("key", ["disk", "networkIn", "networkOut", None])
def test_a_curve_of_loads_is_refused_at_the_line_that_asks_for_them(key: str | None) -> None:
    desired, observed = JOINING.build()
    at = {key: Location("c/cluster.yaml", 7)} if key else {}
    balance = Balance(disk=Within(Fraction(1, 10)), at=at)
    with pytest.raises(InvalidInput, match=r"--curve tells of counts alone") as refused:
        _curve(replace(desired, cluster=replace(desired.cluster, balance=balance)), observed)
    assert [(one.code, one.at) for one in refused.value.problems] == [("KR372", at.get(key or ""))]


def test_a_budget_of_time_gives_the_busiest_broker_no_more_than_it_copies_in_it() -> None:
    desired, observed = replace(JOINING, topics=20).build()
    rate = 50 << 20
    desired = replace(desired, cluster=replace(desired.cluster, moves=MovePolicy(throttle_bytes_per_second=rate)))
    whole = planned(desired, observed, budget=Budget(seconds=10**6))
    assert whole.moves == planned(desired, observed).moves
    placed = planned(desired, observed, budget=Budget(seconds=600))
    taken: Counter[int] = Counter()
    for move in placed.moves:
        taken.update(dict.fromkeys(move.added, move.bytes // max(1, len(move.added))))
    assert 0.8 * 600 * rate < max(taken.values()) <= 600 * rate


@long
def test_with_loads_a_budget_goes_as_far_as_its_bytes_and_is_told() -> None:
    desired, observed, loads = replace(A_ADD, topics=10).build()
    rules = topic_rules(desired, observed)
    changes = compare(desired, observed, rules)

    def within(budget: int | None) -> Placed:
        asked = None if budget is None else Budget(bytes=budget)
        return plan_placement(desired, observed, rules, changes, loads=loads, budget=asked)

    whole = within(None)
    assert within(_copied(whole)).moves == whole.moves
    rate = 1 + _copied(whole) // len(whole.balance_after)
    desired = replace(desired, cluster=replace(desired.cluster, moves=MovePolicy(throttle_bytes_per_second=rate)))
    assert plan_placement(desired, observed, rules, changes, loads=loads, budget=Budget(seconds=1)).moves == whole.moves
    shares = []
    for part in (0, 3, 8):
        placed = within(_copied(whole) * part // 10)
        assert _copied(placed) <= _copied(whole) * part // 10
        assert placed.budgeted is not None
        shares.append(min(way.share for way in placed.budgeted.ways if way.measure == "disk"))
        verdict = prove_end(
            plan_of_placed(desired, observed, placed, Budget(bytes=_copied(whole) * part // 10)),
            desired,
            observed,
            loads,
        )
        assert verdict.wrong is None, verdict.wrong
    assert shares == sorted(shares)
    assert shares[-1] > Fraction(7, 10)
