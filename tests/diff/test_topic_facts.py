"""Who declares, owns and reads a topic, and how it grew: what is told, and what is not known."""

from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.topic_facts import declaration_of, not_earlier, owner_of, topic_facts, untold_readers
from reconciler.model.cluster import Cluster, Group, GroupMember, Partition, Topic
from reconciler.model.desired import Desired, DesiredCluster, DesiredMirror, DesiredOwner, DesiredTopic
from reconciler.model.problem import Location
from reconciler.model.topic_report import Growth, Reader

TOPIC_AT, PATTERN_AT, LONGER_AT, MIRROR_AT = (Location("c/t.yaml", line) for line in (1, 10, 20, 30))
DESIRED = Desired(
    DesiredCluster("c"),
    {
        "orders": DesiredTopic("orders", labels={"owner": "shop"}, at={"": TOPIC_AT}),
        "gone": DesiredTopic("gone", is_absent=True, at={"": TOPIC_AT}),
        "__own": DesiredTopic("__own", at={"": TOPIC_AT}),
    },
    (
        DesiredTopic("o*", labels={"owner": "all"}, at={"": PATTERN_AT}),
        DesiredTopic("ord*", at={"": LONGER_AT}),
        DesiredTopic("us.*", at={"": PATTERN_AT}),
    ),
    (
        DesiredMirror(
            "from-us",
            "us",
            ("clicks",),
            like=DesiredTopic("", labels={"owner": "web"}),
            at={"topics.clicks": MIRROR_AT},
        ),
    ),
)


@pytest.mark.parametrize(
    ("name", "by", "at", "owner"),
    [
        ("orders", "topic", TOPIC_AT, "shop"),
        ("gone", "absent topic", TOPIC_AT, None),
        ("__own", "topic", TOPIC_AT, None),
        ("other", "pattern o*", PATTERN_AT, "all"),
        ("orders2", "pattern ord*", LONGER_AT, None),
        ("us.clicks", "mirror from-us", MIRROR_AT, "web"),
        ("us.other", "pattern us.*", PATTERN_AT, None),
    ],
)
def test_a_document_declares_a_topic_else_a_mirror_else_the_longest_pattern(
    name: str, by: str, at: Location, owner: str | None
) -> None:
    found = declaration_of(DESIRED, name)
    assert found is not None
    assert (found.by, found.at, found.owner) == (by, at, owner)


@pytest.mark.parametrize("name", ["clicks", "__consumer_offsets"])
def test_what_no_document_speaks_of_is_not_declared(name: str) -> None:
    assert declaration_of(DESIRED, name) is None


def test_an_owner_is_known_by_the_only_pattern_of_the_greatest_length() -> None:
    owners = (DesiredOwner("a", topics=("o*", "w.*")), DesiredOwner("b", topics=("w.*",)))
    desired = Desired(DesiredCluster("c"), owners=owners)
    assert [owner_of(desired, name) for name in ("orders", "w.x", "x")] == ["a", None, None]


def test_where_no_files_are_read_it_is_not_known_who_declares() -> None:
    observed = small_cluster("orders-0: 1,2")
    (known,) = topic_facts(observed, ["orders"], DESIRED)
    (unknown,) = topic_facts(observed, ["orders"], None)
    assert (known.is_declared, unknown.is_declared, unknown.declaration) == (True, None, None)


def test_a_size_is_the_leaders_and_one_that_is_unknown_makes_the_sum_unknown() -> None:
    sizes = [((5, 7), 2), ((1, None), 1), ((None, 4), 1), ((None, None), 1), ((), 1), ((3, 3), None)]
    for (own, leader), (one, every) in zip(
        sizes, [(7, 12), (1, None), (4, None), (None,) * 2, (None,) * 2, (3, 6)], strict=True
    ):
        topic = Topic("t", (Partition(0, leader, (1, 2), (1, 2), sizes=own),))
        (facts,) = topic_facts(Cluster("c", topics={"t": topic}), ["t"], None)
        assert (facts.size, facts.size_of_replicas) == (one, every), own


def test_replicas_that_a_move_adds_do_not_count_as_the_replication_factor() -> None:
    moving = Partition(0, 1, (3, 2, 1), (1, 2), adding_replicas=(3,), removing_replicas=(1,))
    (facts,) = topic_facts(Cluster("c", topics={"t": Topic("t", (moving,))}), ["t"], None)
    assert facts.replication_factor == 2


def read(*groups: Group, ends: tuple[int | None, ...] = (100, 50)) -> tuple[Reader, ...] | None:
    """Return the readers of a topic with these end offsets."""
    partitions = tuple(Partition(number, 1, (1,), (1,), end_offset=end) for number, end in enumerate(ends))
    cluster = Cluster("c", topics={"t": Topic("t", partitions)}, groups=groups, has_groups=True)
    (facts,) = topic_facts(cluster, ["t"], None)
    return facts.readers


MEMBER = GroupMember("m", subscription=("t", "u"))


@pytest.mark.parametrize(
    ("group", "reader"),
    [
        (Group("g", "Stable", members=(MEMBER, GroupMember("n", subscription=("u",)))), Reader("g", "Stable", 1, None)),
        (Group("g", "Empty", offsets={"t": {0: 90, 1: 10}}), Reader("g", "Empty", 0, 50)),
        (Group("g", "Empty", offsets={"t": {0: 190, 1: 10, 7: 3}}), Reader("g", "Empty", 0, 40)),
        (Group("g", "", members=(GroupMember("m", assignment={"t": (0,)}),)), Reader("g", None, 1, None)),
    ],
)
def test_who_subscribes_has_partitions_or_has_committed_reads_a_topic(group: Group, reader: Reader) -> None:
    assert read(group) == (reader,)
    assert read(replace(group, group_id="h"), group) == (reader, replace(reader, group_id="h"))


def test_who_reads_other_topics_is_no_reader_and_nobody_is_known_where_nobody_looked() -> None:
    assert read(Group("g", "Stable", members=(GroupMember("m", subscription=("u",)),))) == ()
    assert read(Group("g", "Empty", offsets={"t": {0: 1}}), ends=(None,)) == (Reader("g", "Empty", 0, None),)
    (facts,) = topic_facts(small_cluster("t-0: 1"), ["t"], None)
    assert facts.readers is None


def test_a_group_whose_topics_nobody_tells_is_named() -> None:
    share = Group("share", "Stable", members=(GroupMember("m"),), kind="share")
    groups = (
        share,
        Group("g", "Empty"),
        Group("h", "Stable", members=(MEMBER,)),
        Group("k", "Stable", protocol_type="connect"),
    )
    assert untold_readers(Cluster("c", groups=groups)) == ("share",)


def cluster(
    *ends: int | None, size: int | None = 0, at: str | None = "2026-11-21T00:00:00Z", topic_id: str = "i"
) -> Cluster:
    """Return a cluster with one topic."""
    sizes = () if size is None else (size,)
    partitions = tuple(Partition(number, 1, (1,), (1,), sizes=sizes, end_offset=end) for number, end in enumerate(ends))
    return Cluster("c", topics={"t": Topic("t", partitions, topic_id)}, observed_at=at)


SINCE = "2026-11-19T00:00:00Z"


@pytest.mark.parametrize(
    ("before", "now", "growth"),
    [
        (cluster(10, 20, size=100), cluster(16, 20, size=400), (300, 3, False)),
        (cluster(10, size=900), cluster(10, size=100), (-400, 0, True)),
        (cluster(10, None), cluster(10, 5), (0, None, None)),
        (cluster(10, None), cluster(11, 5), (0, None, False)),
        (cluster(10, size=None), cluster(12), (None, 1, False)),
        (cluster(10), cluster(12, size=None), (None, 1, False)),
        (cluster(10), cluster(4), (0, None, None)),  # the log lost its end: no record is below zero
        (cluster(10), cluster(10, 6), (0, 3, False)),  # a partition that was added began at 0
        (cluster(10), cluster(40, topic_id="j"), (None, None, None)),  # made again
        (Cluster("c"), cluster(40), (None, None, None)),
    ],
)  # fmt: skip
def test_growth_is_told_by_the_day_and_is_unknown_where_anything_is(
    before: Cluster, now: Cluster, growth: tuple[int | None, int | None, bool | None]
) -> None:
    (facts,) = topic_facts(now, ["t"], None, replace(before, observed_at=SINCE))
    assert facts.growth == Growth(SINCE, *growth)


@pytest.mark.parametrize(
    ("earlier", "reason"),
    [
        (replace(cluster(1), cluster_id="d"), "it is of cluster d, and this cluster is c"),
        (cluster(1, at=None), "it does not say when it was observed"),
        (cluster(1, at="yesterday"), "it does not say when it was observed"),
        (cluster(1), "it was taken at 2026-11-21T00:00:00Z, which is not before 2026-11-21T00:00:00Z"),
    ],
)
def test_growth_is_told_only_since_an_earlier_snapshot_of_the_same_cluster(earlier: Cluster, reason: str) -> None:
    problem = not_earlier(earlier, cluster(1), "old.json")
    assert problem is not None
    assert problem.message.startswith(f"old.json: no growth can be told since this snapshot: {reason}")
    untimed = not_earlier(cluster(1), cluster(1, at=None), "old.json")
    assert untimed is not None
    assert "what it is compared with does not say" in untimed.message
    assert not_earlier(cluster(1, at="2026-11-20T23:59:59"), cluster(1), "old.json") is None
