"""What the coordinator does with a group that has no members: takes offsets from outside, lets itself be deleted."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from reconciler.model.cluster import Cluster, Group
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.answers import Denied, Outcome

EMPTY = "Empty"
HAS_MEMBERS = Denied("UNKNOWN_MEMBER_ID", "The coordinator is not aware of this member.")
NO_PARTITION = Denied("UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition.")
NO_ID = Denied("INVALID_GROUP_ID", "The group id is invalid.")
NOT_EMPTY = Denied("NON_EMPTY_GROUP", "The group is not empty.")
NO_GROUP = Denied("GROUP_ID_NOT_FOUND", "The group id does not exist.")


def commit_offsets(cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int]) -> Outcome[TopicPartition]:
    """Commit offsets without a member id; a group that was not there begins with them."""
    group = next((each for each in cluster.groups if each.group_id == group_id), None)
    answers: dict[TopicPartition, Denied | None] = dict.fromkeys(offsets)
    if not group_id or (group is not None and group.members):
        return Outcome(cluster, dict.fromkeys(answers, HAS_MEMBERS if group_id else NO_ID))
    answers |= {key: NO_PARTITION for key in offsets if cluster.partition(key) is None}
    taken = {key: offset for key, offset in offsets.items() if answers[key] is None}
    if not taken:
        return Outcome(cluster, answers)
    changed = _with_offsets(group or Group(group_id, EMPTY, protocol_type=""), taken)
    others = [each for each in cluster.groups if each.group_id != group_id]
    return Outcome(replace(cluster, groups=_sorted([*others, changed])), answers)


def delete_groups(cluster: Cluster, group_ids: Collection[str]) -> Outcome[str]:
    """Delete groups that have no members."""
    groups = {group.group_id: group for group in cluster.groups}
    answers: dict[str, Denied | None] = dict.fromkeys(group_ids)
    for group_id in group_ids:
        if group_id not in groups:
            answers[group_id] = NO_GROUP
        elif groups[group_id].members:
            answers[group_id] = NOT_EMPTY
    kept = [group for group in cluster.groups if answers.get(group.group_id, NO_GROUP) is not None]
    return Outcome(replace(cluster, groups=_sorted(kept)), answers)


def _with_offsets(group: Group, taken: Mapping[TopicPartition, int]) -> Group:
    by_topic = {topic: dict(offsets) for topic, offsets in group.offsets.items()}
    for (topic, partition), offset in taken.items():
        by_topic.setdefault(topic, {})[partition] = offset
    return replace(group, offsets={topic: dict(sorted(by_topic[topic].items())) for topic in sorted(by_topic)})


def _sorted(groups: Collection[Group]) -> tuple[Group, ...]:
    return tuple(sorted(groups, key=lambda group: group.group_id))
