"""Estimates how long stages take, and how long their busiest broker needs at least.

A broker's throttle counts each direction by itself (KIP-73), so a stage takes as long as its busiest broker needs for
the bytes that it takes in, or gives out as leader.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

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
                # A reassignment moves the leadership only if its leader is not in the target; then the first one leads.
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
