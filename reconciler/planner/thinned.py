"""A cluster with one of each kind of topic and partition, as far as rules tell them apart: quick to check again."""

from collections.abc import Collection
from dataclasses import replace

from reconciler.diff.managed import managed_topics
from reconciler.diff.rules import cordoned_brokers
from reconciler.model.cluster import Partition, Topic
from reconciler.model.desired import BrokerState, DesiredTopic, Protection
from reconciler.planner.remedy_changes import States


def thinned(states: States, topics: Collection[str]) -> States:
    """Return the states with these topics alone, and of alike ones, and of their alike partitions, one each.

    What can be placed depends on rules, on the number of replicas, and on those that a cordoned broker may keep; of an
    undeclared topic, on all that stay beside those that leave.
    """
    declared = managed_topics(states.desired, states.observed)
    keeping = cordoned_brokers(*states) | _brokers_in(states, {BrokerState.ABSENT})
    restricted = keeping | _brokers_in(states, {*BrokerState} - {BrokerState.ACTIVE})
    restricted |= {broker_id for broker_id in states.observed.brokers if not states.observed.is_alive(broker_id)}
    kept: dict[str, Topic] = {}
    wanted: dict[str, DesiredTopic] = {}
    seen: set[object] = set()
    for name in sorted(topics):
        topic, there = declared.get(name), states.observed.topics.get(name)
        telling = restricted if topic is None else keeping
        partitions = () if there is None else _unlike(there, topic, telling)
        key = (
            topic and (topic.placement, topic.replication_factor, topic.protect, topic.is_absent),
            there and (there.is_internal, tuple(_likeness(partition, telling) for partition in partitions)),
        )
        if key in seen and not (topic and topic.placement.assignment):
            continue
        seen.add(key)
        if there is not None:
            kept[name] = replace(there, partitions=partitions)
        if topic is not None:
            wanted[name] = replace(topic, partitions=_count(topic, there, len(partitions)))
    desired = replace(states.desired, topics=wanted, patterns=())
    return States(desired, replace(states.observed, topics=kept))


def _brokers_in(states: States, kinds: Collection[BrokerState]) -> frozenset[int]:
    return frozenset(one.id for one in states.desired.cluster.brokers.values() if one.state in kinds)


def _count(topic: DesiredTopic, there: Topic | None, kept: int) -> int | None:
    """Return a partition count that, for the partitions kept, grows the topic exactly where it is to grow."""
    if there is None or topic.placement.assignment is not None:
        return topic.partitions
    is_growing = topic.partitions is not None and topic.partitions > len(there.partitions)
    return kept + 1 if is_growing else None


def _unlike(there: Topic, topic: DesiredTopic | None, telling: frozenset[int]) -> tuple[Partition, ...]:
    if topic is not None and (topic.placement.assignment is not None or Protection.MOVE in topic.protect):
        return there.partitions
    first: dict[object, Partition] = {}
    for partition in there.partitions:
        first.setdefault(_likeness(partition, telling), partition)
    return tuple(replace(partition, partition=number) for number, partition in enumerate(first.values()))


def _likeness(partition: Partition, telling: frozenset[int]) -> object:
    replicas = partition.target_replicas
    return len(replicas), telling.intersection(replicas)
