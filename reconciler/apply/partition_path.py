"""Computes where each partition stands on its path: the replica lists that a plan takes it through, in order.

A path with two moves, in stages 1 and 3, and the places where a look may find the partition:

    lists[0] ---- stage 1 ----> lists[1] ---- stage 3 ----> lists[2]
       AT 0       MOVING 1        AT 1       CANCELLED 1      AT 2
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from reconciler.admin.port import Reassignment
from reconciler.apply.observed import Observed
from reconciler.model.change import CreatePartitions, CreateTopic
from reconciler.model.cluster import Partition
from reconciler.model.move import DirMove, Move
from reconciler.model.plan import OF_RECORD, Plan
from reconciler.model.stage import (
    CopyingStage,
    ElectStage,
    LogDirsStage,
    ReassignStage,
    Stage,
    TopicsStage,
    elections_of,
)
from reconciler.model.topic_partition import TopicPartition

Replicas = tuple[int, ...]
APPLY_AGAIN = "run apply again"


class Place(StrEnum):
    """Where on its path a partition stands."""

    AT = "at"
    MOVING = "moving"
    CANCELLED = "cancelled"
    """It has the replicas of a list, in the order that Kafka's own cancel leaves."""
    BETWEEN = "between"
    """Metadata still shows the union of a move that the controller no longer lists."""
    FOREIGN = "foreign"
    """It is being reassigned to a list that is not on the path."""
    UNKNOWN = "unknown"
    MISSING = "missing"


class MovePlace(StrEnum):
    """How far one move of a path is, as one look shows it."""

    BEFORE = "before"
    """An earlier move of the partition is not done."""
    AT_START = "at start"
    IN_FLIGHT = "in flight"
    STOPPED = "stopped"
    """Kafka cancelled it, and its partition is not back in order; or metadata lags behind the controller."""
    AT_END = "at end"
    PAST = "past"
    """A later move of the partition has begun, or is done."""
    OFF = "off"
    """The partition is nowhere on its path."""


@dataclass(frozen=True, slots=True)
class Position:
    """A place on a path."""

    place: Place
    index: int = -1
    """Counts the path's lists: the one reached (AT, CANCELLED), aimed at (MOVING), left (BETWEEN); -1: off the path."""
    found: Replicas = ()

    def move_place(self, link: int) -> MovePlace:
        """Return how far the move from the list `link` of the path to the next one is."""
        match self.place:
            case Place.AT:
                place = {link: MovePlace.AT_START, link + 1: MovePlace.AT_END}.get(self.index)
            case Place.MOVING:
                place = MovePlace.IN_FLIGHT if self.index == link + 1 else None
            case Place.CANCELLED | Place.BETWEEN:
                place = MovePlace.STOPPED if self.index == link else None
            case Place.FOREIGN | Place.UNKNOWN | Place.MISSING:
                place = MovePlace.OFF
        return place or (MovePlace.PAST if self.index > link else MovePlace.BEFORE)


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
        target = partition.target_replicas if partition.is_reassigning else None
        if reassignment is not None:
            # Metadata comes from a broker, and may lag behind the controller, whose list this is.
            target = reassignment.target_replicas
        if target is None:
            return self._at_rest(partition.replicas)
        # A later list may equal an earlier one; the last is meant, as the partition has got so far.
        aimed = [index for index, replicas in enumerate(self.lists) if index and replicas == target]
        return Position(Place.MOVING, aimed[-1], target) if aimed else Position(Place.FOREIGN, found=target)

    def _at_rest(self, replicas: Replicas) -> Position:
        for index in reversed(range(len(self.lists))):
            if self.lists[index] == replicas:
                return Position(Place.AT, index, replicas)
        for index in reversed(range(len(self.lists) - 1)):
            before, after = self.lists[index : index + 2]
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


@dataclass(frozen=True, slots=True)
class PlanPaths:
    """A plan with the path of each partition that it moves; made once for a run."""

    plan: Plan
    by_partition: Mapping[TopicPartition, PartitionPath] = field(default_factory=dict)
    first_leaders: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    """Who led each partition when the plan was made."""
    again: str = APPLY_AGAIN
    """How whoever started the run goes on with it, in words."""

    @property
    def is_of_record(self) -> bool:
        """Whether this is no plan, but what a run's record in the cluster says, which others can write."""
        return self.plan.source.desired_digest == OF_RECORD

    def position(self, topic_partition: TopicPartition, observed: Observed) -> Position:
        """Return where that partition stands on its path."""
        reassignment = observed.reassignments.get(topic_partition)
        return self.by_partition[topic_partition].position(observed.partition(topic_partition), reassignment)

    def has_ended(self, observed: Observed) -> bool:
        """Whether no partition is on its path any more: each is at the end, or off."""
        last = [self.position(key, observed).move_place(len(path.moves) - 1) for key, path in self.by_partition.items()]
        return {MovePlace.AT_END, MovePlace.OFF}.issuperset(last)

    def link(self, stage: ReassignStage, move: Move) -> int:
        """Return the index of the list that this move starts from."""
        return self.by_partition[move.topic_partition].stages.index(stage.number)

    def passed_with(self, stage_number: int, topic_partition: TopicPartition) -> int:
        """Return the index that a partition's path has reached when the moves of a stage have ended."""
        path = self.by_partition.get(topic_partition)
        return sum(number <= stage_number for number in path.stages) if path else 0

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
            case ReassignStage() | LogDirsStage():
                return frozenset(move.topic_partition.topic for move in stage.moves)
            case ElectStage():
                return frozenset(election.topic_partition.topic for election in stage.elections)

    @property
    def dir_moves(self) -> tuple[DirMove, ...]:
        """What the plan moves between the log dirs of brokers."""
        return tuple(move for stage in self.plan.stages if isinstance(stage, LogDirsStage) for move in stage.moves)

    def leaders_before(self, stage_number: int) -> Mapping[TopicPartition, int | None]:
        """Return who leads each partition before a stage begins: the last one elected, else who led at the start."""
        leaders = dict(self.first_leaders)
        for stage in self.plan.stages:
            if stage.number < stage_number:
                leaders.update({election.topic_partition: election.leader for election in elections_of(stage)})
        return leaders

    def leader_before(self, move: Move) -> int | None:
        """Return who led a partition before a move, as far as the plan tells."""
        path = self.by_partition[move.topic_partition]
        return self.leaders_before(path.stages[path.moves.index(move)]).get(move.topic_partition)

    def throttled_to(self, rate: int) -> "PlanPaths":
        """Return the paths of the same plan with another throttle in every stage, in bytes per second."""
        stages = tuple(
            replace(stage, throttle_bytes_per_second=rate) if isinstance(stage, CopyingStage) else stage
            for stage in self.plan.stages
        )
        return replace(self, plan=replace(self.plan, stages=stages))


def paths_of(plan: Plan, again: str = APPLY_AGAIN) -> PlanPaths:
    """Return the plan with the paths of its partitions, for a run that is gone on with as `again` says."""
    moves: dict[TopicPartition, list[tuple[int, Move]]] = {}
    for stage in plan.stages:
        if isinstance(stage, ReassignStage):
            for move in stage.moves:
                moves.setdefault(move.topic_partition, []).append((stage.number, move))
    paths = {}
    for key in sorted(moves):
        numbers, chain = zip(*moves[key], strict=True)
        paths[key] = PartitionPath((chain[0].from_replicas, *(move.to_replicas for move in chain)), numbers, chain)
    leaders = {restore.topic_partition: restore.leader for restore in plan.rollback.assignments}
    return PlanPaths(plan, paths, leaders, again)
