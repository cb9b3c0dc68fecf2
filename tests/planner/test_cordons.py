"""No replica is planned onto a broker that Kafka cordons: random clusters, each told its cordons in another way."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random

import pytest
from helpers.clusters.random_clusters import SMALL, TINY, random_cluster
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts
from helpers.plans.oracle import is_feasible, problem_of
from helpers.plans.planning import planned, replicas_after
from helpers.plans.proving import plan_of_placed

from reconciler.model.cluster import Broker, Cluster, LogDir
from reconciler.model.desired import Balance, BrokerState, Desired, DesiredBroker, DesiredCluster, DesiredTopic, Even
from reconciler.model.problem import PlacementInfeasible
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.place import Placed
from reconciler.proof.check import prove_end

SETTING = "cordoned.log.dirs"
OPEN, SHUT = LogDir("/d1"), LogDir("/d1", is_cordoned=True)
CLOSED: Mapping[str, Broker] = {
    "every log dir is told to be cordoned": Broker(0, log_dirs=(SHUT, replace(SHUT, path="/d2"))),
    "a dynamic *": Broker(0, log_dirs=(OPEN,), configs={SETTING: "*"}),
    "a static *": Broker(0, log_dirs=(OPEN,), settings={SETTING: "*"}),
    "every log dir by name": Broker(0, log_dirs=(OPEN, LogDir("/d2")), configs={SETTING: "/d2, /d1"}),
    "a static * without log dirs": Broker(0, settings={SETTING: "*"}),
}
NOT_CLOSED: Mapping[str, Broker] = {
    "one log dir of two": Broker(0, log_dirs=(SHUT, LogDir("/d2"))),
    "an empty dynamic value": Broker(0, log_dirs=(OPEN,), configs={SETTING: ""}, settings={SETTING: "*"}),
    "none": Broker(0),
}


def _like(broker: Broker, other: Broker) -> Broker:
    return replace(broker, log_dirs=other.log_dirs, configs=other.configs, settings=other.settings)


def _closing(desired: Desired, observed: Cluster, seed: int) -> tuple[Desired, Cluster, set[int]]:
    """Return both states with brokers cordoned at random, some of those written as active; and who gets nothing."""
    random = Random(seed)
    brokers, written, closed = dict(observed.brokers), dict(desired.cluster.brokers), set()
    for broker_id in observed.brokers:
        declared = desired.cluster.broker(broker_id)
        draw = random.random()
        if draw < 0.35:
            brokers[broker_id] = _like(brokers[broker_id], random.choice(list(CLOSED.values())))
            is_active = declared.state is BrokerState.ACTIVE and random.random() < 0.3
            written[broker_id] = replace(declared, has_state=is_active or declared.state is not BrokerState.ACTIVE)
            closed |= set() if is_active else {broker_id}
        elif draw < 0.7:
            brokers[broker_id] = _like(brokers[broker_id], random.choice(list(NOT_CLOSED.values())))
    cluster = replace(desired.cluster, brokers=dict(sorted(written.items())))
    return replace(desired, cluster=cluster), replace(observed, brokers=brokers), closed


def _gets(observed: Cluster, placed: Placed) -> Iterator[tuple[TopicPartition, int]]:
    """Yield each replica that the plan makes: of moves, of new partitions and of new topics."""
    for key, replicas in replicas_after(observed, placed).items():
        partition = observed.partition(key)
        held = partition.target_replicas if partition is not None else ()
        yield from ((key, replica) for replica in replicas if replica not in held)


@pytest.mark.long
@parts("seeds", range(0, 150, 2), deep=range(3000))
def test_no_replica_is_planned_onto_a_broker_that_kafka_cordons(seeds: range) -> None:
    plans = made = spared = 0
    for seed in seeds:
        desired, observed, closed = _closing(*random_cluster(seed, SMALL if seed % 3 else TINY), seed)
        try:
            placed = planned(desired, observed)
        except PlacementInfeasible:
            continue
        gets = list(_gets(observed, placed))
        assert [(seed, *get) for get in gets if get[1] in closed] == []
        verdict = prove_end(plan_of_placed(desired, observed, placed), desired, observed)
        assert verdict.wrong is None, (seed, verdict.wrong)
        plans, made, spared = plans + 1, made + len(gets), spared + len(closed)
    assert plans > len(seeds) / 5
    assert made > plans
    assert spared > plans


@pytest.mark.long
@parts("seeds", range(0, 60, 4), deep=range(1000))
def test_kafkas_own_cordon_counts_as_much_as_a_declared_one(seeds: range) -> None:
    compared = 0
    for seed in seeds:
        desired, observed, closed = _closing(*random_cluster(seed), seed)
        if any(desired.cluster.broker(one).state is not BrokerState.ACTIVE for one in closed):
            continue
        declared = {one: replace(desired.cluster.broker(one), state=BrokerState.CORDONED) for one in closed}
        brokers = {**desired.cluster.brokers, **declared}
        alike = replace(desired, cluster=replace(desired.cluster, brokers=brokers))
        if is_feasible(problem_of(alike, observed)):
            mine, theirs = planned(desired, observed), planned(alike, observed)
            assert (mine.moves, mine.topic_changes, mine.proof) == (theirs.moves, theirs.topic_changes, theirs.proof)
            compared += bool(closed)
        else:
            with pytest.raises(PlacementInfeasible):
                planned(desired, observed)
    assert compared > len(seeds) / 10


@pytest.mark.parametrize("how", [*CLOSED, *NOT_CLOSED])
def test_a_plan_fills_an_empty_broker_as_far_as_kafka_would(how: str) -> None:
    observed = small_cluster("t-0: 1,2 size 1", "t-1: 2,1 size 1", "t-2: 1,2 size 1", brokers=(1, 2, 3))
    broker = _like(observed.brokers[3], {**CLOSED, **NOT_CLOSED}[how])
    observed = replace(observed, brokers={**observed.brokers, 3: broker})
    balance = Balance(replicas=Even())
    topics = {"t": DesiredTopic("t", partitions=6), "new": DesiredTopic("new", partitions=6, replication_factor=2)}
    named = {3: DesiredBroker(3, capacity=1, has_state=False)}
    desired = Desired(DesiredCluster("c", balance=balance, brokers=named), topics)
    placed = planned(desired, observed)
    assert (3 in {broker for _, broker in _gets(observed, placed)}) == (how in NOT_CLOSED)
    written = {3: DesiredBroker(3, has_state=True)}
    desired = replace(desired, cluster=replace(desired.cluster, brokers=written))
    assert 3 in {broker for _, broker in _gets(observed, planned(desired, observed))}


def test_a_cordoned_broker_keeps_what_it_has_for_an_even_balance() -> None:
    observed = small_cluster("t-0: 3 size 1", "t-1: 3 size 1", "t-2: 1 size 1", "t-3: 2 size 1", brokers=(1, 2, 3))
    cordoned = replace(observed, brokers={**observed.brokers, 3: _like(observed.brokers[3], CLOSED["a dynamic *"])})
    desired = Desired(DesiredCluster("c", balance=Balance(replicas=Even())), {"t": DesiredTopic("t")})
    assert planned(desired, cordoned).moves == ()
