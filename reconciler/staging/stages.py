"""Puts moves, topic changes and elections into the stages of a plan, in the order in which they are safe."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import starmap

import numpy as np

from reconciler.diff.rules import TopicRules
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.columns import lists_of
from reconciler.model.config_value import UNREADABLE
from reconciler.model.desired import Desired, MovePolicy
from reconciler.model.effect import EffectClass
from reconciler.model.in_sync import MIN_ISR, brokers_min_isr, whole_number
from reconciler.model.move import DirMove, Election, Move
from reconciler.model.move_table import Moves
from reconciler.model.plan import LogDirUse
from reconciler.model.problem import Problem
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage, elections_of, numbered
from reconciler.model.topic_partition import TopicPartition
from reconciler.staging.chain import chains, chains_through, walks
from reconciler.staging.dir_stages import dir_stages, makes_room
from reconciler.staging.disk import DiskUse
from reconciler.staging.estimate import stage_seconds
from reconciler.staging.packing import Packed, pack
from reconciler.staging.problems import (
    by_code,
    copies_above_limit,
    deletion_violations,
    election_warnings,
    overfull_disks,
    violations,
    warnings,
)
from reconciler.staging.room import ReplicaCounts, Room, count_violations, replicas_created, replicas_now
from reconciler.staging.safe_order import MOST_STEPS
from reconciler.staging.step import Situation, Steps, situation
from reconciler.staging.ways import other_ways


@dataclass(frozen=True, slots=True)
class Staging:
    """The stages and what is to be known about them.

    `topic_changes` are those given, some split in two; the stages name positions in it. `disk_peak` maps a broker to
    the bytes it holds at the worst moment, where they are known; `log_dirs`, `predicted_log_dirs`: as in the plan.
    """

    stages: tuple[Stage, ...] = ()
    topic_changes: tuple[TopicChange, ...] = ()
    warnings: tuple[Problem, ...] = ()
    violations: tuple[Problem, ...] = ()
    disk_peak: Mapping[int, int] = field(default_factory=dict)
    log_dirs: Mapping[int, tuple[LogDirUse, ...]] = field(default_factory=dict)
    predicted_log_dirs: Mapping[TopicPartition, Mapping[int, str]] = field(default_factory=dict)
    crowded: Mapping[int, int] = field(default_factory=dict)
    """The bytes beyond `limits.diskUse`, by broker: where something comes in, or in the end."""
    end_excess: int = 0
    """The bytes beyond it in the end, on all brokers."""


@dataclass(frozen=True, slots=True)
class TimedChanges:
    """Topic changes by when they are made, each part in order."""

    before: tuple[TopicChange, ...] = ()
    after_moves: tuple[TopicChange, ...] = ()
    last: tuple[TopicChange, ...] = ()
    is_after_all: bool = False
    """Whether those after moves wait for all moves, not only for those of their own topics."""

    @property
    def in_order(self) -> tuple[TopicChange, ...]:
        """All of them, in the order in which they are made."""
        return self.before + self.after_moves + self.last


def stage_moves(
    moves: Iterable[Move],
    topic_changes: Sequence[TopicChange],
    elections_now: Sequence[Election] = (),
    *,
    observed: Cluster,
    desired: Desired,
    rules: Mapping[str, TopicRules],
    dir_moves: Sequence[DirMove] = (),
    relieved: Collection[int] | None = None,
) -> Staging:
    """Return the stages that carry out these whole moves, one a partition, moves inside brokers, and topic changes.

    Every limit of `moves` and `limits` is kept where it can be; where not, `violations` says so. After each stage the
    hard rules hold that held before it. `elections_now` are held before any data moves. `relieved`: the brokers whose
    disks are to end within `limits.diskUse`; None: all that keep replicas.
    """
    # Sorted, so that the same plan gives the same stages whatever order the planner found its moves in.
    given = Moves.of(moves)
    order = given.in_order
    whole = given.part(order[given.is_change[order]])
    due, skipped = due_now(elections_now, whole, observed)
    at = situation(observed, desired, rules, {election.topic_partition: election.leader for election in due})
    steps, limits, policy = chains(whole, at), desired.cluster.limits, desired.cluster.moves
    held = replicas_now(observed) if limits.replicas_per_broker is not None else Counter[int]()

    def counts(changes: Iterable[TopicChange]) -> ReplicaCounts:
        return ReplicaCounts(limits.replicas_per_broker, steps, held, replicas_created(changes))

    # Brokers that could come above the limit if everything came before anything leaves.
    full = counts(topic_changes).ceiling.keys()
    is_crowding = not replicas_created(topic_changes).keys().isdisjoint(full)
    for late in (frozenset[int](), full)[: 1 + is_crowding]:
        changes = timed(topic_changes, whole, observed, full=full, late=late)
        disk, first = _disks(observed, steps, limits.disk_use, changes, dir_moves)
        packed = _packed(steps, policy, Room(disk, counts(changes.before)), whole, at)
        # If new partitions take the room that moves need, they are made after all moves.
        if not packed.room.counts.excess or not packed.stages:
            break
    disk = packed.room.disk
    inside = disk.first, disk.moved_inside([one for one in dir_moves if one.broker not in first])
    stages = numbered(_in_order(packed, due, changes, policy, inside))
    batch = policy.election_batch
    batches = sum(-(-len(elections_of(stage)) // batch) for stage in stages)
    overfull = overfull_disks(disk, desired, observed, changes.in_order, relieved)
    crowded = Counter[int]()
    for one in overfull if limits.disk_use is not None else ():
        crowded[one.broker_id] += one.excess
    destinations = sorted(steps.destinations.union(one.broker for one in dir_moves))
    return Staging(
        stages=stages,
        topic_changes=changes.in_order,
        warnings=by_code(
            warnings(whole, desired, at, disk, destinations, full=overfull, inside=dir_moves),
            copies_above_limit(steps.moves, policy),
            election_warnings(skipped, batches, observed),
        ),
        violations=by_code(
            violations(whole, desired, observed, overfull),
            count_violations(stages, changes.in_order, held, limits),
            deletion_violations(changes.in_order, desired.cluster),
        ),
        disk_peak=disk.peak,
        crowded=crowded,
        end_excess=sum(max(0, one.end - one.allowed) for one in overfull),
        log_dirs=_log_dirs(disk),
        predicted_log_dirs=_predicted(disk, steps),
    )


def _packed(steps: Steps, policy: MovePolicy, room: Room, moves: Moves, situation: Situation) -> Packed:
    """Return the stages; if brokers have no room for the steps in any order that was found, of other steps."""
    packed = pack(steps, policy, room)
    if not packed.room.counts.excess or not 0 < len(steps) <= MOST_STEPS:
        return packed
    whole = walks(moves, situation)
    sets = other_ways(whole, room.counts.free())
    if sets is None:
        return packed
    other = pack(chains_through(whole, sets), policy, room)
    return min(packed, other, key=lambda each: each.room.excess)


def _disks(
    observed: Cluster, steps: Steps, share: Fraction | None, changes: TimedChanges, dir_moves: Sequence[DirMove]
) -> tuple[DiskUse, frozenset[int]]:
    """Return the disks before the first move, and the brokers whose moves inside make room before that."""
    # New topics are there before anything moves: Kafka has put their logs somewhere by then, which its next choice
    # counts.
    disk = DiskUse(observed, steps, share, _created(changes))
    first = makes_room(dir_moves, steps, disk) if dir_moves else frozenset[int]()
    if first:
        moves = steps.moves.part(np.flatnonzero(steps.depth == 0))
        now = dict(zip(moves.topic_partitions(), lists_of(moves.before), strict=True))
        early = [replace(one, replicas=now.get(one.topic_partition, one.replicas)) for one in dir_moves]
        early = [one for one in early if one.broker in first]
        disk = DiskUse(observed, steps, share, _created(changes), early)
    return disk, first


def _created(changes: TimedChanges) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
    """Yield the partitions that are made before anything moves."""
    for change in changes.before:
        if isinstance(change, CreateTopic | CreatePartitions):
            for number, replicas in change.assignment.items():
                yield TopicPartition(change.topic, number), replicas


def _log_dirs(disk: DiskUse) -> Mapping[int, tuple[LogDirUse, ...]]:
    return {
        broker_id: tuple(LogDirUse(one.path, one.peak, one.total) for one in dirs.dirs)
        for broker_id, dirs in disk.dirs.items()
    }


def _predicted(disk: DiskUse, steps: Steps) -> Mapping[TopicPartition, Mapping[int, str]]:
    """Return the log dir of each replica that is copied, where it can be predicted."""
    found: dict[TopicPartition, dict[int, str]] = {}
    for step in steps if disk.dirs else ():
        for broker_id in sorted(step.added):
            if broker_id in disk.dirs and broker_id not in step.move.log_dirs:
                key = step.move.topic_partition
                found.setdefault(key, {})[broker_id] = disk.dirs[broker_id].predicted[key]
    return {key: found[key] for key in sorted(found)}


def _in_order(
    packed: Packed,
    due: Sequence[Election],
    changes: TimedChanges,
    policy: MovePolicy,
    inside: tuple[Sequence[Sequence[DirMove]], Sequence[Sequence[DirMove]]],
) -> list[Stage]:
    """Return all stages: topics, elections that are due, moves each with its elections, and topics again.

    `inside`: the moves inside brokers that make room before the others, and those that come after them.
    """
    counts = [len(changes.before), len(changes.after_moves), len(changes.last)]
    before, after, last = (tuple(range(sum(counts[:part]), sum(counts[: part + 1]))) for part in range(3))
    waiting = {change.topic for change in changes.after_moves}
    looked_at = packed.stages if waiting else ()
    is_waiting = (changes.is_after_all or not waiting.isdisjoint(steps.moves.topics_moved) for steps in looked_at)
    ends = [number for number, is_end in enumerate(is_waiting) if is_end]
    stages: list[Stage] = [TopicsStage(0, before)] if before else []
    if due:
        stages.append(ElectStage(0, spread_over_leaders(due)))
    stages += dir_stages(inside[0], policy)
    seconds = stage_seconds(packed.loads, policy)
    for number, (steps, estimate) in enumerate(zip(packed.stages, seconds, strict=True)):
        stages.append(_reassign(steps, policy, estimate))
        # Once, after the last stage that moves one of their topics: each change waits for all moves of its topic.
        if ends and number == ends[-1]:
            stages.append(TopicsStage(0, after))
    stages += dir_stages(inside[1], policy)
    return [*stages, TopicsStage(0, last)] if last else stages


def _reassign(steps: Steps, policy: MovePolicy, estimated_seconds: int) -> ReassignStage:
    # A change of order copies nothing, and a throttle takes a request to each broker on and off.
    is_copying = bool(steps.moves.copies.any())
    led = np.flatnonzero(steps.elected >= 0)
    elected = zip(steps.moves.part(led).topic_partitions(), steps.elected[led].tolist(), strict=True)
    return ReassignStage(
        number=0,
        moves=steps.moves,
        throttle_bytes_per_second=policy.throttle_bytes_per_second if is_copying else None,
        estimated_seconds=estimated_seconds,
        # With its moves, so that the copies of the next stage are served by the leaders that stay.
        elections=spread_over_leaders([*starmap(Election, elected)]),
    )


def spread_over_leaders(elections: Sequence[Election]) -> tuple[Election, ...]:
    """Return the elections in the order in which they are held, in batches: each leader's first, then their second.

    A batch that gave one broker all its leaderships at once would bring all their clients to it at once.
    """
    seen: Counter[int] = Counter()
    turns = []
    for election in sorted(elections, key=lambda election: election.topic_partition):
        turns.append((seen[election.leader], election.leader, election.topic_partition, election))
        seen[election.leader] += 1
    return tuple(election for _, _, _, election in sorted(turns))


def due_now(
    elections: Sequence[Election], moves: Moves, observed: Cluster
) -> tuple[tuple[Election, ...], tuple[Election, ...]]:
    """Return the elections to hold before any move, and those that cannot be held, their leader not being in sync.

    One whose partition then moves to another preferred leader would be undone at once: it is in neither.
    """
    due: list[Election] = []
    skipped: list[Election] = []
    moving = moves.part(moves.rows_of([election.topic_partition for election in elections]))
    first = dict(zip(moving.topic_partitions(), moving.after[:, 0].tolist(), strict=True))
    for election in sorted(elections, key=lambda election: election.topic_partition):
        if first.get(election.topic_partition, election.leader) != election.leader:
            continue
        # Kafka refuses to elect a first replica out of sync (KIP-460: PREFERRED_LEADER_NOT_AVAILABLE).
        (due if _is_in_sync(election, observed) else skipped).append(election)
    return tuple(due), tuple(skipped)


def _is_in_sync(election: Election, observed: Cluster) -> bool:
    partition = observed.partition(election.topic_partition)
    return partition is not None and election.leader in partition.isr and observed.is_alive(election.leader)


# In one part of the run: a new topic first, so that nothing waits for it.
KINDS = (CreateTopic, AlterConfigs, CreatePartitions, DeleteTopic)


def timed(
    changes: Sequence[TopicChange],
    moves: Moves,
    observed: Cluster,
    *,
    full: Collection[int] = (),
    late: Collection[int] = (),
) -> TimedChanges:
    """Return the changes, split where one has parts that are safe at different times.

    What Kafka may refuse comes before what nobody can undo: new topics and configs, then growth, then, after all moves,
    configs that destroy records, and deletions last. All of a topic's keys stay together, as Kafka judges them
    together, but for two: min.insync.replicas, and a key that Kafka has removed. Until such a key is deleted Kafka
    refuses every other change of the topic, its throttle lists included, so its deletion always goes first.

    Two wait for their topic's moves. Growth, where these change the replication factor: Kafka wants the factor of the
    topic's first partition for a new one. And a higher min.insync.replicas, which until then fewer replicas might be
    in sync than it asks for; a lower one goes first, so that a lower factor never falls below it.

    New partitions on brokers that are `late` wait for all moves; so do those that wait for moves anyway and come to
    a broker that is `full`: one that has no room for everything before something leaves.
    """
    moved, is_refactored = moves.topics_moved, (moves.before >= 0).sum(axis=1) != (moves.after >= 0).sum(axis=1)
    refactored = moves.part(np.flatnonzero(is_refactored)).topics_moved
    before: list[TopicChange] = []
    after: list[TopicChange] = []
    last: list[TopicChange] = []
    for change in changes:
        match change:
            case DeleteTopic():
                last.append(change)
            case CreatePartitions() | CreateTopic():
                is_crowding = not replicas_created([change]).keys().isdisjoint(late)
                (after if is_crowding or change.topic in refactored else before).append(change)
            case AlterConfigs():
                is_late = change.topic in moved and _is_late(change, observed, is_refactored=change.topic in refactored)
                for part, changes_then in zip(_parts(change, is_late=is_late), (before, after, last), strict=True):
                    if part.set or part.delete:
                        changes_then.append(part)
    is_after_all = not replicas_created(after).keys().isdisjoint(full)
    first, then, finally_ = (tuple(sorted(part, key=_order)) for part in (before, after, last))
    return TimedChanges(first, then, finally_, is_after_all)


def _order(change: TopicChange) -> tuple[int, str]:
    return KINDS.index(type(change)), change.topic


def _parts(change: AlterConfigs, *, is_late: bool) -> Iterator[AlterConfigs]:
    """Yield the keys to change before the moves, after them, and last, each as a change that may be empty."""
    destroying = {effect.key == MIN_ISR for effect in change.effects if effect.kind is EffectClass.DESTROYS}

    def time_of(key: str | None) -> int:
        if change.before.get(key or "") == UNREADABLE:
            return 0
        is_min_isr = key == MIN_ISR
        return 2 if is_min_isr in destroying else 1 if is_late and is_min_isr else 0

    for time in range(3):
        yield replace(
            change,
            set={key: value for key, value in change.set.items() if time_of(key) == time},
            delete=tuple(key for key in change.delete if time_of(key) == time),
            before={key: value for key, value in change.before.items() if time_of(key) == time},
            effects=tuple(effect for effect in change.effects if time_of(effect.key) == time),
        )


def _is_late(change: AlterConfigs, observed: Cluster, *, is_refactored: bool) -> bool:
    """Whether the change raises min.insync.replicas above what every partition of the topic surely has in sync."""
    wanted = whole_number(change.set.get(MIN_ISR))
    topic = observed.topics.get(change.topic)
    if wanted is None or topic is None:
        return False
    if wanted <= (whole_number(topic.configs.get(MIN_ISR)) or brokers_min_isr(observed)):
        return False
    # Producers with acks=all are refused where fewer are in sync than it asks for, so every partition must have them.
    in_sync = min((len(partition.isr) for partition in topic.partitions), default=0)
    return is_refactored or in_sync < wanted
