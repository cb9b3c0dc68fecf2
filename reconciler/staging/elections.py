"""Which preferred leaders are elected, in which request."""

from collections import Counter
from collections.abc import Mapping, Sequence

from reconciler.model.cluster import Cluster
from reconciler.model.move import Election, Move
from reconciler.model.topic_partition import TopicPartition


def batched(elections: Sequence[Election], election_batch: int) -> tuple[tuple[Election, ...], ...]:
    """Return requests of at most so many elections, each spread over the new leaders as evenly as can be."""
    seen: Counter[int] = Counter()
    turns = []
    for election in sorted(elections, key=lambda election: election.topic_partition):
        turns.append((seen[election.leader], election.leader, election.topic_partition, election))
        seen[election.leader] += 1
    spread = [election for _, _, _, election in sorted(turns)]
    return tuple(tuple(spread[start : start + election_batch]) for start in range(0, len(spread), election_batch))


def due_now(
    elections: Sequence[Election], moves: Mapping[TopicPartition, Move], observed: Cluster
) -> tuple[tuple[Election, ...], tuple[Election, ...]]:
    """Return the elections to hold before any move, and those that cannot be held, their leader not being in sync.

    One whose partition then moves to another preferred leader would be undone at once: it is in neither.
    """
    due: list[Election] = []
    skipped: list[Election] = []
    for election in sorted(elections, key=lambda election: election.topic_partition):
        move = moves.get(election.topic_partition)
        if move is not None and move.to_replicas[:1] != (election.leader,):
            continue
        (due if _is_in_sync(election, observed) else skipped).append(election)
    return tuple(due), tuple(skipped)


def _is_in_sync(election: Election, observed: Cluster) -> bool:
    partition = observed.partition(election.topic_partition)
    return partition is not None and election.leader in partition.isr and observed.is_alive(election.leader)
