"""What each broker holds: replicas, preferred leaders, bytes; now, and once partitions have moved."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.plan import BrokerShare
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.load_balance.measured import Carried

Shares = Mapping[int, BrokerShare]


def shares(
    observed: Cluster, target: Mapping[TopicPartition, tuple[int, ...]], deleted: Collection[str] = ()
) -> tuple[Shares, Shares]:
    """Return each registered broker's share now, and with the partitions in `target` there and those topics deleted.

    Bytes are None for all brokers as soon as one size is unknown.
    """
    holders: list[int] = []
    leading: list[int] = []
    bytes_held: list[int] = []
    is_size_known = True
    for topic in observed.topics.values():
        for partition in topic.partitions:
            present = partition.target_replicas
            holders += present
            leading += present[:1]
            is_size_known = is_size_known and partition.bytes_to_copy is not None
            bytes_held += _sizes(partition, present)
    replicas, leaders = Counter(holders), Counter(leading)
    held = _summed(holders, bytes_held)
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
            held.subtract(dict(zip(present, _sizes(found, present), strict=True)))
            held.update(dict(zip(reached, _sizes(found, reached), strict=True)))
    return before, _shares(observed, replicas, leaders, held if is_size_known else None)


def _keys(observed: Cluster, topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, partition.partition) for partition in observed.topics[topic].partitions]


def _sizes(partition: Partition, replicas: tuple[int, ...]) -> Sequence[int]:
    """Return the bytes on each of these brokers: a replica that is there has its own size, a new one that of a copy."""
    sizes, copy = partition.sizes, partition.bytes_to_copy or 0
    if replicas != partition.replicas or len(sizes) != len(replicas):
        known = dict(zip(partition.replicas, sizes, strict=False))
        sizes = tuple(known.get(broker_id) for broker_id in replicas)
    return [copy if size is None else size for size in sizes]


def _summed(brokers: Sequence[int], sizes: Sequence[int]) -> Counter[int]:
    """Return the sum of the sizes beside each broker."""
    ids, place = np.unique(np.array(brokers, dtype=np.int64), return_inverse=True)
    total = np.zeros(len(ids), dtype=np.int64)
    np.add.at(total, place, np.array(sizes, dtype=np.int64))
    return Counter(dict(zip(ids.tolist(), total.tolist(), strict=True)))


def _shares(
    observed: Cluster, replicas: Counter[int], leaders: Counter[int], held: Counter[int] | None
) -> dict[int, BrokerShare]:
    return {
        broker_id: BrokerShare(replicas[broker_id], leaders[broker_id], held[broker_id] if held is not None else None)
        for broker_id in sorted({*observed.brokers, *(found for found, count in replicas.items() if count)})
    }


Target = Mapping[TopicPartition, tuple[int, ...]]


def with_rates(
    before: Shares, after: Shares, observed: Cluster, target: Target, carried: Mapping[TopicPartition, Carried]
) -> tuple[Shares, Shares]:
    """Return the shares with rates in bytes a second, those of the partitions in `target` where they will be.

    Topics that are deleted, of which nothing is carried, are left out of both.
    """
    present = {key: partition.target_replicas for key, partition in observed.partitions() if key in carried}
    return _with(before, present.items(), carried), _with(after, {**present, **target}.items(), carried)


def _with(
    shares: Shares, lists: Iterable[tuple[TopicPartition, tuple[int, ...]]], carried: Mapping[TopicPartition, Carried]
) -> Shares:
    taken: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    for key, replicas in lists:
        _, bytes_in, bytes_out = carried[key]
        for replica in replicas:
            taken[replica] += bytes_in
        if replicas:
            sent[replicas[0]] += bytes_out + (len(replicas) - 1) * bytes_in
    return {
        broker_id: replace(share, bytes_in_per_second=taken[broker_id], bytes_out_per_second=sent[broker_id])
        for broker_id, share in shares.items()
    }
