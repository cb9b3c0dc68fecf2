"""A log dir that goes offline, as seen on 4.1.1 with a full disk."""

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.model.cluster import LogDir
from reconciler.model.topic_partition import TopicPartition

A0 = TopicPartition("a", 0)


def test_an_offline_log_dir_leaves_its_broker_alive_and_takes_its_replicas_out_of_every_isr() -> None:
    admin = SimulatedAdmin(small_cluster("a-0: 1,2 size 100", "a-1: 2,1 size 100"))
    admin.fail_log_dir(2, "/d1" if admin.cluster.topics["a"].partitions[0].log_dirs[1] == "/d1" else "/d2")
    first, second = admin.topics(["a"])["a"].partitions
    assert (first.isr, second.isr) == ((1,), (2, 1))
    assert not admin.brokers()[2].is_fenced
    offline = [one for one in admin.disks([2]).log_dirs[2] if one.is_offline]
    assert [(one.total_bytes, one.usable_bytes) for one in offline] == [(None, None)]


def test_a_move_into_an_offline_log_dir_never_ends_until_the_dir_is_back() -> None:
    admin = SimulatedAdmin(small_cluster("a-0: 1,2 size 100000000000"))
    admin.reassign({A0: (1, 3)})
    admin.clock.sleep(1)
    path = admin.cluster.topics["a"].partitions[0].log_dirs[1]
    assert path is not None
    admin.fail_log_dir(3, path)
    admin.clock.sleep(100_000)
    assert A0 in admin.reassignments()
    admin.repair_log_dir(3, LogDir(path, 10**12, 10**12))
    admin.clock.sleep(100_000)
    assert admin.reassignments() == {}


@pytest.mark.parametrize(("version", "isr", "elr"), [("4.0", (2,), None), ("4.1", (), (2,))])
def test_the_last_replica_in_sync_stays_listed_or_eligible(
    version: str, isr: tuple[int, ...], elr: tuple[int, ...] | None
) -> None:
    cluster = small_cluster("a-0: 1,2 isr 2 leader 2 size 100", kafka_version=version)
    admin = SimulatedAdmin(cluster)
    for path in ("/d1", "/d2"):
        admin.fail_log_dir(2, path)
    (partition,) = admin.with_eligible_leaders(admin.topics(["a"]))["a"].partitions
    assert (partition.isr, partition.elr) == (isr, elr)
