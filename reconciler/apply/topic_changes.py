"""Computes where each topic change stands, and the next request of a stage of topic changes.

One request's worth of one kind at a time, in the plan's order. The next kind waits until the one before it shows:
should Kafka refuse something, nothing that comes later has happened.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import TypeVar, assert_never

from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import Place, PlanPaths
from reconciler.apply.stage_memory import StageMemory
from reconciler.apply.steps import (
    ATTEMPTS,
    ChangeConfigs,
    CreateTopics,
    DeleteTopics,
    FailRun,
    FinishStage,
    GrowTopics,
    Step,
    poll,
)
from reconciler.model.change import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    TopicChange,
)
from reconciler.model.cluster import Topic
from reconciler.model.config_value import UNREADABLE, is_same_value
from reconciler.model.problem import Problem
from reconciler.model.stage import TopicsStage
from reconciler.model.topic_partition import TopicPartition

PARTITIONS_A_REQUEST = 1000
"""A tenth of what the controller takes: above 10,000 records it does the first part, and fails the rest."""

CONFIGS_A_REQUEST = 500
"""Topics in one request: each may have several keys, and each key is a record."""

T = TypeVar("T")


class ChangeState(StrEnum):
    """Where a topic change stands."""

    TO_DO = "toDo"
    DONE = "done"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class ChangeStanding:
    """A change's state; where it is stale, what was expected and what was found, in words."""

    state: ChangeState
    expected: str = ""
    found: str = ""


_TO_DO = ChangeStanding(ChangeState.TO_DO)


_DONE = ChangeStanding(ChangeState.DONE)


def standing(change: TopicChange, observed: Observed, paths: PlanPaths) -> ChangeStanding:
    """Return where a change stands."""
    topic = observed.topics.get(change.topic)
    match change:
        case CreateTopic():
            return _creation(change, topic, observed, paths)
        case CreatePartitions():
            return _growth(change, topic, observed, paths)
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


def _creation(change: CreateTopic, topic: Topic | None, observed: Observed, paths: PlanPaths) -> ChangeStanding:
    if topic is None:
        return _TO_DO
    expected = f"no topic, or one with {change.partitions} partitions as planned"
    if len(topic.partitions) != change.partitions:
        return ChangeStanding(ChangeState.STALE, expected, f"{len(topic.partitions)} partitions")
    wrong = _misplaced(change.topic, change.assignment, observed, paths)
    if wrong is not None:
        return ChangeStanding(ChangeState.STALE, expected, wrong)
    configs = observed.configs.get(change.topic, {})
    for key, value in sorted(change.configs.items()):
        if not is_same_value(key, configs.get(key), value):
            return ChangeStanding(ChangeState.STALE, f"{key}={value}", f"{key} {_told(configs.get(key))}")
    return _DONE


def _growth(change: CreatePartitions, topic: Topic | None, observed: Observed, paths: PlanPaths) -> ChangeStanding:
    expected = f"{change.from_count} partitions, or {change.to_count} as planned"
    if topic is None:
        return ChangeStanding(ChangeState.STALE, expected, observed.absence(change.topic))
    count = len(topic.partitions)
    if not change.from_count <= count <= change.to_count:
        return ChangeStanding(ChangeState.STALE, expected, f"{count} partitions")
    made = {p: replicas for p, replicas in change.assignment.items() if p < count}
    wrong = _misplaced(change.topic, made, observed, paths)
    if wrong is not None:
        return ChangeStanding(ChangeState.STALE, expected, wrong)
    return _DONE if count == change.to_count else _TO_DO


def _misplaced(
    topic: str, assignment: Mapping[int, tuple[int, ...]], observed: Observed, paths: PlanPaths
) -> str | None:
    """Return the first partition that stands elsewhere than assigned, in words; a later move of the plan is allowed."""
    for number, replicas in sorted(assignment.items()):
        key = TopicPartition(topic, number)
        partition = observed.partition(key)
        if partition is None:
            return f"no partition {number}"
        is_on_path = key in paths.by_partition and paths.position(key, observed).place is not Place.UNKNOWN
        if partition.target_replicas != replicas and not is_on_path:
            return f"partition {number} on {list(partition.target_replicas)}"
    return None


def _configs(change: AlterConfigs, topic: Topic | None, observed: Observed) -> ChangeStanding:
    if topic is None:
        return ChangeStanding(ChangeState.STALE, "the topic", observed.absence(change.topic))
    configs = observed.configs.get(change.topic, {})
    wanted: dict[str, str | None] = {**change.set, **dict.fromkeys(change.delete)}
    left = {key: value for key, value in wanted.items() if not is_same_value(key, configs.get(key), value)}
    for key, value in sorted(left.items()):
        if key not in change.before or UNREADABLE in {configs.get(key), change.before[key]}:
            continue  # during a rolling upgrade some brokers show the value, others do not
        if not is_same_value(key, configs.get(key), change.before[key]):
            expected = f"{key} {_told(change.before[key])} or {_told(value)}"
            return ChangeStanding(ChangeState.STALE, expected, f"{key} {_told(configs.get(key))}")
    return _TO_DO if left else _DONE


def _deletion(change: DeleteTopic, topic: Topic | None) -> ChangeStanding:
    if topic is None:
        return _DONE
    if change.topic_id is not None and topic.topic_id is not None and change.topic_id != topic.topic_id:
        found = f"id {topic.topic_id}: another topic was made under the same name"
        return ChangeStanding(ChangeState.STALE, f"topic id {change.topic_id}", found)
    return _TO_DO


def _told(value: str | None) -> str:
    return "not set" if value is None else f"set to {value}"


def next_topic_step(
    paths: PlanPaths, stage: TopicsStage, observed: Observed, memory: StageMemory, now: datetime
) -> Step:
    """Return what to do next in a stage of topic changes."""
    changes = [paths.plan.topic_changes[position] for position in stage.changes]
    # What is there already counts as done, whoever did it: so a stage may be begun again after a crash.
    due = [change for change in changes if standing(change, observed, paths).state is not ChangeState.DONE]
    if not due:
        return FinishStage()
    ready = [change for change in due if not memory.is_quiet(_request_key(change, observed), now)]
    for change in ready:
        problem = _trouble(change, observed, paths, memory)
        if problem is not None:
            return FailRun(problem)
    turn = type(due[0])
    return _topic_request([change for change in ready if isinstance(change, turn)], observed) or poll(memory.polls)


def _trouble(change: TopicChange, observed: Observed, paths: PlanPaths, memory: StageMemory) -> Problem | None:
    where = standing(change, observed, paths)
    if where.state is ChangeState.STALE:
        text = f"topic {change.topic}: expected {where.expected}, found {where.found}"
        return Problem("KR701", f"{text}; somebody else changed it: make a new plan")
    if memory.count(_request_key(change, observed)) >= ATTEMPTS:
        text = f"topic {change.topic}: {what(change)} was asked for {ATTEMPTS} times and does not show"
        return Problem("KR707", f"{text}; look at the controller's log, then {paths.again}")
    return None


def _request_key(change: TopicChange, observed: Observed) -> str:
    """Return the key of the next request for a change; a growth may take several."""
    return change_key(remaining(change, observed) if isinstance(change, CreatePartitions) else change)


def change_key(change: TopicChange) -> str:
    """Return what tells one request for a topic from another."""
    match change:
        case CreatePartitions():
            return f"grow {change.topic} to {change.to_count}"
        case _:
            return f"{what(change)} {change.topic}"


def what(change: TopicChange) -> str:
    """Return a change in words."""
    match change:
        case CreateTopic():
            return "its creation"
        case CreatePartitions():
            return f"its growth to {change.to_count} partitions"
        case AlterConfigs():
            return "its change of configs"
        case DeleteTopic():
            return "its deletion"
        case _:
            assert_never(change)


def config_changes(change: AlterConfigs) -> tuple[ConfigChange, ...]:
    """Return the request for a change of configs."""
    # The request is incremental (KIP-339): keys that it does not name stay as they are.
    to_set = [ConfigChange(key, ConfigOperation.SET, value) for key, value in sorted(change.set.items())]
    to_delete = [ConfigChange(key, ConfigOperation.DELETE) for key in sorted(change.delete)]
    return (*to_set, *to_delete)


def _topic_request(ready: Sequence[TopicChange], observed: Observed) -> Step | None:
    creations = [change for change in ready if isinstance(change, CreateTopic)]
    if creations:
        return CreateTopics(_fitting(creations, lambda change: change.partitions))
    growths = [remaining(change, observed) for change in ready if isinstance(change, CreatePartitions)]
    if growths:
        return GrowTopics(_fitting(growths, lambda change: change.to_count - change.from_count))
    configs = tuple(change for change in ready if isinstance(change, AlterConfigs))
    if configs:
        return ChangeConfigs(configs[:CONFIGS_A_REQUEST])
    deletions = tuple(change for change in ready if isinstance(change, DeleteTopic))
    return DeleteTopics(deletions[:CONFIGS_A_REQUEST]) if deletions else None


def _fitting(changes: Sequence[T], weight: Callable[[T], int]) -> tuple[T, ...]:
    """Return the first changes that one request can take, at least one."""
    taken: list[T] = []
    total = 0
    for change in changes:
        total += weight(change)
        # A single change that is too large goes alone: Kafka, and not this limit, says whether it takes it.
        if taken and total > PARTITIONS_A_REQUEST:
            break
        taken.append(change)
    return tuple(taken)
