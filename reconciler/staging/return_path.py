"""Decides for each partition that a plan touched whether it can go back to where the plan found it, and if not, why.

Kafka knows no rollback. A partition goes back by a move of its own to the ordered replicas that stand in the plan's
`rollback`, and only where nobody but this plan, or an earlier rollback of it, has moved it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from reconciler.model.cluster import Partition
from reconciler.model.in_sync import MIN_ISR, brokers_min_isr, whole_number
from reconciler.model.move import Election, Move, Reason
from reconciler.model.plan import Plan, Restore
from reconciler.model.problem import Problem, warning
from reconciler.model.stage import moves_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import MANY, named_some
from reconciler.staging.chain import steps_of
from reconciler.staging.step import Situation

Replicas = tuple[int, ...]


@dataclass(slots=True)
class ReturnPath:
    """What going back takes; `told`: what it cannot bring back; `left`: what it leaves alone, or cannot do now."""

    moves: list[Move] = field(default_factory=list)
    elections: list[Election] = field(default_factory=list)
    told: list[Problem] = field(default_factory=list)
    left: list[Problem] = field(default_factory=list)


def return_path(
    undone: Plan, situation: Situation, min_isr: Mapping[str, str | None], left_out: Collection[str] = ()
) -> ReturnPath:
    """Return the whole moves, one a partition, and elections that restore lists and leaders.

    `min_isr` holds the override that a topic will have once its configs are undone, `left_out` topics of whose
    partitions nothing is said.
    """
    found = ReturnPath()
    paths = _paths(undone)
    led_otherwise = []
    for restore in undone.rollback.assignments:
        key, goal = restore.topic_partition, restore.replicas
        if key.topic in left_out:
            continue
        partition = situation.observed.partition(key)
        if partition is None:
            found.left.append(warning("KR854", f"{key} is gone, and so it does not go back to {list(goal)}"))
            continue
        own = whole_number(min_isr.get(key.topic))
        astray = _astray(restore, partition, paths.get(key, ()), situation)
        trouble = astray or _obstacle(restore, partition, own, situation)
        if trouble is not None:
            found.left.append(trouble)
            continue
        if restore.leader not in {None, goal[0], partition.leader}:
            led_otherwise.append(f"{key} by {restore.leader}")
        if partition.replicas != goal:
            found.moves.append(_move(key, partition, goal))
        elif partition.leader != goal[0] and restore.leader == goal[0]:
            found.elections.append(Election(key, goal[0]))
    if led_otherwise:
        text = f"not all partitions were led by their first replica ({named_some(led_otherwise, MANY)}), and now are"
        found.told.append(warning("KR855", f"{text}: only a first replica can be elected"))
    return found


def _move(key: TopicPartition, partition: Partition, goal: Replicas) -> Move:
    size = partition.bytes_to_copy
    added = sum(replica not in partition.replicas for replica in goal)
    is_known = size is not None or not added
    return Move(key, partition.replicas, goal, (size or 0) * added, Reason.ASSIGNMENT, is_size_known=is_known)


def _astray(restore: Restore, partition: Partition, path: Sequence[Replicas], situation: Situation) -> Problem | None:
    """Return what is wrong where the plan, or a return path from it, never put the partition."""
    key, goal = restore.topic_partition, restore.replicas
    if partition.is_reassigning:
        text = f"{key} is being reassigned to {list(partition.target_replicas)}, and not by this plan"
        return warning("KR854", f"{text}: it is left alone; once that has ended, or is cancelled, roll back again")
    now = partition.replicas
    if now == goal or now in path or _is_on_the_way(key, now, goal, path, situation):
        return None
    text = f"{key} is on {list(now)}, where this plan never put it: somebody else moved it, so it is left alone"
    return warning("KR854", f"{text}; agree with them, then assign {list(goal)} in the desired state")


def _is_on_the_way(
    key: TopicPartition, now: Replicas, goal: Replicas, path: Sequence[Replicas], situation: Situation
) -> bool:
    """Whether Kafka's own cancel of a step, or an earlier rollback that was stopped, leaves such a list.

    That rollback's file is not needed to know it: the steps follow from the two ends.
    """
    if now in _disordered(path):
        return True
    for start in (replicas for replicas in dict.fromkeys(path) if replicas != goal):
        steps = steps_of(Move(key, start, goal, 0, Reason.ASSIGNMENT), situation)
        lists = [start, *(step.move.to_replicas for step in steps)]
        if now in _disordered(lists) or set(now) in map(set, lists[1:-1]):
            return True
    return False


def _disordered(path: Sequence[Replicas]) -> Iterator[Replicas]:
    """Yield what Kafka's own cancel of each move leaves: the kept ones in the new order, then the rest ascending."""
    for before, after in pairwise(path):
        yield tuple(one for one in after if one in before) + tuple(sorted(set(before) - set(after)))


def _obstacle(restore: Restore, partition: Partition, min_isr: int | None, situation: Situation) -> Problem | None:
    """Return why a partition cannot go back now: Kafka ends a move only once every replica of its target is in sync."""
    key, goal = restore.topic_partition, restore.replicas
    if partition.replicas == goal and (partition.leader == goal[0] or restore.leader != goal[0]):
        return None
    for why in _troubles(partition, goal, min_isr, situation):
        what = f"{key} cannot go back to {list(goal)} now: {why}"
        return warning("KR856", f"{what}. See to that and roll back again, or go on with apply")
    return None


def _troubles(partition: Partition, goal: Replicas, own: int | None, situation: Situation) -> Iterator[str]:
    """Yield what is in the way; `own`: the min ISR that the topic will have itself."""
    yield from (f"broker {broker} is not alive" for broker in goal if broker not in situation.alive)
    if partition.leader is None:
        yield "it has no leader"
    # A target replica that lags keeps its reassignment open, maybe for ever; a new one is copied under our eyes.
    kept = (broker for broker in goal if broker in partition.replicas)
    yield from (f"broker {broker} is not in sync" for broker in kept if broker not in partition.isr)
    wanted = own or brokers_min_isr(situation.observed)
    # As Kafka has it: producers with acks=all are refused below min.insync.replicas, and no partition has more in sync
    # than it has replicas.
    if len(partition.isr) < min(wanted, len(partition.replicas)):
        yield f"{len(partition.isr)} replicas are in sync, {MIN_ISR} is {wanted}"
    if own is not None and len(goal) < min(own, len(partition.replicas)):
        yield f"these are {len(goal)} replicas, {MIN_ISR} is {own}"


def _paths(undone: Plan) -> Mapping[TopicPartition, tuple[Replicas, ...]]:
    paths: dict[TopicPartition, list[Replicas]] = {}
    for move in moves_of(undone.stages):
        paths.setdefault(move.topic_partition, [move.from_replicas]).append(move.to_replicas)
    return {key: tuple(lists) for key, lists in paths.items()}
