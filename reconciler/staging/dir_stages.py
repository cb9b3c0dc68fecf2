"""Puts moves inside brokers into stages: before all others where they make room for what arrives, else after them.

Where a plan is undone, those go back that it has moved.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, takewhile

from reconciler.model.cluster import Cluster, LogDir
from reconciler.model.desired import MovePolicy
from reconciler.model.move import DirMove, Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, warning
from reconciler.model.stage import LogDirsStage, ReassignStage, Stage, numbered
from reconciler.model.words import size
from reconciler.staging.disk import DiskUse
from reconciler.staging.estimate import SECONDS_A_COPY, SECONDS_A_STAGE, seconds
from reconciler.staging.log_dirs import BrokerDirs
from reconciler.staging.step import Step


def dir_stages(sets: Iterable[Sequence[DirMove]], policy: MovePolicy) -> Iterator[LogDirsStage]:
    """Yield stages of these sets, each of which is safe whatever part of it is done, and so is a part of one."""
    for some in sets:
        for start in range(0, len(some), policy.per_stage):
            moves = tuple(some[start : start + policy.per_stage])
            rate = policy.throttle_bytes_per_second
            yield LogDirsStage(0, moves, rate, SECONDS_A_STAGE + _seconds(moves, policy))


def _seconds(moves: Sequence[DirMove], policy: MovePolicy) -> int:
    """Return how long the busiest broker copies: each has the rate of the throttle for itself."""
    copied, counts = Counter[int](), Counter(move.broker for move in moves)
    for move in moves:
        copied[move.broker] += move.bytes
    copying = seconds(max(copied.values()), policy.throttle_bytes_per_second)
    return max(copying, SECONDS_A_COPY * -(-max(counts.values()) // policy.per_broker))


def makes_room(moves: Sequence[DirMove], steps: Iterable[Step], disk: DiskUse) -> frozenset[int]:
    """Return the brokers whose moves inside have to end before their new replicas come: else a log dir is overfull."""
    coming: dict[int, Counter[str]] = {}
    for step in steps:
        for broker_id in step.added if step.move.log_dirs else ():
            if broker_id in step.move.log_dirs:
                coming.setdefault(broker_id, Counter())[step.move.log_dirs[broker_id]] += step.load
    tried = disk.copy()
    found = set[int]()
    for broker_id in sorted(coming.keys() & {move.broker for move in moves}):
        late = _too_much(tried.dirs[broker_id], coming[broker_id])
        if late:
            tried.moved_inside([move for move in moves if move.broker == broker_id])
            early = tried.dirs[broker_id].excess + _too_much(tried.dirs[broker_id], coming[broker_id])
            found.update({broker_id} if early < late else ())
    return frozenset(found)


def _too_much(dirs: BrokerDirs, coming: Mapping[str, int]) -> int:
    return sum(dirs.over(path, size) for path, size in coming.items())


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
