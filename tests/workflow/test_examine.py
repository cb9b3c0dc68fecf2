"""A look at a cluster takes what it gets: each part that is refused or silent is named, and hides no other."""

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.admin.port import Answer
from reconciler.admin.simulated import Moment, SimulatedAdmin
from reconciler.model.problem import ClusterUnavailable, MissingRight, ReconcilerError
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import LateTransactions
from reconciler.workflow.doctor import examine

PARTS = {
    "features": "versions",
    "disk_report": "log dirs",
    "reassignments": "reassignments",
    "topics": "topics",
    "topic_configs": "topic configs",
    "broker_configs": "broker configs",
    "broker_settings": "broker settings",
    "lock_holder": "the lock",
    "late_transactions": "open transactions",
}


def cluster_without(call: str, error: ReconcilerError) -> SimulatedAdmin:
    def fault(name: str, _moment: Moment) -> Answer | None:
        if name == call:
            raise error
        return None

    cluster = small_cluster("a-0: 1,2,3 size 5", configs={"a": {"retention.ms": "1"}}, rates={1: {"x": "1"}})
    return SimulatedAdmin(cluster, fault=fault)


@pytest.mark.parametrize("call", sorted(PARTS))
@pytest.mark.parametrize(
    ("error", "why"), [(MissingRight("no"), "a right is missing"), (ClusterUnavailable("gone"), "gone")]
)
def test_a_part_that_cannot_be_read_is_named_and_the_rest_is_seen(call: str, error: ReconcilerError, why: str) -> None:
    seen = examine(cluster_without(call, error))
    assert seen.unexamined == (f"{PARTS[call]}: {why}",)
    assert seen.rights is not None
    assert (seen.features is None, seen.disks is None) == (call == "features", call == "disk_report")
    assert (seen.cluster.topics == {}) == (call == "topics")
    if call != "topics":
        assert (seen.cluster.topics["a"].configs == {}) == (call == "topic_configs")
    assert (seen.cluster.brokers[1].configs == {}) == (call == "broker_configs")
    assert (seen.settings == {}) == (call == "broker_settings")


def test_transactions_that_cannot_be_judged_are_told_with_the_right_that_is_missing() -> None:
    admin = SimulatedAdmin(small_cluster("a-0: 1,2"))
    admin.transactions = LateTransactions(hidden=2, untold=1)
    assert examine(admin).unexamined == (
        (
            "whether 2 late transactions will ever end: Describe is missing on transactional ids (kafka-acls --add "
            "--allow-principal User:NAME --operation Describe --transactional-id '*')"
        ),
        "whose transactions are open at 1 partition: Read on their topics is missing",
    )


def test_replicas_of_an_offline_log_dir_are_not_told_as_on_disk() -> None:
    admin = SimulatedAdmin(small_cluster("a-0: 1,2 size 5", "a-1: 1,2 size 5"))
    path = (admin.cluster.topics["a"].partitions[0].log_dirs)[1]
    admin.fail_log_dir(2, str(path))
    disks = examine(admin).disks
    assert disks is not None
    assert {(one.topic_partition, one.broker_id) for one in disks.replicas} == {
        (TopicPartition("a", 0), 1),
        (TopicPartition("a", 1), 1),
        (TopicPartition("a", 1), 2),
    }
    assert [(one.broker_id, one.path) for one in disks.dirs if one.error] == [(2, path)]
