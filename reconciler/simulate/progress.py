"""Time: followers copy bytes from their leaders, join the ISR when they have all, and reassignments end."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.controller import Controller, controller_of
from reconciler.simulate.flows import NETWORK_BYTES_PER_SECOND, Copy, copies, rates
from reconciler.simulate.partition import with_isr
from reconciler.simulate.storage import with_partitions

MILLISECONDS = 1000


def advance(
    cluster: Cluster, milliseconds: int, *, network_bytes_per_second: int = NETWORK_BYTES_PER_SECOND
) -> Cluster:
    """Return the cluster that much later. A replica with nothing left to copy, or nothing known, joins at once."""
    while milliseconds > 0:
        cluster = _joined(cluster)
        running = copies(cluster)
        speeds = rates(cluster, running, network_bytes_per_second)
        ends = [_milliseconds_left(copy, speed) for copy, speed in zip(running, speeds, strict=True) if speed]
        if not ends:
            return cluster
        step = min(milliseconds, *ends)
        cluster = with_partitions(cluster, _grown(cluster, running, speeds, step))
        milliseconds -= step
        if step in ends:
            cluster = _joined(cluster)
    return cluster


def milliseconds_to_next_join(
    cluster: Cluster, *, network_bytes_per_second: int = NETWORK_BYTES_PER_SECOND
) -> int | None:
    """Return when the next replica has all its bytes, None where nothing copies or nothing moves on."""
    running = copies(cluster)
    if any(not copy.remaining for copy in running):
        return 0
    speeds = rates(cluster, running, network_bytes_per_second)
    ends = (_milliseconds_left(copy, speed) for copy, speed in zip(running, speeds, strict=True) if speed)
    return min(ends, default=None)


def _milliseconds_left(copy: Copy, speed: int) -> int:
    return -(-(copy.remaining or 0) * MILLISECONDS // speed)


def _joined(cluster: Cluster) -> Cluster:
    """Return the cluster with every replica that has all bytes in its partition's ISR."""
    controller = controller_of(cluster)
    complete = [copy for copy in copies(cluster) if not copy.remaining]
    changed = {
        key: _with_joiners(partition, followers, controller)
        for key, followers in _followers(complete).items()
        if (partition := cluster.partition(key)) is not None
    }
    return with_partitions(cluster, changed)


def _with_joiners(partition: Partition, followers: Iterable[int], controller: Controller) -> Partition:
    is_known = partition.leader is not None and partition.size_on(partition.leader) is not None
    copied = partition.bytes_to_copy if is_known else None
    joined = {one: max(copied, partition.size_on(one) or 0) if copied is not None else None for one in followers}
    return with_isr(_with_sizes(partition, joined), (*partition.isr, *joined), controller)


def _grown(
    cluster: Cluster, running: Sequence[Copy], speeds: Sequence[int], milliseconds: int
) -> Mapping[TopicPartition, Partition]:
    """Return the partitions that copy, with the bytes they hold after that time."""
    copied: defaultdict[TopicPartition, dict[int, int | None]] = defaultdict(dict)
    for copy, speed in zip(running, speeds, strict=True):
        partition = cluster.partition(copy.topic_partition)
        if partition is None or copy.remaining is None:
            continue
        held = partition.size_on(copy.follower) or 0
        got = min(copy.remaining, speed * milliseconds // MILLISECONDS)
        copied[copy.topic_partition][copy.follower] = held + got
    partitions = {key: cluster.partition(key) for key in copied}
    return {key: _with_sizes(found, copied[key]) for key, found in partitions.items() if found is not None}


def _with_sizes(partition: Partition, sizes: Mapping[int, int | None]) -> Partition:
    if not partition.sizes:
        return partition
    known = zip(partition.replicas, partition.sizes, strict=True)
    return replace(partition, sizes=tuple(sizes.get(broker_id, size) for broker_id, size in known))


def _followers(complete: Iterable[Copy]) -> Mapping[TopicPartition, Sequence[int]]:
    followers: defaultdict[TopicPartition, list[int]] = defaultdict(list)
    for copy in complete:
        followers[copy.topic_partition].append(copy.follower)
    return followers
