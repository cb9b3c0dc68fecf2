"""How fast each replica copies: bandwidth and throttles of brokers, shared evenly among what runs through them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.cluster import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    Cluster,
    Partition,
)
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.failing_log_dirs import log_dir_of, offline_log_dirs

NETWORK_BYTES_PER_SECOND = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Copy:
    """A living replica that is not in sync: whom it copies from, and how many bytes are left (None: not known)."""

    topic_partition: TopicPartition
    leader: int
    follower: int
    remaining: int | None


@dataclass(frozen=True, slots=True)
class Pipe:
    """Something that bounds a rate: a broker's network, or its throttle, in one direction."""

    broker_id: int
    is_outward: bool
    is_throttle: bool


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
        crowd = _crowd(through, waiting)
        narrowest = min(crowd, key=lambda pipe: (left[pipe] // len(crowd[pipe]), _order(pipe)))
        share = left[narrowest] // len(crowd[narrowest])
        for index in crowd[narrowest]:
            result[index] = share
            del waiting[index]
            for pipe in through[index]:
                left[pipe] -= share
    return tuple(result)


def _crowd(through: Sequence[Sequence[Pipe]], waiting: Mapping[int, None]) -> Mapping[Pipe, Sequence[int]]:
    crowd: dict[Pipe, list[int]] = {}
    for index in waiting:
        for pipe in through[index]:
            crowd.setdefault(pipe, []).append(index)
    return crowd


def _order(pipe: Pipe) -> tuple[int, bool, bool]:
    return pipe.broker_id, pipe.is_outward, pipe.is_throttle


def _pipes(cluster: Cluster, copy: Copy) -> tuple[Pipe, ...]:
    """Return what that copy runs through. Kafka holds back only replicas that are listed and not in sync."""
    pipes = [
        Pipe(copy.leader, is_outward=True, is_throttle=False),
        Pipe(copy.follower, is_outward=False, is_throttle=False),
    ]
    configs = cluster.topics[copy.topic_partition.topic].configs
    number = copy.topic_partition.partition
    if _is_throttled(cluster, copy.leader, LEADER_THROTTLED_RATE, number, configs.get(LEADER_THROTTLED_REPLICAS)):
        pipes.append(Pipe(copy.leader, is_outward=True, is_throttle=True))
    if _is_throttled(cluster, copy.follower, FOLLOWER_THROTTLED_RATE, number, configs.get(FOLLOWER_THROTTLED_REPLICAS)):
        pipes.append(Pipe(copy.follower, is_outward=False, is_throttle=True))
    return tuple(pipes)


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
