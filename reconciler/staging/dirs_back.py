"""Plans what goes back between the log dirs of brokers where a plan is undone: only what that plan has moved there."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, takewhile

from reconciler.model.cluster import Cluster, LogDir
from reconciler.model.desired import MovePolicy
from reconciler.model.move import DirMove, Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, warning
from reconciler.model.stage import LogDirsStage, ReassignStage, Stage, numbered
from reconciler.model.words import size
from reconciler.staging.dir_stages import dir_stages


def dir_moves_of(plan: Plan) -> Iterator[DirMove]:
    """Return what a plan moves between log dirs, in order."""
    return chain.from_iterable(stage.moves for stage in plan.stages if isinstance(stage, LogDirsStage))


def dirs_back(undone: Plan, observed: Cluster) -> tuple[list[DirMove], list[Problem]]:
    """Return what takes the replicas that a plan has moved to other log dirs back; the last moved goes first.

    And what is left alone, or cannot go back now.
    """
    moves, left, needed = list[DirMove](), list[Problem](), Counter[tuple[int, str]]()
    for move in reversed(tuple(dir_moves_of(undone))):
        partition = observed.partition(move.topic_partition)
        if partition is None or move.broker not in partition.replicas:
            continue  # what else the plan did to it is told where that is undone
        broker = observed.brokers.get(move.broker)
        log_dirs = {one.path: one for one in broker.log_dirs} if broker is not None else {}
        now = dict(zip(partition.replicas, partition.log_dirs, strict=False)).get(move.broker)
        if now == move.from_dir:
            continue
        if now is not None and now != move.to_dir:
            text = f"{move} is in {now}, where this plan never put it: somebody else moved it, so it is left alone"
            left.append(warning("KR854", text))
            continue
        bytes_back = partition.size_on(move.broker)
        needed[move.broker, move.from_dir] += bytes_back or 0
        why = _obstacle(move, now, log_dirs.get(move.from_dir), observed, needed[move.broker, move.from_dir])
        if why is not None:
            text = f"{move} cannot go back to {move.from_dir} now: {why}"
            left.append(warning("KR856", f"{text}. See to that and roll back again, or go on with apply"))
            needed[move.broker, move.from_dir] -= bytes_back or 0
            continue
        way, is_known = (move.to_dir, move.from_dir), bytes_back is not None
        moves.append(DirMove(*move.replica, *way, bytes_back or 0, Reason.LOG_DIRS, is_size_known=is_known))
    return moves, left


def _obstacle(move: DirMove, now: str | None, goal: LogDir | None, observed: Cluster, needed: int) -> str | None:
    if not observed.is_alive(move.broker):
        return f"broker {move.broker} is not alive"
    if now is None or goal is None or goal.is_offline:
        return f"broker {move.broker} does not tell of {'it' if now is None else 'that log dir'}"
    if goal.usable_bytes is not None and needed > goal.usable_bytes:
        return f"that takes {size(needed)} there, and {size(goal.usable_bytes)} are left"
    return None


def with_dirs_back(
    undone: Plan, stages: Sequence[Stage], moves: Sequence[DirMove], policy: MovePolicy
) -> tuple[Stage, ...]:
    """Return the stages with these moves beside them, in the order that turns the undone plan's round."""
    # What went between log dirs before anything else moved made room for it: it goes back after that.
    first = takewhile(lambda stage: not isinstance(stage, ReassignStage), undone.stages)
    made_room = {move.replica for stage in first if isinstance(stage, LogDirsStage) for move in stage.moves}
    late = [move for move in moves if move.replica in made_room]
    early = [move for move in moves if move.replica not in made_room]
    return numbered([*dir_stages([early], policy), *stages, *dir_stages([late], policy)])
