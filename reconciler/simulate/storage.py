"""Puts changed partitions into a cluster, with what follows from that: log dirs, free bytes, eligible leaders (ELR)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.in_sync import brokers_min_isr, needed_in_sync
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.controller import controller_of

Dir = tuple[int, str]
"""A log dir: its broker and path."""


def with_partitions(cluster: Cluster, changed: Mapping[TopicPartition, Partition]) -> Cluster:
    """Return the cluster with these partitions in place of those of the same topic and number, or beside them."""
    if not changed:
        return cluster
    placed = _with_log_dirs(cluster, changed)
    before = (found for key in placed if (found := cluster.partition(key)) is not None)
    brokers = with_usage(cluster.brokers, _usage(placed.values(), before))
    return replace(with_metadata(cluster, placed), brokers=brokers)


def with_metadata(cluster: Cluster, changed: Mapping[TopicPartition, Partition]) -> Cluster:
    """Return the cluster with these partitions and the ELR that they come to; free bytes are not looked after."""
    return with_put(cluster, _with_elr(cluster, changed))


def with_put(cluster: Cluster, changed: Mapping[TopicPartition, Partition]) -> Cluster:
    """Return the cluster with these partitions, just as they are."""
    by_topic: defaultdict[str, dict[int, Partition]] = defaultdict(dict)
    for key in sorted(changed):
        by_topic[key.topic][key.partition] = changed[key]
    topics = {**cluster.topics, **{name: _merged(cluster.topics[name], by_topic[name]) for name in by_topic}}
    return replace(cluster, topics=topics)


def without_topic(cluster: Cluster, name: str) -> Cluster:
    """Return the cluster without that topic; its bytes are free again."""
    topics = {kept: topic for kept, topic in cluster.topics.items() if kept != name}
    usage = _usage((), cluster.topics[name].partitions)
    return replace(cluster, topics=topics, brokers=with_usage(cluster.brokers, usage))


def offline_log_dirs(cluster: Cluster) -> frozenset[tuple[int, str | None]]:
    """Return the broker and path of every log dir that is offline."""
    return frozenset((b.id, one.path) for b in cluster.brokers.values() for one in b.log_dirs if one.is_offline)


def log_dir_of(partition: Partition, broker_id: int) -> str | None:
    """Return the path of the replica on that broker, None where it is not known."""
    known = zip(partition.replicas, partition.log_dirs, strict=False)
    return next((path for replica, path in known if replica == broker_id), None)


def without_elr(topic: Topic) -> Topic:
    """Return the topic once its min.insync.replicas was changed: the controller then forgets every ELR of it."""
    partitions = (replace(one, elr=(), last_known_elr=()) if one.elr else one for one in topic.partitions)
    return replace(topic, partitions=tuple(partitions))


def with_usage(brokers: Mapping[int, Broker], usage: Mapping[Dir, int]) -> Mapping[int, Broker]:
    """Return the brokers with so many bytes more used in each of these log dirs."""
    if not usage:
        return brokers
    filled = dict(brokers)
    for broker_id in sorted({broker_id for broker_id, _ in usage} & brokers.keys()):
        log_dirs = tuple(
            replace(one, usable_bytes=one.usable_bytes - usage.get((broker_id, one.path), 0))
            if one.usable_bytes is not None
            else one
            for one in brokers[broker_id].log_dirs
        )
        filled[broker_id] = replace(brokers[broker_id], log_dirs=log_dirs)
    return filled


def _merged(topic: Topic, changed: Mapping[int, Partition]) -> Topic:
    from reconciler.model.partition_table import Rows  # loads numpy, which checks of configs have no use for

    there = topic.partitions
    if isinstance(there, Rows) and max(changed) < len(there):
        return replace(topic, partitions=there.with_changed(changed))
    merged = {**{partition.partition: partition for partition in there}, **changed}
    return replace(topic, partitions=tuple(merged[number] for number in sorted(merged)))


def _with_log_dirs(cluster: Cluster, changed: Mapping[TopicPartition, Partition]) -> Mapping[TopicPartition, Partition]:
    """Return the partitions with each new replica in the log dir that holds the fewest replicas, as Kafka does it."""
    if not any(None in partition.log_dirs for partition in changed.values()):
        return changed
    held = Counter(place for _, partition in cluster.partitions() for place in _dirs(partition))
    placed: dict[TopicPartition, Partition] = {}
    for key in sorted(changed):
        partition = changed[key]
        paths = tuple(
            path or _emptiest(cluster.brokers.get(broker_id), held)
            for broker_id, path in zip(partition.replicas, partition.log_dirs, strict=False)
        )
        placed[key] = replace(partition, log_dirs=paths)
        was = cluster.partition(key)
        held.update(set(_dirs(placed[key])).difference(_dirs(was) if was else ()))
    return placed


def _emptiest(broker: Broker | None, held: Mapping[Dir, int]) -> str | None:
    if broker is None:
        return None
    online = (one.path for one in broker.log_dirs if not one.is_offline)
    return min(online, key=lambda path: (held[broker.id, path], path), default=None)


def _dirs(partition: Partition) -> Iterable[Dir]:
    known = zip(partition.replicas, partition.log_dirs, strict=False)
    return [(broker_id, path) for broker_id, path in known if path is not None]


def _usage(after: Iterable[Partition], before: Iterable[Partition]) -> Mapping[Dir, int]:
    """Return by how many bytes each log dir holds more than before."""
    usage: Counter[Dir] = Counter()
    for sign, partitions in ((1, after), (-1, before)):
        for partition in partitions:
            known = zip(partition.replicas, partition.log_dirs, partition.sizes, strict=False)
            for broker_id, path, size in known:
                if path is not None and size is not None:
                    usage[broker_id, path] += sign * size
    return {place: grown for place, grown in usage.items() if grown}


def _with_elr(cluster: Cluster, changed: Mapping[TopicPartition, Partition]) -> Mapping[TopicPartition, Partition]:
    """Return the partitions with the ELR that their change leaves, and nobody in sync where nobody leads.

    Whoever leaves the ISR while fewer than min.insync.replicas stay in it is eligible until enough are in it again.
    """
    if not controller_of(cluster).has_eligible_leaders:
        return changed
    min_isr = brokers_min_isr(cluster)
    return {
        key: _with_kept_elr(cluster.topics[key.topic], cluster.partition(key), one, min_isr)
        for key, one in changed.items()
    }


def _with_kept_elr(topic: Topic, before: Partition | None, after: Partition, min_isr: int) -> Partition:
    isr = after.isr if after.leader is not None else ()
    if before is None or (not before.elr and set(isr).issuperset(before.isr)):
        return after
    elr: set[int] = set()
    if len(isr) < needed_in_sync(topic, after, min_isr):
        elr = {*before.isr, *(before.elr or ())}.intersection(after.replicas).difference(isr)
    if before.elr is None and not elr:
        return replace(after, isr=isr)
    last = () if isr else (before.last_known_elr if before.leader is None else (before.leader,))
    return replace(after, isr=isr, elr=tuple(sorted(elr)), last_known_elr=last)
