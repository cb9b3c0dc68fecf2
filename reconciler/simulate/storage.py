"""Puts changed partitions into a cluster: new replicas get a log dir, and each log dir's free bytes follow."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.eligible import with_elr

Dir = tuple[int, str]


def with_partitions(cluster: Cluster, changed: Mapping[TopicPartition, Partition]) -> Cluster:
    """Return the cluster with these partitions in place of those of the same topic and number, or beside them."""
    if not changed:
        return cluster
    placed = _with_log_dirs(cluster, changed)
    before = (found for key in placed if (found := cluster.partition(key)) is not None)
    brokers = _with_usage(cluster.brokers, _usage(placed.values(), before))
    return replace(with_metadata(cluster, placed), brokers=brokers)


def with_metadata(cluster: Cluster, changed: Mapping[TopicPartition, Partition]) -> Cluster:
    """Return the cluster with these partitions and the ELR that they come to; free bytes are not looked after."""
    by_topic: defaultdict[str, dict[int, Partition]] = defaultdict(dict)
    kept = with_elr(cluster, changed)
    for key in sorted(kept):
        by_topic[key.topic][key.partition] = kept[key]
    topics = {**cluster.topics, **{name: _merged(cluster.topics[name], by_topic[name]) for name in by_topic}}
    return replace(cluster, topics=topics)


def without_topic(cluster: Cluster, name: str) -> Cluster:
    """Return the cluster without that topic; its bytes are free again."""
    topics = {kept: topic for kept, topic in cluster.topics.items() if kept != name}
    usage = _usage((), cluster.topics[name].partitions)
    return replace(cluster, topics=topics, brokers=_with_usage(cluster.brokers, usage))


def _merged(topic: Topic, changed: Mapping[int, Partition]) -> Topic:
    partitions = list(topic.partitions)
    for number in sorted(changed):
        if number < len(partitions) and partitions[number].partition == number:
            partitions[number] = changed[number]
        else:
            others = (partition for partition in partitions if partition.partition != number)
            partitions = sorted([*others, changed[number]], key=lambda partition: partition.partition)
    return replace(topic, partitions=tuple(partitions))


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
    online = [log_dir for log_dir in broker.log_dirs if not log_dir.is_offline] if broker is not None else []
    if broker is None or not online:
        return None
    return min(online, key=lambda log_dir: (held[broker.id, log_dir.path], log_dir.path)).path


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


def _with_usage(brokers: Mapping[int, Broker], usage: Mapping[Dir, int]) -> Mapping[int, Broker]:
    if not usage:
        return brokers
    touched = {broker_id for broker_id, _ in usage}
    return {
        broker_id: replace(broker, log_dirs=tuple(_filled(broker_id, one, usage) for one in broker.log_dirs))
        if broker_id in touched
        else broker
        for broker_id, broker in brokers.items()
    }


def _filled(broker_id: int, log_dir: LogDir, usage: Mapping[Dir, int]) -> LogDir:
    grown = usage.get((broker_id, log_dir.path), 0)
    if not grown or log_dir.usable_bytes is None:
        return log_dir
    return replace(log_dir, usable_bytes=log_dir.usable_bytes - grown)
