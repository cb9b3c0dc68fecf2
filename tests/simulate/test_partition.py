"""Transitions of one partition that no recorded sequence shows."""

import pytest
from helpers.clusters.reported_isr import alter_isr
from helpers.clusters.small_cluster import small_cluster

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.controller import MAX_RECORDS
from reconciler.simulate.events import fence, unfence, unregister
from reconciler.simulate.progress import advance
from reconciler.simulate.requests import elect_preferred_leaders, reassign

ORDERS = TopicPartition("orders", 0)


def orders(cluster: Cluster) -> Partition:
    partition = cluster.partition(ORDERS)
    assert partition is not None
    return partition


def test_from_4_3_on_the_original_list_over_a_move_in_flight_stays_listed() -> None:
    cluster = small_cluster("orders-0: 2,3,5 size 10", kafka_version="4.3")
    for target in ((2, 3, 6), (2, 3, 5)):
        cluster = reassign(cluster, {ORDERS: target}).cluster
    partition = orders(advance(cluster, 600_000))
    assert (partition.adding_replicas, partition.removing_replicas) == ((6,), (6,))
    assert set(partition.isr) == {2, 3, 5, 6}
    restored = reassign(reassign(cluster, {ORDERS: None}).cluster, {ORDERS: (2, 3, 5)}).cluster
    assert orders(restored).replicas == (2, 3, 5)
    assert not orders(restored).is_reassigning


def test_from_4_3_on_a_dead_replica_that_stays_does_not_block_a_swap_but_blocks_a_shrink() -> None:
    cluster = small_cluster("orders-0: 1,2,3 isr 1,2", kafka_version="4.3", fenced=[3])
    swapped = alter_isr(reassign(cluster, {ORDERS: (1, 3, 4)}).cluster, {ORDERS: (1, 2, 4)})
    assert (orders(swapped).replicas, orders(swapped).isr) == ((1, 3, 4), (1, 4))
    assert orders(reassign(cluster, {ORDERS: (1, 3)}).cluster).is_reassigning


def test_the_guard_of_the_replication_factor_counts_the_target_in_flight_and_needs_4_1() -> None:
    for version, error in (("4.1", "INVALID_REPLICATION_FACTOR"), ("3.9", None)):
        cluster = reassign(small_cluster("orders-0: 1,2,3", kafka_version=version), {ORDERS: (1, 2, 4)}).cluster
        outcome = reassign(cluster, {ORDERS: (1, 2, 4, 5)}, is_replication_factor_change_allowed=False)
        denied = outcome.answers[ORDERS]
        assert (denied.error if denied else None) == error
        kept = reassign(cluster, {ORDERS: (1, 2, 5)}, is_replication_factor_change_allowed=False)
        assert kept.answers[ORDERS] is None


def test_a_preferred_election_waits_for_the_isr() -> None:
    cluster = small_cluster("orders-0: 3,1,2 isr 1,2 leader 1")
    denied = elect_preferred_leaders(cluster, [ORDERS]).answers[ORDERS]
    assert denied is not None
    assert denied.error == "PREFERRED_LEADER_NOT_AVAILABLE"
    caught_up = alter_isr(cluster, {ORDERS: (1, 2, 3)})
    elected = elect_preferred_leaders(caught_up, [ORDERS]).cluster
    assert orders(elected).leader == 3
    again = elect_preferred_leaders(elected, [ORDERS]).answers[ORDERS]
    assert again is not None
    assert again.error == "ELECTION_NOT_NEEDED"


@pytest.mark.parametrize(("version", "last"), [("4.0", (2,)), ("4.1", ())])
def test_leadership_goes_to_the_next_in_sync_replica_in_order_and_then_nowhere(
    version: str, last: tuple[int, ...]
) -> None:
    cluster = small_cluster("orders-0: 3,1,2 isr 3,2", kafka_version=version)
    cluster = fence(cluster, 3)
    assert (orders(cluster).leader, orders(cluster).isr) == (2, (2,))
    cluster = fence(cluster, 2)
    assert (orders(cluster).leader, orders(cluster).isr) == (None, last)
    cluster = advance(unfence(cluster, 3), 1000)
    assert (orders(cluster).leader, orders(cluster).isr) == (None, last)
    cluster = advance(unfence(cluster, 2), 1000)
    assert orders(cluster).leader == 2
    assert set(orders(cluster).isr) == {1, 2, 3}


def test_a_move_goes_on_from_the_new_leader_when_the_old_one_dies() -> None:
    cluster = reassign(small_cluster("orders-0: 1,2,3 size 200000000"), {ORDERS: (2, 3, 4)}).cluster
    cluster = advance(fence(advance(cluster, 1000), 1), 60_000)
    assert (orders(cluster).replicas, orders(cluster).leader) == ((2, 3, 4), 2)


def test_an_unregistered_broker_stays_named_by_its_partitions() -> None:
    cluster = unregister(small_cluster("orders-0: 1,2,3"), 3)
    assert 3 not in cluster.brokers
    assert (orders(cluster).replicas, orders(cluster).isr) == ((1, 2, 3), (1, 2))


def test_the_controller_moves_when_its_broker_dies() -> None:
    assert fence(small_cluster("orders-0: 1,2,3"), 1).controller_id == 2


def test_a_new_replica_lands_in_the_log_dir_with_the_fewest_replicas() -> None:
    cluster = small_cluster("orders-0: 1,2,3 size 10", "orders-2: 4,5,6 size 10")
    assert cluster.topics["orders"].partitions[1].log_dirs[0] == "/d2"
    moved = advance(reassign(cluster, {ORDERS: (1, 2, 4)}).cluster, 1000)
    assert orders(moved).log_dirs[2] == "/d1"


def test_a_partition_of_unknown_size_joins_at_once_and_stays_unknown() -> None:
    moved = advance(reassign(small_cluster("orders-0: 1,2,3"), {ORDERS: (1, 2, 4)}).cluster, 1)
    assert (orders(moved).replicas, orders(moved).sizes) == ((1, 2, 4), ())


@pytest.mark.long
def test_beyond_the_controllers_limit_the_first_are_done_and_the_rest_fail() -> None:
    lines = [f"orders-{number}: 1,2,3 leader 2" for number in range(MAX_RECORDS + 5)]
    cluster = small_cluster(*lines)
    keys = [TopicPartition("orders", number) for number in range(MAX_RECORDS + 5)]
    answers = reassign(cluster, dict.fromkeys(keys, (3, 2, 1))).answers
    assert [number for number, key in enumerate(keys) if answers[key] is not None] == list(
        range(MAX_RECORDS, len(keys))
    )
    elected = elect_preferred_leaders(cluster, keys)
    assert {one.error for one in elected.answers.values() if one} == {"UNKNOWN_SERVER_ERROR"}
    assert all(partition.leader == 1 for _, partition in elected.cluster.partitions())
