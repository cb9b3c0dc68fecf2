from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.change import AlterConfigs, Changes, CreatePartitions, CreateTopic, DeleteTopic
from reconciler.model.cluster import Cluster
from reconciler.model.desired import (
    Balance,
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    Placement,
    Protection,
    Spread,
    TopicPolicy,
)
from reconciler.model.move import Election, Reason
from reconciler.model.problem import InvalidInput, Location, Problem
from reconciler.model.topic_partition import TopicPartition

OBSERVED = small_cluster("orders-0: 1,2,3", "orders-1: 2,3,1 leader 3", configs={"orders": {"retention.ms": "1"}})


def changes(*topics: DesiredTopic, observed: Cluster = OBSERVED, cluster: DesiredCluster | None = None) -> Changes:
    """Return what differs, without the effects of changes, which `test_effects` is about."""
    desired = Desired(cluster or DesiredCluster("c"), {topic.name: topic for topic in topics})
    found = compare(desired, observed, topic_rules(desired, observed))
    return replace(found, topic_changes=tuple(replace(each, effects=()) for each in found.topic_changes))


def test_what_is_not_written_is_not_compared() -> None:
    assert changes(DesiredTopic("orders"), cluster=DesiredCluster("c", is_election_wanted=False)) == Changes()


def test_only_written_config_keys_are_compared_and_null_removes_an_override() -> None:
    wanted = DesiredTopic("orders", config={"retention.ms": None, "segment.ms": "5", "flush.ms": None})
    assert changes(wanted).topic_changes == (
        AlterConfigs(
            "orders", {"segment.ms": "5"}, ("retention.ms",), {"retention.ms": "1", "segment.ms": None}, at=None
        ),
    )


def test_a_topic_that_is_not_there_is_created_and_one_that_is_too_small_grows() -> None:
    found = changes(DesiredTopic("new", partitions=2, replication_factor=3), DesiredTopic("orders", partitions=4))
    assert found.topic_changes == (CreateTopic("new", 2, 3), CreatePartitions("orders", 2, 4))


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (DesiredTopic("new", partitions=2), "KR244"),
        (DesiredTopic("new", replication_factor=2), "KR244"),
        (DesiredTopic("__new", partitions=1, replication_factor=1), "KR243"),
        (DesiredTopic("orders", partitions=1), "KR248"),
        (DesiredTopic("orders", partitions=3, protect=frozenset({Protection.GROW})), "KR249"),
    ],
)
def test_a_contradiction_is_an_error_with_its_code(topic: DesiredTopic, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        changes(topic)
    assert [problem.code for problem in caught.value.problems] == [code]


def test_a_topic_that_is_to_be_absent_and_is_protected_is_refused_at_its_state() -> None:
    line = Location("c/t.yaml", 4)
    with pytest.raises(InvalidInput) as caught:
        changes(DesiredTopic("orders", is_absent=True, protect=frozenset({Protection.DELETE}), at={"state": line}))
    message = "topic orders is to be absent, but protect names delete: drop one of the two"
    assert caught.value.problems == (Problem("KR246", message, line),)


def test_an_internal_topic_does_not_grow_and_the_line_that_asks_for_it_is_named() -> None:
    there = replace(OBSERVED.topics["orders"], name="__offsets", is_internal=True)
    line = Location("c/t.yaml", 7)
    wanted = DesiredTopic("__offsets", partitions=5, at={"partitions": line})
    with pytest.raises(InvalidInput) as caught:
        changes(wanted, observed=replace(OBSERVED, topics={"__offsets": there}))
    assert [(problem.code, problem.at) for problem in caught.value.problems] == [("KR243", line)]


def test_another_cluster_is_refused() -> None:
    line = Location("c/cluster.yaml", 2)
    text = "declares clusterId other, but the observed cluster is simulated"
    with pytest.raises(InvalidInput, match=text) as caught:
        changes(cluster=DesiredCluster("c", cluster_id="other", at=line))
    assert [(problem.code, problem.at) for problem in caught.value.problems] == [("KR231", line)]


def _with_patterns(*patterns: DesiredTopic, named: tuple[DesiredTopic, ...] = (), ignored: str = "__*") -> Changes:
    cluster = DesiredCluster("c", topics=TopicPolicy(ignore=(ignored,)))
    desired = Desired(cluster, {topic.name: topic for topic in named}, patterns)
    return compare(desired, OBSERVED, topic_rules(desired, OBSERVED))


def _pattern(name: str, line: int, **config: str) -> DesiredTopic:
    return DesiredTopic(name, config=config, at={"": Location("c/t.yaml", line)})


def test_equally_long_patterns_that_contradict_each_other_are_an_error_whatever_their_order() -> None:
    one, other, third = _pattern("ord*", 1, x="1"), _pattern("*ers", 5, x="2"), _pattern("o*rs", 9, x="1")
    with pytest.raises(InvalidInput) as caught:
        _with_patterns(one, other)
    (problem,) = caught.value.problems
    assert (problem.code, problem.at) == ("KR250", Location("c/t.yaml", 5))
    assert problem.message.startswith(
        "topic orders: the patterns ord* (c/t.yaml:1) and *ers (c/t.yaml:5) are equally long and say different things"
    )
    for order in ((other, one), (third, other, one), (third, one, other)):
        with pytest.raises(InvalidInput) as caught:
            _with_patterns(*order)
        assert {problem.code for problem in caught.value.problems} == {"KR250"}


def test_patterns_do_not_contradict_each_other_where_something_decides_or_nothing_hangs_on_it() -> None:
    one, other = _pattern("ord*", 1, x="1"), _pattern("*ers", 5, x="2")
    assert _with_patterns(one, other, _pattern("order*", 9, x="3")).topic_changes
    assert _with_patterns(one, _pattern("*ers", 5, x="1")).topic_changes
    assert _with_patterns(one, _pattern("*xyz", 5, x="2")).topic_changes
    assert not _with_patterns(one, other, named=(DesiredTopic("orders"),)).topic_changes
    assert not _with_patterns(one, other, ignored="orders").topic_changes


def test_an_absent_topic_goes_only_where_deletion_is_allowed() -> None:
    absent = DesiredTopic("orders", is_absent=True)
    assert [problem.code for problem in changes(absent).drift] == ["KR247"]
    allowing = DesiredCluster("c", topics=TopicPolicy(is_delete_allowed=True))
    assert changes(absent, cluster=allowing).topic_changes == (DeleteTopic("orders", "id-of-orders", is_declared=True),)


def test_a_declared_broker_that_is_missing_and_an_absent_one_that_is_there_are_told() -> None:
    brokers = {1: DesiredBroker(1, BrokerState.ABSENT), 9: DesiredBroker(9), 10: DesiredBroker(10, BrokerState.ABSENT)}
    first, second = changes(cluster=DesiredCluster("c", brokers=brokers)).drift
    assert (first.code, first.message) == ("KR242", "broker 1 is declared absent, but it is still registered")
    assert (second.code, second.message) == ("KR241", "broker 9 is declared, but it is not registered in the cluster")


def test_an_undeclared_topic_is_drift_only_where_all_are_managed() -> None:
    assert not changes().drift
    assert [
        problem.code for problem in changes(cluster=DesiredCluster("c", topics=TopicPolicy(is_all_managed=True))).drift
    ] == ["KR245"]


def test_what_happens_to_an_undeclared_topic_has_the_line_that_says_so() -> None:
    at = {key: Location("c/cluster.yaml", line) for line, key in ((7, "managed"), (8, "delete"))}
    allowing = TopicPolicy(is_all_managed=True, is_delete_allowed=True, at=at)
    (deletion,) = changes(cluster=DesiredCluster("c", topics=allowing)).topic_changes
    assert deletion.at == at["delete"]
    for places, expected in ((at, at["delete"]), ({"managed": at["managed"]}, at["managed"]), ({}, None)):
        (problem,) = changes(cluster=DesiredCluster("c", topics=TopicPolicy(is_all_managed=True, at=places))).drift
        assert problem.at == expected


@pytest.mark.parametrize(
    ("topic", "cluster", "reason"),
    [
        (DesiredTopic("orders", replication_factor=2), DesiredCluster("c"), Reason.REPLICATION_FACTOR),
        (
            DesiredTopic("orders", placement=Placement(brokers_except=frozenset({2}))),
            DesiredCluster("c"),
            Reason.ELIGIBILITY,
        ),
        (
            DesiredTopic("orders"),
            DesiredCluster("c", brokers={2: DesiredBroker(2, BrokerState.DRAINING)}),
            Reason.DRAINING,
        ),
        (
            DesiredTopic("orders", placement=Placement(assignment=((3, 2, 1), (1, 2, 3)))),
            DesiredCluster("c"),
            Reason.ASSIGNMENT,
        ),
    ],
)
def test_a_broken_rule_has_its_reason(topic: DesiredTopic, cluster: DesiredCluster, reason: Reason) -> None:
    assert {broken.reason for broken in changes(topic, cluster=cluster).broken_rules} == {reason}


@pytest.mark.parametrize(
    ("placement", "detail", "line"),
    [
        (Placement(racks_only=frozenset("ab")), "broker 3 not allowed by placement.racks.only", 5),
        (Placement(brokers_except=frozenset({3})), "broker 3 not allowed by placement.brokers", 6),
        (Placement(brokers_only=frozenset({1, 2})), "broker 3 not allowed by placement.brokers", 6),
        (
            Placement(racks_only=frozenset("ab"), brokers_only=frozenset({1, 2})),
            "broker 3 not allowed by placement.brokers",
            6,
        ),
        (
            Placement(racks_only=frozenset("ab"), brokers_except=frozenset({2})),
            "brokers 2, 3 not allowed by placement.brokers",
            6,
        ),
    ],
)
def test_a_broker_that_is_not_allowed_is_told_with_the_words_that_bar_it(
    placement: Placement, detail: str, line: int
) -> None:
    at = {"placement.racks.only": Location("c/t.yaml", 5), "placement.brokers": Location("c/t.yaml", 6)}
    observed = small_cluster("orders-0: 1,2,3")
    (broken,) = changes(DesiredTopic("orders", placement=placement, at=at), observed=observed).broken_rules
    assert (broken.reason, broken.detail, broken.at) == (Reason.ELIGIBILITY, detail, Location("c/t.yaml", line))


def test_an_assignment_is_told_list_by_list() -> None:
    observed = small_cluster("orders-0: 1,2,3", "orders-1: 1,2,3")
    wanted = DesiredTopic("orders", placement=Placement(assignment=((3, 2, 1), (1, 2, 3))))
    (broken,) = changes(wanted, observed=observed).broken_rules
    assert (str(broken.topic_partition), broken.detail) == ("orders-0", "assignment [1, 2, 3] -> [3, 2, 1]")


@pytest.mark.parametrize("there", [1, 2, 3, 4])
@pytest.mark.parametrize("lists", [1, 2, 3, 4])
@pytest.mark.parametrize("is_internal", [False, True])
def test_an_assignment_without_partitions_has_one_list_for_each_partition(
    *, there: int, lists: int, is_internal: bool
) -> None:
    line = Location("c/t.yaml", 7)
    observed = small_cluster(*(f"orders-{number}: 1,2,3" for number in range(there)))
    observed = replace(observed, topics={"orders": replace(observed.topics["orders"], is_internal=is_internal)})
    placement = Placement(assignment=((1, 2, 3),) * lists)
    wanted = DesiredTopic("orders", placement=placement, at={"placement.assignment": line})
    if lists == there:
        assert changes(wanted, observed=observed) == Changes()
        return
    with pytest.raises(InvalidInput) as refused:
        changes(wanted, observed=observed)
    (problem,) = refused.value.problems
    assert (problem.code, problem.at) == ("KR258", line)
    counts = [f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in ((there, "partition"), (lists, "list"))]
    assert problem.message.startswith(f"topic orders has {counts[0]} and its assignment {counts[1]}: write one list")
    assert (f"partitions: {lists}" in problem.message) == (lists > there and not is_internal)
    if lists > there and not is_internal:
        grown = changes(replace(wanted, partitions=lists), observed=observed).topic_changes
        assert grown == (CreatePartitions("orders", there, lists, at=None),)


def test_a_creation_has_the_line_of_its_topic() -> None:
    line = Location("c/t.yaml", 3)
    (creation,) = changes(DesiredTopic("new", partitions=2, replication_factor=3, at={"": line})).topic_changes
    assert creation == CreateTopic("new", 2, 3, at=line)
    assert creation.at == line


def test_a_rack_rule_counts_only_where_it_is_written() -> None:
    observed = small_cluster("orders-0: 1,4,2")
    spread = DesiredTopic("orders", placement=Placement(racks_spread=Spread.STRICT))
    assert [broken.reason for broken in changes(spread, observed=observed).broken_rules] == [Reason.RACKS]
    assert not changes(DesiredTopic("orders"), observed=observed).broken_rules


def test_a_dead_broker_is_the_most_urgent_reason() -> None:
    observed = small_cluster("orders-0: 1,2,3 isr 1,2", fenced=(3,))
    found = changes(DesiredTopic("orders", replication_factor=2), observed=observed)
    assert [broken.reason for broken in found.broken_rules] == [Reason.DEAD_BROKER]


def test_a_more_urgent_reason_hides_no_other_difference() -> None:
    draining = DesiredCluster("c", brokers={1: DesiredBroker(1, BrokerState.DRAINING)})
    topic = DesiredTopic(
        "orders",
        replication_factor=2,
        placement=Placement(racks_spread=Spread.STRICT, brokers_except=frozenset({2}), racks_leader=frozenset({"a"})),
    )
    observed = small_cluster("orders-0: 2,5,1")
    found = changes(topic, observed=observed, cluster=draining)
    assert [broken.reason for broken in found.broken_rules] == [Reason.DRAINING]
    told = [(broken.reason, broken.detail) for broken in found.every_broken_rule]
    assert told == [
        (Reason.DRAINING, "broker 1 declared draining"),
        (Reason.REPLICATION_FACTOR, "replicationFactor 3 -> 2"),
        (Reason.ELIGIBILITY, "broker 2 not allowed by placement.brokers"),
    ]


def test_racks_and_leader_are_told_beside_what_would_leave_them_broken() -> None:
    draining = DesiredCluster("c", brokers={3: DesiredBroker(3, BrokerState.DRAINING)})
    topic = DesiredTopic("orders", placement=Placement(racks_spread=Spread.STRICT, racks_leader=frozenset({"b"})))
    observed = small_cluster("orders-0: 1,2,3,4")
    found = changes(topic, observed=observed, cluster=draining)
    assert [broken.reason for broken in found.every_broken_rule] == [Reason.DRAINING, Reason.LEADERS]
    crowded = changes(topic, observed=small_cluster("orders-0: 2,3,5"), cluster=draining)
    assert [broken.reason for broken in crowded.every_broken_rule] == [Reason.DRAINING, Reason.RACKS]


def test_a_spread_that_draining_alone_breaks_is_no_second_difference() -> None:
    draining = DesiredCluster("c", brokers={4: DesiredBroker(4, BrokerState.DRAINING)})
    topic = DesiredTopic("orders", placement=Placement(racks_spread=Spread.STRICT))
    found = changes(topic, observed=small_cluster("orders-0: 1,4,2"), cluster=draining)
    assert [broken.reason for broken in found.every_broken_rule] == [Reason.DRAINING]


def test_a_dead_broker_that_is_draining_is_told_once() -> None:
    observed = small_cluster("orders-0: 1,2,3 isr 1,2", fenced=(3,))
    draining = DesiredCluster("c", brokers={3: DesiredBroker(3, BrokerState.DRAINING)})
    found = changes(DesiredTopic("orders", replication_factor=2), observed=observed, cluster=draining)
    assert [broken.reason for broken in found.every_broken_rule] == [Reason.DEAD_BROKER, Reason.REPLICATION_FACTOR]


def test_during_a_reassignment_the_target_is_compared() -> None:
    moving = replace(
        OBSERVED.topics["orders"].partitions[0], replicas=(1, 2, 4, 3), adding_replicas=(4,), removing_replicas=(3,)
    )
    observed = replace(OBSERVED, topics={"orders": replace(OBSERVED.topics["orders"], partitions=(moving,))})
    found = changes(DesiredTopic("orders", replication_factor=3), observed=observed)
    assert not found.broken_rules


LED = (Election(TopicPartition("orders", 1), 2),)


@pytest.mark.parametrize(
    ("desired", "expected"),
    [
        (Desired(DesiredCluster("c"), {"orders": DesiredTopic("orders")}), LED),
        (Desired(DesiredCluster("c"), patterns=(DesiredTopic("ord*"),)), LED),
        (Desired(DesiredCluster("c", topics=TopicPolicy(is_all_managed=True))), LED),
        (Desired(DesiredCluster("c", balance=Balance(leaders=Even()))), ()),
        (Desired(DesiredCluster("c"), {"orders": DesiredTopic("orders", protect=frozenset({Protection.MOVE}))}), LED),
    ],
    ids=["by name", "by a pattern", "all are managed", "not declared", "its replicas are protected"],
)
def test_who_should_lead_a_declared_partition_and_is_in_sync_is_elected(
    desired: Desired, expected: tuple[Election, ...]
) -> None:
    found = compare(desired, OBSERVED, topic_rules(desired, OBSERVED))
    assert (found.elections, found.topic_changes, found.broken_rules) == (expected, (), ())


@pytest.mark.parametrize("state", [BrokerState.DRAINING, BrokerState.MAINTENANCE])
def test_a_broker_that_must_not_lead_is_not_elected_where_another_leads(state: BrokerState) -> None:
    frozen = DesiredTopic("orders", protect=frozenset({Protection.MOVE}))
    cluster = DesiredCluster("c", brokers={2: DesiredBroker(2, state)})
    assert not changes(frozen, cluster=cluster).elections


def test_with_elections_off_only_a_leader_that_must_not_lead_gives_way() -> None:
    observed = small_cluster("orders-0: 2,3,1 leader 3", "orders-1: 2,3,1 leader 1")
    off = DesiredCluster("c", is_election_wanted=False, balance=Balance(leaders=Even()))
    assert not changes(DesiredTopic("orders"), observed=observed, cluster=off).elections
    resting = replace(off, brokers={1: DesiredBroker(1, BrokerState.MAINTENANCE)})
    found = changes(DesiredTopic("orders"), observed=observed, cluster=resting)
    assert found.elections == (Election(TopicPartition("orders", 1), 2),)


def test_a_leader_is_never_elected_outside_the_isr() -> None:
    observed = small_cluster("orders-0: 2,3,1 isr 3,1 leader 3")
    assert not changes(DesiredTopic("orders"), observed=observed).elections
