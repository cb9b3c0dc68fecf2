"""The simulated cluster: its clock, its file, its faults, and the walk of a plan from end to end."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.admin.port import Admin, Answer
from reconciler.admin.simulated import Moment, SimulatedAdmin
from reconciler.model.change import ConfigChange, ConfigOperation, CreatePartitions, CreateTopic
from reconciler.model.cluster import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    Broker,
    Cluster,
)
from reconciler.model.problem import ClusterUnavailable
from reconciler.model.topic_partition import TopicPartition

ORDERS = TopicPartition("orders", 0)
MIB = 1024 * 1024


def setting(values: Mapping[str, str]) -> list[ConfigChange]:
    return [ConfigChange(key, ConfigOperation.SET, values[key]) for key in sorted(values)]


def throttled(admin: SimulatedAdmin, rate: int) -> None:
    """Throttle the move of orders-0 from 1,2,3 to 1,2,4."""
    for broker_id in (1, 2, 3, 4):
        rates = {LEADER_THROTTLED_RATE: str(rate), FOLLOWER_THROTTLED_RATE: str(rate)}
        assert admin.alter_broker_configs(broker_id, setting(rates)).is_ok
    lists = {LEADER_THROTTLED_REPLICAS: "0:1,0:2,0:3", FOLLOWER_THROTTLED_REPLICAS: "0:4"}
    assert admin.alter_topic_configs({"orders": setting(lists)})["orders"].is_ok


def test_the_settings_of_its_brokers_are_in_force_until_they_are_changed() -> None:
    cluster, keys = small_cluster("orders-0: 1,2"), ["auto.leader.rebalance.enable", "min.insync.replicas"]
    told = replace(cluster.brokers[1], settings={"min.insync.replicas": "2", "delete.topic.enable": "true"})
    admin = SimulatedAdmin(replace(cluster, brokers={**cluster.brokers, 1: told}))
    assert admin.broker_settings([1, 2], keys) == {
        1: {"auto.leader.rebalance.enable": "false", "min.insync.replicas": "2"},
        2: {"auto.leader.rebalance.enable": "false", "min.insync.replicas": "1"},
    }
    assert admin.alter_broker_configs(1, setting({"min.insync.replicas": "3"})).is_ok
    assert admin.broker_settings([1], ["min.insync.replicas"]) == {1: {"min.insync.replicas": "3"}}


def test_it_is_an_admin() -> None:
    admin: Admin = SimulatedAdmin(small_cluster("orders-0: 1,2,3 size 100"))
    assert admin.cluster_id() == "simulated"
    admin.close()


def test_a_move_takes_the_time_that_its_throttle_gives() -> None:
    admin = SimulatedAdmin(small_cluster(f"orders-0: 1,2,3 size {100 * MIB}"))
    throttled(admin, 10 * MIB)
    assert admin.reassign({ORDERS: (1, 2, 4)}) == {ORDERS: Answer()}
    assert admin.reassignments()[ORDERS].target_replicas == (1, 2, 4)
    admin.clock.sleep(5)
    assert admin.disks([4], [ORDERS]).replica_bytes[ORDERS, 4] == 50 * MIB
    admin.clock.sleep(4.999)
    assert ORDERS in admin.reassignments()
    admin.clock.sleep(0.002)
    assert not admin.reassignments()
    assert admin.topics(["orders"])["orders"].partitions[0].replicas == (1, 2, 4)


def test_only_listed_replicas_are_held_back() -> None:
    admin = SimulatedAdmin(small_cluster(f"orders-0: 1,2,3 size {100 * MIB}", f"orders-1: 1,2,3 size {100 * MIB}"))
    throttled(admin, 1 * MIB)
    admin.reassign({ORDERS: (1, 2, 4), TopicPartition("orders", 1): (1, 2, 4)})
    admin.clock.sleep(2)
    assert list(admin.reassignments()) == [ORDERS]


def test_the_clock_starts_when_the_cluster_was_observed_and_the_saved_file_carries_it_on() -> None:
    saved: list[Cluster] = []
    admin = SimulatedAdmin(small_cluster("orders-0: 1,2,3 size 100"), save=saved.append)
    admin.clock.sleep(90.5)
    assert admin.clock.now() == datetime(2026, 11, 21, 14, 1, 30, 500_000, tzinfo=UTC)
    assert saved[-1].observed_at == "2026-11-21T14:01:30.500Z"
    again = SimulatedAdmin(saved[-1])
    assert again.clock.now() == admin.clock.now()


def test_a_process_killed_anywhere_leaves_a_file_from_which_the_next_one_goes_on() -> None:
    saved: list[Cluster] = []
    straight = SimulatedAdmin(small_cluster(f"orders-0: 1,2,3 size {100 * MIB}"))
    throttled(straight, 10 * MIB)
    straight.reassign({ORDERS: (1, 2, 4)})
    straight.clock.sleep(30)

    admin = SimulatedAdmin(small_cluster(f"orders-0: 1,2,3 size {100 * MIB}"), save=saved.append)
    throttled(admin, 10 * MIB)
    admin = SimulatedAdmin(saved[-1], save=saved.append)
    admin.reassign({ORDERS: (1, 2, 4)})
    for _ in range(6):
        admin = SimulatedAdmin(saved[-1], save=saved.append)
        admin.clock.sleep(5)
    assert admin.cluster == straight.cluster


def test_a_log_dir_is_chosen_for_the_replica_that_comes_next_and_by_a_living_broker_alone() -> None:
    admin = SimulatedAdmin(small_cluster("orders-0: 1,2 size 100", "orders-1: 1,2 size 100"))
    admin.choose_log_dirs(3, {ORDERS: "/d2"})
    for number in (0, 1):
        admin.reassign({TopicPartition("orders", number): (1, 3)})
    admin.clock.sleep(60)
    assert [one.log_dirs[1] for one in admin.cluster.topics["orders"].partitions] == ["/d2", "/d1"]
    admin.kill_broker(3)
    with pytest.raises(ClusterUnavailable, match="not alive"):
        admin.choose_log_dirs(3, {ORDERS: "/d1"})


def test_every_change_is_saved_and_no_read_is() -> None:
    saved: list[Cluster] = []
    admin = SimulatedAdmin(small_cluster("orders-0: 1,2,3 size 100"), save=saved.append)
    admin.observe()
    admin.topics(["orders"])
    admin.reassignments()
    assert not saved
    admin.create_topics([CreateTopic("new", 1, 2, assignment={0: (1, 2)})])
    admin.create_partitions([CreatePartitions("new", 1, 2, assignment={1: (2, 1)})])
    admin.alter_topic_configs({"new": setting({"retention.ms": "1"})})
    admin.alter_broker_configs(1, setting({LEADER_THROTTLED_RATE: "1"}))
    admin.reassign({ORDERS: (3, 2, 1)})
    admin.elect_preferred_leaders([ORDERS])
    admin.delete_topics(["new"])
    admin.kill_broker(6)
    admin.return_broker(6)
    admin.add_broker(Broker(7, rack="a"))
    admin.remove_broker(7)
    assert len(saved) == 11
    assert admin.writes == 7


def test_a_dead_broker_tells_neither_sizes_nor_configs_and_takes_none() -> None:
    admin = SimulatedAdmin(small_cluster("orders-0: 1,2,3 size 100", rates={3: {LEADER_THROTTLED_RATE: "5"}}))
    admin.kill_broker(3)
    seen = admin.observe()
    assert seen.topics["orders"].partitions[0].sizes == (100, 100, None)
    assert seen.topics["orders"].partitions[0].isr == (1, 2)
    assert (seen.brokers[3].configs, seen.brokers[3].log_dirs, seen.brokers[3].is_fenced) == ({}, (), True)
    assert admin.broker_configs([1, 3]) == {1: {}}
    assert (ORDERS, 3) not in admin.disks([1, 2, 3], [ORDERS]).replica_bytes
    with pytest.raises(ClusterUnavailable, match="Broker 3 does not answer"):
        admin.alter_broker_configs(3, setting({LEADER_THROTTLED_RATE: "1"}))
    admin.return_broker(3)
    assert admin.broker_configs([3]) == {3: {LEADER_THROTTLED_RATE: "5"}}


def test_a_partition_whose_brokers_are_all_dead_has_neither_sizes_nor_an_end_offset() -> None:
    admin = SimulatedAdmin(small_cluster("orders-0: 3,4 size 100"))
    admin.kill_broker(3)
    admin.kill_broker(4)
    partition = admin.observe().topics["orders"].partitions[0]
    assert (partition.leader, partition.sizes, partition.log_dirs, partition.end_offset) == (None, (), (), None)


def test_what_is_produced_while_a_replica_copies_is_copied_too() -> None:
    admin = SimulatedAdmin(small_cluster(f"orders-0: 1,2,3 size {50 * MIB}"))
    throttled(admin, 10 * MIB)
    admin.reassign({ORDERS: (1, 2, 4)})
    admin.clock.sleep(4)
    admin.produce(ORDERS, size=20 * MIB, records=7)
    assert admin.observe().topics["orders"].partitions[0].sizes == (70 * MIB, 70 * MIB, 40 * MIB, 70 * MIB)
    admin.clock.sleep(2.5)
    assert ORDERS in admin.reassignments()
    admin.clock.sleep(1)
    partition = admin.observe().topics["orders"].partitions[0]
    assert (partition.replicas, partition.sizes, partition.end_offset) == ((1, 2, 4), (70 * MIB,) * 3, 7)


def test_a_returned_broker_catches_up_and_joins_again() -> None:
    admin = SimulatedAdmin(small_cluster("orders-0: 1,2,3 size 100"))
    admin.kill_broker(1)
    assert admin.topics(["orders"])["orders"].partitions[0].leader == 2
    admin.return_broker(1)
    admin.clock.sleep(1)
    partition = admin.topics(["orders"])["orders"].partitions[0]
    assert (set(partition.isr), partition.leader) == ({1, 2, 3}, 2)


def test_a_lost_request_has_no_effect_and_a_lost_answer_has() -> None:
    lost = [Moment.BEFORE]

    def fault(name: str, moment: Moment) -> Answer | None:
        if name == "reassign" and moment in lost:
            raise ClusterUnavailable("No answer.")
        return None

    admin = SimulatedAdmin(small_cluster("orders-0: 1,2,3 size 100"), fault=fault)
    with pytest.raises(ClusterUnavailable):
        admin.reassign({ORDERS: (1, 2, 4)})
    assert not admin.reassignments()
    lost[:] = [Moment.AFTER]
    with pytest.raises(ClusterUnavailable):
        admin.reassign({ORDERS: (1, 2, 4)})
    assert list(admin.reassignments()) == [ORDERS]


def test_a_fault_may_answer_in_the_clusters_place() -> None:
    admin = SimulatedAdmin(small_cluster("orders-0: 1,2,3 size 100"), fault=lambda _name, _moment: NOT_CONTROLLER)
    assert admin.reassign({ORDERS: (1, 2, 4)}) == {ORDERS: NOT_CONTROLLER}
    admin.fault = None
    assert not admin.reassignments()


def test_groups_are_told_only_when_asked_for() -> None:
    admin = SimulatedAdmin(small_cluster("orders-0: 1,2,3"))
    seen: list[tuple[str, int, int]] = []
    assert admin.observe(progress=lambda *told: seen.append(told)).groups == ()
    assert admin.observe(has_groups=True) == admin.cluster
    assert seen == [("topics", 1, 1)]


NOT_CONTROLLER = Answer("NOT_CONTROLLER", "This is not the correct controller for this cluster.")
