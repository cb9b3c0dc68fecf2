"""Weights of the file or of disks, and what else lies on these: as the proof, which shares no code, finds them."""

from random import Random

import pytest

from reconciler.diff.capacities import capacities, foreign_told, weights_told
from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.desired import Balance, BrokerState, Desired, DesiredBroker, DesiredCluster, Within
from reconciler.proof.rules import brokers_of
from reconciler.proof.snapshot import snapshot_of

ASKED = Balance(disk=Within(1))  # type: ignore[arg-type] # any fraction


def _states(seed: int) -> tuple[Desired, Cluster]:
    random = Random(seed)
    ids = range(1, random.randint(3, 6))
    brokers = {
        one: Broker(
            one,
            is_fenced=random.random() < 0.1,
            log_dirs=tuple(
                LogDir(f"/d{number}", random.choice([None, 600, 900, 900, 1200]), random.choice([None, 100, 200, 300]))
                for number in range(random.choice([1, 1, 2]))
            ),
        )
        for one in ids
    }
    partitions = []
    for number in range(random.randint(0, 6)):
        replicas = tuple(random.sample(ids, 2))
        partitions.append(
            Partition(number, replicas[0], replicas, replicas, sizes=(random.choice([None, 50, 80, 80]), 60))
        )
    weights = [{}, {}, {"replicas": 2}, {"network": 3, "leaders": 2}, {"disk": 2}]
    declared = {
        one: DesiredBroker(
            one,
            random.choice([BrokerState.ACTIVE, BrokerState.ACTIVE, BrokerState.DRAINING, BrokerState.MAINTENANCE]),
            weights=random.choice(weights[: random.choice([1, 4, 5])]),
        )
        for one in ids
        if random.random() < 0.5
    }
    desired = Desired(DesiredCluster("c", brokers=declared, balance=ASKED))
    return desired, Cluster("c", brokers, {"t": Topic("t", tuple(partitions))})


def test_planner_and_proof_find_the_same_weights_and_the_same_foreign_bytes() -> None:
    by_size = with_others = 0
    for seed in range(400):
        desired, observed = _states(seed)
        found, brokers = capacities(desired, observed), brokers_of(desired, observed, snapshot_of(observed))
        ours = {measure: [*weights.values()] for measure, weights in found.of.items()}
        proof = brokers.capacity
        assert [*found.of["replicas"]] == [*brokers.ids], seed
        assert (ours["replicas"], ours["leaders"]) == ([*proof.replicas], [*proof.leaders]), seed
        assert ours["network"] == [*proof.network], seed
        # Only the proportion counts.
        pairs = [*zip(ours["disk"], proof.disk, strict=True)]
        assert all(one * pairs[0][1] == other * pairs[0][0] for one, other in pairs), seed
        assert [found.foreign.get(one, 0) for one in brokers.ids] == [*proof.foreign], seed
        by_size += len({*ours["disk"]}) > 1
        with_others += any(proof.foreign)
    assert by_size > 40
    assert with_others > 20


def _two(first: LogDir, second: LogDir, brokers: dict[int, DesiredBroker] | None = None) -> tuple[Desired, Cluster]:
    topic = Topic("t", (Partition(0, 1, (1, 2), (1, 2), sizes=(100, 100)),))
    observed = Cluster("c", {1: Broker(1, log_dirs=(first,)), 2: Broker(2, log_dirs=(second,))}, {"t": topic})
    return Desired(DesiredCluster("c", brokers=brokers or {}, balance=ASKED)), observed


def test_disks_weigh_by_their_size_and_what_is_not_kafkas_is_told() -> None:
    states = _two(LogDir("/d", 1000, 700), LogDir("/d", 3000, 2900))
    assert weights_told(*states) == {2: {"disk": 3}}
    assert foreign_told(*states) == {1: 200, 2: 0}


@pytest.mark.parametrize(
    ("first", "brokers"),
    [
        (LogDir("/d", 3000, 100), None),
        (LogDir("/d", None, None), None),
        (LogDir("/d", 1000, 700), {2: DesiredBroker(2, capacity=2)}),
    ],
    ids=["of one size", "a size is unknown", "a weight is written"],
)
def test_disks_weigh_as_written_where_sizes_tell_nothing(
    first: LogDir, brokers: dict[int, DesiredBroker] | None
) -> None:
    states = _two(first, LogDir("/d", 3000, 2900), brokers)
    assert (weights_told(*states), foreign_told(*states)) == ({}, {})
    assert capacities(*states).of["disk"] == {1: 1, 2: 2 if brokers else 1}
