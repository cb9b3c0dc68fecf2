"""What each broker holds: replicas, preferred leaders, bytes; now, and once partitions have moved."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.plan import BrokerShare
from reconciler.model.topic_partition import TopicPartition

Shares = Mapping[int, BrokerShare]


def shares(
    observed: Cluster, target: Mapping[TopicPartition, tuple[int, ...]], deleted: Collection[str] = ()
) -> tuple[Shares, Shares]:
    """Return each registered broker's share now, and with the partitions in `target` there and those topics deleted.

    Bytes are None for all brokers as soon as one size is unknown.
    """
    replicas: Counter[int] = Counter()
    leaders: Counter[int] = Counter()
    held: Counter[int] = Counter()
    is_size_known = True
    for topic in observed.topics.values():
        for partition in topic.partitions:
            present = partition.target_replicas
            replicas.update(present)
            leaders.update(present[:1])
            is_size_known = is_size_known and partition.bytes_to_copy is not None
            for broker_id, size in _sizes(partition, present):
                held[broker_id] += size
    before = _shares(observed, replicas, leaders, held if is_size_known else None)
    gone = {key: () for name in sorted(deleted) for key in _keys(observed, name)}
    for key, reached in {**target, **gone}.items():
        found = observed.partition(key)
        present = found.target_replicas if found else ()
        replicas.subtract(present)
        replicas.update(reached)
        leaders.subtract(present[:1])
        leaders.update(reached[:1])
        if found:
            held.subtract(dict(_sizes(found, present)))
            held.update(dict(_sizes(found, reached)))
    return before, _shares(observed, replicas, leaders, held if is_size_known else None)


def _keys(observed: Cluster, topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, partition.partition) for partition in observed.topics[topic].partitions]


def _sizes(partition: Partition, replicas: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the bytes on each of these brokers: a replica that is there at its own size, a new one at a copy's."""
    if replicas == partition.replicas and len(partition.sizes) == len(replicas) and None not in partition.sizes:
        yield from zip(replicas, partition.sizes, strict=True)
        return
    known = dict(zip(partition.replicas, partition.sizes, strict=False))
    for broker_id in replicas:
        size = known.get(broker_id)
        yield broker_id, (partition.bytes_to_copy or 0) if size is None else size


def _shares(
    observed: Cluster, replicas: Counter[int], leaders: Counter[int], held: Counter[int] | None
) -> dict[int, BrokerShare]:
    return {
        broker_id: BrokerShare(replicas[broker_id], leaders[broker_id], held[broker_id] if held is not None else None)
        for broker_id in sorted({*observed.brokers, *(found for found, count in replicas.items() if count)})
    }
