"""Computes where each stage and each move of a plan stands, and what is left to do."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import assert_never

from reconciler.apply.dir_moves import DirPlace, are_dirs_done, dir_moves_under_way, dir_place, dir_standing
from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import MovePlace, PartitionPath, Place, PlanPaths, Position
from reconciler.apply.throttles import wanted_rates
from reconciler.apply.topic_changes import ChangeState, standing
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.move import DirMove, Election, Move
from reconciler.model.stage import ElectStage, LogDirsStage, ReassignStage, Stage, TopicsStage
from reconciler.model.tally import Standing, Tally
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import labelled, rate, size


def tally(paths: PlanPaths, observed: Observed, withdrawn: Collection[TopicPartition] = ()) -> Tally:
    """Return where each move stands, as observed; of what is to do, the moves of `withdrawn` were taken back."""
    made = frozenset(change.topic for change in paths.plan.topic_changes)
    stages: dict[int, dict[TopicPartition, Standing]] = {
        stage.number: {} for stage in paths.plan.stages if isinstance(stage, ReassignStage)
    }
    for key, path in paths.by_partition.items():
        position = paths.position(key, observed)
        off = _standings_off(path, position, observed, is_made=key.topic in made)
        for link, (number, move) in enumerate(zip(path.stages, path.moves, strict=True)):
            place = position.move_place(link)
            standing_of = _standing_of(move, place, observed, is_withdrawn=key in withdrawn)
            stages[number][key] = off[link] if off else standing_of
    inside = {
        stage.number: tuple(
            (move.topic_partition, dir_standing(move, observed, is_withdrawn=move.topic_partition in withdrawn))
            for move in stage.moves
        )
        for stage in paths.plan.stages
        if isinstance(stage, LogDirsStage)
    }
    return Tally(stages, inside)


def _standing_of(move: Move, place: MovePlace, observed: Observed, *, is_withdrawn: bool) -> Standing:
    match place:
        case MovePlace.PAST:
            return Standing.DONE
        case MovePlace.AT_END:
            # A reassignment ends with its target in sync; a replica that fell out since leaves the move unsynced.
            return Standing.DONE if observed.is_in_sync(move) else Standing.UNSYNCED
        case MovePlace.IN_FLIGHT | MovePlace.STOPPED:
            return Standing.IN_FLIGHT
        case MovePlace.AT_START if is_withdrawn:
            return Standing.TAKEN_BACK
        case MovePlace.OFF:
            return Standing.FOREIGN
    return Standing.LEFT


def _standings_off(
    path: PartitionPath, position: Position, observed: Observed, *, is_made: bool
) -> tuple[Standing, ...]:
    """Return the standing of each move if the partition is off its path and a run can bring it back; else ()."""
    moves = path.moves
    if position.place is Place.MISSING and is_made:
        return (Standing.LEFT,) * len(moves)
    if position.place is not Place.UNKNOWN:
        return ()
    links = [link for link, move in enumerate(moves) if is_overwritten(move, observed)]
    if not links:
        return ()
    return (Standing.DONE,) * links[-1] + (Standing.IN_FLIGHT,) + (Standing.LEFT,) * (len(moves) - 1 - links[-1])


def moves_under_way(paths: PlanPaths, observed: Observed) -> tuple[Move, ...]:
    """Return the plan's moves that are in flight, or were cancelled without their order being restored."""
    found = []
    for key, path in paths.by_partition.items():
        position = paths.position(key, observed)
        # Between two lists the controller has ended the move already, and metadata lags.
        if position.place is not Place.BETWEEN:
            found += [
                move
                for link, move in enumerate(path.moves)
                if position.move_place(link) in {MovePlace.IN_FLIGHT, MovePlace.STOPPED}
            ]
    return tuple(found)


def moves_to_take_back(paths: PlanPaths, observed: Observed) -> tuple[Move, ...]:
    """Return the moves that a cancel takes back.

    Of what only a record says, those alone that Kafka lists in flight just so, and that go back to the replicas which
    Kafka's own cancel leaves: a record that anybody can write must not take a replica away.
    """
    moves = moves_under_way(paths, observed)
    if not paths.is_of_record:
        return (*moves, *overwritten_moves(paths, observed))
    return tuple(move for move in moves if _is_listed_so(move, observed))


def _is_listed_so(move: Move, observed: Observed) -> bool:
    flight = observed.reassignments.get(move.topic_partition)
    if flight is None:
        return False
    remaining = {*flight.replicas} - {*flight.adding_replicas}
    return flight.target_replicas == move.to_replicas and {*move.from_replicas} == remaining


def under_way(paths: PlanPaths, observed: Observed) -> tuple[Move | DirMove, ...]:
    """Return all that is in flight of a plan: between brokers, and between log dirs."""
    return (*moves_under_way(paths, observed), *dir_moves_under_way(paths, observed))


def overwritten_moves(paths: PlanPaths, observed: Observed) -> tuple[Move, ...]:
    """Return the plan's moves that somebody replaced in flight and then cancelled: more replicas are left than before.

    Kafka's own cancel takes away what the second target was adding, and nothing of the first.
    """
    found = []
    for key, path in paths.by_partition.items():
        if paths.position(key, observed).place is Place.UNKNOWN:
            found += [move for move in path.moves if is_overwritten(move, observed)][-1:]
    return tuple(found)


def is_overwritten(move: Move, observed: Observed) -> bool:
    """Whether a partition at rest has all replicas from before a move, and some of those that it was to add."""
    partition = observed.partition(move.topic_partition)
    if partition is None or partition.is_reassigning:
        return False
    more = set(partition.replicas) - set(move.from_replicas)
    return bool(more) and more <= set(move.added) and set(move.from_replicas) <= set(partition.replicas)


def is_stage_done(paths: PlanPaths, stage: Stage, observed: Observed) -> bool:
    """Whether nothing of a stage is left to do."""
    match stage:
        case TopicsStage():
            changes = (paths.plan.topic_changes[position] for position in stage.changes)
            return all(standing(change, observed, paths).state is ChangeState.DONE for change in changes)
        case ReassignStage():
            is_moved = all(is_move_done(paths, stage, move, observed) for move in stage.moves)
            return is_moved and not elections_due(paths, stage, observed)
        case LogDirsStage():
            return are_dirs_done(stage, observed)
        case ElectStage():
            return not elections_due(paths, stage, observed)
        case _:
            assert_never(stage)


def stages_done(paths: PlanPaths, observed: Observed) -> int:
    """Return how many stages are done before the first that is not."""
    stages = paths.plan.stages
    undone = (index for index, stage in enumerate(stages) if not is_stage_done(paths, stage, observed))
    return next(undone, len(stages))


def is_move_done(paths: PlanPaths, stage: ReassignStage, move: Move, observed: Observed) -> bool:
    """Whether a partition is at a move's target in order and in sync, or further on."""
    place = paths.position(move.topic_partition, observed).move_place(paths.link(stage, move))
    return place is MovePlace.PAST or (place is MovePlace.AT_END and observed.is_in_sync(move))


def elections_due(paths: PlanPaths, stage: ReassignStage | ElectStage, observed: Observed) -> tuple[Election, ...]:
    """Return the elections of a stage whose leader does not lead; a partition that has moved on since needs none."""
    return tuple(election for election in stage.elections if _is_election_due(paths, stage, election, observed))


def _is_election_due(
    paths: PlanPaths, stage: ReassignStage | ElectStage, election: Election, observed: Observed
) -> bool:
    key = election.topic_partition
    partition = observed.partition(key)
    if partition is None or partition.leader == election.leader:
        # A partition that is gone keeps its election due: the stage must not pass for done.
        return partition is None
    if key not in paths.by_partition:
        return True
    return paths.position(key, observed).index <= paths.passed_with(stage.number, key)


def steps_to_do(paths: PlanPaths, observed: Observed) -> tuple[str, ...]:
    """Return a line for each thing that a run would do now, in order."""
    steps = tuple(
        f"stage {stage.number}: {line}" for stage in paths.plan.stages for line in _steps_of(paths, stage, observed)
    )
    if not steps or not paths.plan.cordoned:
        return steps
    brokers = labelled("broker", paths.plan.cordoned)
    return f"cordon the log dirs of {brokers}", *steps, f"put the cordon of {brokers} back to what it was"


def _steps_of(paths: PlanPaths, stage: Stage, observed: Observed) -> Iterator[str]:
    match stage:
        case TopicsStage():
            changes = (paths.plan.topic_changes[position] for position in stage.changes)
            due = (c for c in changes if standing(c, observed, paths).state is not ChangeState.DONE)
            yield from (_step_of_change(change) for change in due)
        case ReassignStage():
            yield from _steps_of_moves(paths, stage, observed)
            yield from _steps_of_elections(paths, stage, observed)
        case LogDirsStage():
            yield from _steps_of_dirs(stage, observed)
        case ElectStage():
            yield from _steps_of_elections(paths, stage, observed)
        case _:
            assert_never(stage)


def _steps_of_moves(paths: PlanPaths, stage: ReassignStage, observed: Observed) -> Iterator[str]:
    left = [move for move in stage.moves if not is_move_done(paths, stage, move, observed)]
    rates = wanted_rates(stage)
    if left and rates:
        yield f"throttle brokers {', '.join(map(str, rates))} to {rate(stage.throttle_bytes_per_second or 0)}"
    for move in left:
        flight = observed.reassignments.get(move.topic_partition)
        if flight is not None and flight.target_replicas == move.to_replicas:
            yield f"wait for {move.topic_partition}, which is on its way to {list(move.to_replicas)}"
            continue
        copies = f", copies {size(move.bytes)}" if move.added else ""
        yield f"move {move.topic_partition} {list(move.from_replicas)} -> {list(move.to_replicas)}{copies}"
    if left and rates:
        yield "put throttles back to what they were"


def _steps_of_dirs(stage: LogDirsStage, observed: Observed) -> Iterator[str]:
    left = [move for move in stage.moves if dir_place(move, observed) is not DirPlace.AT_END]
    rates = wanted_rates(replace(stage, moves=tuple(left)))
    if rates:
        told = rate(stage.throttle_bytes_per_second or 0)
        yield f"throttle copies between log dirs of {labelled('broker', rates)} to {told}"
    for move in left:
        if dir_place(move, observed) is DirPlace.MOVING:
            yield f"wait for {move}, which is on its way to {move.to_dir}"
        else:
            yield f"move {move} from {move.from_dir} to {move.to_dir}, copies {size(move.bytes)}"
    if rates:
        yield "put throttles back to what they were"


def _steps_of_elections(paths: PlanPaths, stage: ReassignStage | ElectStage, observed: Observed) -> Iterator[str]:
    for election in elections_due(paths, stage, observed):
        yield f"elect broker {election.leader} as leader of {election.topic_partition}"


def _step_of_change(change: TopicChange) -> str:
    match change:
        case CreateTopic():
            return f"create topic {change.topic}, {change.partitions} partitions x {change.replication_factor} replicas"
        case CreatePartitions():
            return f"grow topic {change.topic} from {change.from_count} to {change.to_count} partitions"
        case AlterConfigs():
            to_set = [f"{key}={value}" for key, value in sorted(change.set.items())]
            return f"configs of topic {change.topic}: {', '.join([*to_set, *(f'remove {k}' for k in change.delete)])}"
        case DeleteTopic():
            return f"delete topic {change.topic}"
        case _:
            assert_never(change)
