"""How many partitions: the formula at its edges, what each side asks for, and what the costs come to by hand."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.groups.advice import Measured, Wanted, advise, partitions_for
from reconciler.groups.model.advice import Advice, Cost, Existing

MIB = 1 << 20
ORDERS = Existing("orders", 12, 3, 6, cluster_partitions=100, cluster_replicas=300, groups={"billing": 4, "audit": 20})


def cost(advice: Advice, name: str) -> Cost:
    (found,) = [each for each in advice.costs if each.name == name]
    return found


@pytest.mark.parametrize(
    ("target", "producer", "consumer", "headroom", "partitions"),
    [
        (100, 10, 20, "0", 10),
        (100, 10, None, "0", 10),
        (100, None, 20, "0", 5),
        (101, 10, 20, "0", 11),
        (100, 10, 20, "1/10", 11),
        (100, 10, 20, "3/10", 13),
        (1, 1000, 1000, "0", 1),
        (100, 3, 7, "0", 34),
    ],
)
def test_the_slower_side_decides(
    target: int, producer: int | None, consumer: int | None, headroom: str, partitions: int
) -> None:
    assert partitions_for(target, producer, consumer, Fraction(headroom)) == partitions


@given(st.integers(1, 10**12), st.integers(1, 10**10), st.integers(1, 10**10))
def test_so_many_partitions_carry_the_target_and_one_fewer_do_not(target: int, producer: int, consumer: int) -> None:
    partitions = partitions_for(target, producer, consumer)
    slower = min(producer, consumer)
    assert partitions * slower >= target
    assert partitions == 1 or (partitions - 1) * slower < target


def test_the_largest_need_is_the_advice() -> None:
    advice = advise(Wanted(100 * MIB, 10 * MIB, 20 * MIB, Fraction(3, 10), consumers=15), ORDERS)
    assert [(need.what, need.partitions) for need in advice.needs] == [
        ("producers", 13),
        ("consumers", 7),
        ("wanted consumers", 15),
        ("members of group audit", 20),
        ("members of group billing", 4),
    ]
    assert (advice.partitions, advice.even_partitions, advice.headroom_percent) == (20, 24, 30.0)
    assert (advice.brokers, advice.replication_factor) == (6, 3)


def test_a_measured_rate_stands_in_and_is_told_as_a_lower_bound() -> None:
    measured = Measured(target=90 * MIB, producer=9 * MIB, consumer=30 * MIB)
    advice = advise(Wanted(consumer=5 * MIB), None, measured)
    assert [(need.what, need.partitions, need.is_measured) for need in advice.needs] == [
        ("producers", 10, True),
        ("consumers", 18, False),
    ]
    assert any("not what it can" in note for note in advice.notes)


def test_the_costs_are_those_of_plain_arithmetic() -> None:
    existing = Existing("t", 12, 3, 6, 100, 300, total_bytes=12 << 30, segment_bytes=256 * MIB)
    advice = advise(Wanted(consumers=24), existing)
    replicas = cost(advice, "replicas on each broker")
    assert (replicas.now, replicas.after) == (6, 12)
    files = cost(advice, "open files on each broker")
    # 12 GiB over 12 partitions are 4 segments of 256 MiB each; over 24 they are 2.
    assert (files.now, files.after) == (6 * 4 * 3, 12 * 2 * 3)
    maps = cost(advice, "memory maps on each broker")
    assert (maps.now, maps.after) == (6 * 4 * 2, 12 * 2 * 2)
    # Followers of all topics: 200 now, 224 then, over 30 ordered pairs of brokers, 20 ms for each 1,000.
    latency = cost(advice, "added to the latency of acks=all")
    assert (latency.now, latency.after, latency.unit) == (1, 1, "ms")
    leaderless = cost(advice, "partitions without a leader when a broker dies")
    assert (leaderless.now, leaderless.after) == (2, 4)
    everything = cost(advice, "replicas on each broker, all topics")
    assert (everything.now, everything.after, everything.is_outdated) == (50, 56, True)
    assert cost(advice, "batches in a producer").after == 24 * 16384
    assert cost(advice, "fetched records in a consumer").after == MIB
    readers = cost(advice, "consumers of one group that read at once, at most")
    assert (readers.now, readers.after) == (12, 24)
    # Each of 24 members reads one partition, 4 of them from one broker, which coordinates all 24.
    assert cost(advice, "connections of one group on its busiest broker").after == 4 + 24


def test_many_partitions_between_two_brokers_cost_latency() -> None:
    advice = advise(Wanted(consumers=10_000, brokers=2, replication_factor=2))
    # 10,000 followers over the two ordered pairs: 5,000 each.
    assert cost(advice, "added to the latency of acks=all").after == 100
    assert cost(advice, "time to elect their leaders one by one").after == 25_000
    assert cost(advice, "time to elect their leaders one by one").is_outdated


def test_every_cost_has_its_source() -> None:
    assert all(each.source and each.what for each in advise(Wanted(consumers=5), ORDERS).costs)


def test_partitions_that_exist_stay() -> None:
    advice = advise(Wanted(consumers=3), Existing("t", 12, 3, 6, 100, 300))
    assert advice.partitions == 3
    assert "Kafka cannot take partitions away: the 12 stay" in advice.notes
    assert cost(advice, "replicas on each broker").after == 6


def test_growing_keyed_and_compacted_topics_is_warned_of() -> None:
    plain = advise(Wanted(consumers=24), Existing("t", 12, 3, 6, 100, 300)).notes
    assert any("if its records have keys" in note for note in plain)
    assert any("KAFKA-20030" in note for note in plain)
    compacted = advise(Wanted(consumers=24), Existing("t", 12, 3, 6, 100, 300, is_compacted=True)).notes
    assert any("is compacted, so its records have keys" in note for note in compacted)


def test_by_figures_alone_nothing_is_said_of_brokers() -> None:
    advice = advise(Wanted(consumers=6))
    assert (advice.brokers, advice.even_partitions, advice.existing) == (None, None, None)
    assert "give --brokers for what each broker bears" in advice.notes
    assert cost(advice, "replicas on all brokers together").after == 18
    assert not [each for each in advice.costs if each.name.startswith("connections")]


def test_members_that_read_many_partitions_connect_once_to_each_broker() -> None:
    advice = advise(Wanted(consumers=3, brokers=2), replace(ORDERS, groups={}))
    # Each of 3 members reads 4 of the 12 partitions, and so from both brokers.
    assert cost(advice, "connections of one group on its busiest broker").after == 3 + 3
