"""From a desired and an observed state to what the planner decides, and on to the state after it."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from helpers.plans.oracle import reached_replicas

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.budget import Budget
from reconciler.model.change import CreateTopic, TopicChange
from reconciler.model.cluster import Cluster, Partition, Topic
from reconciler.model.desired import Desired
from reconciler.model.move import Move
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.place import Placed, plan_placement


def planned(
    desired: Desired, observed: Cluster, only: Collection[str] | None = None, *, budget: Budget | None = None
) -> Placed:
    """Return what the planner decides; with `only`, for these topics; with a `budget`, within it."""
    rules = topic_rules(desired, observed)
    return plan_placement(desired, observed, rules, compare(desired, observed, rules), only, budget=budget)


def replicas_after(observed: Cluster, placed: Placed) -> dict[TopicPartition, tuple[int, ...]]:
    """Return every partition's ordered replicas once that plan is done."""
    return reached_replicas(observed, placed.moves, placed.topic_changes)


def cluster_after(observed: Cluster, moves: Iterable[Move], topic_changes: Iterable[TopicChange]) -> Cluster:
    """Return the cluster with every list replaced by hand, all in sync, the first replica leading."""
    reached = reached_replicas(observed, moves, topic_changes)
    created = [change.topic for change in topic_changes if isinstance(change, CreateTopic)]
    names = sorted({*observed.topics, *created})
    topics = {name: observed.topics.get(name, Topic(name)) for name in names}
    return replace(observed, topics={name: _topic_after(observed, topic, reached) for name, topic in topics.items()})


def _topic_after(observed: Cluster, topic: Topic, reached: Mapping[TopicPartition, tuple[int, ...]]) -> Topic:
    keys = sorted(key for key in reached if key.topic == topic.name)
    return replace(topic, partitions=tuple(_partition_after(observed, key, reached[key]) for key in keys))


def _partition_after(observed: Cluster, key: TopicPartition, replicas: tuple[int, ...]) -> Partition:
    before = observed.partition(key)
    size = before.bytes_to_copy if before else 0
    return Partition(
        key.partition,
        leader=replicas[0],
        replicas=replicas,
        isr=replicas,
        sizes=(size,) * len(replicas) if size is not None else (),
    )
