"""Follows a plan's stages, and refuses the first state on the way that breaks a rule which held before it.

A stage is safe if each of its states is: any of its moves may be done, in flight or not begun. Two views cover them::

    partition   its moves one after the other. While one is in flight the partition has old and new replicas, which is
                no worse than before; so the end of each move is compared with its start.
    broker      everything that a stage brings is there, and nothing that it takes away is gone. No state of the stage
                puts more on the broker.

    example: stage 1 moves p from [1, 2] to [2, 3], and q from [3, 4] to [1, 4], each of 10 GiB
             partitions   p has 2 and 3 in sync at the end, q has 1 and 4
             brokers      1 has p and q for a while, 10 GiB more than before; 3 likewise

When a reassignment ends, all living replicas of its target are in sync: Kafka waits for that (KIP-455,
`PartitionReassignmentReplicas`). A move that copies nothing ends at once, and leaves in sync what was.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Broker, Cluster
from reconciler.model.desired import Desired, Placement, Spread
from reconciler.model.effect import EffectClass
from reconciler.model.plan import Plan
from reconciler.model.problem import DISK_USE, STAGE_LIMIT
from reconciler.model.stage import ElectStage, ReassignStage, TopicsStage
from reconciler.proof.arithmetic import (
    NONE,
    SAFE,
    Bools,
    Ints,
    NotProved,
    exact_sum,
    is_among,
    is_new,
    lists_of,
    positions_in,
    stacked,
)
from reconciler.proof.capacity import disk_bytes, used_bytes
from reconciler.proof.demands import Demands, rack_names, racks_of
from reconciler.proof.log_dirs import DirCourse
from reconciler.proof.reached import Reached
from reconciler.proof.relief import full_disks
from reconciler.proof.rules import Eligible
from reconciler.proof.snapshot import PlannedMoves

MIN_ISR = "min.insync.replicas"
Fault = tuple[int, str]
"""The number of a stage, and a sentence about the first of its states that breaks a rule."""


class BrokenLimit(NotProved):
    """A state of a stage is above one of `limits`."""


def refuse_broken_states(plan: Plan, desired: Desired, observed: Cluster, demands: Demands, end: Reached) -> None:
    """Raise NotProved for the first state that breaks a rule: its stage, its move or broker, and the rule.

    It is a BrokenLimit if that rule is one of `limits`. The moves fit together by then: each begins where its partition
    is.
    """
    course = _course_of(observed, demands, end.moves, end.moved)
    faults = [
        *_partition_faults(course),
        *_move_faults(course, desired),
        *_election_faults(course, plan),
        *_order_faults(course, plan),
        *_size_faults(course, desired),
    ]
    _raise_first(faults)
    coming = _coming(course) if desired.cluster.limits.disk_use is not None else {}
    dirs = DirCourse(plan, desired, observed, coming)
    beyond_limits = [
        *_count_faults(course, plan, desired),
        *_disk_faults(course, plan, desired, dirs.brokers),
        *dirs.faults(_bytes_of_a_copy(course).tolist()),
    ]
    _raise_first(beyond_limits, BrokenLimit)
    _refuse_full_end(plan, demands, end, dirs)


def _refuse_full_end(plan: Plan, demands: Demands, end: Reached, dirs: DirCourse) -> None:
    """Raise BrokenLimit for a disk that holds more than limits.diskUse allows in the end, if the plan does not say so.

    The log dirs of some brokers are looked at one by one.
    """
    declared = [violation.message for violation in plan.violations if violation.code == DISK_USE]
    full = full_disks(demands, end, plan.source.only)
    places = [*dirs.full_in_the_end(full), *((one, "", more) for one, more in full.items() if more > 0)]
    for broker_id, place, more in places:
        name = f"broker {broker_id} would hold "
        if not any(text.startswith(name) and f"{place} " in text for text in declared):
            raise BrokenLimit(f"in the end {name}{more} bytes more{place} than limits.diskUse allows")


def refuse_broken_return(plan: Plan, observed: Cluster, demands: Demands, moves: PlannedMoves, row: Ints) -> None:
    """Raise NotProved for a rollback that loses a leader or falls below min ISR; it may break what held before it.

    `row` [moves] are the rows of the moves in the snapshot.
    """
    course = _course_of(observed, demands, moves, row)
    _raise_first([*_partition_faults(course), *_election_faults(course, plan)])


def _raise_first(faults: Sequence[Fault], error: type[NotProved] = NotProved) -> None:
    if faults:
        stage, sentence = min(faults, key=lambda fault: fault[0])
        raise error(f"stage {stage}: {sentence}")


@dataclass(frozen=True, slots=True)
class _Course:
    """The moves of a plan, in order, and which replicas are in sync on the way."""

    demands: Demands
    observed: Cluster
    moves: PlannedMoves
    row: Ints  # [moves]: of the snapshot
    alive: Ints  # broker ids
    isr_before: Ints  # [moves, width]: in sync when the move begins
    isr_after: Ints  # [moves, width]: in sync when it has ended
    isr_now: Ints  # [rows of the snapshot, width]: in sync before the first stage


def _course_of(observed: Cluster, demands: Demands, moves: PlannedMoves, row: Ints) -> _Course:
    snapshot = demands.snapshot
    alive = np.array([b for b, broker in observed.brokers.items() if not broker.is_fenced], dtype=np.int64)
    # A run waits for reassignments in flight, so their targets are in sync before the first stage.
    targets, isr = np.split(stacked([snapshot.target, snapshot.isr]), 2)
    isr = np.where(snapshot.is_in_flight[:, None], targets, isr)
    isr_now, isr_after = np.split(stacked([np.where(np.isin(isr, alive), isr, NONE), moves.after]), [len(isr)])
    current, isr_before = isr_now.copy(), np.full_like(isr_after, NONE)
    is_copying = np.asarray(is_new(moves.after, moves.before).any(axis=1))
    for turn in _turns(row):
        isr_before[turn] = current[row[turn]]
        living = np.where(np.isin(isr_after[turn], alive), isr_after[turn], NONE)
        staying = np.where(is_among(isr_after[turn], isr_before[turn]), isr_after[turn], NONE)
        isr_after[turn] = np.where(is_copying[turn][:, None], living, staying)
        current[row[turn]] = isr_after[turn]
    return _Course(demands, observed, moves, row, alive, isr_before, isr_after, isr_now)


def _turns(row: Ints) -> Iterator[Ints]:
    """Yield the first moves of all partitions, then their second moves, and so on."""
    order = np.argsort(row, kind="stable")
    is_first = np.append(True, row[order][1:] != row[order][:-1])[: len(row)]
    start = np.flatnonzero(is_first)
    turn = np.empty_like(row)
    turn[order] = np.arange(len(row)) - np.repeat(start, np.diff(np.append(start, len(row))))
    for number in range(int(turn.max(initial=-1)) + 1):
        yield np.flatnonzero(turn == number)


def _first_moves(course: _Course, faults: Sequence[tuple[Bools, str]]) -> Iterator[Fault]:
    """Yield the first move that each of these rules refuses, in words."""
    moves = course.moves
    for is_broken, rule in faults:
        if is_broken.any():
            index = int(is_broken.argmax())
            start, end = ([*next(lists_of(table[index : index + 1]))] for table in (moves.before, moves.after))
            yield int(moves.stage[index]), f"{moves.key(index)} moves from brokers {start} to {end}: {rule}"


def _partition_faults(course: _Course) -> Iterator[Fault]:
    """Yield the first move after which too few replicas are in sync."""
    count_before, count_after = ((isr >= 0).sum(axis=1) for isr in (course.isr_before, course.isr_after))
    # A partition with fewer replicas than min.insync.replicas needs all it has (`Partition.effectiveMinIsr`).
    needed = np.minimum(_min_isr(course), (course.moves.after >= 0).sum(axis=1))
    is_fewer = count_after < np.minimum(needed, count_before)
    faults = [
        ((count_before > 0) & (count_after == 0), "no replica that is in sync remains"),
        (is_fewer, f"fewer replicas are in sync than {MIN_ISR} asks for"),
    ]
    yield from _first_moves(course, faults)


def _min_isr(course: _Course) -> Ints:
    """Return the min.insync.replicas in force for each move's topic."""
    brokers = course.observed.brokers.values()
    texts = (broker.configs.get(MIN_ISR, broker.settings.get(MIN_ISR)) for broker in brokers)
    default = max((number for number in map(_number, texts) if number), default=1)
    topics = (course.observed.topics.get(name) for name in course.moves.topics)
    written = [_number(topic.configs.get(MIN_ISR)) if topic is not None else None for topic in topics]
    return np.array([number or default for number in written], dtype=np.int64)[course.moves.topic]


def _number(text: str | None) -> int | None:
    digits = (text or "").strip()
    return int(digits) if digits.isascii() and digits.isdigit() else None


def _move_faults(course: _Course, desired: Desired) -> Iterator[Fault]:
    """Yield the first move that copies too much at once, goes astray, or breaks a strict rack rule."""
    moves, per_partition = course.moves, desired.cluster.moves.per_partition
    added, removed = is_new(moves.after, moves.before), is_new(moves.before, moves.after)
    # Dead replicas are replaced all at once: no reassignment ends while its target holds one.
    replaces_dead = (removed & ~np.isin(moves.before, course.alive)).any(axis=1)
    ends = np.full((len(course.demands.snapshot.topic), moves.after.shape[1]), NONE)
    ends[course.row] = moves.after  # of several moves of a partition the last one stays
    place = course.row * (1 + int(moves.stage.max(initial=0))) + moves.stage
    _, first, of_place = np.unique(place, return_index=True, return_inverse=True)
    faults = [
        (first[of_place] != np.arange(len(moves)), "it moves twice in one stage"),
        (
            added.any(axis=1) & ((moves.after >= 0) & ~np.isin(moves.after, course.alive)).any(axis=1),
            "it never ends, as a broker of its target is not alive",
        ),
        (
            (added.sum(axis=1) > per_partition) & ~replaces_dead,
            f"more replicas are copied at once than moves.perPartition, {per_partition}, allows",
        ),
        (
            (added & is_new(moves.after, ends[course.row])).any(axis=1),
            "a replica is copied to a broker that does not hold it in the end",
        ),
        (_breaks_racks(course), "it is farther from its rack rule than before"),
    ]
    yield from _first_moves(course, faults)


def _breaks_racks(course: _Course) -> Bools:
    """Return which moves end farther from a strict rack rule than they begin."""
    moves, demands = course.moves, course.demands
    position = {name: place for place, name in enumerate(demands.topics)}
    topics_of: dict[tuple[tuple[tuple[str, int], ...] | None, Eligible], list[int]] = {}
    for number, name in enumerate(moves.topics):
        placement = demands.placements[position[name]] if name in position else Placement()
        if placement.racks_spread is Spread.STRICT or placement.racks_replicas is not None:
            rule = placement.racks_replicas, demands.allowed[position[name]]
            topics_of.setdefault(rule, []).append(number)
    names = rack_names(demands.brokers)
    is_broken: Bools = np.zeros(len(moves), dtype=np.bool_)
    for (replicas_by_rack, allowed), topics in topics_of.items():
        rows = np.flatnonzero(np.isin(moves.topic, topics))
        excess = []
        for lists in (moves.before[rows], moves.after[rows]):
            rack = racks_of(lists, demands.brokers)
            counts = np.stack([(rack == number).sum(axis=1) for number in range(len(names))], axis=1)
            excess.append(_rack_excess(counts, names, replicas_by_rack, allowed))
        is_broken[rows] = excess[1] > excess[0]
    return is_broken


def _rack_excess(
    counts: Ints, names: Sequence[str], replicas_by_rack: Sequence[tuple[str, int]] | None, allowed: Eligible
) -> Ints:
    """Return by how many replicas each row of `counts` [rows, racks] breaks the rule."""
    if replicas_by_rack is not None:
        exact = np.array([dict(replicas_by_rack).get(name, 0) for name in names])
        surplus, lack = np.maximum(counts - exact, 0).sum(axis=1), np.maximum(exact - counts, 0).sum(axis=1)
        misplaced: Ints = np.minimum(surplus, lack)
        return misplaced
    total, racks = counts.sum(axis=1, keepdims=True), max(1, len(allowed.counted))
    above, is_counted = np.maximum(counts + (-total // racks), 0), np.isin(names, [*allowed.counted])
    if allowed.is_partly_known:
        # A replica without a rack crowds none, and may be what another rack lacks.
        crowded: Ints = above[:, is_counted].sum(axis=1)
        return crowded
    surplus, lack = above.sum(axis=1), (np.maximum(total // racks - counts, 0) * is_counted).sum(axis=1)
    excess: Ints = np.maximum(surplus, lack)
    return excess


def _election_faults(course: _Course, plan: Plan) -> Iterator[Fault]:
    """Yield the first election of a broker that is not the first replica by then, or not in sync."""
    stages = [stage for stage in plan.stages if isinstance(stage, ElectStage | ReassignStage)]
    elections = [(stage.number, election) for stage in stages for election in stage.elections]
    if not elections:
        return
    keys = [election.topic_partition for _, election in elections]
    names = sorted({key.topic for key in keys})
    topic = np.array([names.index(key.topic) for key in keys])
    row = course.demands.snapshot.rows_of(names, topic, np.array([key.partition for key in keys]))
    # The last move of the partition before the election, or of the same stage, says where it is by then.
    span = 2 + max(stage.number for stage in plan.stages)
    order = np.lexsort((course.moves.stage, course.row))
    ordered = course.row[order] * span + course.moves.stage[order]
    last = np.searchsorted(ordered, row * span + [number for number, _ in elections], side="right") - 1
    for (number, election), at_row, place in zip(elections, row.tolist(), last.tolist(), strict=True):
        move = int(order[place]) if place >= 0 else NONE
        has_moved = move >= 0 and int(course.row[move]) == at_row
        replicas = course.moves.after[move] if has_moved else course.demands.snapshot.target[at_row]
        isr = course.isr_after[move] if has_moved else course.isr_now[at_row]
        if at_row < 0 or replicas[0] != election.leader or election.leader not in isr:
            what = "is not its first replica by then, or not in sync"
            yield number, f"broker {election.leader} is elected to lead {election.topic_partition}, and {what}"
            return


def _order_faults(course: _Course, plan: Plan) -> Iterator[Fault]:
    """Yield a stage that destroys records before others, and one that raises min.insync.replicas too early."""
    destroying: int | None = None
    for stage in plan.stages:
        changes = [plan.topic_changes[place] for place in stage.changes] if isinstance(stage, TopicsStage) else []
        destroys = [*map(_destroys, changes)]
        if destroying is not None and not (changes and all(destroys)):
            yield destroying, f"it destroys records, and stage {stage.number} is still to come"
        destroying = stage.number if any(destroys) else destroying
        for change in changes:
            if isinstance(change, AlterConfigs):
                yield from _early_min_isr(course, stage.number, change)


def _destroys(change: TopicChange) -> bool:
    if isinstance(change, DeleteTopic):
        return True
    return isinstance(change, AlterConfigs) and any(one.kind is EffectClass.DESTROYS for one in change.effects)


def _early_min_isr(course: _Course, stage: int, change: AlterConfigs) -> Iterator[Fault]:
    """Yield the stage if a higher min.insync.replicas comes before the moves that bring as many in sync."""
    needed, moves = _number(change.set.get(MIN_ISR)), course.moves
    if needed is None or change.topic not in moves.topics:
        return
    is_later = (moves.topic == moves.topics.index(change.topic)) & (moves.stage > stage)
    is_short = ((course.isr_before >= 0).sum(axis=1) < needed) & ((course.isr_after >= 0).sum(axis=1) >= needed)
    if (is_later & is_short).any():
        key = moves.key(int((is_later & is_short).argmax()))
        yield stage, f"{MIN_ISR} of {change.topic} is {needed} before {key} has so many replicas in sync"


def _size_faults(course: _Course, desired: Desired) -> Iterator[Fault]:
    """Yield the first stage with more partitions than moves.perStage allows."""
    per_stage = desired.cluster.moves.per_stage
    stages, counts = np.unique(course.moves.stage, return_counts=True)
    for stage, count in zip(stages.tolist(), counts.tolist(), strict=True):
        if count > per_stage:
            yield stage, f"{count} partitions are more than moves.perStage, {per_stage}, allows"
            return


def _count_faults(course: _Course, plan: Plan, desired: Desired) -> Iterator[Fault]:
    """Yield the first stage that brings a broker above limits.replicasPerBroker, or higher above it."""
    limit = desired.cluster.limits.replicas_per_broker
    if limit is None:
        return
    moves, target, created = course.moves, course.demands.snapshot.target, _created(plan)
    ids = np.unique([*_broker_ids(course), *created[1]]).astype(np.int64)
    numbers = np.unique([*moves.stage, *created[0]]).astype(np.int64)
    arriving, leaving = np.zeros((2, len(numbers), len(ids)), dtype=np.int64)
    np.add.at(arriving, (positions_in(numbers, created[0]), positions_in(ids, created[1])), 1)
    for flow, brokers, others in ((arriving, moves.after, moves.before), (leaving, moves.before, moves.after)):
        row, seat = np.nonzero(is_new(brokers, others))
        np.add.at(flow, (positions_in(numbers, moves.stage[row]), positions_in(ids, brokers[row, seat])), 1)
    start = np.bincount(positions_in(ids, target[target >= 0]), minlength=len(ids))
    # What a stage takes away is there until its end.
    count = start + np.cumsum(arriving, axis=0) - np.cumsum(leaving, axis=0) + leaving
    # A violation of the plan says which broker is too full; `apply` refuses such a plan.
    declared = [violation.message for violation in plan.violations if violation.code == STAGE_LIMIT]
    for stage, broker in np.argwhere((arriving > 0) & (count > limit)).tolist():
        held = f"broker {ids[broker]} would hold {count[stage, broker]} replicas"
        if not any(message.startswith(f"broker {ids[broker]} would hold ") for message in declared):
            yield int(numbers[stage]), f"{held}, and limits.replicasPerBroker is {limit}"
            return


def _disk_faults(course: _Course, plan: Plan, desired: Desired, by_dir: Collection[int]) -> Iterator[Fault]:
    """Yield the first stage that fills a broker's disks above limits.diskUse, if the plan does not say so itself."""
    share = desired.cluster.limits.disk_use
    if share is None:
        return
    ids = _broker_ids(course)
    brokers = [course.observed.brokers.get(broker_id, Broker(broker_id)) for broker_id in ids.tolist()]
    used = [_bytes_on(course, broker) for broker in brokers]
    allowed = [int(disk_bytes(broker) * share // 1) for broker in brokers]
    size = _bytes_of_a_copy(course)[:, None]
    start = np.array([count or 0 for count in used], dtype=object)
    arriving, begin = _flows(course, ids, start, arriving=size, leaving=_bytes_that_leave(course))
    # A violation of the plan says which broker is too full; `apply` refuses such a plan.
    declared = [violation.message for violation in plan.violations if violation.code == DISK_USE]
    for stage, broker in np.argwhere((arriving > 0) & (begin + arriving > np.array(allowed, dtype=object))).tolist():
        name = f"broker {ids[broker]} would hold "
        # The log dirs of some brokers are looked at one by one instead.
        is_known = allowed[broker] > 0 and used[broker] is not None and int(ids[broker]) not in by_dir
        if is_known and not any(message.startswith(name) for message in declared):
            more = int(begin[stage, broker] + arriving[stage, broker]) - allowed[broker]
            yield int(np.unique(course.moves.stage)[stage]), f"{name}{more} bytes more than limits.diskUse allows"
            return


def _bytes_of_a_copy(course: _Course) -> Ints:
    """Return [moves] the bytes of one new replica, 0 where unknown."""
    size: Ints = np.maximum(course.demands.snapshot.size[course.row], 0)
    return size


def _coming(course: _Course) -> Mapping[int, int]:
    """Return the bytes that come to each broker in all stages together."""
    ids = _broker_ids(course)
    size, none = _bytes_of_a_copy(course)[:, None], np.zeros((len(course.moves), 1), dtype=np.int64)
    arriving, _ = _flows(course, ids, np.zeros(len(ids), dtype=object), arriving=size, leaving=none)
    return dict(zip(ids.tolist(), arriving.sum(axis=0).tolist(), strict=True))


def _broker_ids(course: _Course) -> Ints:
    """Return every broker that is registered, holds a replica or gets one, ascending."""
    target, after = course.demands.snapshot.target, course.moves.after
    return np.unique([*course.observed.brokers, *target[target >= 0], *after[after >= 0]]).astype(np.int64)


def _flows(course: _Course, ids: Ints, start: Ints, *, arriving: Ints, leaving: Ints) -> tuple[Ints, Ints]:
    """Return [stages, brokers] what arrives in each stage, and what is there when it begins.

    `start` [brokers] is there before the first stage. `arriving` and `leaving` [moves, width or 1] are the amounts of
    each replica that a move adds and removes.
    """
    moves = course.moves
    numbers, stage = np.unique(moves.stage, return_inverse=True)
    sums = []
    for brokers, others, amounts in ((moves.after, moves.before, arriving), (moves.before, moves.after, leaving)):
        row, seat = np.nonzero(is_new(brokers, others))
        amount = np.broadcast_to(amounts, brokers.shape)[row, seat]
        # A sum beyond 64 bits needs Python's own numbers.
        total = np.zeros((len(numbers), len(ids)), dtype=np.int64 if exact_sum(amount) < SAFE else object)
        np.add.at(total, (stage[row], positions_in(ids, brokers[row, seat])), amount)
        sums.append(total)
    change = sums[0] - sums[1]
    return sums[0], start + np.cumsum(change, axis=0) - change


def _bytes_that_leave(course: _Course) -> Ints:
    """Return [moves, width] the bytes of each replica before the move: its own if they are known, else a copy's."""
    snapshot, moves = course.demands.snapshot, course.moves
    sizes = np.broadcast_to(np.maximum(snapshot.size[course.row], 0)[:, None], moves.before.shape)
    for replicas, own in zip(snapshot.replicas.T, snapshot.sizes.T, strict=True):
        is_here = (moves.before == replicas[course.row][:, None]) & (own[course.row] >= 0)[:, None]
        sizes = np.where(is_here, own[course.row][:, None], sizes)
    return sizes


def _bytes_on(course: _Course, broker: Broker) -> int | None:
    """Return what the broker's log dirs say is used, else the sum of its replicas; None if that is unknown."""
    snapshot, reported = course.demands.snapshot, used_bytes({broker.id: broker})
    sizes = snapshot.sizes[snapshot.replicas == broker.id]
    return reported.get(broker.id, exact_sum(sizes) if bool((sizes >= 0).all()) else None)


def _created(plan: Plan) -> Ints:
    """Return [2, replicas] of new partitions: the stage in which each is made, and its broker."""
    found = [
        (stage.number, broker_id)
        for stage in plan.stages
        if isinstance(stage, TopicsStage)
        for change in (plan.topic_changes[place] for place in stage.changes)
        if isinstance(change, CreateTopic | CreatePartitions)
        for replicas in change.assignment.values()
        for broker_id in replicas
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 2).T
