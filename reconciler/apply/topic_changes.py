"""Where a topic change stands: to do, done, or neither, because the topic is no longer as the plan saw it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from reconciler.apply.course import Itinerary, Place
from reconciler.apply.observed import Observed
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Topic
from reconciler.model.topic_partition import TopicPartition

PARTITIONS_A_REQUEST = 1000


class ChangeState(StrEnum):
    """Where a topic change stands."""

    TO_DO = "toDo"
    DONE = "done"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Standing:
    """A change's state; where it is stale, what was expected and what was found, in words."""

    state: ChangeState
    expected: str = ""
    found: str = ""


_TO_DO = Standing(ChangeState.TO_DO)
_DONE = Standing(ChangeState.DONE)


def standing(change: TopicChange, observed: Observed, itinerary: Itinerary) -> Standing:
    """Return where a change stands."""
    topic = observed.topics.get(change.topic)
    match change:
        case CreateTopic():
            return _creation(change, topic, observed, itinerary)
        case CreatePartitions():
            return _growth(change, topic, observed, itinerary)
        case AlterConfigs():
            return _configs(change, topic, observed)
        case DeleteTopic():
            return _deletion(change, topic)
        case _:
            assert_never(change)


def remaining(change: CreatePartitions, observed: Observed) -> CreatePartitions:
    """Return what one request may add of a growth: from the partitions that exist, no more than a request can take."""
    topic = observed.topics.get(change.topic)
    count = len(topic.partitions) if topic else change.from_count
    end = min(change.to_count, count + PARTITIONS_A_REQUEST)
    assignment = {p: replicas for p, replicas in sorted(change.assignment.items()) if count <= p < end}
    return replace(change, from_count=count, to_count=end, assignment=assignment)


def _creation(change: CreateTopic, topic: Topic | None, observed: Observed, itinerary: Itinerary) -> Standing:
    if topic is None:
        return _TO_DO
    expected = f"no topic, or one with {change.partitions} partitions as planned"
    if len(topic.partitions) != change.partitions:
        return Standing(ChangeState.STALE, expected, f"{len(topic.partitions)} partitions")
    wrong = _misplaced(change.topic, change.assignment, observed, itinerary)
    if wrong is not None:
        return Standing(ChangeState.STALE, expected, wrong)
    configs = observed.configs.get(change.topic, {})
    for key, value in sorted(change.configs.items()):
        if configs.get(key) != value:
            return Standing(ChangeState.STALE, f"{key}={value}", f"{key} {_told(configs.get(key))}")
    return _DONE


def _growth(change: CreatePartitions, topic: Topic | None, observed: Observed, itinerary: Itinerary) -> Standing:
    expected = f"{change.from_count} partitions, or {change.to_count} as planned"
    if topic is None:
        return Standing(ChangeState.STALE, expected, observed.absence(change.topic))
    count = len(topic.partitions)
    if not change.from_count <= count <= change.to_count:
        return Standing(ChangeState.STALE, expected, f"{count} partitions")
    made = {p: replicas for p, replicas in change.assignment.items() if p < count}
    wrong = _misplaced(change.topic, made, observed, itinerary)
    if wrong is not None:
        return Standing(ChangeState.STALE, expected, wrong)
    return _DONE if count == change.to_count else _TO_DO


def _misplaced(
    topic: str, assignment: Mapping[int, tuple[int, ...]], observed: Observed, itinerary: Itinerary
) -> str | None:
    """Return the first partition that stands elsewhere than assigned, in words; a later move of the plan is allowed."""
    for number, replicas in sorted(assignment.items()):
        key = TopicPartition(topic, number)
        partition = observed.partition(key)
        if partition is None:
            return f"no partition {number}"
        is_on_course = key in itinerary.courses and itinerary.position(key, observed).place is not Place.UNKNOWN
        if partition.target_replicas != replicas and not is_on_course:
            return f"partition {number} on {list(partition.target_replicas)}"
    return None


def _configs(change: AlterConfigs, topic: Topic | None, observed: Observed) -> Standing:
    if topic is None:
        return Standing(ChangeState.STALE, "the topic", observed.absence(change.topic))
    configs = observed.configs.get(change.topic, {})
    wanted: dict[str, str | None] = {**change.set, **dict.fromkeys(change.delete)}
    left = {key: value for key, value in wanted.items() if configs.get(key) != value}
    for key, value in sorted(left.items()):
        if key in change.before and configs.get(key) != change.before[key]:
            expected = f"{key} {_told(change.before[key])} or {_told(value)}"
            return Standing(ChangeState.STALE, expected, f"{key} {_told(configs.get(key))}")
    return _TO_DO if left else _DONE


def _deletion(change: DeleteTopic, topic: Topic | None) -> Standing:
    if topic is None:
        return _DONE
    if change.topic_id is not None and topic.topic_id is not None and change.topic_id != topic.topic_id:
        found = f"id {topic.topic_id}: another topic was made under the same name"
        return Standing(ChangeState.STALE, f"topic id {change.topic_id}", found)
    return _TO_DO


def _told(value: str | None) -> str:
    return "not set" if value is None else f"set to {value}"
