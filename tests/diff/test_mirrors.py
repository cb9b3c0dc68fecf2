"""Which topics of a source have copies, what is declared of these, and what two documents cannot both have."""

from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.mirror_growth import GrowsFirst, after_copies, ahead_of_source, order
from reconciler.diff.mirrors import copies, is_copy, is_mirror_makers, source_topics, with_classes, with_copies
from reconciler.model.change import CreatePartitions
from reconciler.model.cluster import Cluster, Partition, Topic
from reconciler.model.desired import (
    MIRROR_MAKERS_RENAME,
    Desired,
    DesiredCluster,
    DesiredMirror,
    DesiredTopic,
    TopicPolicy,
)
from reconciler.model.problem import Location

CLUSTERS = ("eu", "us", "asia")
CLASS = DesiredTopic("", replication_factor=2)


def mirror(
    *topics: str,
    rename: str = MIRROR_MAKERS_RENAME,
    source: str = "us",
    name: str = "m",
    like: DesiredTopic = CLASS,
    **config: str,
) -> DesiredMirror:
    keys = tuple(key.replace("_", ".") for key in config)
    at = {"": Location(f"{name}.yaml", 1), **{f"topics.{each}": Location(f"{name}.yaml", 4, 9) for each in topics}}
    at |= {f"config.{key}": Location(f"{name}.yaml", 5) for key in keys}
    return DesiredMirror(name, source, topics, rename, keys, like, at)


def source(*names: str, **configs: str) -> Cluster:
    held = {key.replace("_", "."): value for key, value in configs.items()}
    one = (Partition(0, 1, (1,), (1,)),)
    return Cluster("us", topics={name: Topic(name, one, configs=held) for name in names})


def eu(*mirrors: DesiredMirror, documents: tuple[DesiredTopic, ...] = ()) -> Desired:
    return Desired(DesiredCluster("eu"), {each.name: each for each in documents}, mirrors=mirrors)


def copied(desired: Desired, observed: Cluster, declared: Desired | None = None) -> list[str]:
    topics = source_topics(declared or Desired(DesiredCluster("us")), observed)
    return list(copies(desired, {"us": topics}, CLUSTERS))


@pytest.mark.parametrize(
    ("rename", "topics", "there", "here"),
    [
        (MIRROR_MAKERS_RENAME, ("a*",), ("a", "ab", "b"), ["us.a", "us.ab"]),
        ("{topic}", ("a*", "b"), ("a", "b", "c"), ["a", "b"]),
        ("{topic}", ("*",), ("eu.a", "a"), ["a", "eu.a"]),
        (MIRROR_MAKERS_RENAME, ("*",), ("eu.a", "asia.eu.a", "asia.a", "europe.a"), ["us.asia.a", "us.europe.a"]),
        ("{topic}@{source}".replace("@", "-"), ("*",), ("a-eu", "a-asia"), ["a-asia-us"]),
        (MIRROR_MAKERS_RENAME, ("*",), ("heartbeats", "asia.heartbeats", "my.heartbeats"), ["us.my.heartbeats"]),
        (MIRROR_MAKERS_RENAME, ("heartbeats",), ("heartbeats",), ["us.heartbeats"]),
        ("x.{topic}", ("pay[a-m]*", "*.?"), ("pay", "payments", "payroll", "a.b", "a.bc"), ["x.a.b", "x.payments"]),
        ("{topic}", ("*",), ("__consumer_offsets", "mm2-configs.eu.internal", "eu.checkpoints.internal"), []),
    ],
)
def test_what_is_copied_and_under_which_name(
    rename: str, topics: tuple[str, ...], there: tuple[str, ...], here: list[str]
) -> None:
    assert copied(eu(mirror(*topics, rename=rename)), source(*there)) == here


def test_what_kafka_keeps_what_the_target_ignores_and_what_the_source_wants_gone_is_not_copied() -> None:
    desired = eu(mirror("*"))
    observed = source("a", "b", "c")
    observed = replace(observed, topics={**observed.topics, "a": replace(observed.topics["a"], is_internal=True)})
    declared = Desired(DesiredCluster("us"), {"b": DesiredTopic("b", is_absent=True)})
    assert copied(desired, observed, declared) == ["us.c"]
    ignoring = replace(desired, cluster=DesiredCluster("eu", topics=TopicPolicy(ignore=("us.c",))))
    assert copied(ignoring, observed, declared) == []


def test_a_topic_of_which_the_source_says_no_partitions_and_that_is_not_there_yet_waits() -> None:
    declared = Desired(DesiredCluster("us"), {"a": DesiredTopic("a"), "b": DesiredTopic("b", partitions=2)})
    assert copied(eu(mirror("*")), source(), declared) == ["us.b"]


def test_a_copy_is_declared_with_the_larger_count_and_what_follows_over_its_class() -> None:
    like = DesiredTopic("", replication_factor=2, config={"retention.ms": "1", "segment.bytes": "9"})
    desired = eu(mirror("a", like=like, retention_ms="", cleanup_policy=""))
    topics = source_topics(
        Desired(DesiredCluster("us"), {"a": DesiredTopic("a", partitions=3)}), source("a", retention_ms="5")
    )
    wanted = copies(desired, {"us": topics}, CLUSTERS)
    found, problems = with_copies(desired, wanted)
    copy = found.topics["us.a"]
    assert (problems, copy.partitions, copy.replication_factor) == ((), 3, 2)
    assert copy.config == {"cleanup.policy": None, "retention.ms": "5", "segment.bytes": "9"}
    assert (copy.where("partitions"), copy.where("config.retention.ms")) == (
        Location("m.yaml", 4, 9),
        Location("m.yaml", 5),
    )
    larger, _ = with_copies(desired, wanted, small_cluster(*(f"us.a-{number}: 1,2" for number in range(5))))
    assert larger.topics["us.a"].partitions == 5


def test_the_document_of_a_copy_may_say_more_than_its_mirror() -> None:
    more = DesiredTopic("us.a", partitions=5, config={"segment.bytes": "9"})
    desired = eu(mirror("a", retention_ms=""), documents=(more,))
    topics = source_topics(Desired(DesiredCluster("us")), source("a", retention_ms="5"))
    found, problems = with_copies(desired, copies(desired, {"us": topics}, CLUSTERS))
    copy = found.topics["us.a"]
    assert (problems, copy.partitions, copy.config) == ((), 5, {"retention.ms": "5", "segment.bytes": "9"})


SOURCE_AT = Location("us.yaml", 7)
DOCUMENT = DesiredTopic("us.a", at={"": Location("t.yaml", 1), "state": Location("t.yaml", 2)})


@pytest.mark.parametrize(
    ("mirrors", "document", "says"),
    [
        (
            (mirror("a"),),
            replace(DOCUMENT, is_absent=True),
            "it is to be absent, and mirror m (m.yaml:4) copies a of us",
        ),
        (
            (mirror("a", retention_ms=""),),
            replace(DOCUMENT, config={"retention.ms": None}),
            "retention.ms has no override, and follows a of us (is 5; us.yaml:7)",
        ),
        (
            (mirror("a"), mirror("*", name="n", like=DesiredTopic(""))),
            None,
            "mirror m (m.yaml:4) and mirror n (n.yaml:4) give it other classes",
        ),
        (
            (
                mirror("a", retention_ms="", rename="us.{topic}"),
                mirror("s.a", name="n", rename="u{topic}", retention_ms=""),
            ),
            None,
            "retention.ms follows a of us (is 5; us.yaml:7) by mirror m (m.yaml:4), and s.a of us (is 6) by mirror n ",
        ),
    ],
)
def test_two_documents_that_want_different_things_contradict(
    mirrors: tuple[DesiredMirror, ...], document: DesiredTopic | None, says: str
) -> None:
    desired = eu(*mirrors, documents=(document,) if document else ())
    observed = source("a", retention_ms="5")
    other = replace(observed.topics["a"], name="s.a", configs={"retention.ms": "6"})
    files = Desired(DesiredCluster("us"), {"a": DesiredTopic("a", at={"config.retention.ms": SOURCE_AT})})
    topics = source_topics(files, replace(observed, topics={**observed.topics, "s.a": other}))
    wanted = copies(desired, {"us": topics}, CLUSTERS)
    _, problems = with_copies(desired, {name: asked for name, asked in wanted.items() if name == "us.a"})
    assert [(problem.code, says in problem.message) for problem in problems] == [("KR115", True)], problems
    assert (SOURCE_AT in problems[0].beside) is ("follows a of us" in says)


@pytest.mark.parametrize(
    ("name", "is_one"), [("us.a", True), ("us.ab", True), ("us.", False), ("us.b", False), ("a", False)]
)
def test_a_name_that_a_mirror_could_have_made_is_a_copys(name: str, is_one: bool) -> None:  # noqa: FBT001 - a row of the table
    desired = eu(mirror("a*"))
    assert is_copy(desired, name) is is_one
    assert (name in with_classes(desired, source(name)).topics) is is_one


def test_mirror_maker_makes_heartbeats_of_each_source_and_no_file_declares_them() -> None:
    names = ("heartbeats", "us.heartbeats", "asia.heartbeats", "us.a")
    assert [is_mirror_makers(eu(mirror("a")), name) for name in names] == [True, True, False, False]


def test_where_a_topic_grows_that_is_copied_the_plan_of_the_copy_goes_first() -> None:
    files = Desired(DesiredCluster("us"), {"a": DesiredTopic("a", partitions=2)})
    wanted = copies(eu(mirror("a")), {"us": source_topics(files, source("a"))}, CLUSTERS)
    grows = [CreatePartitions("us.a", 1, 2), CreatePartitions("b", 1, 2)]
    (copy,) = ahead_of_source(wanted, grows)
    (topic,) = after_copies("us", [CreatePartitions("a", 1, 2)], {"eu": [mirror("a")], "asia": [mirror("b")]})
    assert (copy.code, topic.code) == ("KR839", "KR838")
    assert "topic us.a grows as a of us is to: apply this plan before that of us, " in copy.message
    assert "is copied as us.a of eu (m.yaml:1): apply the plan of eu first, " in topic.message


def first(target: str, before: str) -> GrowsFirst:
    return GrowsFirst(target, "copy", before, "topic")


@pytest.mark.parametrize(
    ("firsts", "ordered", "broken"),
    [
        ((), "abc", 0),
        ((first("c", "a"),), "bca", 0),
        ((first("b", "a"), first("c", "b")), "cba", 0),
        ((first("b", "a"), first("a", "b")), "cab", 1),
    ],
)
def test_targets_go_before_their_sources_and_all_others_stay_in_order(
    firsts: tuple[GrowsFirst, ...], ordered: str, broken: int
) -> None:
    found, unkept = order(("a", "b", "c"), firsts)
    assert ("".join(found), len(unkept)) == (ordered, broken)
