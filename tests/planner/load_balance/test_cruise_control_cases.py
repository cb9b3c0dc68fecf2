"""Cruise Control's small deterministic cluster, and its goals of capacity and of leaders' bytes in, as we say them.

Three brokers, five partitions of two replicas. Its goals of network capacity are `limits` in percent of a broker's
rates; its leader bytes in distribution is `balance.leaderIn`. Its rates out have what followers fetch, ours add it.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations, product

import pytest
from helpers.plans.planning import replicas_after
from planner.load_balance.planning import planned_with

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import Balance, Desired, DesiredBroker, DesiredCluster, DesiredTopic, Limits, Within
from reconciler.model.loads import Loads, PartitionLoad
from reconciler.model.topic_partition import TopicPartition

BROKERS = (0, 1, 2)
HELD = {("T1", 0): (0, 2), ("T1", 1): (1, 0), ("T2", 0): (1, 2), ("T2", 1): (0, 2), ("T2", 2): (0, 1)}
DISK = {("T1", 0): 75, ("T1", 1): 55, ("T2", 0): 5, ("T2", 1): 55, ("T2", 2): 95}
TAKEN = {("T1", 0): 100, ("T1", 1): 90, ("T2", 0): 5, ("T2", 1): 25, ("T2", 2): 45}
SENT = {("T1", 0): 130, ("T1", 1): 110, ("T2", 0): 6, ("T2", 1): 45, ("T2", 2): 120}
RATE = 300
Lists = Mapping[tuple[str, int], tuple[int, ...]]


def _states(limits: Mapping[str, int | Fraction], balance: Balance) -> tuple[Desired, Cluster, Loads]:
    topics = {
        name: Topic(
            name,
            tuple(
                Partition(number, held[0], held, held, sizes=(DISK[topic, number],) * 2)
                for (topic, number), held in HELD.items()
                if topic == name
            ),
        )
        for name in ("T1", "T2")
    }
    rates = {one: DesiredBroker(one, rates={"networkIn": RATE, "networkOut": RATE}) for one in BROKERS}
    desired = DesiredCluster("c", brokers=rates, balance=balance, limits=Limits(rates=limits))
    loads = {TopicPartition(*key): PartitionLoad(TAKEN[key], SENT[key] - TAKEN[key], DISK[key]) for key in HELD}
    anything = {name: DesiredTopic(name) for name in topics}
    return Desired(desired, anything), Cluster("c", {one: Broker(one) for one in BROKERS}, topics), Loads(loads)


def _rates(lists: Lists) -> dict[str, dict[int, int]]:
    """Return what each broker takes in, sends, and takes in as leader."""
    found = {word: dict.fromkeys(BROKERS, 0) for word in ("networkIn", "networkOut", "leaderIn")}
    for key, replicas in lists.items():
        for one in replicas:
            found["networkIn"][one] += TAKEN[key]
        found["networkOut"][replicas[0]] += SENT[key]
        found["leaderIn"][replicas[0]] += TAKEN[key]
    return found


def _fewest(limits: Mapping[str, int]) -> int | None:
    """Return the fewest bytes copied with no broker above a limit, of all placements with any leaders."""
    choices = [[*permutations(pair)] for pair in combinations(BROKERS, 2)]
    every = [way for pair in choices for way in pair]
    best: int | None = None
    for ways in product(every, repeat=len(HELD)):
        lists = dict(zip(HELD, ways, strict=True))
        copied = sum(DISK[key] * len(set(way).difference(HELD[key])) for key, way in lists.items())
        if best is not None and copied >= best:
            continue
        rates = _rates(lists)
        if all(max(rates[word].values()) <= most for word, most in limits.items()):
            best = copied
    return best


@pytest.mark.parametrize(
    "percents",
    [
        {"networkIn": 80},
        {"networkIn": 64},
        {"networkIn": 62},
        {"networkOut": 50},
        {"networkIn": 70, "networkOut": 55},
        {"networkIn": 55},
    ],
    ids=str,
)
def test_network_capacity_is_kept_by_the_fewest_bytes_or_told(percents: Mapping[str, int]) -> None:
    limits = {word: Fraction(percent, 100) for word, percent in percents.items()}
    most = {word: RATE * percent // 100 for word, percent in percents.items()}
    placed = planned_with(*_states(limits, Balance()))
    fewest = _fewest(most)
    assert bool(placed.violations) == (fewest is None)
    if fewest is not None:
        assert placed.proof.value == fewest


def test_leader_bytes_in_are_even_by_order_alone() -> None:
    states = _states({}, Balance(leader_in=Within(Fraction(1, 4))))
    placed = planned_with(*states)
    assert placed.moves
    assert not any(move.added for move in placed.moves)
    lists = {(key.topic, key.partition): replicas for key, replicas in replicas_after(states[1], placed).items()}
    mean = sum(TAKEN.values()) / len(BROKERS)
    assert all(0.75 * mean <= led <= 1.25 * mean for led in _rates(lists)["leaderIn"].values())


def test_a_limit_holds_beside_bands_of_disk_and_leaders_that_pull_the_other_way() -> None:
    balance = Balance(disk=Within(Fraction(1, 10)), leader_in=Within(Fraction(1, 10)))
    desired, observed, loads = _states({"networkIn": Fraction(64, 100)}, balance)
    placed = planned_with(desired, observed, loads)
    assert not placed.violations
    assert max(share.bytes_in_per_second or 0 for share in placed.balance_after.values()) <= RATE * 64 // 100
    free = replace(desired, cluster=replace(desired.cluster, limits=Limits()))
    assert planned_with(free, observed, loads).violations == ()
