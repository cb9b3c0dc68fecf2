"""Computes what the rest of a plan brings to each broker, and takes away, from the cluster as it is now.

A plan is checked against the state it was made from. Until it runs, other data lands on the disks and other plans are
applied. So its rest is counted again, stage by stage::

    stage    a broker holds at most   what it holds now + all that came by then - what left in earlier stages
    example  100 MiB, 60 used         stage 1 brings 30 and takes 20 away: 90 at most, 70 after it
                                      stage 2 brings 35: 105 at most, which does not fit

What a stage takes away counts until its end: Kafka deletes an old replica only when its move has ended.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reconciler.admin.port import DiskUse
from reconciler.apply.dir_moves import DirPlace, dir_place, left_inside
from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import PlanPaths
from reconciler.apply.standings import is_move_done
from reconciler.model.change import CreatePartitions, CreateTopic
from reconciler.model.cluster import Broker
from reconciler.model.move import DirMove, Move
from reconciler.model.plan import TieredBytes
from reconciler.model.stage import LogDirsStage, ReassignStage, Stage, TopicsStage
from reconciler.model.topic_partition import TopicPartition


class Arrival(NamedTuple):
    """A new replica, or the rest of one that is on its way."""

    key: TopicPartition
    broker: int
    path: str | None
    """The log dir that it goes to, as far as the plan or the broker says; None: Kafka chooses."""
    bytes: int
    is_new: bool
    """Whether the broker has no replica of the partition yet."""
    is_inside: bool = False
    """Whether it comes from another log dir of the same broker."""


class Departure(NamedTuple):
    """A replica that a stage takes away at its end; `is_inside`: into another log dir of the same broker."""

    broker: int
    path: str | None
    bytes: int
    is_inside: bool = False


@dataclass(frozen=True, slots=True)
class Flow:
    """Holds the rest of one stage: its moves, new partitions, arriving and departing replicas."""

    stage: Stage
    moves: tuple[Move, ...] = ()
    created: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    arrivals: tuple[Arrival, ...] = ()
    departures: tuple[Departure, ...] = ()


@dataclass(frozen=True, slots=True)
class Now:
    """The cluster as it is, beside a plan. `disks`: what the brokers in question said; a silent one is not there."""

    paths: PlanPaths
    observed: Observed
    disks: DiskUse = field(default_factory=DiskUse)

    def broker(self, broker_id: int) -> Broker:
        """Return that broker with its log dirs."""
        known = self.observed.brokers.get(broker_id, Broker(broker_id))
        return replace(known, log_dirs=self.disks.log_dirs.get(broker_id, ()))

    def replicas(self, key: TopicPartition) -> tuple[int, ...]:
        """Return the replicas of a partition now, those that come and go included."""
        flight, partition = self.observed.reassignments.get(key), self.observed.partition(key)
        return flight.replicas if flight is not None else partition.replicas if partition is not None else ()

    def leader(self, key: TopicPartition) -> int | None:
        """Return who leads a partition."""
        partition = self.observed.partition(key)
        return partition.leader if partition is not None else None

    def flows(self, stages: Sequence[Stage]) -> tuple[Flow, ...]:
        """Return what is left of these stages, in order."""
        planned_dirs = self.paths.plan.new_log_dirs
        return tuple(self._flow(stage, planned_dirs) for stage in stages)

    def _flow(self, stage: Stage, planned_dirs: Mapping[TopicPartition, Mapping[int, str]]) -> Flow:
        match stage:
            case TopicsStage():
                created = dict(self._created(stage))
                new = (Arrival(key, one, None, 0, is_new=True) for key, replicas in created.items() for one in replicas)
                return Flow(stage, created=created, arrivals=tuple(new))
            case ReassignStage():
                moves = [move for move in stage.moves if not is_move_done(self.paths, stage, move, self.observed)]
                coming = (one for move in moves for one in self._arrivals(move, planned_dirs))
                going = (self._departure(move, broker) for move in moves for broker in move.removed)
                return Flow(stage, tuple(moves), arrivals=tuple(coming), departures=tuple(going))
            case LogDirsStage():
                inside = [move for move in stage.moves if dir_place(move, self.observed) is not DirPlace.AT_END]
                return Flow(stage, arrivals=tuple(map(self._inside, inside)), departures=tuple(map(self._left, inside)))
            case _:
                return Flow(stage)

    def _created(self, stage: TopicsStage) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
        for change in (self.paths.plan.topic_changes[position] for position in stage.changes):
            if isinstance(change, CreateTopic | CreatePartitions):
                topic = self.observed.topics.get(change.topic)
                present = len(topic.partitions) if topic is not None else 0
                for number, replicas in sorted(change.assignment.items()):
                    if number >= present:
                        yield TopicPartition(change.topic, number), replicas

    def _arrivals(self, move: Move, planned_dirs: Mapping[TopicPartition, Mapping[int, str]]) -> Iterator[Arrival]:
        key, present = move.topic_partition, self.replicas(move.topic_partition)
        whole, leader = move.bytes // max(1, len(move.added)), self.leader(key)
        # Only the plan knows how much a tiered topic copies, because the remote tier has the rest (KIP-1023).
        if leader is not None and self.paths.plan.proof.tiered is not TieredBytes.UNTIERED:
            whole = self.disks.replica_bytes.get((key, leader), whole)
        for broker in move.added:
            planned = planned_dirs.get(key, {}).get(broker)
            if broker not in present:
                yield Arrival(key, broker, planned, whole, is_new=True)
                continue
            # It is on its way already: what has arrived is among what its disk holds.
            copied, path = self.disks.replica_bytes.get((key, broker), 0), self.disks.replica_paths.get((key, broker))
            yield Arrival(key, broker, path or planned, max(0, whole - copied), is_new=False)

    def _departure(self, move: Move, broker: int) -> Departure:
        replica = (move.topic_partition, broker)
        return Departure(broker, self.disks.replica_paths.get(replica), self.disks.replica_bytes.get(replica, 0))

    def _inside(self, move: DirMove) -> Arrival:
        rest = left_inside(move, self.observed)
        return Arrival(move.topic_partition, move.broker, move.to_dir, rest, is_new=False, is_inside=True)

    def _left(self, move: DirMove) -> Departure:
        held = self.disks.replica_bytes.get(move.replica, move.bytes)
        return Departure(move.broker, move.from_dir, held, is_inside=True)
