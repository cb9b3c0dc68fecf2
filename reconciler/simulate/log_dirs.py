"""Moves replicas between the log dirs of one broker as Kafka does (KIP-113): chosen, copied, swapped, or taken back.

A broker copies a replica into a future one in the other dir, which replaces it once it has all. To choose the dir that
the replica lies in removes the future one. See `alterReplicaLogDirs` in Kafka's ReplicaManager.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.model.cluster import ALTER_LOG_DIRS_RATE, Broker, Cluster, FutureReplica, Partition
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.controller import Denied, Outcome
from reconciler.simulate.storage import log_dir_of, with_metadata, with_partitions, with_usage

DISK_BYTES_PER_SECOND = 200 * 1024 * 1024
"""What a simulated broker copies between its log dirs where it has no throttle for that."""
MILLISECONDS = 1000


@dataclass(frozen=True, slots=True)
class DirCopy:
    """A future replica of a living broker that is being filled: how many bytes it lacks (None: not known)."""

    topic_partition: TopicPartition
    broker_id: int
    remaining: int | None


def choose_log_dirs(cluster: Cluster, broker_id: int, choices: Mapping[TopicPartition, str]) -> Outcome[TopicPartition]:
    """Choose the log dir of replicas of one broker; what it has not got yet changes nothing here.

    Kafka remembers such a choice, and makes the replica there when it comes: see `in_chosen_log_dirs`.
    """
    answers: dict[TopicPartition, Denied | None] = {}
    for key, path in choices.items():
        partition = cluster.partition(key)
        now = log_dir_of(partition, broker_id) if partition is not None else None
        answers[key] = _refused(cluster.brokers[broker_id], now, path)
        if answers[key] is None and now is not None:
            cluster = _with_choice(cluster, key, broker_id, None if path == now else path)
    return Outcome(cluster, answers)


def in_chosen_log_dirs(before: Cluster, after: Cluster, chosen: Mapping[tuple[TopicPartition, int], str]) -> Cluster:
    """Return the cluster with each replica that has just come, and has no data yet, in the log dir chosen for it."""
    changed: dict[TopicPartition, Partition] = {}
    for key, broker_id in chosen:
        partition, was = after.partition(key), before.partition(key)
        if partition is not None and broker_id not in (was.replicas if was else ()):
            changed[key] = _in_log_dir(changed.get(key, partition), broker_id, chosen[key, broker_id])
    return with_metadata(after, changed)


def futures_of(cluster: Cluster, broker: Broker) -> tuple[FutureReplica, ...]:
    """Return the future replicas of a broker that still has the replicas they are made of."""
    return tuple(one for one in broker.future_replicas if _present(cluster, one, broker.id) is not None)


def dir_copies(cluster: Cluster) -> tuple[DirCopy, ...]:
    """Return every copy between log dirs that is under way, by broker and partition; none where a dir is offline."""
    found = []
    for broker in cluster.brokers.values():
        offline = {one.path for one in broker.log_dirs if one.is_offline}
        for future in futures_of(cluster, broker) if not broker.is_fenced else ():
            partition = _present(cluster, future, broker.id)
            if partition is not None and not {future.path, log_dir_of(partition, broker.id)} & offline:
                size = partition.size_on(broker.id)
                remaining = None if size is None else max(0, size - (future.size_bytes or 0))
                found.append(DirCopy(future.topic_partition, broker.id, remaining))
    return tuple(found)


def dir_rates(cluster: Cluster, running: Sequence[DirCopy]) -> tuple[int, ...]:
    """Return bytes per second of each copy: those of one broker share its throttle evenly."""
    crowd = Counter(copy.broker_id for copy in running)
    return tuple(_rate(cluster.brokers[copy.broker_id]) // crowd[copy.broker_id] for copy in running)


def copied(cluster: Cluster, running: Sequence[DirCopy], speeds: Sequence[int], milliseconds: int) -> Cluster:
    """Return the cluster with what these copies got in that time."""
    for copy, speed in zip(running, speeds, strict=True):
        if copy.remaining:
            got = min(copy.remaining, speed * milliseconds // MILLISECONDS)
            cluster = _grown(cluster, copy, got)
    return cluster


def swapped(cluster: Cluster) -> Cluster:
    """Return the cluster with each future replica that has all in place of the one that it was made of."""
    for copy in dir_copies(cluster):
        partition = cluster.partition(copy.topic_partition)
        future = _future(cluster.brokers[copy.broker_id], copy.topic_partition)
        if partition is None or future is None or copy.remaining:
            continue
        cluster = _with_choice(cluster, copy.topic_partition, copy.broker_id, None)
        cluster = with_partitions(cluster, {copy.topic_partition: _in_log_dir(partition, copy.broker_id, future.path)})
    return cluster


def without_futures_in(cluster: Cluster, broker_id: int, path: str) -> Cluster:
    """Return the cluster once that log dir went offline: the broker drops the future replicas that it holds there."""
    for future in cluster.brokers[broker_id].future_replicas:
        if future.path == path:
            cluster = _with_choice(cluster, future.topic_partition, broker_id, None)
    return cluster


def _refused(broker: Broker, now: str | None, path: str) -> Denied | None:
    """Return why a broker refuses to have a replica, which lies in `now`, in that dir."""
    dirs = {one.path: one for one in broker.log_dirs}
    if path not in dirs:
        return Denied("LOG_DIR_NOT_FOUND", f"There is no log dir {path}.")
    if path in broker.cordoned_dirs:
        return Denied("INVALID_REPLICA_ASSIGNMENT")
    offline = [one.path for one in broker.log_dirs if one.is_offline]
    if path in offline or now in offline:
        return Denied("KAFKA_STORAGE_ERROR", f"Log directory {path if path in offline else now} is offline")
    if offline and now not in {None, path}:
        # So that Kafka never makes future replicas of one replica in several dirs.
        return Denied("KAFKA_STORAGE_ERROR", f"Can not create log because log directories {offline[0]} are offline")
    return None


def _with_choice(cluster: Cluster, key: TopicPartition, broker_id: int, path: str | None) -> Cluster:
    """Return the cluster with a future replica in that dir, and in no other; None: with none."""
    broker = cluster.brokers[broker_id]
    known = _future(broker, key)
    if known is not None and known.path == path:
        return cluster
    others = [one for one in broker.future_replicas if one.topic_partition != key]
    made = [] if path is None else [FutureReplica(key, path, 0)]
    futures = tuple(sorted([*others, *made], key=lambda one: one.topic_partition))
    brokers = {**cluster.brokers, broker_id: replace(broker, future_replicas=futures)}
    freed = {(broker_id, known.path): -(known.size_bytes or 0)} if known is not None and known.size_bytes else {}
    return replace(cluster, brokers=with_usage(brokers, freed))


def _grown(cluster: Cluster, copy: DirCopy, got: int) -> Cluster:
    broker = cluster.brokers[copy.broker_id]
    futures, used = [], {}
    for one in broker.future_replicas:
        if one.topic_partition == copy.topic_partition:
            used[copy.broker_id, one.path] = got
            one = replace(one, size_bytes=(one.size_bytes or 0) + got)  # noqa: PLW2901 - the same one, larger
        futures.append(one)
    brokers = {**cluster.brokers, copy.broker_id: replace(broker, future_replicas=tuple(futures))}
    return replace(cluster, brokers=with_usage(brokers, used))


def _future(broker: Broker, key: TopicPartition) -> FutureReplica | None:
    return next((one for one in broker.future_replicas if one.topic_partition == key), None)


def _present(cluster: Cluster, future: FutureReplica, broker_id: int) -> Partition | None:
    """Return the partition of a future replica, None where the broker has no replica of it any more."""
    partition = cluster.partition(future.topic_partition)
    return partition if partition is not None and broker_id in partition.replicas else None


def _rate(broker: Broker) -> int:
    return int(broker.configs.get(ALTER_LOG_DIRS_RATE, DISK_BYTES_PER_SECOND))


def _in_log_dir(partition: Partition, broker_id: int, path: str) -> Partition:
    known = zip(partition.replicas, partition.log_dirs, strict=False)
    return replace(partition, log_dirs=tuple(path if replica == broker_id else now for replica, now in known))
