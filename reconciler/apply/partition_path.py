"""A plan as the paths of its partitions: the replica lists each passes, and where on it one stands now."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from reconciler.admin.port import Reassignment
from reconciler.apply.observed import Observed
from reconciler.model.change import CreatePartitions, CreateTopic
from reconciler.model.cluster import Partition
from reconciler.model.move import Move
from reconciler.model.plan import Plan
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage
from reconciler.model.topic_partition import TopicPartition

Replicas = tuple[int, ...]

APPLY_AGAIN = "run apply again"


class Place(StrEnum):
    """Where on its path a partition stands."""

    AT = "at"
    MOVING = "moving"
    CANCELLED = "cancelled"
    BETWEEN = "between"
    FOREIGN = "foreign"
    UNKNOWN = "unknown"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Position:
    """A place on a path.

    `index` counts the path's lists: the one reached (AT, and CANCELLED, which has its replicas in Kafka's own
    order), the one aimed at (MOVING), or the one left (BETWEEN: metadata still shows the union of a move that the
    controller no longer lists). It is -1 off the path.
    """

    place: Place
    index: int = -1
    found: Replicas = ()

    @property
    def reached(self) -> int:
        """The index of the last list that was reached for certain."""
        return self.index - 1 if self.place is Place.MOVING else self.index

    @property
    def is_off(self) -> bool:
        """Whether the partition is nowhere on its path."""
        return self.place in {Place.FOREIGN, Place.UNKNOWN, Place.MISSING}


@dataclass(frozen=True, slots=True)
class PartitionPath:
    """The ordered replica lists of one partition: before the plan, then after each of its moves."""

    lists: tuple[Replicas, ...]
    stages: tuple[int, ...] = ()
    """The number of the stage of each move."""
    moves: tuple[Move, ...] = ()
    """The move from each list to the next."""

    def position(self, partition: Partition | None, reassignment: Reassignment | None) -> Position:
        """Return where a partition stands; what the controller lists goes before what metadata shows."""
        if partition is None:
            return Position(Place.MISSING)
        target = _target_in_flight(partition, reassignment)
        if target is not None:
            return self._moving(target)
        return self._resting(partition.replicas)

    def _moving(self, target: Replicas) -> Position:
        aimed = [index for index, replicas in enumerate(self.lists) if index and replicas == target]
        return Position(Place.MOVING, aimed[-1], target) if aimed else Position(Place.FOREIGN, found=target)

    def _resting(self, replicas: Replicas) -> Position:
        for index in reversed(range(len(self.lists))):
            if self.lists[index] == replicas:
                return Position(Place.AT, index, replicas)
        links = list(enumerate(zip(self.lists, self.lists[1:], strict=False)))
        for index, (before, after) in reversed(links):
            if replicas == cancelled(before, after):
                return Position(Place.CANCELLED, index, replicas)
            if replicas == union(before, after):
                return Position(Place.BETWEEN, index, replicas)
        return Position(Place.UNKNOWN, found=replicas)


def cancelled(before: Replicas, after: Replicas) -> Replicas:
    """Return what Kafka's own cancel of this move leaves: the kept ones in the new order, then the rest ascending."""
    return tuple(r for r in after if r in before) + tuple(sorted(set(before) - set(after)))


def union(before: Replicas, after: Replicas) -> Replicas:
    """Return what metadata shows as `replicas` while this move is in flight."""
    return after + tuple(sorted(set(before) - set(after)))


def _target_in_flight(partition: Partition, reassignment: Reassignment | None) -> Replicas | None:
    if reassignment is not None:
        return reassignment.target_replicas
    return partition.target_replicas if partition.is_reassigning else None


@dataclass(frozen=True, slots=True)
class PlanPaths:
    """A plan with the path of each partition that it moves, and who led it at the start; made once for a run.

    `again`: how whoever started the run goes on with it, in words.
    """

    plan: Plan
    by_partition: Mapping[TopicPartition, PartitionPath] = field(default_factory=dict)
    first_leaders: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    again: str = APPLY_AGAIN

    def position(self, topic_partition: TopicPartition, observed: Observed) -> Position:
        """Return where that partition stands on its path."""
        reassignment = observed.reassignments.get(topic_partition)
        return self.by_partition[topic_partition].position(observed.partition(topic_partition), reassignment)

    def is_under_way(self, observed: Observed) -> bool:
        """Whether a partition stands on its path, and not at its end."""
        positions = [(path, self.position(key, observed)) for key, path in self.by_partition.items()]
        return any(not at.is_off and at.reached < len(path.moves) for path, at in positions)

    def is_begun(self, observed: Observed) -> bool:
        """Whether a partition has left its start on its path."""
        positions = [self.position(key, observed) for key in self.by_partition]
        return any(not at.is_off and (at.index > 0 or at.place is not Place.AT) for at in positions)

    def link(self, stage: ReassignStage, move: Move) -> int:
        """Return the index of the list that this move starts from."""
        return self.by_partition[move.topic_partition].stages.index(stage.number)

    def passed_before(self, stage_number: int, topic_partition: TopicPartition) -> int:
        """Return the index that a partition's path has reached before a stage begins."""
        path = self.by_partition.get(topic_partition)
        return sum(number < stage_number for number in path.stages) if path else 0

    def planned_partitions(self, topic: str) -> int:
        """Return how many partitions the plan makes or grows a topic to, 0 where it does not."""
        changes = [change for change in self.plan.topic_changes if change.topic == topic]
        made = [change.partitions for change in changes if isinstance(change, CreateTopic)]
        grown = [change.to_count for change in changes if isinstance(change, CreatePartitions)]
        return max([*made, *grown], default=0)

    @property
    def topics(self) -> frozenset[str]:
        """The names of all topics that the plan touches."""
        return frozenset(name for stage in self.plan.stages for name in self.topics_of(stage))

    def topics_of(self, stage: Stage) -> frozenset[str]:
        """Return the names of the topics that a stage touches."""
        match stage:
            case TopicsStage():
                return frozenset(self.plan.topic_changes[position].topic for position in stage.changes)
            case ReassignStage():
                return frozenset(move.topic_partition.topic for move in stage.moves)
            case ElectStage():
                return frozenset(election.topic_partition.topic for election in stage.elections)


def paths_of(plan: Plan, again: str = APPLY_AGAIN) -> PlanPaths:
    """Return the plan with the paths of its partitions, for a run that is gone on with as `again` says."""
    moves: dict[TopicPartition, list[tuple[int, Move]]] = {}
    for stage in plan.stages:
        if isinstance(stage, ReassignStage):
            for move in stage.moves:
                moves.setdefault(move.topic_partition, []).append((stage.number, move))
    leaders = {restore.topic_partition: restore.leader for restore in plan.rollback.assignments}
    return PlanPaths(plan, {key: _path(moves[key]) for key in sorted(moves)}, leaders, again)


def leaders_before(paths: PlanPaths, stage_number: int) -> Mapping[TopicPartition, int | None]:
    """Return who leads each partition before a stage begins, as far as the plan tells."""
    leaders = dict(paths.first_leaders)
    for stage in paths.plan.stages:
        if isinstance(stage, ElectStage) and stage.number < stage_number:
            leaders.update({election.topic_partition: election.leader for election in stage.elections})
    return leaders


def throttled_to(paths: PlanPaths, rate: int) -> PlanPaths:
    """Return the path of the same plan with another throttle in every stage, in bytes per second."""
    stages = paths.plan.stages
    changed = (
        replace(one, throttle_bytes_per_second=rate) if isinstance(one, ReassignStage) else one for one in stages
    )
    return replace(paths, plan=replace(paths.plan, stages=tuple(changed)))


def _path(moves: list[tuple[int, Move]]) -> PartitionPath:
    lists = (moves[0][1].from_replicas, *(move.to_replicas for _, move in moves))
    return PartitionPath(lists, tuple(number for number, _ in moves), tuple(move for _, move in moves))
