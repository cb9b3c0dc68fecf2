"""Warns of topics that a plan leaves with a replication factor at, or below, the min.insync.replicas in force.

Kafka takes the smaller of the two (`Partition.effectiveMinIsr`, KAFKA-21110), so that acks=all is written while all
replicas are in sync, and refused once one is missing. A min.insync.replicas of 1 asks for no more than a leader.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from reconciler.diff.rules import TopicRules
from reconciler.model.change import AlterConfigs, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Cluster, Topic
from reconciler.model.in_sync import MIN_ISR, brokers_min_isr, whole_number
from reconciler.model.problem import BELOW_MIN_ISR, Location, Problem, warning
from reconciler.model.table_maker import table_of
from reconciler.model.words import MANY, counted, named_some

AT_MIN_ISR = "KR882"
OF_BROKERS, OF_TOPIC, OF_FILES = "the brokers' setting", "set on the topic", "as declared"


class TopicMinIsr(NamedTuple):
    """The replicas of a topic and its min ISR once a plan has run; `source`: who sets that min ISR."""

    replicas: int
    min_isr: int
    source: str


def min_isr_warnings(
    rules: Mapping[str, TopicRules], observed: Cluster, changes: Iterable[TopicChange], touched: Collection[str] = ()
) -> Iterator[Problem]:
    """Yield the warnings for all topics that are declared, or `touched`, as they are once the changes are made."""
    changes_of: dict[str, list[TopicChange]] = {}
    for change in changes:
        changes_of.setdefault(change.topic, []).append(change)
    default, fewest = brokers_min_isr(observed), _fewest_replicas(observed)
    found: dict[str, TopicMinIsr] = {}
    places: dict[str, Location | None] = {}
    for name, rule in rules.items():
        declared, of_topic = rule.declared, changes_of.get(name, ())
        if declared is None and name not in touched:
            continue
        if any(isinstance(change, DeleteTopic) for change in of_topic):
            continue
        own = _own_min_isr(observed.topics.get(name), of_topic)
        is_declared = declared is not None and whole_number(declared.config.get(MIN_ISR)) == own
        source = OF_BROKERS if own is None else OF_FILES if is_declared else OF_TOPIC
        found[name] = TopicMinIsr(_replicas(rule, of_topic) or fewest.get(name, 0), own or default, source)
        places[name] = declared.where("replicationFactor") if declared else None
    yield from warnings_of(found, places)


def warnings_of(found: Mapping[str, TopicMinIsr], places: Mapping[str, Location | None]) -> Iterator[Problem]:
    """Yield one warning for all topics alike that have too few replicas; `places`: the line that is to be edited."""
    alike: dict[TopicMinIsr, list[str]] = {}
    for name in sorted(found):
        if 0 < found[name].replicas <= found[name].min_isr > 1:
            alike.setdefault(found[name], []).append(name)
    for topic, names in sorted(alike.items(), key=lambda item: (item[0].replicas >= item[0].min_isr, item[0])):
        many = f"{len(names)} topics ({named_some(names, MANY)}) are"
        who = f"topic {names[0]} is" if len(names) == 1 else many
        is_below = topic.replicas < topic.min_isr
        than, why = ("below", "Kafka then takes the smaller, so ") if is_below else ("as many as", "")
        message = (
            f"{who} to have partitions with {counted(topic.replicas, 'replica')}, {than} {MIN_ISR} {topic.min_isr}"
            f" ({topic.source}): {why}acks=all writes stop once any replica is missing; raise replicationFactor, or"
            f" lower {MIN_ISR}"
        )
        yield warning(BELOW_MIN_ISR if is_below else AT_MIN_ISR, message, places.get(names[0]))


def _replicas(rule: TopicRules, changes: Iterable[TopicChange]) -> int | None:
    """Return the fewest replicas of a partition by the files, or of a new topic; None: each partition keeps its own."""
    created = next((change.replication_factor for change in changes if isinstance(change, CreateTopic)), None)
    return created or rule.replication_factor or min(map(len, rule.assignment or ()), default=None)


def _own_min_isr(topic: Topic | None, changes: Iterable[TopicChange]) -> int | None:
    """Return the topic's override once the changes are made, None without one: then the brokers' setting counts."""
    text = topic.configs.get(MIN_ISR) if topic is not None else None
    for change in changes:
        match change:
            case CreateTopic():
                text = change.configs.get(MIN_ISR)
            case AlterConfigs() if MIN_ISR in {*change.set, *change.delete}:
                text = change.set.get(MIN_ISR)
    return whole_number(text) or None


def _fewest_replicas(observed: Cluster) -> Mapping[str, int]:
    """Return the fewest replicas of a partition of each topic, reassignments in flight taken as ended."""
    table = table_of(observed)
    fewest = np.full(len(table.topics), np.iinfo(np.int64).max)
    np.minimum.at(fewest, table.topic, table.factor)
    return dict(zip(table.topics, fewest.tolist(), strict=True))
