"""How far a group is behind: the log end offset less the commit, for all that it owns or has committed."""

from collections.abc import Mapping

from reconciler.groups.model.state import PartitionLag
from reconciler.model.cluster import Group
from reconciler.model.topic_partition import TopicPartition


def partition_lags(group: Group, ends: Mapping[TopicPartition, int]) -> tuple[PartitionLag, ...]:
    """Return one entry for each partition that a member owns or the group has a commit of, by topic and number."""
    owners = {
        TopicPartition(topic, partition): member.member_id
        for member in group.members
        for topic, partitions in member.assignment.items()
        for partition in partitions
    }
    committed = group.committed
    return tuple(
        PartitionLag(key, committed.get(key), ends.get(key), owners.get(key)) for key in sorted({*owners, *committed})
    )
