"""What each broker holds: replicas, preferred leaders, bytes; now, or once partitions have moved."""

from collections import Counter
from collections.abc import Mapping

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.plan import BrokerShare
from reconciler.model.topic_partition import TopicPartition


def shares(observed: Cluster, target: Mapping[TopicPartition, tuple[int, ...]]) -> Mapping[int, BrokerShare]:
    """Return each registered broker's share with the partitions in `target` at those replicas, the rest where it is.

    Bytes are None for all brokers as soon as one size is unknown.
    """
    there = dict(observed.partitions())
    reached = {key: target.get(key, partition.target_replicas) for key, partition in there.items()} | dict(target)
    replicas = Counter(broker_id for held in reached.values() for broker_id in held)
    leaders = Counter(held[0] for held in reached.values() if held)
    is_size_known = all(partition.bytes_to_copy is not None for partition in there.values())
    held_bytes = _bytes_held(there, reached) if is_size_known else None
    return {
        broker_id: BrokerShare(
            replicas[broker_id], leaders[broker_id], held_bytes[broker_id] if held_bytes is not None else None
        )
        for broker_id in sorted({*observed.brokers, *replicas})
    }


def _bytes_held(
    there: Mapping[TopicPartition, Partition], reached: Mapping[TopicPartition, tuple[int, ...]]
) -> Counter[int]:
    """Return the bytes on each broker: a replica that stays at its own size, a new one at the size of a copy."""
    held: Counter[int] = Counter()
    for key, partition in there.items():
        known = dict(zip(partition.replicas, partition.sizes, strict=False))
        for broker_id in reached[key]:
            size = known.get(broker_id)
            held[broker_id] += (partition.bytes_to_copy or 0) if size is None else size
    return held
