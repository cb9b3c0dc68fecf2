"""Log dirs that are chosen before a replica comes; `tests/admin/contract.py` holds the same against real Kafka."""

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.model.problem import ClusterUnavailable
from reconciler.model.topic_partition import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def test_a_choice_is_for_the_replica_that_comes_next_and_for_no_other() -> None:
    admin = SimulatedAdmin(small_cluster("a-0: 1,2 size 100", "a-1: 1,2 size 100"))
    admin.choose_log_dirs(3, {A0: "/d2"})
    admin.reassign({A0: (1, 3)})
    admin.reassign({A1: (1, 3)})
    admin.clock.sleep(60)
    first, second = admin.cluster.topics["a"].partitions
    assert (first.log_dirs[1], second.log_dirs[1]) == ("/d2", "/d1")


def test_a_replica_that_is_there_stays_where_it_is() -> None:
    admin = SimulatedAdmin(small_cluster("a-0: 1,2 size 100"))
    there = admin.cluster.topics["a"].partitions[0].log_dirs
    other = "/d2" if there[1] == "/d1" else "/d1"
    admin.choose_log_dirs(2, {A0: other})
    admin.reassign({A0: (2, 1)})
    assert admin.cluster.topics["a"].partitions[0].log_dirs == (there[1], there[0])


def test_a_dir_that_is_not_there_is_refused_and_a_dead_broker_does_not_answer() -> None:
    admin = SimulatedAdmin(small_cluster("a-0: 1,2 size 100"))
    assert admin.choose_log_dirs(3, {A0: "/nowhere"})[A0].error == "LOG_DIR_NOT_FOUND"
    admin.kill_broker(3)
    with pytest.raises(ClusterUnavailable, match="not alive"):
        admin.choose_log_dirs(3, {A0: "/d1"})
