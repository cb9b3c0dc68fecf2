"""Estimates how long stages take, and computes the least that any packing of the same moves could take.

A broker's throttle counts each direction by itself, so a stage takes as long as its busiest broker needs for the bytes
that it takes in, or gives out as leader.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest

from reconciler.model.cluster import Cluster
from reconciler.model.desired import MovePolicy
from reconciler.model.move import Move
from reconciler.model.stage import ElectStage, ReassignStage, Stage
from reconciler.model.topic_partition import TopicPartition

# Without a throttle nobody knows the rate: about what one gigabit of network carries.
ASSUMED_BYTES_PER_SECOND = 100 * 1024 * 1024


def busiest_bytes(copies: Iterable[tuple[Move, int | None]]) -> int:
    """Return the most bytes that one broker takes in or gives out, for moves with the leader that serves each."""
    arriving: Counter[int] = Counter()
    leaving: Counter[int] = Counter()
    for move, source in copies:
        added = move.added
        for broker_id in added:
            arriving[broker_id] += move.bytes // len(added)
        if source is not None and added:
            leaving[source] += move.bytes
    return max(max(arriving.values(), default=0), max(leaving.values(), default=0))


def seconds(size: int, throttle_bytes_per_second: int | None) -> int:
    """Return the whole seconds that so many bytes take on one broker, in one direction."""
    return -(-size // (throttle_bytes_per_second or ASSUMED_BYTES_PER_SECOND))


def stage_seconds(busiest: int, throttle_bytes_per_second: int | None, *, is_copying: bool) -> int:
    """Return a stage's estimate: at least a second where anything is copied, none for orders alone."""
    return max(1, seconds(busiest, throttle_bytes_per_second)) if is_copying else 0


def served_moves(stages: Sequence[Stage], observed: Cluster) -> Iterator[tuple[Move, int | None]]:
    """Yield every move in order, with the leader that serves its copies; None where the partition has none."""
    leaders: dict[TopicPartition, int | None] = {}
    for stage in stages:
        if isinstance(stage, ReassignStage):
            for move in stage.moves:
                leader = _leader(move.topic_partition, leaders, observed)
                yield move, leader
                leaders[move.topic_partition] = leader if leader in move.to_replicas else move.to_replicas[0]
        elif isinstance(stage, ElectStage):
            leaders.update({election.topic_partition: election.leader for election in stage.elections})


def _leader(
    topic_partition: TopicPartition, leaders: dict[TopicPartition, int | None], observed: Cluster
) -> int | None:
    if topic_partition in leaders:
        return leaders[topic_partition]
    partition = observed.partition(topic_partition)
    return partition.leader if partition else None


def busiest_broker_seconds(stages: Sequence[Stage], observed: Cluster, policy: MovePolicy) -> int:
    """Return the whole run's busiest broker's bytes in, or out of the leaders that serve them, over the rate."""
    return seconds(busiest_bytes(served_moves(stages, observed)), policy.throttle_bytes_per_second)


def lower_bound_seconds(stages: Sequence[Stage], observed: Cluster, policy: MovePolicy) -> int:
    """Return the same, or more where the limits on what runs at once force it.

    Where at most k of some moves share a stage, the stages take at least as long as the largest of them, the k-th
    next, and so on: k is `per_broker` for those that arrive at, or leave, one broker, and `per_stage` for all. And the
    two largest that one broker takes in, or serves, share a stage as long as both, or make two stages long.
    """
    served = [(move, source) for move, source in served_moves(stages, observed) if move.added]
    forced = max(_forced([move for move, _ in served], policy), key=sum, default=[])
    together = max((_with_two(forced, pair) for pair in _largest_pairs(served)), default=sum(forced))
    return max(busiest_broker_seconds(stages, observed, policy), seconds(together, policy.throttle_bytes_per_second))


def _forced(moves: Iterable[Move], policy: MovePolicy) -> Iterator[list[int]]:
    """Yield, for each limit, the least lengths of the stages that it makes necessary, the longest first."""
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
    yield sorted(everything, reverse=True)[:: policy.per_stage]
    for loads in (*arriving.values(), *leaving.values()):
        yield sorted(loads, reverse=True)[:: policy.per_broker]


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
