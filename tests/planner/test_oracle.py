"""The oracles themselves: enumeration against naive products, Kafka's placement."""

from collections.abc import Iterator
from itertools import product

from helpers.clusters.flat_clusters import kafka_placement
from helpers.clusters.random_clusters import Size, random_cluster
from helpers.plans.oracle import (
    Problem,
    is_feasible,
    leader_options,
    leader_worth,
    least_leaders,
    least_placement,
    legal_sets,
    problem_of,
    worth_of,
)

from reconciler.model.desired import BalanceTarget

VERY_TINY = Size(brokers=4, topics=2, partitions=4, replication_factor=3)


def _feasible() -> Iterator[tuple[Problem, BalanceTarget, BalanceTarget]]:
    for seed in range(120):
        desired, observed = random_cluster(seed, VERY_TINY)
        problem = problem_of(desired, observed)
        if is_feasible(problem):
            yield problem, desired.cluster.balance.replicas, desired.cluster.balance.leaders


def test_the_counting_oracle_finds_what_trying_every_placement_finds() -> None:
    tried = 0
    for problem, target, _ in _feasible():
        if not problem.is_size_known:
            continue
        keys = [demand.topic_partition for demand in problem.demands]
        choices = [legal_sets(demand, problem.rack_of) for demand in problem.demands]
        plain = min(worth_of(problem, target, dict(zip(keys, chosen, strict=True))).key for chosen in product(*choices))
        found = least_placement(problem, target)
        assert found is not None
        assert found.key == plain
        tried += 1
    assert tried > 50


def test_the_counting_oracle_finds_the_leaders_that_trying_every_order_finds() -> None:
    for problem, target, of_leaders in _feasible():
        placed = {d.topic_partition: legal_sets(d, problem.rack_of)[0] for d in problem.demands}
        options = [leader_options(demand, placed[demand.topic_partition]) for demand in problem.demands]
        keys = list(placed)
        plain = min(
            leader_worth(problem, of_leaders, dict(zip(keys, chosen, strict=True))) for chosen in product(*options)
        )
        assert least_leaders(problem, of_leaders, placed) == plain, target


def test_flat_clusters_start_as_kafka_places_them() -> None:
    uneven = {0: "rack1", 1: "rack1", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack1"}
    assert kafka_placement(uneven, 12, 3, start=0, shift=0) == [
        (0, 2, 3),
        (2, 3, 1),
        (3, 1, 2),
        (1, 4, 2),
        (4, 5, 2),
        (5, 2, 3),
        (0, 4, 2),
        (2, 5, 3),
        (3, 0, 2),
        (1, 2, 3),
        (4, 1, 2),
        (5, 4, 2),
    ]
