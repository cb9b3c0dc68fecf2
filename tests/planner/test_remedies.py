"""What would make a refused plan fit: found exactly where brute force finds it, the smallest first, in one sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import islice

import pytest
from helpers.clusters.random_clusters import Size, random_cluster
from helpers.clusters.small_cluster import small_cluster, with_cordons
from helpers.depth import parts
from planner.remedy_oracle import is_pair_enough, is_plannable, kinds_that_help

from reconciler.model.cluster import Cluster
from reconciler.model.desired import (
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Limits,
    Placement,
    Protection,
    Spread,
)
from reconciler.model.plan import Plan
from reconciler.model.problem import InvalidInput, Location, PlacementInfeasible, Remedy
from reconciler.planner.remedies import (
    MOST,
    THOROUGH,
    Effort,
    States,
    conflicting,
    remedies_of_conflict,
    remedies_of_violations,
)
from reconciler.planner.remedy_changes import changes_for, loses_racks, of_topics, thinned
from reconciler.workflow.plan import plan_of

pytestmark = pytest.mark.long

some_refused = parts("count", 10, deep=40)
NO_PLANS = Effort(plans=0, partitions=0)
STRICT = Placement(racks_spread=Spread.STRICT)
PLACES = {
    "": Location("t.yaml", 1),
    "replicationFactor": Location("t.yaml", 5),
    "placement.racks.spread": Location("t.yaml", 6),
    "placement.racks.only": Location("t.yaml", 7),
    "placement.racks.leader": Location("t.yaml", 8),
    "placement.brokers.only": Location("t.yaml", 9),
    "placement.brokers.except": Location("t.yaml", 10),
    "placement.assignment": Location("t.yaml", 11),
    "protect": Location("t.yaml", 12),
}
DRAIN = {
    broker_id: DesiredBroker(broker_id, BrokerState.DRAINING, at=Location("c.yaml", 20 + broker_id))
    for broker_id in range(1, 7)
}


def _topic(name: str = "t", factor: int | None = None, placement: Placement = STRICT, **fields: object) -> DesiredTopic:
    return DesiredTopic(name, replication_factor=factor, placement=placement, at=PLACES, **fields)  # type: ignore[arg-type]


def _told(remedies: Sequence[Remedy]) -> list[str]:
    return [
        " and ".join(f"{edit.words} ({edit.at})" if edit.at else edit.words for edit in remedy.edits)
        for remedy in remedies
    ]


def _remedies(
    topics: Sequence[DesiredTopic],
    brokers: Mapping[int, DesiredBroker],
    observed: Cluster,
    effort: Effort = THOROUGH,
    limits: Limits | None = None,
) -> list[str]:
    cluster = DesiredCluster("c", brokers=brokers, limits=limits or Limits())
    desired = Desired(cluster, {topic.name: topic for topic in topics})
    return _told(remedies_of_conflict(States(desired, observed), None, plan_of, effort))


def test_a_broker_less_in_a_rack_of_two_is_no_conflict() -> None:
    assert _remedies([_topic()], {5: DRAIN[5]}, small_cluster("t-0: 1,2,3 size 1")) == []


def test_an_empty_rack_under_a_strict_rule() -> None:
    observed = small_cluster("t-0: 1,2,3 size 1", brokers=(1, 2, 3, 4, 5), fenced=(3,))
    assert _remedies([_topic()], {}, observed) == [
        "racks.spread is prefer, not strict, for t (t.yaml:6)",
        "replicationFactor is 2, not 3, for t (t.yaml:5)",
        "one more broker joins in rack c",
    ]


def test_two_brokers_draining_where_one_is_needed() -> None:
    observed = small_cluster("t-0: 1,2,3 size 1", brokers=(1, 2, 3, 4))
    topic = _topic(placement=Placement())
    assert _remedies([topic], {3: DRAIN[3], 4: DRAIN[4]}, observed) == [
        "broker 3 stays active (c.yaml:23)",
        "replicationFactor is 2, not 3, for t (t.yaml:5)",
        "one more broker joins in rack c",
    ]


def test_what_is_supposed_is_not_taken_back() -> None:
    observed = small_cluster("t-0: 1,2,3 size 1", brokers=(1, 2, 3))
    supposed = {3: replace(DRAIN[3], at=Location("--what-if", 1))}
    assert _remedies([_topic(placement=Placement())], supposed, observed) == [
        "replicationFactor is 2, not 3, for t (t.yaml:5)",
        "one more broker joins in rack c",
    ]


@pytest.mark.parametrize(
    ("placement", "first"),
    [
        (Placement(brokers_only=frozenset({1, 2})), "brokers.only names 3 too, for t (t.yaml:9)"),
        (Placement(brokers_except=frozenset({2, 3, 4, 5})), "brokers.except does not name 2, for t (t.yaml:10)"),
        (Placement(racks_only=frozenset({"a"})), "racks.only names b too, for t (t.yaml:7)"),
    ],
)
def test_names_are_widened_by_one(placement: Placement, first: str) -> None:
    assert _remedies([_topic(factor=3, placement=placement)], {}, small_cluster("t-0: 1,4 size 1"))[0] == first


def test_a_cordoned_broker_is_let_in_again() -> None:
    observed = small_cluster("t-0: 1,2 size 1", brokers=(1, 2, 3))
    cordoned = {3: DesiredBroker(3, BrokerState.CORDONED, at=Location("c.yaml", 23))}
    assert _remedies([_topic(factor=3)], cordoned, observed)[0] == "broker 3 is active, not cordoned (c.yaml:23)"


def test_a_broker_that_kafka_cordons_is_declared_active() -> None:
    observed = with_cordons(small_cluster("t-0: 1,2 size 1", brokers=(1, 2, 3)), [3])
    remedy = "broker 3 is declared active, though Kafka has cordoned it"
    assert _remedies([_topic(factor=3)], {}, observed)[0] == remedy


def test_a_broker_declared_absent_drains_first() -> None:
    absent = {3: DesiredBroker(3, BrokerState.ABSENT, at=Location("c.yaml", 23))}
    assert _remedies([_topic()], absent, small_cluster("t-0: 1,2,3 size 1"))[0] == (
        "broker 3 is declared draining, not absent (c.yaml:23)"
    )


def test_a_topic_that_must_not_move_but_has_to() -> None:
    frozen = _topic(protect=frozenset({Protection.MOVE}))
    assert _remedies([frozen], {3: DRAIN[3]}, small_cluster("t-0: 1,2,3 size 1")) == [
        "broker 3 stays active (c.yaml:23)",
        "protect does not name move, for t (t.yaml:12)",
    ]


def test_an_assignment_that_breaks_a_rule() -> None:
    written = _topic(placement=Placement(assignment=((1, 3),)))
    assert _remedies([written], {3: DRAIN[3]}, small_cluster("t-0: 1,2 size 1")) == [
        "broker 3 stays active (c.yaml:23)",
        "placement.assignment is left out, for t (t.yaml:11)",
    ]


def test_a_replication_factor_never_falls_below_min_isr() -> None:
    observed = small_cluster("t-0: 1,2 size 1", brokers=(1, 2), configs={"t": {"min.insync.replicas": "2"}})
    told = _remedies([_topic(placement=Placement())], {2: DRAIN[2]}, observed)
    assert told == ["broker 2 stays active (c.yaml:22)", "one more broker joins in rack b"]


def test_topics_in_conflict_are_changed_together_and_told_by_line() -> None:
    lines = [f"{name}-0: 1,2,3 size 1" for name in "abcde"]
    observed = small_cluster(*lines, brokers=(1, 2, 3), fenced=(3,))
    other = {**PLACES, "replicationFactor": Location("u.yaml", 2)}
    topics = [_topic(name) for name in "abcd"] + [replace(_topic("e"), at=other)]
    first, second = _remedies(topics, {}, observed)
    assert first.split(" and replicationFactor") == [
        "replicationFactor is 2, not 3, for a, b, c and 1 more (t.yaml:5)",
        " is 2, not 3, for e (u.yaml:2)",
    ]
    assert second == "one more broker joins in rack c"


def test_two_changes_where_one_is_not_enough() -> None:
    observed = small_cluster("t-0: 1,2,3 size 1", brokers=(1, 2, 3))
    brokers = {2: DRAIN[2], 3: DRAIN[3]}
    told = _remedies([_topic(placement=Placement())], brokers, observed)
    assert told[0] == "broker 2 stays active (c.yaml:22) and broker 3 stays active (c.yaml:23)"
    assert all(" and " in each or each == "two more brokers join in rack a" for each in told)


def test_a_limit_in_the_way_is_raised_with_it() -> None:
    observed = small_cluster("t-0: 1,2,3 size 1", brokers=(1, 2, 3, 4), fenced=(3,))
    limits = Limits(changed_partitions=Fraction(1, 10), at={"changedPartitions": Location("c.yaml", 9)})
    told = _remedies([_topic()], {}, observed, limits=limits)
    assert told[0] == (
        "racks.spread is prefer, not strict, for t (t.yaml:6) and limits.changedPartitions is 100% (c.yaml:9)"
    )


def test_without_plans_to_spend_a_remedy_says_that_it_was_not_planned() -> None:
    observed = small_cluster("t-0: 1,2,3 size 1", brokers=(1, 2, 3, 4, 5), fenced=(3,))
    states = States(Desired(DesiredCluster("c"), {"t": _topic()}), observed)

    def never(_desired: Desired, _observed: Cluster) -> Plan:
        raise AssertionError

    found = remedies_of_conflict(states, None, never, NO_PLANS)
    assert _told(found)[0] == "racks.spread is prefer, not strict, for t (t.yaml:6)"
    assert [remedy.is_planned for remedy in found] == [False, False, False]


def test_plans_of_a_large_cluster_are_counted() -> None:
    observed = small_cluster("t-0: 1,2,3 size 1", "t-1: 1,2,3 size 1", brokers=(1, 2, 3, 4, 5), fenced=(3,))
    states = States(Desired(DesiredCluster("c"), {"t": _topic()}), observed)
    found = remedies_of_conflict(states, None, plan_of, Effort(plans=9, partitions=3))
    assert [remedy.is_planned for remedy in found] == [True, False, False]


DRAWN = Size(brokers=5, topics=3, partitions=5, replication_factor=3)


@cache
def _refused(count: int) -> list[tuple[int, States]]:
    """Return so many random states that cannot be planned because rules are in conflict, if there are."""
    drawn = ((seed, States(*random_cluster(seed, DRAWN))) for seed in range(450))
    return list(islice((each for each in drawn if not is_plannable(each[1]) and _is_conflict(each[1])), count))


def _is_conflict(states: States) -> bool:
    try:
        plan_of(*states)
    except PlacementInfeasible:
        return True
    except InvalidInput:
        return False
    return False


@some_refused
def test_enough_random_states_are_refused_for_many_reasons(count: int) -> None:
    refused = _refused(count)
    kinds = {kind for _, states in refused for kind in kinds_that_help(states, conflicting(states, None))}
    assert len(refused) >= 3 * count / 4
    assert kinds >= {"kept", "spread", "factor", "broker", "brokers", "protect"}


@some_refused
def test_random_refusals_get_exactly_the_kinds_of_single_change_that_brute_force_finds(count: int) -> None:
    for seed, states in _refused(count):
        topics = conflicting(states, None)
        changes = {change.edits: change for change in changes_for(states, sorted(topics))}
        found = remedies_of_conflict(states, None, plan_of, THOROUGH)
        kinds = {changes[remedy.edits].kind for remedy in found if remedy.edits in changes}
        helping = kinds_that_help(states, topics)
        if len(helping) > MOST:
            assert len(found) == MOST, seed
            assert kinds <= helping, seed
        elif helping:
            assert kinds == helping, seed
        else:
            assert not kinds, seed
            assert bool(found) == is_pair_enough(states, topics), seed


@some_refused
def test_what_is_checked_on_a_thinned_cluster_is_true_of_the_whole(count: int) -> None:
    for seed, states in _refused(count):
        topics = conflicting(states, None)
        thin = thinned(states, topics)
        for change in changes_for(states, sorted(topics)):
            whole = conflicting(change.make(states), None) & topics
            assert bool(conflicting(change.make(thin), None)) == bool(whole), (seed, change.edits)
            alone = of_topics(states, topics)
            loses = loses_racks(alone, change.make(alone))
            assert loses_racks(thin, change.make(thin)) == loses, (seed, change.edits)


def test_partitions_that_keep_a_replica_on_a_cordoned_broker_are_not_like_others() -> None:
    observed = small_cluster("t-0: 1,3 size 1", "t-1: 1,2 size 1", brokers=(1, 2, 3))
    brokers = {2: DRAIN[2], 3: DesiredBroker(3, BrokerState.CORDONED)}
    topic = _topic(placement=Placement(racks_spread=Spread.IGNORE))
    states = States(Desired(DesiredCluster("c", brokers=brokers), {"t": topic}), observed)
    assert conflicting(states, None) == conflicting(thinned(states, {"t"}), None) == {"t"}


def _violating(limits: Limits, brokers: Mapping[int, DesiredBroker], observed: Cluster) -> list[str]:
    desired = Desired(DesiredCluster("c", brokers=brokers, limits=limits), {"t": _topic(placement=Placement())})
    plan = plan_of(desired, observed)
    assert plan.violations
    return _told(remedies_of_violations(States(desired, observed), plan, plan_of, THOROUGH))


@pytest.mark.parametrize(
    ("limits", "first"),
    [
        (Limits(changed_partitions=1), "limits.changedPartitions is 2"),
        (Limits(changed_partitions=Fraction(1, 100)), "limits.changedPartitions is 67%"),
        (Limits(moved_bytes=1 << 20), "limits.movedBytes is 6GiB"),
        (Limits(moved_bytes=1, changed_partitions=0), "limits.changedPartitions is 2 and limits.movedBytes is 6GiB"),
    ],
)
def test_a_limit_is_raised_just_as_far_as_the_plan_needs(limits: Limits, first: str) -> None:
    size = 3 << 30
    lines = (f"t-0: 1,2 size {size}", f"t-1: 2,3 size {size}", "t-2: 1,3 size 1")
    told = _violating(limits, {2: DRAIN[2]}, small_cluster(*lines, brokers=(1, 2, 3, 4)))
    assert told == [first, "broker 2 stays active (c.yaml:22)"]


def test_disk_use_is_raised_to_the_least_percent_that_can_be_staged() -> None:
    limits = Limits(disk_use=Fraction(1, 2))
    told = _violating(limits, {1: DRAIN[1]}, small_cluster("t-0: 1 size 850", brokers=(1, 2), disk_bytes=1000))
    assert told[0] == "limits.diskUse is 85%"


def test_a_disk_that_is_too_small_is_not_helped_by_a_limit() -> None:
    limits = Limits(disk_use=Fraction(1, 2))
    told = _violating(limits, {1: DRAIN[1]}, small_cluster("t-0: 1 size 1700", brokers=(1, 2), disk_bytes=1000))
    assert told == ["broker 1 stays active (c.yaml:21)"]
