"""The least time that any packing of a plan's moves could take: what the packing is measured against."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from reconciler.model.cluster import Cluster
from reconciler.model.desired import MovePolicy
from reconciler.model.move import Move
from reconciler.model.stage import ReassignStage, Stage
from reconciler.staging.estimate import busiest_bytes, seconds
from reconciler.staging.replay import served_moves


def busiest_broker_seconds(stages: Sequence[Stage], observed: Cluster, policy: MovePolicy) -> int:
    """Return the whole run's busiest broker's bytes in, or out of the leaders that serve them, over the rate."""
    return seconds(busiest_bytes(served_moves(stages, observed)), policy.throttle_bytes_per_second)


def lower_bound_seconds(stages: Sequence[Stage], observed: Cluster, policy: MovePolicy) -> int:
    """Return the same, or more where the limits on what runs at once force it.

    Where at most k of some moves share a stage, the stages take at least as long as the largest of them, the k-th
    next, and so on: k is `per_broker` for those that arrive at, or leave, one broker, and `per_stage` for all.
    """
    moves = [move for stage in stages if isinstance(stage, ReassignStage) for move in stage.moves if move.added]
    forced = max(_forced(moves, policy), default=0)
    return max(busiest_broker_seconds(stages, observed, policy), seconds(forced, policy.throttle_bytes_per_second))


def _forced(moves: Iterable[Move], policy: MovePolicy) -> Iterable[int]:
    """Yield the bytes that each limit makes some broker wait for, one stage after the other."""
    arriving: defaultdict[int, list[int]] = defaultdict(list)
    leaving: defaultdict[int, list[int]] = defaultdict(list)
    everything = []
    for move in moves:
        load = move.bytes // len(move.added)
        everything.append(load)
        for broker_id in move.added:
            arriving[broker_id].append(load)
        for broker_id in move.removed:
            leaving[broker_id].append(load)
    yield sum(sorted(everything, reverse=True)[:: policy.per_stage])
    for loads in (*arriving.values(), *leaving.values()):
        yield sum(sorted(loads, reverse=True)[:: policy.per_broker])
