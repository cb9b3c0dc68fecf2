"""Many topics that one line changes alike are one line of text and one row of a comment; nothing of them is lost."""

import json
import re
from dataclasses import replace
from itertools import permutations

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts

from reconciler.diff.compare import compare
from reconciler.diff.explain import differences
from reconciler.diff.rules import topic_rules
from reconciler.files.plan_file import plan_from_json, plan_text
from reconciler.model.change import Changes, CreateTopic, DeleteTopic
from reconciler.model.cluster import Cluster, Group
from reconciler.model.desired import BrokerState, Desired, DesiredBroker, DesiredCluster, DesiredTopic
from reconciler.model.effect import Effect, EffectClass
from reconciler.model.problem import Location
from reconciler.model.words import size
from reconciler.render import as_markdown, as_plan_html, as_text
from reconciler.render.rows import differences_counted
from reconciler.workflow.plan import plan_of

CLASS = {
    "config.retention.ms": Location("c/classes.yaml", 5),
    "config.segment.bytes": Location("c/classes.yaml", 7),
    "config.max.message.bytes": Location("c/classes.yaml", 6),
    "replicationFactor": Location("c/classes.yaml", 4),
    "partitions": Location("c/classes.yaml", 3),
}


def observed(topics: int, partitions: int = 2) -> Cluster:
    lines = [f"t{one:04}-{number}: 1,2 size {one}" for one in range(topics) for number in range(partitions)]
    found = small_cluster(*lines)
    groups = (Group("g1", members=(), offsets={"t0001": {}}), Group("g2", members=(), offsets={"t0002": {}}))
    return replace(found, groups=groups, has_groups=True)


def desired(cluster: Cluster, **written: object) -> Desired:
    topics = {}
    for line, name in enumerate(cluster.topics, start=10):
        topics[name] = DesiredTopic(name, at={**CLASS, "": Location("c/topics.yaml", line)}, **written)  # type: ignore[arg-type]
    return Desired(DesiredCluster("c"), topics)


def rows(text: str) -> list[str]:
    """Return the lines of changes, single blanks between their words."""
    return [re.sub(" +", " ", line.strip()) for line in text.splitlines() if re.match(r"  [-+~] ", line)]


ORDERS = [*permutations((1, 2, 3)), *permutations((1, 2, 4))]


@parts("topics", 60, deep=5000)
@pytest.mark.parametrize(
    ("written", "line"),
    [
        (
            {"config": {"segment.bytes": "1048576"}},
            "~ {named}: segment.bytes (none) -> 1048576 c/classes.yaml:7 no data",
        ),
        (
            {"config": {"max.message.bytes": "1000"}},
            "~ {named}: max.message.bytes (none) -> 1000 c/classes.yaml:6 clients may notice",
        ),
        (
            {"config": {"retention.ms": "3600000"}},
            "~ {named}: retention.ms (none) -> 3600000 c/classes.yaml:5 destroys up to {bytes}",
        ),
        ({"partitions": 3}, "+ {named}: partitions 2 -> 3; keys map elsewhere c/classes.yaml:3 cannot be undone"),
        (
            {"replication_factor": 3},
            "~ {count} topics: replicationFactor 2 -> 3 ({twice} partitions) c/classes.yaml:4 {add}, {half}",
        ),
    ],
    ids=["harmless", "clients", "destroys", "partitions", "factor"],
)
def test_a_class_level_change_is_one_line_however_many_topics(
    topics: int, written: dict[str, object], line: str
) -> None:
    cluster = observed(topics)
    made = plan_of(desired(cluster, **written), cluster)
    # Each of two partitions of topic n has two replicas of n bytes.
    every = 4 * sum(range(topics))
    figures = {"count": f"{topics:,}", "twice": f"{2 * topics:,}", "bytes": size(every), "half": size(every // 2)}
    figures["add"] = f"{2 * topics:,} replicas to add"
    named = f"{topics:,} topics (t0000, t0001, t0002 and {topics - 3:,} more)"
    text = as_text.plan(made)
    assert line.format(named=named, **figures) in rows(text)
    assert len(text.splitlines()) < 20
    comment = as_markdown.plan(made)
    assert f"{topics:,} topics" in comment.partition("| In all")[0]
    assert f"· {topics:,} change" in comment.replace("\u00a0", " ")
    # Who wants each of them asks for the stages, or opens the page.
    for whole in (as_text.plan(made, has_stages=True), as_plan_html.plan(made)):
        assert {*re.findall(r"t\d{4}", whole)} >= {f"t{one:04}" for one in range(topics)}
    assert all(f"t{one:04}" in plan_text(made) for one in (0, topics - 1))


def test_what_is_destroyed_is_summed_with_all_groups_that_read_it() -> None:
    cluster = observed(11)
    made = plan_of(desired(cluster, config={"retention.ms": "3600000"}), cluster)
    lost = "up to 220 B on all replicas, read by"
    assert as_text.effects(made.topic_changes) == [
        f"destroys: 11 topics, {lost} 2 groups",
        f"  11 topics (t0000, t0001, t0002 and 8 more)  retention.ms deletes what is older than 1 h: {lost} g1, g2",
    ]
    whole = as_text.effects(made.topic_changes, is_whole=True)
    assert whole[0] == f"destroys: 11 topics, {lost} 2 groups"
    assert [line.split()[0] for line in whole[1:]] == [f"t{one:04}" for one in range(11)]


def test_ten_topics_have_a_line_each_and_so_have_topics_of_other_lines() -> None:
    cluster = observed(10)
    few = plan_of(desired(cluster, config={"segment.bytes": "1048576"}), cluster)
    assert [line.split()[1] for line in rows(as_text.plan(few))] == [*cluster.topics]
    cluster = observed(30)
    apart = desired(cluster, config={"segment.bytes": "1048576"})
    topics = {
        name: replace(topic, at={"": Location("c/topics.yaml", line)})
        for line, (name, topic) in enumerate(apart.topics.items())
    }
    assert len(rows(as_text.plan(plan_of(replace(apart, topics=topics), cluster)))) == 30


def test_rows_keep_their_order_and_one_for_many_stands_where_the_first_of_them_would() -> None:
    at = Location("c/classes.yaml", 5)
    kinds = [("a", 1), *(("b", 2 + number % 2) for number in range(30)), ("c", 1), ("d", 4)]
    changes = tuple(CreateTopic(f"{name}{place:02}", size, 1, at=at) for place, (name, size) in enumerate(kinds))
    told = rows(as_text.changes(Changes(topic_changes=changes)))
    subjects = [line.partition(" create")[0].partition(" (")[0] for line in told]
    assert subjects == ["+ a00", "+ 15 topics", "+ 15 topics", "+ c31", "+ d32"]


def test_deletions_are_never_told_together() -> None:
    at = Location("c/cluster.yaml", 5)
    lost = (Effect(EffectClass.DESTROYS, "deletes every record", None, 5, (), is_total=True),)
    deleted = tuple(DeleteTopic(f"t{one:02}", None, at, lost) for one in range(30))
    found = as_text.changes(Changes(topic_changes=deleted))
    assert [line.split()[1] for line in rows(found)] == [change.topic for change in deleted]
    assert len(found.splitlines()) == 30 + 1 + 30


def test_what_differs_is_told_together_too_and_counted_one_by_one() -> None:
    cluster = observed(40)
    wanted = desired(cluster, config={"retention.ms": "3600000"}, replication_factor=3)
    found = compare(wanted, cluster, topic_rules(wanted, cluster))
    fields = differences(found, cluster)
    named = "40 topics (t0000, t0001, t0002 and 37 more)"
    assert rows(as_text.changes(found, fields)) == [
        # 4 x (0 + … + 39) bytes.
        f"+ {named}: config.retention.ms (none) -> 3600000 c/classes.yaml:5 destroys up to 3.0 KiB",
        f"~ {named}: replicationFactor 2 -> 3 (80 partitions) c/classes.yaml:4",
    ]
    assert len(rows(as_text.changes(found, fields, is_whole=True))) == 80
    assert as_markdown.changes(found, fields, "c").count("37 more") == 2
    assert differences_counted(found, fields) == "80 differences"


@pytest.mark.parametrize("state", ["dead", "draining"])
def test_brokers_are_named_alike_in_whatever_order_the_lists_hold_them(state: str) -> None:
    lists = [f"t{one:04}-0: {','.join(map(str, order))} isr {max(order)}" for one, order in enumerate(ORDERS)]
    gone = {1, 2} if state == "dead" else set()
    cluster = small_cluster(*(f"{line} size 5" for line in lists), fenced=gone)
    # All brokers in one line of the file, as a flow.
    leaving = (
        {} if gone else {id_: DesiredBroker(id_, BrokerState.DRAINING, at=Location("c", 5, id_)) for id_ in (1, 2)}
    )
    cluster_wanted = DesiredCluster("c", brokers=leaving, is_election_wanted=False)
    wanted = replace(desired(cluster, replication_factor=3), cluster=cluster_wanted)
    made = plan_of(wanted, cluster)
    (line,) = rows(as_text.plan(made))
    assert f"{len(ORDERS)} partitions leave brokers 1, 2" in line
    read = plan_from_json(json.loads(plan_text(made)))
    assert rows(as_text.plan(read)) == [line]
    found = compare(wanted, cluster, topic_rules(wanted, cluster))
    words = "deadBroker: brokers 1, 2 are not alive" if gone else "draining: brokers 1, 2 declared draining"
    assert {each.detail for each in found.broken_rules} == {words.partition(": ")[2]}
    (told,) = rows(as_text.changes(found))
    assert f"12 topics (t0000, t0001, t0002 and 9 more): {words} (12 partitions)" in told
