"""Findings of brokers: dead, silent, with a broken disk, in no rack, or electing leaders by themselves."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from reconciler.model.cluster import AUTO_REBALANCE, Cluster
from reconciler.model.diagnosis import Finding
from reconciler.model.in_sync import waiting_leader
from reconciler.model.problem import Severity
from reconciler.model.vitals import LogDirState, Vitals
from reconciler.model.words import counted, labelled

if TYPE_CHECKING:
    from reconciler.model.topic_partition import TopicPartition

_RACKS = "set broker.rack on every broker where there are zones or racks that fail apart"


def findings(vitals: Vitals) -> Iterator[Finding]:
    """Yield what is wrong with brokers."""
    yield from _dead(vitals.cluster)
    yield from _silent(vitals)
    yield from _log_dirs(vitals)
    yield from _racks(vitals.cluster)
    yield from _self_electing(vitals)


def _dead(cluster: Cluster) -> Iterator[Finding]:
    held: dict[int, list[TopicPartition]] = defaultdict(list)
    for key, partition in cluster.partitions():
        for broker in partition.replicas:
            held[broker].append(key)
    for broker in sorted({*held, *cluster.brokers}):
        if cluster.is_alive(broker):
            continue
        what = "is not alive (fenced)" if broker in cluster.brokers else "is not known to the cluster"
        if held[broker]:
            yield Finding(
                "KR650",
                Severity.ERROR,
                f"broker {broker} {what} and holds {counted(len(held[broker]), 'replica')}",
                "start it; if it will not come back, declare it draining and plan: its replicas are made elsewhere",
                brokers=(broker,),
                partitions=tuple(held[broker]),
            )
        else:
            yield Finding(
                "KR651",
                Severity.WARNING,
                f"broker {broker} {what} and holds nothing",
                "start it, or take it out of the cluster: kafka-cluster unregister --id " + str(broker),
                brokers=(broker,),
            )


def _silent(vitals: Vitals) -> Iterator[Finding]:
    for broker in vitals.disks.silent if vitals.disks is not None else ():
        yield Finding(
            "KR654",
            Severity.WARNING,
            f"broker {broker} counts as alive but did not tell of its log dirs",
            "see whether it can be reached from here, and whether it hangs; then look again",
            brokers=(broker,),
        )


def _log_dirs(vitals: Vitals) -> Iterator[Finding]:
    dirs = vitals.disks.dirs if vitals.disks is not None else _dirs_in(vitals.cluster)
    for one in (each for each in dirs if each.error is not None):
        yield Finding(
            "KR652",
            Severity.ERROR,
            f"log dir {one.path} of broker {one.broker_id} is offline ({one.error}): what it holds is out of sync, and "
            "a move to it never ends; the broker counts as alive all the same",
            "make room or replace the disk, then restart the broker",
            brokers=(one.broker_id,),
        )
    for one in (each for each in dirs if each.is_cordoned):
        yield Finding(
            "KR655",
            Severity.NOTE,
            f"log dir {one.path} of broker {one.broker_id} is cordoned (KIP-1066): Kafka puts nothing new there",
            "a plan gives a broker whose log dirs are all cordoned no replica, unless its state is written as active",
            brokers=(one.broker_id,),
        )


def _dirs_in(snapshot: Cluster) -> tuple[LogDirState, ...]:
    offline = "offline when the snapshot was taken"
    return tuple(
        LogDirState(broker.id, one.path, offline if one.is_offline else None, one.is_cordoned)
        for broker in snapshot.brokers.values()
        for one in broker.log_dirs
    )


def _racks(cluster: Cluster) -> Iterator[Finding]:
    nowhere = tuple(broker.id for broker in cluster.brokers.values() if broker.rack is None)
    if nowhere and len(nowhere) < len(cluster.brokers):
        yield Finding(
            "KR653",
            Severity.WARNING,
            f"{labelled('broker', nowhere)} in no rack, while others have one: each counts as a rack of its own, or "
            "as none",
            "set broker.rack in server.properties and restart",
            brokers=nowhere,
        )
    elif nowhere:
        yield Finding(
            "KR656",
            Severity.NOTE,
            "no broker has a rack: nothing keeps a partition's replicas from failing together",
            _RACKS,
        )
    counts = Counter(broker.rack for broker in cluster.brokers.values() if broker.rack is not None)
    if len(counts) == 1 and not nowhere and len(cluster.brokers) > 1:
        yield Finding("KR656", Severity.NOTE, f"every broker is in one rack, {next(iter(counts))}", _RACKS)


def _self_electing(vitals: Vitals) -> Iterator[Finding]:
    """Go by the brokers' own word: dedicated controllers, which decide, may have been told otherwise."""
    on = tuple(broker for broker, keys in sorted(vitals.settings.items()) if keys.get(AUTO_REBALANCE) == "true")
    if not on:
        return
    waiting = tuple(
        key
        for key, partition in vitals.cluster.partitions()
        if partition.leader is not None and waiting_leader(partition) is not None
    )
    now = f"; {counted(len(waiting), 'partition')} will change leader so" if waiting else ""
    yield Finding(
        "KR657",
        Severity.NOTE,
        f"{AUTO_REBALANCE} is on for {labelled('broker', on)}: every leader.imbalance.check.interval.seconds (300) "
        f"the controller elects the preferred leaders, before a plan's own batches do, and undoes any other{now}",
        f"set {AUTO_REBALANCE}=false on brokers and controllers to keep elections in a plan's batches",
        brokers=on,
        partitions=waiting,
    )
