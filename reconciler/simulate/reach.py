"""Computes what a plan's stages reach, and checks that each could run and would end, before a plan is written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.model.change import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    TopicChange,
)
from reconciler.model.cluster import Cluster, Partition
from reconciler.model.move import DirMove, Election, Move
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem
from reconciler.model.stage import ElectStage, LogDirsStage, ReassignStage, Stage, TopicsStage, elections_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.configs import alter_topic_configs
from reconciler.simulate.controller import Controller, Denied, Outcome, controller_of
from reconciler.simulate.partition import reassigned, with_isr, with_preferred_leader
from reconciler.simulate.storage import with_metadata
from reconciler.simulate.topics import create_partitions, create_topics, delete_topics

Reached = Mapping[TopicPartition, Partition | None]
"""The partitions that a stage touched, as it leaves them; None for one that is gone."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A stage that ended: the cluster as it is then, and the partitions that it touched, before and after.

    `problems`: why it could not run, or would not end; nothing, for a plan's own stages.
    """

    cluster: Cluster
    was: Reached
    now: Reached
    problems: tuple[Problem, ...]


def run_stage(cluster: Cluster, stage: Stage, topic_changes: Sequence[TopicChange] = ()) -> Ran:
    """Return what that stage comes to; what Kafka would refuse is left as it was.

    The log dir of a copied replica is None, and free bytes stay as they were: what is on disk takes a whole cluster to
    tell, and a plan has hundreds of stages.
    """
    problems: list[Problem] = []
    if isinstance(stage, TopicsStage):
        after = cluster
        for position in stage.changes:
            outcome = _with_topic_change(after, topic_changes[position])
            problems += _refused(topic_changes[position], outcome)
            after = outcome.cluster
        names = sorted({topic_changes[position].topic for position in stage.changes})
        return Ran(after, _partitions_of(cluster, names), _partitions_of(after, names), tuple(problems))
    was: dict[TopicPartition, Partition | None] = {}
    reached = _reached_partitions(cluster, was, stage, controller_of(cluster), problems)
    after = with_metadata(cluster, reached)
    return Ran(after, was, {key: after.partition(key) for key in reached}, tuple(problems))


def reach(cluster: Cluster, stage: Stage, topic_changes: Sequence[TopicChange] = ()) -> Cluster:
    """Return the cluster at the end of that stage."""
    return run_stage(cluster, stage, topic_changes).cluster


def reach_all(cluster: Cluster, plan: Plan) -> Iterator[Reached]:
    """Yield, for each stage in turn, the partitions it touches as it leaves them; nothing else is copied."""
    controller = controller_of(cluster)
    touched: dict[TopicPartition, Partition | None] = {}
    for stage in plan.stages:
        if isinstance(stage, TopicsStage):
            cluster = with_metadata(cluster, {key: one for key, one in touched.items() if one is not None})
            after = reach(cluster, stage, plan.topic_changes)
            names = {plan.topic_changes[position].topic for position in stage.changes}
            was, now = _partitions_of(cluster, names), _partitions_of(after, names)
            step: Reached = {key: now.get(key) for key in sorted(was.keys() ^ now.keys())}
            cluster = after
        else:
            step = _reached_partitions(cluster, touched, stage, controller, [])
        touched.update(step)
        yield step


def _reached_partitions(
    cluster: Cluster,
    touched: dict[TopicPartition, Partition | None],
    stage: ReassignStage | LogDirsStage | ElectStage,
    controller: Controller,
    problems: list[Problem],
) -> dict[TopicPartition, Partition]:
    """Return the partitions that a stage touches as it leaves them, and add why it could not run.

    `touched`: what the stages before it touched, as it is then; what this one does, as it was, is added.
    """
    reached: dict[TopicPartition, Partition] = {}

    def at(key: TopicPartition) -> Partition | None:
        if key not in touched:
            touched[key] = cluster.partition(key)
        return reached.get(key) or touched[key]

    for move in stage.moves if isinstance(stage, ReassignStage) else ():
        partition = at(move.topic_partition)
        moved = _moved(partition, move, controller) if partition is not None else None
        problems += _move_problems(partition, move, moved, controller)
        if partition is not None:
            reached[move.topic_partition] = moved if isinstance(moved, Partition) else partition
    for inside in stage.moves if isinstance(stage, LogDirsStage) else ():
        partition = at(inside.topic_partition)
        if partition is not None:
            reached[inside.topic_partition] = _in_other_dir(partition, inside)
    for election in elections_of(stage):
        partition = at(election.topic_partition)
        led = _led(partition, controller) if partition is not None else None
        problems += _election_problems(election, led)
        if led is not None:
            reached[election.topic_partition] = led
    return reached


def _moved(partition: Partition, move: Move, controller: Controller) -> Partition | Denied:
    """Return the partition once all replicas that live have caught up."""
    changed = reassigned(partition, move.to_replicas, controller)
    if isinstance(changed, Denied):
        return changed
    arrived = (one for one in changed.replicas if one in controller.alive and one not in changed.isr)
    ended = with_isr(changed, (*changed.isr, *arrived), controller)
    if not ended.sizes:
        return ended
    copied = partition.bytes_to_copy
    held = partition.replicas
    return replace(ended, sizes=tuple(partition.size_on(one) if one in held else copied for one in ended.replicas))


def _in_other_dir(partition: Partition, move: DirMove) -> Partition:
    if not partition.log_dirs:
        return partition
    pairs = zip(partition.replicas, partition.log_dirs, strict=True)
    return replace(partition, log_dirs=tuple(move.to_dir if one == move.broker else path for one, path in pairs))


def _led(partition: Partition, controller: Controller) -> Partition:
    elected = with_preferred_leader(partition, controller)
    return partition if isinstance(elected, Denied) else elected


def _with_topic_change(cluster: Cluster, change: TopicChange) -> Outcome[str]:
    match change:
        case CreateTopic():
            return create_topics(cluster, (change,))
        case CreatePartitions():
            return create_partitions(cluster, (change,))
        case DeleteTopic():
            return delete_topics(cluster, (change.topic,))
        case AlterConfigs():
            setting = (ConfigChange(key, ConfigOperation.SET, change.set[key]) for key in sorted(change.set))
            deleting = (ConfigChange(key, ConfigOperation.DELETE) for key in sorted(change.delete))
            return alter_topic_configs(cluster, {change.topic: (*setting, *deleting)})


def _partitions_of(cluster: Cluster, topics: Iterable[str]) -> Reached:
    there = [cluster.topics[name] for name in topics if name in cluster.topics]
    return {TopicPartition(topic.name, each.partition): each for topic in there for each in topic.partitions}


def _refused(change: TopicChange, outcome: Outcome[str]) -> Iterator[Problem]:
    denied = outcome.answers[change.topic]
    if denied is not None:
        message = f"Kafka would refuse this change of {change.topic}: {denied.message} ({denied.error})"
        yield Problem("KR380", message, change.at)


def _move_problems(
    partition: Partition | None, move: Move, moved: Partition | Denied | None, controller: Controller
) -> Iterator[Problem]:
    key = move.topic_partition
    if partition is None:
        yield Problem("KR381", f"{key} is to be moved, but there is no such partition.", move.at)
    elif partition.is_reassigning:
        yield Problem("KR382", f"{key} is to be moved, but a reassignment of it is in flight.", move.at)
    elif partition.replicas != move.from_replicas:
        message = f"{key} is to be moved from {list(move.from_replicas)}, but stands on {list(partition.replicas)}."
        yield Problem("KR383", message, move.at)
    elif isinstance(moved, Denied):
        message = f"Kafka would refuse the move of {key}: {moved.message} ({moved.error})"
        yield Problem("KR384", message, move.at)
    elif moved is not None and moved.is_reassigning:
        # Kafka takes a move onto a dead broker, and never ends it: completion needs every new replica in the ISR.
        dead = [str(broker_id) for broker_id in move.to_replicas if broker_id not in controller.alive]
        if dead:
            message = f"The move of {key} would never end: broker {', '.join(dead)} is not alive."
            yield Problem("KR385", message, move.at)


def _election_problems(election: Election, led: Partition | None) -> Iterator[Problem]:
    key = election.topic_partition
    if led is None:
        yield Problem("KR381", f"{key} is to get a leader, but there is no such partition.")
    elif led.leader != election.leader:
        message = f"{key} is to be led by {election.leader}, but its election would end with {led.leader}."
        yield Problem("KR386", message)
