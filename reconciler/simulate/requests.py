"""Answers requests about partitions and groups as Kafka does, each item by itself."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from reconciler.model.cluster import Cluster, Group, Partition
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.controller import MAX_RECORDS, Denied, Outcome, controller_of
from reconciler.simulate.partition import cancelled, reassigned, with_preferred_leader
from reconciler.simulate.storage import with_partitions

EMPTY = "Empty"  # the state of a group without members
HAS_MEMBERS = Denied("UNKNOWN_MEMBER_ID", "The coordinator is not aware of this member.")
NO_PARTITION = Denied("UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition.")
NO_ID = Denied("INVALID_GROUP_ID", "The group id is invalid.")
NOT_EMPTY = Denied("NON_EMPTY_GROUP", "The group is not empty.")
NO_GROUP = Denied("GROUP_ID_NOT_FOUND", "The group id does not exist.")


def reassign(
    cluster: Cluster,
    targets: Mapping[TopicPartition, Sequence[int] | None],
    *,
    is_replication_factor_change_allowed: bool = True,
) -> Outcome[TopicPartition]:
    """Submit targets; None cancels. Beyond the controller's limit an item fails, those before it stand."""
    controller = controller_of(cluster)
    changed: dict[TopicPartition, Partition] = {}
    answers: dict[TopicPartition, Denied | None] = {}
    for key, target in targets.items():
        partition = cluster.partition(key)
        if partition is None:
            what = (
                f"a topic named {key.topic}"
                if key.topic not in cluster.topics
                else f"partition {key.topic}:{key.partition}"
            )
            answers[key] = Denied("UNKNOWN_TOPIC_OR_PARTITION", f"Unable to find {what}.")
            continue
        result = (
            cancelled(key, partition, controller)
            if target is None
            else reassigned(
                partition, target, controller, is_replication_factor_change_allowed=is_replication_factor_change_allowed
            )
        )
        if not isinstance(result, Denied) and len(changed) == MAX_RECORDS:
            result = Denied("UNKNOWN_SERVER_ERROR")
        answers[key] = result if isinstance(result, Denied) else None
        if not isinstance(result, Denied):
            changed[key] = result
    return Outcome(with_partitions(cluster, changed), answers)


def elect_preferred_leaders(cluster: Cluster, topic_partitions: Collection[TopicPartition]) -> Outcome[TopicPartition]:
    """Elect the first replicas. Beyond the controller's limit all are answered as failed, though all may be done."""
    controller = controller_of(cluster)
    changed: dict[TopicPartition, Partition] = {}
    answers: dict[TopicPartition, Denied | None] = {}
    for key in topic_partitions:
        partition = cluster.partition(key)
        if partition is None:
            what = f"topic as {key.topic}" if key.topic not in cluster.topics else f"partition as {key}"
            answers[key] = Denied("UNKNOWN_TOPIC_OR_PARTITION", f"No such {what}")
            continue
        result = with_preferred_leader(partition, controller)
        answers[key] = result if isinstance(result, Denied) else None
        if not isinstance(result, Denied):
            changed[key] = result
    if len(changed) >= MAX_RECORDS:
        answers = dict.fromkeys(answers, Denied("UNKNOWN_SERVER_ERROR"))
    return Outcome(with_partitions(cluster, changed), answers)


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
