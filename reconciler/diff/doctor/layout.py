"""Finds how replicas and leaders stand where nothing is down: what one failure would take, and who leads."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from reconciler.model.cluster import Cluster
from reconciler.model.diagnosis import Finding
from reconciler.model.in_sync import waiting_leader
from reconciler.model.problem import Severity
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import counted, few, labelled

TOO_UNEVEN = 1.1
"""A rack with more replicas than this times another's is told, once each has `ENOUGH` of them on average."""
ENOUGH = 30


def findings(cluster: Cluster, blocking: Mapping[int, tuple[TopicPartition, ...]]) -> Iterator[Finding]:
    """Yield what is badly placed, and whose leader is another than its first replica; `blocking`: who may not stop."""
    yield from _single(cluster)
    yield from _unspread(cluster)
    yield from _uneven_racks(cluster)
    yield from _led_by_another(cluster)
    yield from _unsafe(cluster, blocking)


def _single(cluster: Cluster) -> Iterator[Finding]:
    keys = tuple(key for key, partition in cluster.partitions() if len(partition.target_replicas) == 1)
    if keys and len(cluster.brokers) > 1:
        names = _topics(keys)
        what = (
            f"{counted(len(names), 'topic')} with one replica alone: {few(names)}; it is offline while its broker is "
            "down, and lost with its disk"
        )
        advice = "declare replicationFactor 3, and plan"
        yield Finding("KR643", Severity.WARNING, what, advice, topics=names, partitions=keys)


def _unspread(cluster: Cluster) -> Iterator[Finding]:
    racks = {broker.id: broker.rack for broker in cluster.brokers.values() if broker.rack is not None}
    most = len(set(racks.values()))
    keys = tuple(
        key
        for key, partition in cluster.partitions()
        if racks.keys() >= {*(target := partition.target_replicas)}
        and len({racks[broker] for broker in target}) < min(len(target), most)
    )
    if keys:
        names = _topics(keys)
        what = (
            f"{counted(len(names), 'topic')} not spread over racks: {counted(len(keys), 'partition')} in fewer of the "
            f"{most} racks than could be: {few(keys)}"
        )
        advice = "declare placement.racks.spread, and plan"
        yield Finding("KR644", Severity.WARNING, what, advice, topics=names, partitions=keys)


def _uneven_racks(cluster: Cluster) -> Iterator[Finding]:
    racks = {broker.id: broker.rack for broker in cluster.brokers.values() if broker.rack is not None}
    brokers = Counter(racks.values())
    holders = (broker for _, partition in cluster.partitions() for broker in partition.target_replicas)
    replicas = Counter(racks[broker] for broker in holders if broker in racks)
    if len(brokers) <= 1:
        return
    held = [replicas[rack] for rack in brokers]
    is_uneven = max(held) > TOO_UNEVEN * min(held) and sum(held) >= ENOUGH * len(held)
    if is_uneven or len(set(brokers.values())) > 1:
        told = (
            f"{rack} {counted(brokers[rack], 'broker')}, {counted(replicas[rack], 'replica')}"
            for rack in sorted(brokers)
        )
        what = f"racks are uneven: {'; '.join(told)}"
        advice = (
            "add brokers to a small rack: spread partitions give each rack as many replicas, which its brokers share"
        )
        yield Finding("KR658", Severity.NOTE, what, advice)


def _led_by_another(cluster: Cluster) -> Iterator[Finding]:
    led = ((key, one) for key, one in cluster.partitions() if one.leader is not None and not one.is_reassigning)
    waiting = (key for key, one in led if waiting_leader(one) is not None)
    keys = tuple(key for key in waiting if not cluster.topics[key.topic].is_internal)
    if keys:
        what = f"{counted(len(keys), 'partition')} not led by the preferred leader, which is in sync: {few(keys)}"
        advice = "plan: it elects preferred leaders in declared topics, unless elections is off"
        yield Finding("KR645", Severity.WARNING, what, advice, topics=_topics(keys), partitions=keys)


def _unsafe(cluster: Cluster, blocking: Mapping[int, tuple[TopicPartition, ...]]) -> Iterator[Finding]:
    """Name brokers that live and may not stop; the partitions of each are `blocking`, those told here are of all."""
    alive = tuple(broker for broker in blocking if cluster.is_alive(broker))
    if alive:
        keys = tuple(sorted({key for broker in alive for key in blocking[broker]}))
        what = (
            f"{labelled('broker', alive)} not safe to stop: {counted(len(keys), 'partition')} would go under min ISR, "
            f"or offline: {few(keys)}"
        )
        advice = "before a restart get replicas in sync, raise replicationFactor, or lower min.insync.replicas"
        yield Finding("KR659", Severity.WARNING, what, advice, brokers=alive, topics=_topics(keys), partitions=keys)


def _topics(keys: Iterable[TopicPartition]) -> tuple[str, ...]:
    return tuple(sorted({key.topic for key in keys}))
