"""Computes what a plan's stages reach, and checks that each could run and would end, before a plan is written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

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
from reconciler.model.move import Election, Move
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.configs import alter_topic_configs
from reconciler.simulate.controller import Controller, Denied, Outcome, controller_of
from reconciler.simulate.partition import reassigned, with_isr, with_preferred_leader
from reconciler.simulate.storage import with_metadata
from reconciler.simulate.topics import create_partitions, create_topics, delete_topics

Reached = Mapping[TopicPartition, Partition | None]
"""The partitions that a stage touched, as it leaves them; None for one that is gone."""


def reach(cluster: Cluster, stage: Stage, topic_changes: Sequence[TopicChange] = ()) -> Cluster:
    """Return the cluster at the end of that stage; what Kafka would refuse is left as it was.

    The log dir of a copied replica is None, and free bytes stay as they were: what is on disk takes a whole cluster to
    tell, and a plan has hundreds of stages.
    """
    match stage:
        case TopicsStage():
            for position in stage.changes:
                cluster = _with_topic_change(cluster, topic_changes[position]).cluster
            return cluster
        case ReassignStage() | ElectStage():
            return with_metadata(cluster, _reached_partitions(cluster, {}, stage, controller_of(cluster)))


def reach_all(cluster: Cluster, plan: Plan) -> Iterator[Reached]:
    """Yield, for each stage in turn, the partitions it touches as it leaves them; nothing else is copied."""
    controller = controller_of(cluster)
    touched: dict[TopicPartition, Partition | None] = {}
    for stage in plan.stages:
        if isinstance(stage, TopicsStage):
            cluster = with_metadata(cluster, {key: one for key, one in touched.items() if one is not None})
            after = reach(cluster, stage, plan.topic_changes)
            names = {plan.topic_changes[position].topic for position in stage.changes}
            step = _new_or_gone(cluster, after, names)
            cluster = after
        else:
            step = _reached_partitions(cluster, touched, stage, controller)
        touched.update(step)
        yield step


def check_stage(cluster: Cluster, stage: Stage, topic_changes: Sequence[TopicChange] = ()) -> tuple[Problem, ...]:
    """Return why that stage could not run on this cluster, or would not end: nothing, for a plan's own stages."""
    controller = controller_of(cluster)
    match stage:
        case TopicsStage():
            return _topics_problems(cluster, stage, topic_changes)
        case ReassignStage():
            moved = with_metadata(cluster, _reached_partitions(cluster, {}, replace(stage, elections=()), controller))
            found = [_move_problem(cluster, move, controller) for move in stage.moves]
            found += [_election_problem(moved, election, controller) for election in stage.elections]
        case ElectStage():
            found = [_election_problem(cluster, election, controller) for election in stage.elections]
    return tuple(problem for problem in found if problem is not None)


def _reached_partitions(
    cluster: Cluster,
    touched: Mapping[TopicPartition, Partition | None],
    stage: ReassignStage | ElectStage,
    controller: Controller,
) -> dict[TopicPartition, Partition]:
    moves = stage.moves if isinstance(stage, ReassignStage) else ()
    items: Sequence[Move | Election] = (*moves, *stage.elections)
    reached: dict[TopicPartition, Partition] = {}
    for item in items:
        key = item.topic_partition
        partition = reached.get(key) or (touched[key] if key in touched else cluster.partition(key))
        if partition is not None:
            reached[key] = (
                _moved(partition, item, controller) if isinstance(item, Move) else _led(partition, controller)
            )
    return reached


def _moved(partition: Partition, move: Move, controller: Controller) -> Partition:
    """Return the partition once all replicas that live have caught up."""
    changed = reassigned(partition, move.to_replicas, controller)
    if isinstance(changed, Denied):
        return partition
    arrived = (one for one in changed.replicas if one in controller.alive and one not in changed.isr)
    ended = with_isr(changed, (*changed.isr, *arrived), controller)
    if not ended.sizes:
        return ended
    copied = partition.bytes_to_copy
    held = partition.replicas
    return replace(ended, sizes=tuple(partition.size_on(one) if one in held else copied for one in ended.replicas))


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


def _new_or_gone(before: Cluster, after: Cluster, topics: Iterable[str]) -> Reached:
    """Return the partitions of these topics that are new, and None for each that is gone."""
    was, now = (
        {
            TopicPartition(name, partition.partition): partition
            for name in topics
            if name in cluster.topics
            for partition in cluster.topics[name].partitions
        }
        for cluster in (before, after)
    )
    return {key: now.get(key) for key in sorted(was.keys() ^ now.keys())}


def _topics_problems(cluster: Cluster, stage: TopicsStage, topic_changes: Sequence[TopicChange]) -> tuple[Problem, ...]:
    problems = []
    for position in stage.changes:
        change = topic_changes[position]
        outcome = _with_topic_change(cluster, change)
        denied = outcome.answers[change.topic]
        if denied is not None:
            message = f"Kafka would refuse this change of {change.topic}: {denied.message} ({denied.error})"
            problems.append(Problem("KR380", message, change.at))
        cluster = outcome.cluster
    return tuple(problems)


def _move_problem(cluster: Cluster, move: Move, controller: Controller) -> Problem | None:
    key = move.topic_partition
    partition = cluster.partition(key)
    if partition is None:
        return Problem("KR381", f"{key} is to be moved, but there is no such partition.", move.at)
    if partition.is_reassigning:
        return Problem("KR382", f"{key} is to be moved, but a reassignment of it is in flight.", move.at)
    if partition.replicas != move.from_replicas:
        message = f"{key} is to be moved from {list(move.from_replicas)}, but stands on {list(partition.replicas)}."
        return Problem("KR383", message, move.at)
    changed = reassigned(partition, move.to_replicas, controller)
    if isinstance(changed, Denied):
        message = f"Kafka would refuse the move of {move.topic_partition}: {changed.message} ({changed.error})"
        return Problem("KR384", message, move.at)
    # Kafka takes a move onto a dead broker, and never ends it: completion needs every new replica in the ISR.
    dead = [str(broker_id) for broker_id in move.to_replicas if broker_id not in controller.alive]
    if dead and _moved(partition, move, controller).is_reassigning:
        message = f"The move of {move.topic_partition} would never end: broker {', '.join(dead)} is not alive."
        return Problem("KR385", message, move.at)
    return None


def _election_problem(cluster: Cluster, election: Election, controller: Controller) -> Problem | None:
    key = election.topic_partition
    partition = cluster.partition(key)
    if partition is None:
        return Problem("KR381", f"{key} is to get a leader, but there is no such partition.")
    reached = _led(partition, controller)
    if reached.leader != election.leader:
        message = f"{key} is to be led by {election.leader}, but its election would end with {reached.leader}."
        return Problem("KR386", message)
    return None
