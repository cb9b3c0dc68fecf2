"""Topics that nobody declares, and that stay: read now, or of a name much like that of a new one."""

from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.change import Changes, DeleteTopic
from reconciler.model.cluster import Cluster, Group, GroupMember
from reconciler.model.desired import Desired, DesiredCluster, DesiredTopic, TopicPolicy
from reconciler.model.problem import Location, Severity

ALL = TopicPolicy(is_all_managed=True, is_delete_allowed=True)
OBSERVED = replace(small_cluster("orders.events-0: 1,2,3"), has_groups=True)
LINE = Location("c/topics.yaml", 4)


def new(name: str) -> DesiredTopic:
    return DesiredTopic(name, partitions=1, replication_factor=3, at={"": LINE})


def changes(*topics: DesiredTopic, observed: Cluster = OBSERVED, policy: TopicPolicy = ALL) -> Changes:
    desired = Desired(DesiredCluster("c", topics=policy), {topic.name: topic for topic in topics})
    return compare(desired, observed, topic_rules(desired, observed))


def read_by(*groups: Group) -> Cluster:
    return replace(OBSERVED, groups=groups)


def member(*subscription: str, owns: str = "", pattern: str | None = None) -> GroupMember:
    assignment = {owns: (0,)} if owns else {}
    return GroupMember("m", subscription=subscription, assignment=assignment, subscription_pattern=pattern)


@pytest.mark.parametrize(
    "group",
    [
        Group("g", "Stable", members=(member("orders.events"),)),
        Group("g", "Stable", members=(member("clicks"), member(owns="orders.events"))),
        Group("g", "Assigning", members=(member(pattern="orders.*"),)),
        Group("g", "Assigning", members=(member(pattern="(pay|orders).*"),)),
        Group("g", "Assigning", members=(member(pattern="^orders_?.*"),)),
        Group("g", "Stable", members=(member(owns="orders.events", pattern="o.*"),)),
        Group("g", "Stable", offsets={"orders.events": {0: 4}}),
        Group("g", "Stable", members=(member(),), offsets={"orders.events": {0: 4}}),
        Group("g", "Stable", kind="share"),
    ],
)
def test_an_undeclared_topic_that_a_live_group_reads_stays_and_the_group_is_named(group: Group) -> None:
    found = changes(observed=read_by(group))
    assert found.topic_changes == ()
    ((topic, problem),) = ((one.topic, one.problem) for one in found.spared)
    assert (topic, problem.code, problem.severity) == ("orders.events", "KR417", Severity.VIOLATION)
    assert "group g reads it" in problem.message
    (kept,) = changes(DesiredTopic("orders.events", is_absent=True), observed=read_by(group)).topic_changes
    assert isinstance(kept, DeleteTopic)
    assert kept.is_declared


@pytest.mark.parametrize(
    "group",
    [
        Group("g", "Empty", offsets={"orders.events": {0: 4}}),
        Group("g", "Stable", members=(member("clicks"),), offsets={"orders.events": {0: 4}}),
        Group("g", "Stable", members=(member(pattern="payments.*"),)),
        Group("g", "Stable", members=(member(),), protocol_type="connect"),
        Group("g", "Stable", members=(member(owns="orders.old", pattern="orders.*"),)),
    ],
)
def test_one_that_nobody_reads_now_is_deleted(group: Group) -> None:
    found = changes(observed=read_by(group))
    assert [(change.topic, type(change)) for change in found.topic_changes] == [("orders.events", DeleteTopic)]
    assert found.spared == ()


LIKE = ("order.events", "orders-events", "Orders.Events", "orders.evetns", "orders.events.v2", "eu.orders.events")
UNLIKE = ("payments", "orders", "events.orders", "orders.shipments")


@pytest.mark.parametrize("name", LIKE)
def test_a_deletion_beside_a_new_topic_of_a_similar_name_is_not_planned(name: str) -> None:
    found = changes(new(name))
    assert [change.topic for change in found.topic_changes] == [name]
    ((problem),) = (one.problem for one in found.spared)
    assert (problem.code, problem.severity, problem.at) == ("KR418", Severity.VIOLATION, LINE)
    assert problem.message.startswith(f"topic {name} is new and orders.events is not declared: a rename? ")
    assert found.drift == (), "one violation tells of the pair"


@pytest.mark.parametrize("name", UNLIKE)
def test_a_deletion_beside_a_new_topic_of_another_name_is_planned(name: str) -> None:
    found = changes(new(name))
    assert sorted(change.topic for change in found.topic_changes) == sorted([name, "orders.events"])
    assert found.spared == ()


def test_where_it_stays_anyway_the_pair_is_a_warning() -> None:
    for policy in (TopicPolicy(is_all_managed=True), TopicPolicy()):
        found = changes(new("order.events"), policy=policy)
        (problem,) = (one for one in found.drift if one.code == "KR843")
        assert (problem.severity, problem.at) == (Severity.WARNING, LINE)
        assert "topic order.events is new, and orders.events, which is not declared," in problem.message


def test_a_declared_an_ignored_and_a_numbered_neighbour_are_no_slips_where_few_topics_are_declared() -> None:
    listed = TopicPolicy()
    assert changes(new("order.events"), DesiredTopic("orders.events"), policy=listed).drift == ()
    assert changes(new("order.events"), policy=replace(listed, ignore=("orders.*",))).drift == ()
    numbered = replace(small_cluster("orders-1-0: 1,2,3"), has_groups=True)
    assert changes(new("orders-2"), observed=numbered, policy=listed).drift == ()
    assert changes(new("orders.events.v2"), policy=listed).drift == ()


def test_of_two_new_names_the_more_similar_one_is_taken() -> None:
    found = changes(new("order.events"), new("orders.events.v2"))
    assert [one.problem.message.split(" is new")[0] for one in found.spared] == ["topic order.events"]
