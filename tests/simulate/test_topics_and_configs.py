"""Creating, growing, deleting and configuring: answers of Kafka that `tests/admin/contract.py` does not ask for."""

from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster, with_cordons

from reconciler.model.change import ConfigChange, ConfigOperation, CreatePartitions, CreateTopic
from reconciler.model.cluster import LEADER_THROTTLED_RATE, Cluster
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.configs import alter_broker_configs, alter_topic_configs
from reconciler.simulate.controller import Denied
from reconciler.simulate.log_dirs import choose_log_dirs
from reconciler.simulate.progress import advance
from reconciler.simulate.requests import reassign
from reconciler.simulate.topics import create_partitions, create_topics, delete_topics

SET, DELETE, APPEND, SUBTRACT = ConfigOperation


def create(cluster: Cluster, name: str, *assignment: tuple[int, ...], **configs: str) -> Cluster | Denied:
    change = CreateTopic(name, len(assignment), 1, configs=configs, assignment=dict(enumerate(assignment)))
    outcome = create_topics(cluster, [change])
    return outcome.answers[name] or outcome.cluster


def grow(cluster: Cluster, count: int, *assignment: tuple[int, ...]) -> Cluster | Denied:
    first = len(cluster.topics["orders"].partitions)
    change = CreatePartitions("orders", first, count, assignment=dict(enumerate(assignment, first)))
    outcome = create_partitions(cluster, [change])
    return outcome.answers["orders"] or outcome.cluster


def configure(cluster: Cluster, *changes: ConfigChange) -> Cluster | Denied:
    outcome = alter_topic_configs(cluster, {"orders": changes})
    return outcome.answers["orders"] or outcome.cluster


def test_a_topic_is_created_where_it_was_asked_for_with_its_first_living_replica_leading() -> None:
    cluster = create(small_cluster(fenced=[1]), "orders", (1, 2), (2, 3))
    assert isinstance(cluster, Cluster)
    first, second = cluster.topics["orders"].partitions
    assert (first.replicas, first.isr, first.leader) == ((1, 2), (2,), 2)
    assert (second.replicas, second.isr, second.leader) == ((2, 3), (2, 3), 2)


def test_topic_ids_differ_between_a_topic_and_its_successor() -> None:
    change = CreateTopic("orders", 1, 1, assignment={0: (1,)})
    first = create_topics(small_cluster(), [change], seed=0).cluster
    second = create_topics(delete_topics(first, ["orders"]).cluster, [change], seed=2).cluster
    ids = {cluster.topics["orders"].topic_id for cluster in (first, second)}
    assert len(ids) == 2
    assert {len(one or "") for one in ids} == {22}


@pytest.mark.parametrize(
    ("name", "assignment", "error", "text"),
    [
        ("no spaces", [(1,)], "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: 'no spaces' contains one or more "),
        ("..", [(1,)], "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: '..' is not allowed"),
        ("x" * 250, [(1,)], "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: the length of "),
        (
            "new",
            [(1, 2), (1,)],
            "INVALID_REPLICA_ASSIGNMENT",
            "The manual partition assignment includes a partition with",
        ),
        ("new", [(6,)], "INVALID_REPLICA_ASSIGNMENT", "All brokers specified in the manual partition assignment for"),
        ("new", [(1,)] * 10_001, "POLICY_VIOLATION", "Excessively large number of partitions per request."),
    ],
)
def test_a_topic_is_refused(name: str, assignment: list[tuple[int, ...]], error: str, text: str) -> None:
    denied = create(small_cluster(fenced=[6]), name, *assignment)
    assert isinstance(denied, Denied)
    assert (denied.error, denied.message[: len(text)]) == (error, text)


def test_a_topic_without_an_assignment_has_a_replica_in_each_rack() -> None:
    cluster = create_topics(small_cluster(), [CreateTopic("orders", 6, 3)]).cluster
    for partition in cluster.topics["orders"].partitions:
        assert {cluster.brokers[replica].rack for replica in partition.replicas} == {"a", "b", "c"}
    refused = create_topics(small_cluster(), [CreateTopic("orders", 6, 7)]).answers["orders"]
    assert refused is not None
    assert refused.message.endswith("of 7 cannot be reached because only 6 broker(s) are registered.")


@pytest.mark.parametrize(
    ("count", "assignment", "text"),
    [
        (2, [], "Topic already has 2 partition(s)."),
        (4, [(1, 2)], "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."),
    ],
)
def test_growth_is_refused(count: int, assignment: list[tuple[int, ...]], text: str) -> None:
    denied = grow(small_cluster("orders-0: 1,2", "orders-1: 2,3"), count, *assignment)
    assert isinstance(denied, Denied)
    assert denied.message == text


@pytest.mark.parametrize("told_by", ["settings", "configs"])
def test_no_topic_is_deleted_where_the_brokers_delete_none(told_by: str) -> None:
    cluster = small_cluster("orders-0: 1,2")
    off = {"delete.topic.enable": "false"}
    first = (
        replace(cluster.brokers[1], settings=off) if told_by == "settings" else replace(cluster.brokers[1], configs=off)
    )
    refusing = replace(cluster, brokers={**cluster.brokers, 1: first})
    done = delete_topics(refusing, ["orders"])
    assert (done.cluster, done.answers) == (refusing, {"orders": Denied("TOPIC_DELETION_DISABLED")})


def test_a_topic_deleted_while_it_moves_leaves_the_list_and_frees_its_bytes() -> None:
    before = small_cluster("orders-0: 1,2,3 size 500000000")
    moving = advance(reassign(before, {TopicPartition("orders", 0): (1, 2, 4)}).cluster, 1000)
    gone = delete_topics(moving, ["orders"])
    assert gone.answers == {"orders": None}
    assert not any(partition.is_reassigning for _, partition in gone.cluster.partitions())
    freed = {one.usable_bytes for one in gone.cluster.brokers[4].log_dirs}
    assert freed == {10**12}
    again = delete_topics(gone.cluster, ["orders"]).answers["orders"]
    assert again is not None
    assert again.error == "UNKNOWN_TOPIC_OR_PARTITION"


def test_only_lists_are_appended_to() -> None:
    denied = configure(small_cluster("orders-0: 1"), ConfigChange("retention.ms", APPEND, "1"))
    assert denied == Denied("INVALID_CONFIG", "Can't APPEND to key retention.ms because its type is not LIST.")


def test_a_key_may_stand_only_once_in_a_request() -> None:
    twice = (ConfigChange("retention.ms", SET, "1"), ConfigChange("retention.ms", DELETE))
    denied = Denied("INVALID_REQUEST", "Error due to duplicate config keys")
    assert configure(small_cluster("orders-0: 1"), *twice) == denied


def test_a_rate_of_zero_is_legal() -> None:
    zero = alter_broker_configs(small_cluster(), 1, [ConfigChange(LEADER_THROTTLED_RATE, SET, "0")])
    assert zero.cluster.brokers[1].configs == {LEADER_THROTTLED_RATE: "0"}


CORDON = "cordoned.log.dirs"


def test_a_cordoned_broker_is_passed_over_where_kafka_places_and_taken_where_it_is_named() -> None:
    cluster = with_cordons(small_cluster(brokers=(1, 2, 3)), [2])
    made = create_topics(cluster, [CreateTopic("free", 4, 2)]).cluster.topics["free"]
    assert {replica for partition in made.partitions for replica in partition.replicas} == {1, 3}
    denied = create_topics(cluster, [CreateTopic("wide", 1, 3)]).answers["wide"]
    assert denied == Denied(
        "INVALID_REPLICATION_FACTOR",
        "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because "
        "only 2 broker(s) are registered or some brokers have all their log directories cordoned.",
    )
    named = create(cluster, "named", (2, 1))
    assert isinstance(named, Cluster)


def test_a_cordon_follows_its_setting_and_the_brokers_own_file_comes_back_when_it_goes() -> None:
    cluster = small_cluster("orders-0: 1,2")
    everything = alter_broker_configs(cluster, 1, [ConfigChange(CORDON, SET, "*")]).cluster
    assert [one.is_cordoned for one in everything.brokers[1].log_dirs] == [True, True]
    one_dir = alter_broker_configs(everything, 1, [ConfigChange(CORDON, SET, "/d2")]).cluster
    assert [one.is_cordoned for one in one_dir.brokers[1].log_dirs] == [False, True]
    free = alter_broker_configs(one_dir, 1, [ConfigChange(CORDON, DELETE)]).cluster
    assert not free.brokers[1].cordoned_dirs
    static = with_cordons(cluster, [1])
    opened = alter_broker_configs(static, 1, [ConfigChange(CORDON, SET, "")]).cluster
    assert not opened.brokers[1].cordoned_dirs
    back = alter_broker_configs(opened, 1, [ConfigChange(CORDON, DELETE)]).cluster
    assert back.brokers[1].is_cordoned


def test_no_cordoned_log_dir_may_be_chosen_for_a_replica() -> None:
    cordoned = alter_broker_configs(small_cluster("orders-0: 1,2"), 3, [ConfigChange(CORDON, SET, "/d2")]).cluster
    choices = {TopicPartition("orders", number): f"/d{number}" for number in (1, 2, 3)}
    answers = choose_log_dirs(cordoned, 3, choices).answers.values()
    assert [one and one.error for one in answers] == [None, "INVALID_REPLICA_ASSIGNMENT", "LOG_DIR_NOT_FOUND"]


NO_LOG_DIR = "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : /nope"
NOT_ALONE = "When cordoned.log.dirs is set to *, it must not contain other values"


@pytest.mark.parametrize(("value", "text"), [("*,/d1", NOT_ALONE), ("/d1,/nope", NO_LOG_DIR)])
def test_a_cordon_of_what_is_no_log_dir_is_refused(value: str, text: str) -> None:
    outcome = alter_broker_configs(small_cluster("orders-0: 1,2"), 1, [ConfigChange(CORDON, SET, value)])
    assert outcome.answers[1] == Denied("INVALID_REQUEST", f"requirement failed: {text}")
