"""Computes what a plan's stages reach."""

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
from reconciler.model.move import DirMove, Move
from reconciler.model.plan import Plan
from reconciler.model.stage import ElectStage, LogDirsStage, ReassignStage, Stage, TopicsStage, elections_of
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

    The log dir of a copied replica is None, and free bytes stay as they were: to count the bytes on
    disk takes a pass over the whole cluster, and a plan has hundreds of stages.
    """
    if isinstance(stage, TopicsStage):
        for position in stage.changes:
            cluster = _with_topic_change(cluster, topic_changes[position]).cluster
        return cluster
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
            was, now = _partitions_of(cluster, names), _partitions_of(after, names)
            step: Reached = {key: now.get(key) for key in sorted(was.keys() ^ now.keys())}
            cluster = after
        else:
            step = _reached_partitions(cluster, touched, stage, controller)
        touched.update(step)
        yield step


def _reached_partitions(
    cluster: Cluster,
    touched: dict[TopicPartition, Partition | None],
    stage: ReassignStage | LogDirsStage | ElectStage,
    controller: Controller,
) -> dict[TopicPartition, Partition]:
    """Return the partitions that a stage touches as it leaves them.

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
        if partition is not None:
            reached[move.topic_partition] = moved if isinstance(moved, Partition) else partition
    for inside in stage.moves if isinstance(stage, LogDirsStage) else ():
        partition = at(inside.topic_partition)
        if partition is not None:
            reached[inside.topic_partition] = _in_other_dir(partition, inside)
    for election in elections_of(stage):
        partition = at(election.topic_partition)
        led = _led(partition, controller) if partition is not None else None
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
