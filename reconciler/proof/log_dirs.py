"""Follows the log dirs of brokers with several disks: the bytes that a plan brings into each, and those that leave it.

States count as in `states`: everything that a stage brings is there, and everything that it takes away still is. If a
move names no log dir, Kafka chooses one. Then the dirs together must have room for its bytes::

    broker 1    /d1 may hold 80 GiB and has 90, /d2 may hold 80 and has 50
                30 GiB may come to it, and none of them to /d1
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from reconciler.model.change import DeleteTopic
from reconciler.model.cluster import Broker, Cluster
from reconciler.model.desired import Desired, LogDirState, Off
from reconciler.model.move import DirMove, Move
from reconciler.model.plan import Plan
from reconciler.model.problem import DISK_USE
from reconciler.model.stage import LogDirsStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.arithmetic import NotProved

Place = tuple[int, str | None]
"""A broker and the path of one of its log dirs; None for whichever Kafka chooses."""


def has_dir_wishes(plan: Plan, desired: Desired) -> bool:
    """Whether replicas are to move between the log dirs of their brokers, or a balance of these is asked for."""
    is_moving = any(isinstance(stage, LogDirsStage) for stage in plan.stages)
    return is_moving or not isinstance(desired.cluster.balance.log_dirs, Off)


class DirCourse:
    """The log dirs of a plan's brokers from stage to stage.

    `brokers`: the brokers with several log dirs of known size, if arriving bytes could overfill one of these and the
    dirs of all moving replicas are known. Every other broker counts as one disk.
    """

    def __init__(self, plan: Plan, desired: Desired, observed: Cluster, coming: Mapping[int, int]) -> None:
        """Take the bytes that other brokers send to each in all stages together."""
        self._plan, self._draining, self._replicas = plan, _draining(desired), _Replicas(observed)
        share = desired.cluster.limits.disk_use
        self._end = Counter[Place]()
        deleted = [observed.topics.get(one.topic) for one in plan.topic_changes if isinstance(one, DeleteTopic)]
        self._deleted = Counter[Place]()
        for partition in (one for topic in deleted if topic is not None for one in topic.partitions):
            for broker_id, path, size in zip(partition.replicas, partition.log_dirs, partition.sizes, strict=False):
                self._deleted[broker_id, path] += size or 0
        self._used, self._allowed = Counter[Place](), dict[Place, int]()
        for broker in observed.brokers.values() if share is not None else ():
            for log_dir in broker.log_dirs if _has_several_dirs(broker) else ():
                total, usable = log_dir.total_bytes or 0, log_dir.usable_bytes or 0
                self._used[broker.id, log_dir.path] = total - usable
                self._allowed[broker.id, log_dir.path] = int(total * (share or 0) // 1)
        stages = [stage for stage in plan.stages if isinstance(stage, ReassignStage | LogDirsStage)]
        inside = {move.broker for stage in stages if isinstance(stage, LogDirsStage) for move in stage.moves}
        places = self._allowed.items()
        tight = {b for (b, path), limit in places if b in inside or self._used[b, path] + coming.get(b, 0) > limit}
        self._stages = stages if tight or inside or self._draining else []
        keys = {move.topic_partition for stage in self._stages for move in stage.moves}
        self.brokers = tight - {broker_id for key in keys for broker_id in self._replicas.without_dir(key)}

    def faults(self, copies: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield each stage that fills a log dir above limits.diskUse, if the plan does not say so itself.

        Raises NotProved for a move that does not begin where its replica lies, and for a draining log dir that is not
        empty in the end. `copies`: the bytes of one copy for each move between brokers, in order.
        """
        used, of_copies = Counter(self._used), iter(copies)
        declared = [violation.message for violation in self._plan.violations if violation.code == DISK_USE]
        for stage in self._stages:
            arriving, leaving = Counter[Place](), Counter[Place]()
            for inside in stage.moves if isinstance(stage, LogDirsStage) else ():
                if not self._replicas.is_in(inside):
                    where = f"stage {stage.number}: {inside} is to leave {inside.from_dir}"
                    raise NotProved(f"{where}, and does not lie there")
                self._replicas.move_inside(inside, arriving, leaving)
            for move in stage.moves if isinstance(stage, ReassignStage) else ():
                self._replicas.move(move, next(of_copies), arriving, leaving)
            used.update(arriving)
            for broker_id, path, excess in self._overfull(arriving, used):
                begin, place = f"broker {broker_id} would hold ", f" in {path}" if path else ""
                if not any(text.startswith(begin) and f"{place} " in text for text in declared):
                    yield stage.number, f"{begin}{excess} bytes more{place} than limits.diskUse allows"
            used.subtract(leaving)
        self._end = used
        for broker_id, path, key in self._replicas.in_places(self._draining):
            raise NotProved(f"{path} of broker {broker_id} is declared draining, and {key} lies there in the end")

    def full_in_the_end(self, broker_ids: Collection[int]) -> Iterator[tuple[int, str, int]]:
        """Yield the broker, the place and the excess of each log dir above limits.diskUse, once `faults` is at its end.

        On these brokers alone. A replica of which Kafka chooses the log dir is in none of them.
        """
        for (broker_id, path), limit in self._allowed.items():
            held = self._end[broker_id, path] - self._deleted[broker_id, path]
            if broker_id in self.brokers and broker_id in broker_ids and held > limit:
                yield broker_id, f" in {path}", held - limit

    def _overfull(self, arriving: Counter[Place], used: Counter[Place]) -> Iterator[tuple[int, str | None, int]]:
        """Yield the broker, the log dir and the excess of each that takes something in, and is above the limit."""
        room = Counter[int]()
        for (broker_id, path), limit in self._allowed.items():
            if broker_id in self.brokers:
                room[broker_id] += max(0, limit - used[broker_id, path])
                if arriving[broker_id, path] > 0 and used[broker_id, path] > limit:
                    yield broker_id, path, used[broker_id, path] - limit
        for broker_id in sorted({broker_id for broker_id, path in arriving if path is None} & room.keys()):
            if used[broker_id, None] > room[broker_id]:
                yield broker_id, None, used[broker_id, None] - room[broker_id]


def _has_several_dirs(broker: Broker) -> bool:
    """Return whether the broker has several log dirs, each of known size and free bytes."""
    is_sized = all(None not in {log_dir.total_bytes, log_dir.usable_bytes} for log_dir in broker.log_dirs)
    return len(broker.log_dirs) > 1 and is_sized


def _draining(desired: Desired) -> frozenset[Place]:
    return frozenset(
        (broker.id, log_dir.path)
        for broker in desired.cluster.brokers.values()
        for log_dir in broker.log_dirs
        if log_dir.state is LogDirState.DRAINING
    )


class _Replicas:
    """The log dir and the bytes of each moving replica. It begins with the observed ones."""

    def __init__(self, observed: Cluster) -> None:
        self._observed = observed
        self._dirs: dict[TopicPartition, dict[int, tuple[str | None, int | None]]] = {}

    def without_dir(self, key: TopicPartition) -> list[int]:
        return [broker_id for broker_id, (path, _) in self._of(key).items() if path is None]

    def in_places(self, places: Collection[Place]) -> Iterator[tuple[int, str | None, TopicPartition]]:
        """Yield broker, log dir and partition of each replica in these places."""
        for key, _ in self._observed.partitions() if places else ():
            for broker_id, (path, _) in self._of(key).items():
                if (broker_id, path) in places:
                    yield broker_id, path, key

    def is_in(self, inside: DirMove) -> bool:
        path, _ = self._of(inside.topic_partition).get(inside.broker, ("", 0))
        return path in {None, inside.from_dir}

    def move_inside(self, inside: DirMove, arriving: Counter[Place], leaving: Counter[Place]) -> None:
        dirs = self._of(inside.topic_partition)
        path, size = dirs.get(inside.broker, (None, 0))
        arriving[inside.broker, inside.to_dir] += size or 0
        leaving[inside.broker, path] += size or 0
        dirs[inside.broker] = inside.to_dir, size

    def move(self, move: Move, copy: int, arriving: Counter[Place], leaving: Counter[Place]) -> None:
        dirs = self._of(move.topic_partition)
        for broker_id in {*move.from_replicas} - {*move.to_replicas}:
            path, size = dirs.pop(broker_id, (None, 0))
            leaving[broker_id, path] += copy if size is None else size
        for broker_id in {*move.to_replicas} - {*move.from_replicas}:
            dirs[broker_id] = move.log_dirs.get(broker_id), copy
            arriving[broker_id, move.log_dirs.get(broker_id)] += copy

    def _of(self, key: TopicPartition) -> dict[int, tuple[str | None, int | None]]:
        if key not in self._dirs:
            partition = self._observed.topics[key.topic].partitions[key.partition]
            paths = partition.log_dirs or (None,) * len(partition.replicas)
            sizes = partition.sizes or (None,) * len(partition.replicas)
            facts = zip(partition.replicas, paths, sizes, strict=False)
            self._dirs[key] = {broker_id: (path, size) for broker_id, path, size in facts}
        return self._dirs[key]
