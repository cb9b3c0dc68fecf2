"""One partition's way through a plan's stages: created, copied, dropped, elected; and who serves each copy."""

from reconciler.model.change import CreatePartitions, CreateTopic
from reconciler.model.explanation import StepOfPartition
from reconciler.model.move import Move
from reconciler.model.plan import Plan
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage
from reconciler.model.topic_partition import TopicPartition


def moves_of(plan: Plan, key: TopicPartition) -> tuple[Move, ...]:
    """Return the partition's moves, in the order of their stages."""
    stages = (stage for stage in plan.stages if isinstance(stage, ReassignStage))
    return tuple(move for stage in stages for move in stage.moves if move.topic_partition == key)


def created_as(plan: Plan, key: TopicPartition) -> tuple[int, ...] | None:
    """Return the replicas that a new partition is created with, None for one that is there."""
    for change in plan.topic_changes:
        if isinstance(change, CreateTopic | CreatePartitions) and change.topic == key.topic:
            found = change.assignment.get(key.partition)
            if found is not None:
                return found
    return None


def held_before(plan: Plan, key: TopicPartition) -> tuple[int, ...]:
    """Return the replicas of a touched partition before the plan."""
    found = (one.replicas for one in plan.rollback.assignments if one.topic_partition == key)
    return next(found, ())


def steps_of(plan: Plan, key: TopicPartition) -> tuple[StepOfPartition, ...]:
    """Return what each stage does to the partition; a copy is served by whoever leads by then."""
    leader = next((one.leader for one in plan.rollback.assignments if one.topic_partition == key), None)
    steps = []
    for stage in plan.stages:
        step = _step(plan, stage, key, leader)
        if step is not None:
            steps.append(step)
            leader = _leader_after(step, leader)
    return tuple(steps)


def _step(plan: Plan, stage: Stage, key: TopicPartition, leader: int | None) -> StepOfPartition | None:
    match stage:
        case TopicsStage():
            replicas = created_as(plan, key)
            names = {
                change.topic
                for change in (plan.topic_changes[position] for position in stage.changes)
                if isinstance(change, CreateTopic | CreatePartitions)
            }
            is_here = replicas is not None and key.topic in names
            return StepOfPartition(stage.number, replicas or (), is_created=True) if is_here else None
        case ReassignStage():
            move = next((one for one in stage.moves if one.topic_partition == key), None)
            if move is None:
                return None
            return StepOfPartition(stage.number, move.to_replicas, move.added, move.removed, move.bytes, leader)
        case ElectStage():
            elected = next((one.leader for one in stage.elections if one.topic_partition == key), None)
            return None if elected is None else StepOfPartition(stage.number, source=leader, elected=elected)


def _leader_after(step: StepOfPartition, leader: int | None) -> int | None:
    if step.elected is not None:
        return step.elected
    return leader if leader in step.to_replicas else step.to_replicas[0]
