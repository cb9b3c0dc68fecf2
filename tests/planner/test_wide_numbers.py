"""The planner and its proof on bytes of up to 63 bits, one partition of 30 TB among many, and counts as bounds."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from helpers.clusters.flat_clusters import CASE_D, CASES
from helpers.clusters.random_clusters import SMALL, TINY, random_cluster
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts
from helpers.plans.oracle import is_feasible, least_placement, problem_of, worth_of
from helpers.plans.planning import planned, replicas_after
from helpers.plans.proving import plan_of_placed
from planner.closed_form import sizes_to_copy

from reconciler.model.cluster import Cluster, Topic
from reconciler.model.desired import Balance, Desired, DesiredCluster, DesiredTopic, Even
from reconciler.model.problem import InvalidInput
from reconciler.planner import goal, sparse_flow, start
from reconciler.planner.flow import Network, minimise
from reconciler.proof.check import prove_end
from reconciler.workflow.plan import plan_of

pytestmark = pytest.mark.long

WIDE, MIXED = (63, 63, 60, 40, 10), (20, 20, 17, 40, 10)
"""How many bits sizes have, drawn from these."""
TERABYTES_30 = 30 * 10**12


def _widened(observed: Cluster, seed: int, widths: Sequence[int]) -> Cluster:
    random = Random(seed)

    def widened(topic: Topic) -> Topic:
        sizes = [random.getrandbits(random.choice(widths)) for _ in topic.partitions]
        pairs = zip(topic.partitions, sizes, strict=True)
        return replace(topic, partitions=tuple(replace(one, sizes=(size,) * len(one.sizes)) for one, size in pairs))

    return replace(observed, topics={name: widened(topic) for name, topic in observed.topics.items()})


def _wide_clusters(seeds: range, widths: Sequence[int]) -> Iterator[tuple[int, Desired, Cluster]]:
    for seed in seeds:
        desired, observed = random_cluster(seed, TINY if seed % 2 else SMALL)
        observed = _widened(observed, seed, widths)
        if is_feasible(problem_of(desired, observed)):
            yield seed, desired, observed


@pytest.mark.parametrize(("widths", "is_sifted"), [(WIDE, False), (WIDE, True), (MIXED, True)])
@parts("seeds", range(0, 200, 15), deep=range(300))
def test_bytes_of_any_width_are_planned_as_enumeration_does_and_proved(
    seeds: range, widths: Sequence[int], monkeypatch: pytest.MonkeyPatch, *, is_sifted: bool
) -> None:
    if is_sifted:
        monkeypatch.setattr(sparse_flow, "FEW_ARCS", 0)
        monkeypatch.setattr(start, "SPARE_ROWS", 1)
        monkeypatch.setattr(goal, "CHUNK", 3)
    tried = 0
    for seed, desired, observed in _wide_clusters(seeds, widths):
        problem, target = problem_of(desired, observed), desired.cluster.balance.replicas
        placed = planned(desired, observed)
        if seed % 2:
            least = least_placement(problem, target)
            assert least is not None
            found = worth_of(problem, target, replicas_after(observed, placed))
            assert found.least_of(problem, target) == least.least_of(problem, target), seed
        assert prove_end(plan_of_placed(desired, observed, placed), desired, observed).wrong is None, seed
        tried += 1
    assert tried > len(seeds) / 8


@pytest.mark.parametrize("name", ["a", "b"])
def test_one_partition_of_30_terabytes_among_many_is_planned_exactly(name: str) -> None:
    desired, observed = CASES[name].build()
    topic = next(iter(observed.topics.values()))
    large = replace(topic.partitions[0], sizes=(TERABYTES_30,) * len(topic.partitions[0].replicas))
    observed = replace(
        observed, topics={**observed.topics, topic.name: replace(topic, partitions=(large, *topic.partitions[1:]))}
    )
    placed = planned(desired, observed)
    assert sum(move.bytes for move in placed.moves) == sum(sizes_to_copy(problem_of(desired, observed)))


def test_a_change_of_the_factor_of_many_partitions_copies_each_once() -> None:
    # Each of the partitions is open to most brokers, so what is beside the fewest bytes is the counts alone.
    desired, observed = replace(CASE_D, topics=100, before=2, leaving=()).build()
    placed = planned(desired, observed)
    sizes = [partition.bytes_to_copy or 0 for _, partition in observed.partitions()]
    assert sum(move.bytes for move in placed.moves) == sum(sizes) == placed.proof.lower_bound


@pytest.mark.parametrize("bits", [20, 62, 200])
def test_a_flow_costs_the_least_whatever_the_width_of_its_costs(bits: int) -> None:
    random = Random(bits)
    for _ in range(20):
        tail = np.repeat(np.arange(5), 4)
        head = 5 + np.tile(np.arange(4), 5)
        cost = np.array([random.getrandbits(bits) for _ in tail], dtype=object)
        ones, none = np.ones(20, dtype=np.int64), np.zeros(20, dtype=np.int64)
        network = Network(
            tail=np.concatenate([tail, np.arange(5, 9)]),
            head=np.concatenate([head, np.full(4, 9)]),
            lower=np.concatenate([none, np.ones(4, dtype=np.int64)]),
            upper=np.concatenate([ones, np.full(4, 2)]),
            cost=np.concatenate([cost, np.zeros(4, dtype=object)]),
            supply=np.array([1] * 5 + [0] * 4 + [-5]),
            layers=(20, 24),
        )
        solution = minimise(network)
        reduced = network.cost + solution.price[network.tail] - solution.price[network.head]
        # Complementary slackness: with it no flow costs less, whoever found the prices.
        assert (reduced[solution.flow < network.upper] >= 0).all()
        assert (reduced[solution.flow > network.lower] <= 0).all()
        assert np.bincount(head, weights=solution.flow[:20]).sum() == 5


def test_a_plan_with_a_sum_of_bytes_that_its_file_cannot_hold_is_refused() -> None:
    desired = Desired(DesiredCluster("c", balance=Balance(replicas=Even())), {"t": DesiredTopic("t")})
    for exponent, is_held in ((60, True), (62, False)):
        observed = small_cluster(*(f"t-{number}: 1 size {1 << exponent}" for number in range(3)), brokers=(1, 2, 3))
        with nullcontext() if is_held else pytest.raises(InvalidInput, match="more than a plan file can hold"):
            assert plan_of(desired, observed).balance_before[1].bytes == 3 << exponent
