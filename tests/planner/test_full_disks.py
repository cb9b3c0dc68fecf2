"""Disks that are too full already: the least excess, then the fewest bytes, and nothing left to do after them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts
from helpers.figures import Tell
from ortools.sat.python import cp_model
from planner.full_disks import after, excess_of, full_cluster, least, with_spread
from planner.full_log_dirs import after as after_dirs
from planner.full_log_dirs import full_dirs
from planner.full_log_dirs import least as least_dirs
from planner.hopeless_disks import GIB, LINE, hopeless_cluster

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.budget import Budget
from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.desired import (
    Balance,
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    Limits,
    Spread,
    TopicPolicy,
    Within,
)
from reconciler.model.disk_space import NO_SPACE, Space
from reconciler.model.plan import Plan
from reconciler.model.problem import DISK_USE, PlacementInfeasible, Severity
from reconciler.model.stage import moves_of
from reconciler.planner.place import plan_placement
from reconciler.planner.space import search
from reconciler.workflow.own_proof import with_own_proof
from reconciler.workflow.plan import Planner


def _proved(desired: Desired, observed: Cluster) -> Plan:
    """Return the plan with what its own proof adds."""
    return with_own_proof(Planner().plan(desired, observed), desired, observed, None)


def _codes(plan: Plan) -> set[str]:
    return {problem.code for problem in (*plan.violations, *plan.warnings)}


@parts("seeds", range(0, 300, 20), deep=range(600))
def test_a_plan_leaves_the_least_excess_copies_the_fewest_bytes_for_it_and_leaves_nothing_to_do(
    seeds: range, figures: Tell
) -> None:
    kinds = Counter[str]()
    for seed in seeds:
        case = full_cluster(seed)
        best = least(case)
        if best is None:
            with pytest.raises(PlacementInfeasible):
                Planner().plan(case.desired, case.observed)
            continue
        plan = _proved(case.desired, case.observed)
        (end, whole), (least_excess, least_bytes) = excess_of(case, plan), best
        assert end == least_excess[0], seed
        # If a disk has to be overfilled on the way, the order in which the stages are packed may do so by more.
        assert whole == least_excess[1] or whole > least_excess[1] > end, seed
        assert whole > least_excess[1] or plan.summary.bytes == least_bytes, seed
        assert (DISK_USE in _codes(plan)) == (NO_SPACE in _codes(plan)) == (whole > 0), seed
        assert "KR419" not in _codes(plan), seed
        reached = after(case, plan)
        assert Planner().plan(reached.desired, reached.observed).is_empty, seed
        kinds[
            f"{'kept' if not whole else 'end' if whole == end else 'way'}{' relieved' * bool(plan.summary.bytes)}"
        ] += 1
        kinds["ordered worse"] += whole > least_excess[1]
    figures("full disks", ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
    assert min(kinds["kept relieved"], kinds["end relieved"]) > len(seeds) // 10
    assert kinds["ordered worse"] <= len(seeds) // 50


@parts("seeds", range(0, 300, 30), deep=range(300))
def test_a_balance_leaves_disks_no_fuller_than_they_have_to_be_and_nothing_to_do(seeds: range) -> None:
    for seed in seeds:
        case = full_cluster(seed, Balance(replicas=Even()))
        best = least(case)
        if best is None:
            continue
        plan = _proved(case.desired, case.observed)
        end, whole = excess_of(case, plan)
        assert end == best[0][0], seed
        assert (DISK_USE in _codes(plan)) == (whole > 0), seed
        reached = after(case, plan)
        assert Planner().plan(reached.desired, reached.observed).is_empty, seed


@parts("seeds", range(0, 100, 10), deep=range(300))
def test_a_full_log_dir_is_relieved_inside_its_broker_before_anything_leaves_that(seeds: range, figures: Tell) -> None:
    kinds = Counter[str]()
    for seed in seeds:
        case = full_dirs(seed)
        plan = _proved(case.desired, case.observed)
        reached, between, inside = after_dirs(case, plan)
        end, best = reached.excess(reached.used(reached.lies)), least_dirs(case)
        assert end == best[0], seed
        assert (DISK_USE in _codes(plan)) >= (end > 0), seed
        assert "KR419" not in _codes(plan), seed
        assert Planner().plan(reached.desired, reached.observed).is_empty, seed
        # Moves inside brokers are stages before or after all others, which some of the best orders are not.
        kinds["as few between brokers" if between == best[1] else "more between brokers"] += 1
        kinds["inside"] += inside > 0
    figures("full log dirs", ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
    assert kinds["inside"] > len(seeds) // 10
    assert kinds["more between brokers"] <= len(seeds) // 10


@parts("seeds", range(0, 200, 17), deep=range(200))
def test_one_hopeless_disk_is_named_with_its_excess_and_keeps_no_other_from_relief(seeds: range) -> None:
    for seed in seeds:
        case = hopeless_cluster(seed)
        plan = _proved(case.desired, case.observed)
        (named,) = plan.violations
        assert (named.code, named.at, named.severity) == (DISK_USE, LINE, Severity.VIOLATION), seed
        assert named.message.startswith(f"broker {case.broker} would hold "), seed
        assert f"in the end, which is {case.excess / GIB} GiB ({case.excess} bytes) more than limits.diskUse" in (
            named.message
        ), seed
        assert plan.summary.bytes == case.relief, seed
        moved = {one for move in moves_of(plan.stages) for one in move.removed}
        assert moved >= {*case.full}, seed
        assert case.broker not in moved, seed


def test_a_placement_says_by_how_much_its_disks_are_too_full() -> None:
    case = hopeless_cluster(0)
    rules = topic_rules(case.desired, case.observed)
    changes = compare(case.desired, case.observed, rules)
    space = Space(case.desired.cluster.limits.disk_use or Fraction(1))
    assert plan_placement(case.desired, case.observed, rules, changes, space=space).disk_excess == case.excess
    assert plan_placement(case.desired, case.observed, rules, changes).disk_excess == 0


def _planned(
    held: dict[int, dict[str, list[int]]],
    *,
    share: Fraction = Fraction(1, 2),
    balance: Balance | None = None,
    planner: Planner | None = None,
    states: Mapping[int, BrokerState] | None = None,
) -> Plan:
    """Return the plan of topics of RF 1 on brokers with disks of 120 GiB: `held` has their sizes in GiB, by topic."""
    topics: dict[str, list[Partition]] = {}
    for broker, sizes in held.items():
        for topic, size in ((name, size) for name in sizes for size in sizes[name]):
            found = topics.setdefault(topic, [])
            found.append(Partition(len(found), broker, (broker,), (broker,), sizes=(size * GIB,), log_dirs=("/d",)))
    used = {broker: sum(map(sum, sizes.values())) * GIB for broker, sizes in held.items()}
    brokers = {b: Broker(b, log_dirs=(LogDir("/d", 120 * GIB, 120 * GIB - size),)) for b, size in used.items()}
    cluster = DesiredCluster(
        "c",
        brokers={one: DesiredBroker(one, state) for one, state in (states or {}).items()},
        balance=balance or Balance(),
        limits=Limits(disk_use=share, at={"diskUse": LINE}),
    )
    made = {name: Topic(name, tuple(found)) for name, found in sorted(topics.items())}
    desired = Desired(cluster, topics={name: DesiredTopic(name, replication_factor=1) for name in made})
    observed = Cluster("id", brokers=brokers, topics=made)
    return with_own_proof((planner or Planner()).plan(desired, observed), desired, observed, None)


FULL = {"t": [30, 40]}


@pytest.mark.parametrize(
    ("others", "states", "copied"),
    [
        pytest.param({2: {}, 3: {}}, {}, 30, id="nothing else is open"),
        pytest.param({2: {"empty": [0]}, 3: {}}, {}, 30, id="an empty topic"),
        pytest.param({2: {}, 3: {}, 4: {"u": [5]}}, {4: BrokerState.DRAINING}, 35, id="a broker that drains"),
        pytest.param({2: {}, 3: {}, 4: {"u": [0]}}, {4: BrokerState.DRAINING}, 30, id="an empty one that drains"),
        pytest.param({2: {"u": [1, 2, 3]}, 3: {"u": [4]}}, {}, 30, id="others on the disks that take it in"),
        pytest.param({2: {}, 3: {}, 4: {}}, {2: BrokerState.CORDONED, 3: BrokerState.MAINTENANCE}, 30, id="states"),
    ],
)
def test_a_full_disk_is_relieved_whatever_else_may_be_chosen(
    others: dict[int, dict[str, list[int]]], states: dict[int, BrokerState], copied: int
) -> None:
    plan = _planned({1: FULL, **others}, states=states)
    assert (plan.summary.bytes, plan.violations) == (copied * GIB, ())
    assert not _codes(plan) & {NO_SPACE, DISK_USE}


def test_an_empty_replica_is_no_reason_to_say_that_no_placement_fits() -> None:
    plan = _planned({1: {"t": [50]}, 2: {"t": [40]}, 3: {"t": [0]}}, states={3: BrokerState.DRAINING})
    assert (plan.summary.bytes, plan.violations, plan.summary.replica_moves) == (0, (), 1)
    assert NO_SPACE not in _codes(plan)


def test_what_a_plan_deletes_needs_no_relief() -> None:
    observed = small_cluster("a-0: 1 size 60", "b-0: 1 size 30", brokers=(1, 2))
    brokers = {one: replace(broker, log_dirs=(LogDir("/d", 100, 10),)) for one, broker in observed.brokers.items()}
    limits = Limits(disk_use=Fraction(1, 2), at={"diskUse": LINE})
    brokers[2] = replace(brokers[2], log_dirs=(LogDir("/d", 100, 100),))
    cluster = DesiredCluster("c", limits=limits, topics=TopicPolicy(is_delete_allowed=True))
    desired = Desired(cluster, {"a": DesiredTopic("a", is_absent=True), "b": DesiredTopic("b", replication_factor=1)})
    state = replace(observed, brokers=brokers)
    plan = _proved(desired, state)
    assert (plan.summary.bytes, [one.code for one in plan.violations]) == (0, [])


def test_a_plan_for_some_topics_names_only_disks_that_it_could_relieve() -> None:
    held = {1: {"t": [70]}, 2: {"u": [50]}, 3: {}}
    named = {only: _codes(_planned(held, planner=Planner(only=(only,)))) & {DISK_USE, NO_SPACE} for only in "tu"}
    assert named == {"t": {DISK_USE, NO_SPACE}, "u": set()}


@pytest.mark.parametrize("balance", [Balance(), Balance(replicas=Even())])
def test_a_budget_forbids_no_relief_and_says_how_far_it_is_gone_beyond(balance: Balance) -> None:
    for most, is_beyond in ((30, False), (29, True), (0, True)):
        plan = _planned({1: FULL, 2: {}, 3: {}}, balance=balance, planner=Planner(budget=Budget(bytes=most * GIB)))
        assert (plan.summary.bytes, plan.violations) == (30 * GIB, ()), most
        assert ("KR870" in _codes(plan)) == is_beyond, most


@pytest.mark.parametrize(
    "balance", [Balance(replicas=Even()), Balance(topics=Even()), Balance(disk=Within(Fraction(1, 2)))]
)
def test_with_a_balance_a_hopeless_disk_is_named_and_the_others_are_relieved(balance: Balance) -> None:
    plan = _planned({1: {"giant": [100]}, 2: FULL, 3: {}, 4: {}, 5: {}}, balance=balance)
    (named,) = plan.violations
    assert named.message.startswith("broker 1 would hold 100.0 GiB"), named
    assert f"({40 * GIB} bytes)" in named.message


def test_if_a_size_is_unknown_nothing_is_said_of_every_placement() -> None:
    observed = small_cluster("t-0: 1 size 60", "u-0: 1", brokers=(1, 2))
    brokers = {one: replace(broker, log_dirs=(LogDir("/d", 100, 10),)) for one, broker in observed.brokers.items()}
    limits = Limits(disk_use=Fraction(1, 2), at={"diskUse": LINE})
    topics = {name: DesiredTopic(name, replication_factor=1) for name in "tu"}
    desired, state = Desired(DesiredCluster("c", limits=limits), topics), replace(observed, brokers=brokers)
    plan = _proved(desired, state)
    (said,) = (problem.message for problem in plan.warnings if problem.code == NO_SPACE)
    assert "was found" in said, said
    assert said.endswith("with unknown sizes as 0"), said
    assert {violation.code for violation in plan.violations} == {DISK_USE}


@parts("seeds", range(0, 300, 6), deep=range(300))
def test_a_spread_that_is_preferred_leaves_disks_no_fuller_than_none_and_nothing_to_do(
    seeds: range, figures: Tell
) -> None:
    kinds = Counter[str]()
    for seed in seeds:
        case = full_cluster(seed)
        best = least(case)
        if case.factor == 1 or case.is_strict or best is None:
            continue
        desired = with_spread(case, Spread.PREFER)
        plan = _proved(desired, case.observed)
        end, whole = excess_of(case, plan)
        assert end == best[0][0], seed
        assert (DISK_USE in _codes(plan)) == (NO_SPACE in _codes(plan)) == (whole > 0), seed
        is_off, reached = "KR806" in _codes(plan), after(case, plan)
        following = Planner().plan(desired, reached.observed)
        # A spread that yields because no way to it is within the limit may be reached from where this plan ends.
        assert following.is_empty or is_off, seed
        assert Planner().plan(desired, after(reached, following).observed).is_empty, seed
        kinds["in two plans"] += not following.is_empty
        kinds[f"{'off the spread' if is_off else 'spread'}, {'above' if end else 'within'}"] += 1
    figures("full disks, a spread preferred", ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
    assert any(kind.startswith("off") for kind in kinds)
    assert kinds["in two plans"] <= 1 + len(seeds) // 100


@parts("seeds", range(16, 300, 22), deep=range(300))
def test_a_balance_of_loads_leaves_disks_no_fuller_than_rules_alone_would_whose_spread_yields(seeds: range) -> None:
    yielding = 0
    for seed in seeds:
        case = full_cluster(seed, Balance(disk=Within(Fraction(1, 5))))
        best = least(case)
        if best is None or case.is_strict:
            continue
        desired = with_spread(case, Spread.PREFER)
        plan = _proved(desired, case.observed)
        assert excess_of(case, plan)[0] == best[0][0], seed
        assert "KR419" not in _codes(plan), seed
        yielding += "KR806" in _codes(plan)
    assert yielding


@pytest.mark.parametrize("seed", range(0, 200, 9))
def test_a_search_that_finds_nothing_leaves_what_moving_one_replica_after_another_relieves(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "solved", lambda *_, **__: (cp_model.UNKNOWN, cp_model.CpSolver()))
    case = hopeless_cluster(seed)
    plan = _proved(case.desired, case.observed)
    (named,) = plan.violations
    assert (named.code, named.message.startswith(f"broker {case.broker} would hold ")) == (DISK_USE, True)
    assert plan.summary.bytes == case.relief
    (said,) = (problem.message for problem in plan.warnings if problem.code == NO_SPACE)
    assert "all placements were searched" not in said or "not all placements were searched" in said


@parts("seeds", range(0, 300, 10), deep=range(300))
def test_without_a_search_disks_get_no_fuller_and_no_rule_is_broken(
    seeds: range, monkeypatch: pytest.MonkeyPatch, figures: Tell
) -> None:
    monkeypatch.setattr(search, "solved", lambda *_, **__: (cp_model.UNKNOWN, cp_model.CpSolver()))
    reached = Counter[str]()
    for seed in seeds:
        case = full_cluster(seed)
        best = least(case)
        if best is None:
            continue
        desired = with_spread(case, Spread.STRICT if case.is_strict else Spread.PREFER)
        plan = _proved(desired, case.observed)
        end, whole = excess_of(case, plan)
        assert "KR419" not in _codes(plan), seed
        assert (DISK_USE in _codes(plan)) == (whole > 0), seed
        reached["least" if end == best[0][0] else "more"] += 1
    figures("full disks without a search", ", ".join(f"{kind} {count}" for kind, count in sorted(reached.items())))
    assert reached["least"] > len(seeds) // 2
