"""The least time that any packing of a plan's moves could take: what the packing is measured against."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest

from reconciler.model.cluster import Cluster
from reconciler.model.desired import MovePolicy
from reconciler.model.move import Move
from reconciler.model.stage import Stage
from reconciler.staging.estimate import busiest_broker_seconds, seconds, served_moves


def least_seconds(stages: Sequence[Stage], observed: Cluster, policy: MovePolicy) -> int:
    """Return what the busiest broker of the whole run needs, or more where `per_stage` forces it.

    As at most so many moves share a stage, the stages take at least as long as the largest of them, the next one after
    so many, and so on. And the two largest that one broker takes in, or serves, share a stage as long as both, or make
    two stages long.
    """
    served = [(move, source) for move, source in served_moves(stages, observed) if move.added]
    loads = sorted((move.bytes // len(move.added) for move, _ in served), reverse=True)
    forced = loads[:: policy.per_stage]
    together = max((_with_two(forced, pair) for pair in _largest_pairs(served)), default=sum(forced))
    return max(
        busiest_broker_seconds(served_moves(stages, observed), policy),
        seconds(together, policy.throttle_bytes_per_second),
    )


def _largest_pairs(served: Iterable[tuple[Move, int | None]]) -> Iterator[tuple[int, int]]:
    """Yield the two largest of what each broker takes in, and of what it gives out."""
    loads: defaultdict[tuple[int, bool], list[int]] = defaultdict(list)
    for move, source in served:
        for broker_id in move.added:
            loads[broker_id, False].append(move.bytes // len(move.added))
        if source is not None:
            loads[source, True].append(move.bytes)
    for several in loads.values():
        first, second, *_ = *nlargest(2, several), 0
        yield first, second


def _with_two(lengths: Sequence[int], pair: tuple[int, int]) -> int:
    """Return the least sum of lengths where two moves of one broker have to fit in as well."""
    (longest, next_longest), rest = (*lengths[:2], 0, 0)[:2], lengths[2:]
    apart = max(longest, pair[0]) + max(next_longest, pair[1])
    at_once = max(longest, sum(pair)) + next_longest
    return min(apart, at_once) + sum(rest)
