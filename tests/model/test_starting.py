"""Who can lead without loss, and the order of starts, beside a slow and obvious computation of the same."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.starting import heirs, start_order
from reconciler.model.topic_partition import TopicPartition


@pytest.mark.parametrize(
    ("isr", "elr", "last", "wanted"),
    [
        ((), (1, 2), (2,), (2, 1)),
        ((), (3, 1), (), (1, 3)),
        ((2,), None, None, (2,)),
        ((2,), (1,), (), (1, 2)),
        ((), (), (1,), ()),
        ((), None, None, None),
    ],
)
def test_whoever_is_in_the_isr_or_the_elr_has_all_records_the_last_leader_first(
    isr: tuple[int, ...], elr: tuple[int, ...] | None, last: tuple[int, ...] | None, wanted: tuple[int, ...] | None
) -> None:
    assert heirs(Partition(0, None, (1, 2, 3), isr, elr=elr, last_known_elr=last)) == wanted


@pytest.mark.parametrize("seed", range(20))
def test_the_order_is_that_of_starting_one_after_the_other_whoever_brings_most(seed: int) -> None:
    cluster = outage(random.Random(seed))
    order = start_order(cluster, 1)
    started: list[int] = []
    for one in order:
        left = {broker.id for broker in cluster.brokers.values() if broker.is_fenced} - {*started}
        led = {broker: brought(cluster, started, broker, leads) for broker in left}
        opened = {broker: brought(cluster, started, broker, is_open) for broker in left}
        assert len(led[one.broker_id]) == max(map(len, led.values()))
        assert (sorted(one.leads), sorted(one.opens)) == (led[one.broker_id], opened[one.broker_id])
        started.append(one.broker_id)
    every = [broker.id for broker in cluster.brokers.values() if broker.is_fenced]
    assert all(leads(cluster, started, key) == leads(cluster, every, key) for key, _ in cluster.partitions())
    assert all(is_open(cluster, started, key) == is_open(cluster, every, key) for key, _ in cluster.partitions())


def outage(chance: random.Random) -> Cluster:
    lines = [f"a-{n}: {','.join(map(str, chance.sample(range(1, 8), 3)))}" for n in range(12)]
    dead = chance.sample(range(1, 8), 5)
    cluster = small_cluster(*lines, brokers=range(1, 8), fenced=dead, configs={"a": {"min.insync.replicas": "2"}})
    partitions = []
    for one in cluster.topics["a"].partitions:
        isr = tuple(broker for broker in one.replicas if broker not in dead and chance.random() < 0.8)
        elr = tuple(chance.sample([broker for broker in one.replicas if broker not in isr], 1)) if len(isr) < 2 else ()
        last = elr[:1] if chance.random() < 0.5 else ()
        partitions.append(replace(one, leader=isr[0] if isr else None, isr=isr, elr=elr, last_known_elr=last))
    return replace(cluster, topics={"a": replace(cluster.topics["a"], partitions=tuple(partitions))})


def brought(cluster: Cluster, before: Sequence[int], broker: int, is_so: object) -> list[TopicPartition]:
    assert callable(is_so)
    keys = [key for key, _ in cluster.partitions()]
    return sorted(key for key in keys if is_so(cluster, [*before, broker], key) and not is_so(cluster, before, key))


def leads(cluster: Cluster, started: Sequence[int], key: TopicPartition) -> bool:
    partition = cluster.partition(key)
    assert partition is not None
    return partition.leader is not None or not {*started}.isdisjoint({*partition.isr, *(partition.elr or ())})


def is_open(cluster: Cluster, started: Sequence[int], key: TopicPartition) -> bool:
    partition = cluster.partition(key)
    assert partition is not None
    alive = {broker for broker in partition.isr if cluster.is_alive(broker)}
    return leads(cluster, started, key) and len(alive | ({*started} & {*partition.replicas})) >= 2
