"""Lets time pass: followers copy from their leaders and join the ISR, reassignments end, log dirs are copied between.

How fast each one copies: brokers' bandwidth and throttles are shared evenly among the copies that run through them
(max-min fairness: the narrowest pipe is divided first, then what is left of the others).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.model.cluster import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    Cluster,
    Partition,
)
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.controller import Controller, controller_of
from reconciler.simulate.log_dirs import copied, dir_copies, dir_rates, swapped
from reconciler.simulate.partition import with_isr
from reconciler.simulate.storage import log_dir_of, offline_log_dirs, with_partitions

NETWORK_BYTES_PER_SECOND = 100 * 1024 * 1024
"""What a simulated broker sends, and receives, at most: about what a gigabit network carries."""
MILLISECONDS = 1000


@dataclass(frozen=True, slots=True)
class Copy:
    """A living replica that is not in sync: whom it copies from, and how many bytes are left (None: not known)."""

    topic_partition: TopicPartition
    leader: int
    follower: int
    remaining: int | None


@dataclass(frozen=True, slots=True, order=True)
class Pipe:
    """Something that bounds a rate: a broker's network, or its throttle, in one direction; ordered, to break ties."""

    broker_id: int
    is_outward: bool
    is_throttle: bool


def advance(
    cluster: Cluster, milliseconds: int, *, network_bytes_per_second: int = NETWORK_BYTES_PER_SECOND
) -> Cluster:
    """Return the cluster that much later. A replica with nothing left to copy, or nothing known, joins at once."""
    while milliseconds > 0:
        cluster = swapped(_joined(cluster))
        running, inside = copies(cluster), dir_copies(cluster)
        speeds, inside_speeds = rates(cluster, running, network_bytes_per_second), dir_rates(cluster, inside)
        left = [copy.remaining or 0 for copy in running] + [copy.remaining or 0 for copy in inside]
        ends = [
            -(-remaining * MILLISECONDS // speed)  # rounded up: a join is never seen too early
            for remaining, speed in zip(left, (*speeds, *inside_speeds), strict=True)
            if speed
        ]
        if not ends:
            return cluster
        step = min(milliseconds, *ends)
        cluster = with_partitions(cluster, _grown(cluster, running, speeds, step))
        cluster = copied(cluster, inside, inside_speeds, step)
        milliseconds -= step
        if step in ends:
            cluster = swapped(_joined(cluster))
    return cluster


def copies(cluster: Cluster) -> tuple[Copy, ...]:
    """Return every copy that is under way, by partition and follower; into an offline log dir nothing is copied."""
    offline = offline_log_dirs(cluster)
    return tuple(
        Copy(key, partition.leader, replica, _remaining(partition, replica))
        for key, partition in cluster.partitions()
        if partition.leader is not None and len(partition.isr) < len(partition.replicas)
        for replica in sorted(set(partition.replicas).difference(partition.isr))
        if cluster.is_alive(replica) and (replica, log_dir_of(partition, replica)) not in offline
    )


def rates(
    cluster: Cluster, running: Sequence[Copy], network_bytes_per_second: int = NETWORK_BYTES_PER_SECOND
) -> tuple[int, ...]:
    """Return bytes per second of each copy: no pipe carries more than it may, and none could be given more fairly."""
    through = [_pipes(cluster, copy) for copy in running]
    left = {pipe: _capacity(cluster, pipe, network_bytes_per_second) for pipes in through for pipe in pipes}
    waiting = dict.fromkeys(range(len(running)))
    result = [0] * len(running)
    while waiting:
        crowd: dict[Pipe, list[int]] = {}
        for index in waiting:
            for pipe in through[index]:
                crowd.setdefault(pipe, []).append(index)
        # The pipe with the least for each of its copies: none of them can ever get more, so their rates are final.
        shares = {pipe: left[pipe] // len(some) for pipe, some in crowd.items()}
        narrowest = min(shares, key=lambda pipe: (shares[pipe], pipe))
        share = shares[narrowest]
        for index in crowd[narrowest]:
            result[index] = share
            del waiting[index]
            for pipe in through[index]:
                left[pipe] -= share
    return tuple(result)


def _joined(cluster: Cluster) -> Cluster:
    """Return the cluster with every replica that has all bytes in its partition's ISR."""
    controller = controller_of(cluster)
    followers: defaultdict[TopicPartition, list[int]] = defaultdict(list)
    for copy in copies(cluster):
        if not copy.remaining:
            followers[copy.topic_partition].append(copy.follower)
    changed = {
        key: _with_joiners(partition, some, controller)
        for key, some in followers.items()
        if (partition := cluster.partition(key)) is not None
    }
    return with_partitions(cluster, changed)


def _with_joiners(partition: Partition, followers: Iterable[int], controller: Controller) -> Partition:
    is_known = partition.leader is not None and partition.size_on(partition.leader) is not None
    whole = partition.bytes_to_copy if is_known else None
    joined = {one: max(whole, partition.size_on(one) or 0) if whole is not None else None for one in followers}
    return with_isr(_with_sizes(partition, joined), (*partition.isr, *joined), controller)


def _grown(
    cluster: Cluster, running: Sequence[Copy], speeds: Sequence[int], milliseconds: int
) -> Mapping[TopicPartition, Partition]:
    """Return the partitions that copy, with the bytes they hold after that time."""
    grown: dict[TopicPartition, Partition] = {}
    for copy, speed in zip(running, speeds, strict=True):
        key = copy.topic_partition
        partition = grown.get(key) or cluster.partition(key)
        if partition is not None and copy.remaining is not None:
            got = min(copy.remaining, speed * milliseconds // MILLISECONDS)
            grown[key] = _with_sizes(partition, {copy.follower: (partition.size_on(copy.follower) or 0) + got})
    return grown


def _with_sizes(partition: Partition, sizes: Mapping[int, int | None]) -> Partition:
    if not partition.sizes:
        return partition
    known = zip(partition.replicas, partition.sizes, strict=True)
    return replace(partition, sizes=tuple(sizes.get(broker_id, size) for broker_id, size in known))


def _pipes(cluster: Cluster, copy: Copy) -> list[Pipe]:
    """Return what that copy runs through. Kafka holds back only replicas that are listed and not in sync."""
    configs = cluster.topics[copy.topic_partition.topic].configs
    pipes = []
    for broker_id, is_outward, rate, listed in (
        (copy.leader, True, LEADER_THROTTLED_RATE, configs.get(LEADER_THROTTLED_REPLICAS)),
        (copy.follower, False, FOLLOWER_THROTTLED_RATE, configs.get(FOLLOWER_THROTTLED_REPLICAS)),
    ):
        pipes.append(Pipe(broker_id, is_outward, is_throttle=False))
        if _is_throttled(cluster, broker_id, rate, copy.topic_partition.partition, listed):
            pipes.append(Pipe(broker_id, is_outward, is_throttle=True))
    return pipes


def _is_throttled(cluster: Cluster, broker_id: int, key: str, partition: int, listed: str | None) -> bool:
    if not listed or key not in cluster.brokers[broker_id].configs:
        return False
    return listed.strip() == "*" or f"{partition}:{broker_id}" in (item.strip() for item in listed.split(","))


def _capacity(cluster: Cluster, pipe: Pipe, network_bytes_per_second: int) -> int:
    if not pipe.is_throttle:
        return network_bytes_per_second
    key = LEADER_THROTTLED_RATE if pipe.is_outward else FOLLOWER_THROTTLED_RATE
    return int(cluster.brokers[pipe.broker_id].configs[key])


def _remaining(partition: Partition, follower: int) -> int | None:
    if partition.leader is None or partition.size_on(partition.leader) is None:
        return None
    return max(0, (partition.bytes_to_copy or 0) - (partition.size_on(follower) or 0))
