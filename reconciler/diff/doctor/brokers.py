"""Finds what is wrong with brokers (dead, silent, a bad or full disk, in no rack) and controllers that are behind."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from reconciler.diff.leaderless import has_source
from reconciler.model.cluster import AUTO_REBALANCE, REBALANCE_INTERVAL, Cluster
from reconciler.model.diagnosis import Finding
from reconciler.model.in_sync import waiting_leader
from reconciler.model.problem import Severity
from reconciler.model.vitals import LogDirState, Quorum, QuorumMember, Vitals
from reconciler.model.words import counted, labelled, named_some, percent, size

if TYPE_CHECKING:
    from reconciler.model.topic_partition import TopicPartition

_RACKS = "set broker.rack on every broker where there are zones or racks that fail apart"
_FULL = 10  # A disk of which less than this part is left is named.
_LATE_MS = 30_000
"""An idle controller writes at least each 5 s what its followers fetch at once: who is so late does not follow."""


def findings(vitals: Vitals) -> Iterator[Finding]:
    """Yield what is wrong with brokers and controllers."""
    yield from _dead(vitals.cluster)
    yield from _silent(vitals)
    yield from _log_dirs(vitals)
    yield from _racks(vitals.cluster)
    yield from _self_electing(vitals)
    yield from _quorum(vitals.quorum, vitals.cluster)


def _dead(cluster: Cluster) -> Iterator[Finding]:
    held: dict[int, list[TopicPartition]] = defaultdict(list)
    stranded = Counter[int]()
    for (key, partition), is_copied in zip(cluster.partitions(), has_source(cluster).tolist(), strict=True):
        for broker in partition.replicas:
            held[broker].append(key)
        stranded.update(() if is_copied else partition.replicas)
    for broker in sorted({*held, *cluster.brokers}):
        if cluster.is_alive(broker):
            continue
        state = "is not alive (fenced)" if broker in cluster.brokers else "is not known to the cluster"
        if held[broker]:
            what = f"broker {broker} {state} and holds {counted(len(held[broker]), 'replica')}"
            advice = f"start it{_without_it(len(held[broker]), stranded[broker])}"
            yield Finding("KR650", Severity.ERROR, what, advice, brokers=(broker,), partitions=tuple(held[broker]))
        else:
            what = f"broker {broker} {state} and holds nothing"
            advice = f"start it, or take it out of the cluster: kafka-cluster unregister --id {broker}"
            yield Finding("KR651", Severity.WARNING, what, advice, brokers=(broker,))


def _without_it(replicas: int, stranded: int) -> str:
    """Return what a plan can do if the broker does not come back; `stranded` replicas have no source to copy from."""
    which = counted(stranded, "partition")
    if replicas == stranded:
        has = "has" if stranded == 1 else "have"
        return f": {which} on it {has} no living replica in sync, and a plan makes no replicas of such a partition"
    but = f", but not those of {which} without a living replica in sync" if stranded else ""
    return f"; if it will not come back, declare it draining and plan: its replicas are made elsewhere{but}"


def _silent(vitals: Vitals) -> Iterator[Finding]:
    for broker in vitals.disks.silent if vitals.disks is not None else ():
        what = f"broker {broker} counts as alive but did not tell of its log dirs"
        advice = "see whether it can be reached from here, and whether it hangs; then look again"
        yield Finding("KR654", Severity.WARNING, what, advice, brokers=(broker,))


def _log_dirs(vitals: Vitals) -> Iterator[Finding]:
    dirs = vitals.disks.dirs if vitals.disks is not None else _dirs_in(vitals.cluster)
    for one in (each for each in dirs if each.error is not None):
        what = (
            f"log dir {one.path} of broker {one.broker_id} is offline ({one.error}): what it holds is out of sync, and "
            "a move to it never ends; the broker counts as alive all the same"
        )
        advice = "make room or replace the disk, then restart the broker"
        yield Finding("KR652", Severity.ERROR, what, advice, brokers=(one.broker_id,))
    for one in (each for each in dirs if each.total_bytes and each.usable_bytes is not None):
        total, free = one.total_bytes or 0, max(0, one.usable_bytes or 0)
        if free * _FULL < total:
            what = (
                f"log dir {one.path} of broker {one.broker_id} has {size(free)} of {size(total)} left"
                f" ({percent(Fraction(free, total))}): a disk that gets full goes offline with all that is on it"
            )
            advice = "make room on it, shorten a retention, or set limits.diskUse and plan: that relieves it"
            yield Finding("KR666", Severity.WARNING, what, advice, brokers=(one.broker_id,))
    for one in (each for each in dirs if each.is_cordoned):
        what = f"log dir {one.path} of broker {one.broker_id} is cordoned (KIP-1066): Kafka puts nothing new there"
        advice = (
            "a plan gives a broker whose log dirs are all cordoned no replica, unless its state is written as active"
        )
        yield Finding("KR655", Severity.NOTE, what, advice, brokers=(one.broker_id,))


def _dirs_in(snapshot: Cluster) -> tuple[LogDirState, ...]:
    offline = "offline when the snapshot was taken"
    return tuple(
        LogDirState(
            broker.id,
            one.path,
            offline if one.is_offline else None,
            one.is_cordoned,
            one.total_bytes,
            one.usable_bytes,
        )
        for broker in snapshot.brokers.values()
        for one in broker.log_dirs
    )


def _racks(cluster: Cluster) -> Iterator[Finding]:
    nowhere = tuple(broker.id for broker in cluster.brokers.values() if not broker.rack)
    if nowhere and len(nowhere) < len(cluster.brokers):
        what = (
            f"{labelled('broker', nowhere)} in no rack, while others have one: a plan counts such a broker in no rack, "
            "and cannot see which replicas fail together with its own"
        )
        advice = "set broker.rack in server.properties and restart"
        yield Finding("KR653", Severity.WARNING, what, advice, brokers=nowhere)
    elif nowhere:
        what = "no broker has a rack: nothing keeps a partition's replicas from failing together"
        yield Finding("KR656", Severity.NOTE, what, _RACKS)
    counts = Counter(broker.rack for broker in cluster.brokers.values() if broker.rack)
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
    intervals = sorted({vitals.settings[broker].get(REBALANCE_INTERVAL, "300") for broker in on}, key=int)
    what = (
        f"{AUTO_REBALANCE} is on for {labelled('broker', on)}: every {REBALANCE_INTERVAL} ({named_some(intervals)}) "
        f"the controller elects the preferred leaders, before a plan's own batches do, and undoes any other{now}"
    )
    advice = f"set {AUTO_REBALANCE}=false on brokers and controllers to keep elections in a plan's batches"
    yield Finding("KR657", Severity.NOTE, what, advice, brokers=on, partitions=waiting)


def _quorum(quorum: Quorum | None, cluster: Cluster) -> Iterator[Finding]:
    """Yield who does not follow the active controller; a broker that is dead is told elsewhere."""
    if quorum is None:
        return
    late = [one for one in quorum.voters if _is_late(one)]
    if late:
        ids = [one.id for one in late]
        voters = ", ".join(str(one.id) for one in quorum.voters)
        spare = (len(quorum.voters) - 1) // 2 - len(late)
        left = f"{counted(spare, 'controller')} more may fail" if spare > 0 else "none more may fail"
        what = f"{labelled('controller', ids)} of the quorum {voters} not following it: {_behind(late)}"
        advice = f"start it, or see to its disk and network; until then {left} before nothing can be changed any more"
        yield Finding("KR637", Severity.WARNING, what, advice, brokers=tuple(ids))
    slow = [one for one in quorum.observers if _is_late(one) and cluster.is_alive(one.id)]
    if slow:
        ids = [one.id for one in slow]
        what = f"{labelled('broker', ids)} not up to date with the cluster's metadata: {_behind(slow)}"
        advice = "see to its disk and network; what it tells of topics and leaders is old until then"
        yield Finding("KR638", Severity.WARNING, what, advice, brokers=tuple(ids))


def _is_late(one: QuorumMember) -> bool:
    return one.behind_ms is None or one.behind_ms >= _LATE_MS


def _behind(members: Sequence[QuorumMember]) -> str:
    times = [one.behind_ms for one in members]
    known = [one for one in times if one is not None]
    if len(known) < len(times):
        return "not heard of since the active controller began"
    records = max((one.behind_records or 0 for one in members), default=0)
    return f"{max(known) // 1000:,} s and {counted(records, 'record')} behind"
