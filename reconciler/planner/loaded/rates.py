"""What each broker takes in and sends out, by the measured loads: now, and once partitions have moved."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.model.cluster import Cluster
from reconciler.model.plan import BrokerShare
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.loaded.measured import Carried

Shares = Mapping[int, BrokerShare]
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
