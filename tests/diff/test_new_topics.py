from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.compare import compare, defaults_taken
from reconciler.diff.rules import topic_rules
from reconciler.model.change import CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Cluster, Topic
from reconciler.model.desired import Desired, DesiredCluster, DesiredTopic, Placement, TopicPolicy
from reconciler.model.problem import InvalidInput, Location, Problem, Severity

DELETE = DesiredCluster("c", topics=TopicPolicy(is_all_managed=True, is_delete_allowed=True))


def cluster_with(*settings: dict[str, str], fenced: int = 0) -> Cluster:
    """Return a cluster whose brokers 1, 2, … have these settings in force, and the topic `old`."""
    numbers = range(1, len(settings) + 1)
    observed = small_cluster("old-0: 1", brokers=numbers, fenced=[fenced])
    told = zip(numbers, settings, strict=True)
    brokers = {number: replace(observed.brokers[number], settings=setting) for number, setting in told}
    return replace(observed, brokers=brokers)


def changes(desired: Desired, observed: Cluster) -> tuple[TopicChange, ...]:
    return compare(desired, observed, topic_rules(desired, observed)).topic_changes


def declared(topic: DesiredTopic, cluster: DesiredCluster | None = None) -> Desired:
    return Desired(cluster or DesiredCluster("c"), {topic.name: topic})


THREE = {"default.replication.factor": "3", "num.partitions": "8"}
ALIKE = cluster_with(THREE, THREE, THREE)


@pytest.mark.parametrize(
    ("topic", "expected", "told"),
    [
        (DesiredTopic("new", partitions=2), (2, 3), "replicationFactor 3 (default.replication.factor)"),
        (DesiredTopic("new", replication_factor=2), (8, 2), "partitions 8 (num.partitions)"),
        (
            DesiredTopic("new"),
            (8, 3),
            "partitions 8 (num.partitions), replicationFactor 3 (default.replication.factor)",
        ),
        (DesiredTopic("new", partitions=2, replication_factor=2), (2, 2), None),
        (DesiredTopic("new", placement=Placement(assignment=((1, 2),))), (1, 2), None),
    ],
    ids=["no factor", "no partitions", "neither", "both", "an assignment"],
)
def test_a_new_topic_takes_the_brokers_defaults_for_what_is_not_written_and_that_is_told(
    topic: DesiredTopic, expected: tuple[int, int], told: str | None
) -> None:
    found = changes(declared(topic), ALIKE)
    assert found == (CreateTopic("new", *expected),)
    text = f"topic new is new, and takes what the brokers have by default: {told}"
    warned = () if told is None else (Problem("KR835", text, severity=Severity.WARNING),)
    assert tuple(defaults_taken(found, {"new": topic})) == warned


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        (cluster_with({}, {}), None),
        (cluster_with(THREE, {**THREE, "default.replication.factor": "2"}), None),
        (cluster_with(THREE, {}), 3),
        (cluster_with(THREE, {**THREE, "default.replication.factor": "2"}, fenced=2), 3),
        (cluster_with({"default.replication.factor": "-1"}), None),
    ],
    ids=["unknown", "not alike", "one does not tell", "the other one is dead", "no number"],
)
def test_a_default_counts_where_all_living_brokers_that_tell_it_are_alike(
    observed: Cluster, expected: int | None
) -> None:
    topic = declared(DesiredTopic("new", partitions=1))
    if expected is not None:
        assert changes(topic, observed) == (CreateTopic("new", 1, expected),)
        return
    with pytest.raises(InvalidInput, match="topic new does not exist yet: write its replicationFactor") as refused:
        changes(topic, observed)
    assert [problem.code for problem in refused.value.problems] == ["KR244"]


@pytest.mark.parametrize("setting", ["true", None])
def test_topics_are_deleted_where_the_brokers_delete_them(setting: str | None) -> None:
    observed = cluster_with({} if setting is None else {"delete.topic.enable": setting})
    found = changes(Desired(DELETE), observed)
    assert [type(change) for change in found] == [DeleteTopic]


ABSENT = DesiredTopic("old", is_absent=True, at={"state": Location("c/t.yaml", 4)})


@pytest.mark.parametrize(
    ("topic", "at"),
    [(None, Location("c/cluster.yaml", 8)), (ABSENT, ABSENT.at["state"])],
    ids=["undeclared", "declared absent"],
)
def test_deletions_are_refused_where_a_broker_deletes_none(topic: DesiredTopic | None, at: Location) -> None:
    observed = cluster_with({"delete.topic.enable": "true"}, {"delete.topic.enable": "false"})
    policy = replace(DELETE.topics, at={"delete": Location("c/cluster.yaml", 8)})
    desired = Desired(replace(DELETE, topics=policy), {"old": topic} if topic is not None else {})
    with pytest.raises(InvalidInput) as refused:
        changes(desired, observed)
    message = (
        "delete.topic.enable is false on brokers 2, so that Kafka deletes no topic, and old would be deleted:"
        " set it to true there, or keep the topics"
    )
    assert refused.value.problems == (Problem("KR256", message, at),)
    kept = replace(desired, cluster=DesiredCluster("c"))
    assert changes(kept, observed) == ()


def test_a_topic_that_kafka_would_not_make_beside_another_is_refused_before() -> None:
    there = replace(cluster_with({}), topics={"a.b_c": Topic("a.b_c"), "other": Topic("other")})
    new = {name: DesiredTopic(name, partitions=1, replication_factor=1) for name in ("a_b.c", "a-b-c", "others")}
    with pytest.raises(InvalidInput, match=r"topic a_b\.c cannot be made beside a\.b_c: in metrics") as refused:
        changes(Desired(DesiredCluster("c"), new), there)
    assert [problem.code for problem in refused.value.problems] == ["KR257"]
