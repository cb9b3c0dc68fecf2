"""Computes what each broker holds, now and once partitions have moved: replicas, preferred leaders, bytes, rates."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.plan import BrokerShare
from reconciler.model.topic_partition import TopicPartition

Shares = Mapping[int, BrokerShare]
Target = Mapping[TopicPartition, tuple[int, ...]]


def shares(observed: Cluster, target: Target, deleted: Collection[str] = ()) -> tuple[Shares, Shares]:
    """Return each registered broker's share now, and with the partitions in `target` there and those topics deleted.

    Bytes are None for all brokers as soon as one size is unknown.
    """
    holders: list[int] = []
    leading: list[int] = []
    bytes_held: list[int] = []
    is_size_known = True
    for _, partition in observed.partitions():
        present = partition.target_replicas
        holders += present
        leading += present[:1]
        is_size_known = is_size_known and partition.bytes_to_copy is not None
        bytes_held += _sizes(partition, present)
    replicas, leaders = Counter(holders), Counter(leading)
    held = _summed(holders, bytes_held)
    before = _shares(observed, replicas, leaders, held if is_size_known else None)
    gone = {key: () for key, _ in observed.partitions() if key.topic in deleted} if deleted else {}
    for key, reached in {**target, **gone}.items():
        partition_now = observed.partition(key)
        present = partition_now.target_replicas if partition_now else ()
        replicas.subtract(present)
        replicas.update(reached)
        leaders.subtract(present[:1])
        leaders.update(reached[:1])
        if partition_now:
            held.subtract(dict(zip(present, _sizes(partition_now, present), strict=True)))
            held.update(dict(zip(reached, _sizes(partition_now, reached), strict=True)))
    return before, _shares(observed, replicas, leaders, held if is_size_known else None)


def with_rates(
    before: Shares,
    after: Shares,
    observed: Cluster,
    target: Target,
    load_of: Mapping[TopicPartition, tuple[int, int, int]],
) -> tuple[Shares, Shares]:
    """Return the shares with rates in bytes a second, those of the partitions in `target` where they will be.

    `load_of` has disk bytes, bytes in and bytes out a second. Topics that are deleted, of which nothing is carried, are
    left out of both.
    """

    def added(to: Shares, lists: Iterable[tuple[TopicPartition, tuple[int, ...]]]) -> Shares:
        taken: Counter[int] = Counter()
        sent: Counter[int] = Counter()
        for key, replicas in lists:
            _, bytes_in, bytes_out = load_of[key]
            taken.update(dict.fromkeys(replicas, bytes_in))
            # The leader sends to its consumers, and all that it takes in to each of the others.
            sent.update(dict.fromkeys(replicas[:1], bytes_out + (len(replicas) - 1) * bytes_in))
        return {
            broker_id: replace(share, bytes_in_per_second=taken[broker_id], bytes_out_per_second=sent[broker_id])
            for broker_id, share in to.items()
        }

    present = {key: partition.target_replicas for key, partition in observed.partitions() if key in load_of}
    return added(before, present.items()), added(after, {**present, **target}.items())


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
