"""What must hold before a run, and again before each of its stages."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import assert_never

from reconciler.apply.course import Itinerary, Place
from reconciler.apply.elections import elections_due
from reconciler.apply.moves import awaited, is_in_sync
from reconciler.apply.observed import Observed
from reconciler.apply.topic_changes import ChangeState, standing
from reconciler.apply.windows import described, is_open
from reconciler.model.cluster import Partition
from reconciler.model.desired import Window
from reconciler.model.in_sync import MIN_ISR
from reconciler.model.move import Move
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Refused, StalePlan
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage
from reconciler.model.topic_partition import TopicPartition

MOST = 10


def check_plan_is_for(plan: Plan, cluster_id: str) -> None:
    """Refuse a plan made for another cluster."""
    if plan.cluster_id != cluster_id:
        text = f"the plan is for cluster {plan.cluster_id}, but {cluster_id} answers; choose the right cluster or plan"
        raise StalePlan(text, code="KR501")


def check_plan(plan: Plan, cluster_id: str) -> None:
    """Refuse a plan with violations, or one made for another cluster."""
    check_plan_is_for(plan, cluster_id)
    if plan.violations:
        told = "\n".join(str(problem) for problem in plan.violations)
        raise Refused(f"the plan breaks what the desired state allows:\n{told}", code=plan.violations[0].code)


def check_still_valid(itinerary: Itinerary, stages: Iterable[Stage], observed: Observed) -> None:
    """Raise StalePlan unless all that these stages touch is as the plan saw it, or as it wants it."""
    stale = list(dict.fromkeys(problem for stage in stages for problem in _stale(itinerary, stage, observed)))
    if not stale:
        return
    more = f"\nand {len(stale) - MOST} more" if len(stale) > MOST else ""
    told = "\n".join(problem.message for problem in stale[:MOST])
    raise StalePlan(f"the cluster changed since the plan was made:\n{told}{more}\nMake a new plan.", code=stale[0].code)


def _stale(itinerary: Itinerary, stage: Stage, observed: Observed) -> Iterator[Problem]:
    match stage:
        case TopicsStage():
            yield from _stale_changes(itinerary, stage, observed)
        case ReassignStage():
            yield from _stale_moves(itinerary, stage, observed)
        case ElectStage():
            yield from _stale_elections(itinerary, stage, observed)
        case _:
            assert_never(stage)


def _stale_changes(itinerary: Itinerary, stage: TopicsStage, observed: Observed) -> Iterator[Problem]:
    for change in (itinerary.plan.topic_changes[position] for position in stage.changes):
        where = standing(change, observed, itinerary)
        if where.state is ChangeState.STALE:
            text = f"topic {change.topic}: expected {where.expected}, found {where.found}"
            yield Problem("KR503", text)


def _stale_moves(itinerary: Itinerary, stage: ReassignStage, observed: Observed) -> Iterator[Problem]:
    made = _made_by_plan(itinerary.plan)
    for key in (move.topic_partition for move in stage.moves):
        position = itinerary.position(key, observed)
        lists = itinerary.courses[key].lists
        expected = " or ".join(str(list(replicas)) for replicas in dict.fromkeys(lists))
        if position.place is Place.UNKNOWN:
            yield Problem("KR502", f"{key}: expected {expected}, found {list(position.found)}")
        if position.place is Place.MISSING and key.topic not in made:
            yield Problem("KR502", f"{key}: expected {expected}, found {observed.absence(key.topic)}")


def _stale_elections(itinerary: Itinerary, stage: ElectStage, observed: Observed) -> Iterator[Problem]:
    made = _made_by_plan(itinerary.plan)
    for election in stage.elections:
        key = election.topic_partition
        partition = observed.partition(key)
        if key in itinerary.courses or (partition is None and key.topic in made):
            continue
        found = observed.absence(key.topic) if partition is None else partition.preferred_leader
        if found != election.leader:
            text = f"{key}: expected {election.leader} as the preferred leader, found {found}"
            yield Problem("KR504", text)


def _made_by_plan(plan: Plan) -> frozenset[str]:
    return frozenset(change.topic for change in plan.topic_changes)


def is_stage_done(itinerary: Itinerary, stage: Stage, observed: Observed) -> bool:
    """Whether nothing of a stage is left to do."""
    match stage:
        case TopicsStage():
            changes = (itinerary.plan.topic_changes[position] for position in stage.changes)
            return all(standing(change, observed, itinerary).state is ChangeState.DONE for change in changes)
        case ReassignStage():
            return all(is_move_done(itinerary, stage, move, observed) for move in stage.moves)
        case ElectStage():
            return not elections_due(itinerary, stage, observed)
        case _:
            assert_never(stage)


def stages_done(itinerary: Itinerary, observed: Observed) -> int:
    """Return how many stages are done before the first that is not."""
    stages = itinerary.plan.stages
    undone = (index for index, stage in enumerate(stages) if not is_stage_done(itinerary, stage, observed))
    return next(undone, len(stages))


def is_move_done(itinerary: Itinerary, stage: ReassignStage, move: Move, observed: Observed) -> bool:
    """Whether a partition is at a move's target in order and in sync, or further on."""
    position = itinerary.position(move.topic_partition, observed)
    link = itinerary.link(stage, move)
    if position.place is Place.AT and position.index == link + 1:
        return is_in_sync(move, observed)
    return position.index > link + 1 or (position.place is not Place.MOVING and position.index > link)


def check_windows(windows: Sequence[Window], now: datetime) -> None:
    """Refuse to begin outside the windows."""
    if not is_open(windows, now):
        text = f"{now:%Y-%m-%d %H:%M} UTC is outside the windows ({described(windows)}); run it inside one"
        raise Refused(text, code="KR423")


def check_stage(itinerary: Itinerary, stage: Stage, observed: Observed, min_isr: int = 1) -> None:
    """Refuse a stage that is not safe to begin, or to go on with; `min_isr` is the brokers' own."""
    if isinstance(stage, ReassignStage):
        left = tuple(m for m in stage.moves if not is_move_done(itinerary, stage, m, observed))
        _check_brokers(stage, left, observed)
        _check_foreign([move.topic_partition for move in left], itinerary, observed)
        _check_min_isr(itinerary, stage, observed, min_isr)


def check_requirements(itinerary: Itinerary, observed: Observed) -> None:
    """Refuse to begin while a broker that the plan requires is dead, or somebody else moves a partition it touches."""
    dead = observed.dead_of(itinerary.plan.brokers_alive)
    if dead:
        names = ", ".join(str(broker) for broker in dead)
        raise Refused(
            f"the plan requires brokers that are not alive: {names}; start them, or make a new plan", code="KR420"
        )
    _check_foreign(itinerary.courses, itinerary, observed)


def _check_brokers(stage: ReassignStage, left: Sequence[Move], observed: Observed) -> None:
    for move in left:
        dead = observed.dead_of(awaited(move, observed))
        if dead:
            text = (
                f"stage {stage.number} moves {move.topic_partition} to {list(move.to_replicas)}, but broker {dead[0]}"
            )
            raise Refused(f"{text} is not alive; start it, or make a new plan", code="KR420")


def _check_foreign(keys: Iterable[TopicPartition], itinerary: Itinerary, observed: Observed) -> None:
    for key in keys:
        position = itinerary.position(key, observed)
        if position.place is Place.FOREIGN:
            text = f"{key} is being reassigned to {list(position.found)}, which this plan did not ask for"
            text = f"{text}; wait for it, or have whoever started it cancel it, then {itinerary.again}"
            raise Refused(text, code="KR421")


def _check_min_isr(itinerary: Itinerary, stage: ReassignStage, observed: Observed, default: int) -> None:
    """Refuse while a partition of the touched topics is under min ISR and no stage from this one on repairs it."""
    for name in sorted(itinerary.topics_of(stage)):
        topic = observed.topics.get(name)
        for partition in topic.partitions if topic else ():
            key = TopicPartition(name, partition.partition)
            wanted = min_isr_of(partition, observed.configs.get(name, {}).get(MIN_ISR), default)
            if len(partition.isr) < wanted and not _is_repaired(itinerary, stage, key, observed):
                text = f"{key} has {len(partition.isr)} replicas in sync, {MIN_ISR} is {wanted}"
                text = f"{text}, and stage {stage.number} does not repair it"
                raise Refused(f"{text}; see to brokers {_out_of_sync(partition)} first", code="KR422")


def min_isr_of(partition: Partition, override: str | None, default: int) -> int:
    """Return how many replicas a partition must have in sync: Kafka asks for no more than it has replicas."""
    wanted = int(override) if override is not None and override.isdigit() else default
    return min(wanted, max(1, len(partition.target_replicas)))


def _out_of_sync(partition: Partition) -> str:
    return ", ".join(str(r) for r in sorted(set(partition.target_replicas) - set(partition.isr)))


def _is_repaired(itinerary: Itinerary, stage: ReassignStage, key: TopicPartition, observed: Observed) -> bool:
    """Whether a partition gets other, living replicas in this stage or a later one."""
    course = itinerary.courses.get(key)
    if course is None:
        return False
    return any(
        number >= stage.number
        and set(move.to_replicas) != set(move.from_replicas)
        and not observed.dead_of(move.to_replicas)
        for number, move in zip(course.stages, course.moves, strict=True)
    )
