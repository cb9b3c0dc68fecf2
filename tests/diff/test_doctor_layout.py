"""What a doctor says of clusters on which all brokers live: single copies, racks, leaders, stops, the quorum."""

from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.compare import compare
from reconciler.diff.doctor.diagnose import diagnose
from reconciler.diff.rules import topic_rules
from reconciler.model.cluster import Cluster
from reconciler.model.config_value import UNREADABLE
from reconciler.model.desired import Desired, DesiredCluster, DesiredTopic
from reconciler.model.diagnosis import Finding
from reconciler.model.problem import Severity
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import Quorum, QuorumMember, Vitals
from reconciler.workflow.demo import demo_cluster

TWO = {"min.insync.replicas": "2"}


def found_in(cluster: Cluster, quorum: Quorum | None = None) -> dict[str, Finding]:
    found = diagnose(Vitals(cluster, quorum=quorum)).findings
    assert all(one.next for one in found)
    return {one.code: one for one in found}


def test_a_topic_with_one_replica_is_told_where_there_are_more_brokers() -> None:
    found = found_in(small_cluster("a-0: 1", "a-1: 2", "b-0: 1,2,3"))
    assert (found["KR643"].severity, found["KR643"].topics) == (Severity.WARNING, ("a",))
    assert found["KR643"].partitions == (TopicPartition("a", 0), TopicPartition("a", 1))
    assert "KR643" not in found_in(small_cluster("a-0: 1", brokers=[1]))


def test_a_partition_in_fewer_racks_than_could_be_is_told() -> None:
    found = found_in(small_cluster("a-0: 1,2,4", "a-1: 1,2,3", "b-0: 1,2,3,4", "c-0: 1,4"))
    assert found["KR644"].partitions == (TopicPartition("a", 0), TopicPartition("c", 0))
    assert found["KR644"].message == (
        "2 topics not spread over racks: 2 partitions in fewer of the 3 racks than could be: a-0, c-0"
    )


def test_racks_with_unequal_numbers_of_brokers_or_replicas_are_told() -> None:
    found = found_in(small_cluster("a-0: 1,2,3", brokers=range(1, 6)))
    assert found["KR658"].message == (
        "racks are uneven: a 2 brokers, 1 replica; b 2 brokers, 1 replica; c 1 broker, 1 replica"
    )
    lines = [f"a-{number}: {'1,2,3' if number < 20 else '1,2'}" for number in range(40)]
    assert "a 2 brokers, 40 replicas; b 2 brokers, 40 replicas; c 2 brokers, 20 replicas" in (
        found_in(small_cluster(*lines))["KR658"].message
    )
    assert "KR658" not in found_in(small_cluster("a-0: 1,2,3", "a-1: 1,2"))


def test_partitions_led_by_another_are_those_that_a_plan_elects() -> None:
    cluster = small_cluster("a-0: 1,2,3 leader 2", "a-1: 1,2,3", "b-0: 3,1,2 isr 1,2", "c-0: 2,1,3 leader 3")
    internal = replace(cluster.topics["c"], is_internal=True)
    assert found_in(replace(cluster, topics={**cluster.topics, "c": internal}))["KR645"].partitions == (
        TopicPartition("a", 0),
    )
    demo = demo_cluster()
    declared = {name: DesiredTopic(name) for name, topic in demo.topics.items() if not topic.is_internal}
    desired = Desired(DesiredCluster("demo"), declared)
    planned = compare(desired, demo, topic_rules(desired, demo)).elections
    assert found_in(demo)["KR645"].partitions == tuple(one.topic_partition for one in planned)
    assert len(planned) > 1


def test_who_is_not_safe_to_stop_is_told_with_the_partitions_of_all() -> None:
    found = found_in(small_cluster("a-0: 1,2,3", "b-0: 4,5", "b-1: 5,6", configs={"b": TWO}))["KR659"]
    assert found == Finding(
        "KR659",
        Severity.WARNING,
        "brokers 4, 5, 6 not safe to stop: 2 partitions would go under min ISR, or offline: b-0, b-1",
        "before a restart get replicas in sync, raise replicationFactor, or lower min.insync.replicas",
        brokers=(4, 5, 6),
        topics=("b",),
        partitions=(TopicPartition("b", 0), TopicPartition("b", 1)),
    )


@pytest.mark.parametrize(
    ("voters", "observers", "code", "words"),
    [
        (((1, 0, 0), (2, 3, 400), (3, 310, 95_000)), ((4, 0, 0),), "KR637", "controller 3 of the quorum 1, 2, 3 not "),
        (((1, 0, 0), (2, None, None), (3, 0, 0)), (), "KR637", "not heard of since the active controller began"),
        ((*((one, 0, 0) for one in range(1, 5)), (5, 310, 95_000)), (), "KR637", "until then 1 controller more "),
        (((1, 0, 0),), ((2, 0, 0), (3, 310, 95_000)), "KR638", "metadata: 95 s and 310 records behind"),
        (((1, 0, 0), (2, 5, 29_000)), ((3, 5, 29_000),), None, ""),
        (((1, 0, 0),), ((99, 310, 95_000),), None, ""),
    ],
)
def test_controllers_and_brokers_that_do_not_follow_are_told(
    voters: tuple[tuple[int, int, int], ...], observers: tuple[tuple[int, int, int], ...], code: str | None, words: str
) -> None:
    quorum = Quorum(1, tuple(QuorumMember(*one) for one in voters), tuple(QuorumMember(*one) for one in observers))
    found = found_in(small_cluster("a-0: 1,2,3"), quorum)
    assert [*found] == ([code] if code else [])
    assert all(words in f"{one.message}; {one.next}" for one in found.values())


def test_topics_with_a_config_that_this_release_has_removed_are_named_with_it() -> None:
    keys = {"message.format.version": UNREADABLE, "message.downconversion.enable": UNREADABLE, "retention.ms": "5"}
    configs = {"a": keys, "b": {"retention.ms": "5"}, "c": {"message.format.version": UNREADABLE}}
    found = found_in(small_cluster("a-0: 1,2", "b-0: 1,2", "c-0: 1,2", configs=configs, kafka_version="4.1"))["KR639"]
    assert (found.severity, found.topics) == (Severity.WARNING, ("a", "c"))
    assert found.message == (
        "2 topics with a config that this Kafka release has removed: a (message.format.version, "
        "message.downconversion.enable), c (message.format.version)"
    )
