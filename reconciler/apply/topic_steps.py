"""The next step of a stage of topic changes: one request's worth of one kind, in the plan's order.

The next kind waits until the one before it shows: should Kafka refuse something, nothing that comes later has happened.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar, assert_never

from reconciler.admin.port import ConfigChange, ConfigOperation
from reconciler.apply.course import Itinerary
from reconciler.apply.observed import Observed
from reconciler.apply.record import RunRecord
from reconciler.apply.steps import ChangeConfigs, CreateTopics, DeleteTopics, FailRun, FinishStage, GrowTopics, Step
from reconciler.apply.topic_changes import PARTITIONS_A_REQUEST, ChangeState, remaining, standing
from reconciler.apply.waiting import ATTEMPTS, poll
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.problem import Problem
from reconciler.model.stage import TopicsStage

CONFIGS_A_REQUEST = 500

T = TypeVar("T")


def next_topic_step(
    itinerary: Itinerary, stage: TopicsStage, observed: Observed, record: RunRecord, now: datetime
) -> Step:
    """Return what to do next in a stage of topic changes."""
    changes = [itinerary.plan.topic_changes[position] for position in stage.changes]
    due = [change for change in changes if standing(change, observed, itinerary).state is not ChangeState.DONE]
    if not due:
        return FinishStage()
    ready = [change for change in due if not record.is_quiet(_request_key(change, observed), now)]
    for change in ready:
        problem = _topic_trouble(change, observed, itinerary, record)
        if problem is not None:
            return FailRun(problem)
    turn = type(due[0])
    return _topic_request([change for change in ready if isinstance(change, turn)], observed) or poll(record)


def _topic_trouble(change: TopicChange, observed: Observed, itinerary: Itinerary, record: RunRecord) -> Problem | None:
    where = standing(change, observed, itinerary)
    if where.state is ChangeState.STALE:
        text = f"topic {change.topic}: expected {where.expected}, found {where.found}"
        return Problem("KR701", f"{text}; somebody else changed it: make a new plan")
    if record.count(_request_key(change, observed)) >= ATTEMPTS:
        text = f"topic {change.topic}: {what(change)} was asked for {ATTEMPTS} times and does not show"
        return Problem("KR707", f"{text}; look at the controller's log, then {itinerary.again}")
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
        if taken and total > PARTITIONS_A_REQUEST:
            break
        taken.append(change)
    return tuple(taken)
