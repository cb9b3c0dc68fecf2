"""Finds partitions without a leader, short of replicas or badly placed, stray replicas, and blocked topics."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from reconciler.model.cluster import UNCLEAN_ELECTION, Cluster, Partition
from reconciler.model.config_value import UNREADABLE
from reconciler.model.diagnosis import Finding
from reconciler.model.in_sync import brokers_min_isr, needed_in_sync, waiting_leader
from reconciler.model.problem import Severity
from reconciler.model.sample import ReplicaOnDisk
from reconciler.model.starting import heirs
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import Vitals
from reconciler.model.words import counted, few, labelled

Place = tuple[TopicPartition, int]
TOO_UNEVEN = 1.1
"""A rack with more replicas than this times another's is told, once each has `ENOUGH` of them on average."""
ENOUGH = 30


def findings(vitals: Vitals, blocking: Mapping[int, tuple[TopicPartition, ...]]) -> Iterator[Finding]:
    """Yield what is wrong with partitions, many for one reason as one finding; `blocking`: which brokers may not stop.

    Where nothing is down it is what one failure would take, and who leads.
    """
    yield from _offline(vitals)
    yield from _under_min_isr(vitals)
    yield from _lagging(vitals)
    yield from _strays(vitals)
    yield from _future(vitals)
    yield from _single(vitals.cluster)
    yield from _unspread(vitals.cluster)
    yield from _uneven_racks(vitals.cluster)
    yield from _led_by_another(vitals.cluster)
    yield from _unsafe(vitals.cluster, blocking)
    yield from _removed_keys(vitals.cluster)


def _offline(vitals: Vitals) -> Iterator[Finding]:
    cluster = vitals.cluster
    is_unclean = any(settings.get(UNCLEAN_ELECTION) == "true" for settings in vitals.settings.values())
    alike: dict[_Orphans, list[TopicPartition]] = defaultdict(list)
    for key, partition in cluster.partitions():
        if partition.leader is None:
            override = cluster.topics[key.topic].configs.get(UNCLEAN_ELECTION)
            alike[_orphans(partition, is_unclean=is_unclean if override is None else override == "true")].append(key)
    for orphans, keys in sorted(alike.items()):
        what = f"{counted(len(keys), 'partition')} offline, without a leader: {few(keys)}"
        yield Finding(
            "KR640", Severity.ERROR, what, _next(orphans, cluster), brokers=orphans.brokers, partitions=tuple(keys)
        )


class _Orphans(NamedTuple):
    """What partitions without a leader wait for: those `brokers`, who led last first; `known`: what they have."""

    brokers: tuple[int, ...]
    known: Literal["all records", "last led", "nobody", "unknown"]
    last: tuple[int, ...]
    is_unclean: bool


def _orphans(partition: Partition, *, is_unclean: bool) -> _Orphans:
    found, last = heirs(partition), partition.last_known_elr or ()
    if found:
        return _Orphans(found, "all records", tuple(one for one in found if one in last), is_unclean)
    if found is not None and last:
        return _Orphans(last, "last led", last, is_unclean)
    known: Literal["nobody", "unknown"] = "unknown" if found is None else "nobody"
    return _Orphans(tuple(sorted(partition.replicas)), known, (), is_unclean)


def _next(orphans: _Orphans, cluster: Cluster) -> str:
    """Return whom to start. Kafka elects whoever has all records by itself; a forced election may lose some."""
    dead = tuple(one for one in orphans.brokers if not cluster.is_alive(one))
    alive = tuple(one for one in orphans.brokers if cluster.is_alive(one))
    lives = f"see why {labelled('broker', alive)} does not lead, though alive: its log dirs" if alive else ""
    start = ", ".join(filter(None, [f"start {labelled('broker', dead)}" if dead else "", lives]))
    others = (
        "; start no other that holds them before: unclean.leader.election.enable is on" if orphans.is_unclean else ""
    )
    match orphans.known:
        case "all records":
            first = f" ({orphans.last[0]} led last)" if orphans.last and len(orphans.brokers) > 1 else ""
            have = "it has" if len(orphans.brokers) == 1 else "they have"
            return f"{start}{first}: only {have} all records; an unclean election would lose some{others}"
        case "last led":
            lost = "those that had all records crashed, what it has not on disk is lost"
            return f"{start}: it led last, and Kafka elects it by itself; {lost}{others}"
        case "nobody" | "unknown":
            untold = "" if orphans.known == "nobody" else " (the ELR, KIP-966, was not told)"
            wait = "with all of them back Kafka elects the right one; an unclean election before may lose records"
            return f"{start}: which of them has all records is not known{untold}; {wait}{others}"


def _under_min_isr(vitals: Vitals) -> Iterator[Finding]:
    default = brokers_min_isr(vitals.cluster, vitals.settings)
    by_missing: dict[tuple[int, ...], list[TopicPartition]] = defaultdict(list)
    for name, topic in vitals.cluster.topics.items():
        for partition in topic.partitions:
            if partition.leader is not None and len(partition.isr) < needed_in_sync(topic, partition, default):
                by_missing[_missing(partition)].append(TopicPartition(name, partition.partition))
    for missing, keys in sorted(by_missing.items()):
        because = f"{labelled('broker', missing)} not in sync" if missing else "too few replicas"
        what = f"{counted(len(keys), 'partition')} under min ISR ({because}), closed to acks=all: {few(keys)}"
        advice = f"get {labelled('broker', missing)} in sync again" if missing else "raise replicationFactor"
        yield Finding("KR641", Severity.ERROR, what, advice, brokers=missing, partitions=tuple(keys))


def _missing(partition: Partition) -> tuple[int, ...]:
    """Return the replicas that ought to be in sync: those that a move only brings are not yet."""
    wanted = set(partition.target_replicas) - set(partition.adding_replicas)
    return tuple(sorted(wanted - set(partition.isr)))


def _lagging(vitals: Vitals) -> Iterator[Finding]:
    """Name the followers behind on brokers that live; of a dead one, its own finding tells."""
    on_disk = _on_disk(vitals)
    behind: dict[int, list[TopicPartition]] = defaultdict(list)
    for key, partition in vitals.cluster.partitions():
        for broker in _missing(partition):
            if partition.leader is not None and vitals.cluster.is_alive(broker):
                behind[broker].append(key)
    for broker, keys in sorted(behind.items()):
        yield Finding(
            "KR642",
            Severity.WARNING,
            f"{counted(len(keys), 'replica')} on broker {broker} not in sync: {few(keys)}",
            "see whether it catches up: its disk, its network, a throttle that lists it",
            brokers=(broker,),
            partitions=tuple(keys),
            bytes_behind=_sum([_bytes_behind(key, broker, vitals.cluster, on_disk) for key in keys]),
            records_behind=_sum([on_disk[key, broker].offset_lag if (key, broker) in on_disk else None for key in keys])
            or None,
        )


def _on_disk(vitals: Vitals) -> Mapping[Place, ReplicaOnDisk]:
    replicas = vitals.disks.replicas if vitals.disks is not None else ()
    return {(one.topic_partition, one.broker_id): one for one in replicas if not one.is_future}


def _bytes_behind(
    key: TopicPartition, broker: int, cluster: Cluster, on_disk: Mapping[Place, ReplicaOnDisk]
) -> int | None:
    """Return what the leader's log holds more; retention makes it a little less, or more, than what is to be copied."""
    partition = cluster.partition(key)
    if partition is None or partition.leader is None:
        return None
    leaders, own = (
        on_disk[key, one].size_bytes if (key, one) in on_disk else partition.size_on(one)
        for one in (partition.leader, broker)
    )
    return None if leaders is None else max(0, leaders - (own or 0))


def _sum(amounts: Sequence[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _strays(vitals: Vitals) -> Iterator[Finding]:
    """Name what log dirs hold beside the assignment: a moved replica goes soon, a stray stays (KAFKA-13972)."""
    hidden = vitals.rights.hidden if vitals.rights is not None else frozenset()
    by_broker: dict[int, list[ReplicaOnDisk]] = defaultdict(list)
    for place, replica in _on_disk(vitals).items():
        partition = vitals.cluster.partition(place[0])
        is_assigned = partition is not None and place[1] in partition.replicas
        if not is_assigned and place[0].topic not in hidden:
            by_broker[place[1]].append(replica)
    for broker, replicas in sorted(by_broker.items()):
        keys = tuple(sorted(replica.topic_partition for replica in replicas))
        yield Finding(
            "KR680",
            Severity.WARNING,
            f"broker {broker} has {counted(len(keys), 'replica')} on disk that nobody assigned to it: {few(keys)}",
            "look again in a minute: Kafka deletes a moved replica a little later. What stays goes when the broker is "
            "restarted",
            brokers=(broker,),
            partitions=keys,
            bytes_on_disk=_sum([replica.size_bytes for replica in replicas]),
        )


def _future(vitals: Vitals) -> Iterator[Finding]:
    replicas = [one for one in vitals.disks.replicas if one.is_future] if vitals.disks is not None else []
    for broker in sorted({one.broker_id for one in replicas}):
        moving = [one for one in replicas if one.broker_id == broker]
        yield Finding(
            "KR681",
            Severity.NOTE,
            f"{counted(len(moving), 'replica')} on broker {broker} on the way to another of its log dirs: "
            f"{few(one.topic_partition for one in moving)}",
            "wait, or see why it does not end: kafka-log-dirs --describe",
            brokers=(broker,),
            partitions=tuple(one.topic_partition for one in moving),
            records_behind=_sum([one.offset_lag for one in moving]),
        )


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
    racks = {broker.id: broker.rack for broker in cluster.brokers.values() if broker.rack}
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
    racks = {broker.id: broker.rack for broker in cluster.brokers.values() if broker.rack}
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


def _removed_keys(cluster: Cluster) -> Iterator[Finding]:
    """Name the topics with an override that this Kafka release has removed: it refuses each change of their configs."""
    blocked = {}
    for name, topic in cluster.topics.items():
        removed = [key for key, value in topic.configs.items() if value == UNREADABLE]
        if removed:
            blocked[name] = f"{name} ({', '.join(removed)})"
    if blocked:
        topics = counted(len(blocked), "topic")
        what = f"{topics} with a config that this Kafka release has removed: {few(blocked.values())}"
        advice = (
            "declare each such key as null and apply; until then Kafka refuses every change of the topic's configs,"
            " throttle lists of moves included"
        )
        yield Finding("KR639", Severity.WARNING, what, advice, topics=tuple(blocked))


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
