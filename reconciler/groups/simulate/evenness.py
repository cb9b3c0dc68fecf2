"""How even an assignment is, and what moved from one to the next, in plain sums."""

from collections.abc import Mapping, Sequence

from reconciler.groups.model.scenario import Member
from reconciler.groups.model.simulation import Stats, pair_score
from reconciler.model.assignment import Assignment
from reconciler.model.topic_partition import TopicPartition

Identity = tuple[bool, str]
Owners = Mapping[tuple[str, int], Identity]
"""(topic, partition) -> who owns it."""


def stats_of(members: Sequence[Member], assignment: Assignment, before: Owners | None) -> Stats:
    """Return how even the assignment is over these members, and how much moved between those that were there before."""
    counts = sorted(partition_counts(assignment).values())
    moved = None if before is None else len(moved_partitions(members, assignment, before))
    return Stats(counts[-1] if counts else 0, counts[0] if counts else 0, pair_score(counts), moved)


def partition_counts(assignment: Assignment) -> dict[str, int]:
    """Return how many partitions each member has."""
    return {member_id: sum(map(len, topics.values())) for member_id, topics in assignment.items()}


def owners(members: Sequence[Member], assignment: Assignment) -> dict[tuple[str, int], Identity]:
    """Return who owns each partition, by identity."""
    return {
        (topic, partition): member.identity
        for member in members
        for topic, partitions in assignment[member.member_id].items()
        for partition in partitions
    }


def moved_partitions(members: Sequence[Member], assignment: Assignment, before: Owners) -> list[TopicPartition]:
    """Return the partitions whose owner before is still a member and that now belong to another, sorted."""
    there = {member.identity for member in members}
    now = owners(members, assignment)
    return sorted(
        TopicPartition(*key) for key, owner in before.items() if owner in there and now.get(key, owner) != owner
    )
