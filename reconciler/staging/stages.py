"""Whole moves and topic changes -> the plan's stages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.diff.rules import TopicRules
from reconciler.model.change import CreatePartitions, CreateTopic, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, MovePolicy
from reconciler.model.move import Election, Move
from reconciler.model.plan import LogDirUse
from reconciler.model.problem import Problem
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.staging.chain import steps_of
from reconciler.staging.deletions import deletion_violations
from reconciler.staging.disk import DiskUse
from reconciler.staging.elections import batched, due_now
from reconciler.staging.estimate import stage_seconds
from reconciler.staging.packing import PackedStage, pack
from reconciler.staging.problems import by_code, election_warnings, violations, warnings
from reconciler.staging.situation import situation
from reconciler.staging.step import Step
from reconciler.staging.topic_changes import TimedChanges, timed


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


def stage_moves(
    moves: Sequence[Move],
    topic_changes: Sequence[TopicChange],
    elections_now: Sequence[Election] = (),
    *,
    observed: Cluster,
    desired: Desired,
    rules: Mapping[str, TopicRules],
) -> Staging:
    """Return the stages that carry out these whole moves, one a partition, and topic changes.

    Every limit of `moves` and `limits` is kept where it can be; where not, `violations` says so. After each stage the
    hard rules hold that held before it. `elections_now` are held before any data moves.
    """
    whole = sorted((move for move in moves if move.from_replicas != move.to_replicas), key=_by_partition)
    due, skipped = due_now(elections_now, {move.topic_partition: move for move in whole}, observed)
    at = situation(observed, desired, rules, {election.topic_partition: election.leader for election in due})
    chains = [steps_of(move, at) for move in whole]
    steps = [step for chain in chains for step in chain]
    changes = timed(topic_changes, whole, observed)
    disk = DiskUse(observed, steps, desired.cluster.limits.disk_use, _created(changes))
    packed = pack([chain for chain in chains if chain], desired.cluster.moves, disk)
    disk = packed.disk
    stages = _numbered(_in_order(packed.stages, due, changes, desired.cluster.moves))
    batches = sum(isinstance(stage, ElectStage) for stage in stages)
    destinations = sorted({broker_id for step in steps for broker_id in step.added})
    return Staging(
        stages=stages,
        topic_changes=changes.in_order,
        warnings=by_code(
            warnings(whole, desired, at, disk, destinations) + election_warnings(skipped, batches, observed)
        ),
        violations=by_code(
            (
                *violations(whole, desired, observed, disk, destinations),
                *deletion_violations(changes.in_order, desired.cluster),
            )
        ),
        disk_peak=disk.peak,
        log_dirs=_log_dirs(disk),
        predicted_log_dirs=_predicted(disk, steps),
    )


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


def _predicted(disk: DiskUse, steps: Sequence[Step]) -> Mapping[TopicPartition, Mapping[int, str]]:
    """Return the log dir of each replica that is copied, where it can be predicted."""
    found: dict[TopicPartition, dict[int, str]] = {}
    for step in steps:
        for broker_id in sorted(step.added):
            if broker_id in disk.dirs:
                key = step.move.topic_partition
                found.setdefault(key, {})[broker_id] = disk.dirs[broker_id].predicted[key]
    return {key: found[key] for key in sorted(found)}


def _by_partition(move: Move) -> tuple[str, int]:
    return move.topic_partition


def _in_order(
    packed: Sequence[PackedStage], due: Sequence[Election], changes: TimedChanges, policy: MovePolicy
) -> list[Stage]:
    """Return all stages: topics, elections that are due, moves each with its elections, and topics again."""
    counts = [len(changes.before), len(changes.after_moves), len(changes.last)]
    before, after, last = (tuple(range(sum(counts[:part]), sum(counts[: part + 1]))) for part in range(3))
    waiting = {change.topic for change in changes.after_moves}
    ends = [number for number, one in enumerate(packed) if any(_topic(step) in waiting for step in one.steps)]
    stages: list[Stage] = [TopicsStage(0, before)] if before else []
    stages += [ElectStage(0, batch) for batch in batched(due, policy.election_batch)]
    for number, one in enumerate(packed):
        stages.append(_reassign(one, policy))
        stages += [ElectStage(0, batch) for batch in batched(_elections(one.steps), policy.election_batch)]
        if ends and number == ends[-1]:
            stages.append(TopicsStage(0, after))
    return [*stages, TopicsStage(0, last)] if last else stages


def _topic(step: Step) -> str:
    return step.move.topic_partition.topic


def _elections(steps: Sequence[Step]) -> list[Election]:
    return [Election(step.move.topic_partition, step.elected) for step in steps if step.elected is not None]


def _reassign(stage: PackedStage, policy: MovePolicy) -> ReassignStage:
    throttle = policy.throttle_bytes_per_second
    is_copying = any(step.added for step in stage.steps)
    return ReassignStage(
        number=0,
        moves=tuple(step.move for step in stage.steps),
        throttle_bytes_per_second=throttle if is_copying else None,
        estimated_seconds=stage_seconds(stage.longest, throttle, is_copying=is_copying),
    )


def _numbered(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    return tuple(replace(stage, number=number) for number, stage in enumerate(stages, start=1))
