"""Groups as JSON for programs: as they are, and what a reset or a deletion would do; what is unknown is null."""

from collections.abc import Iterable, Sequence

from reconciler.groups.model.state import GroupDeletion, GroupReset, GroupState, PartitionLag
from reconciler.model.cluster import GroupMember
from reconciler.model.problem import Problem
from reconciler.render.as_json import document, problem_object


def overview(seen: Sequence[GroupState], warnings: Iterable[Problem] = ()) -> str:
    """Return `groups`, each with kind, state, assignor, member count, coordinator and total lag."""
    groups = [_head(each) | {"members": len(each.group.members)} for each in seen]
    return document({"groups": groups, "warnings": [problem_object(problem) for problem in warnings]})


def described(seen: Sequence[GroupState], warnings: Iterable[Problem] = ()) -> str:
    """Return `groups`, each with its members, what they own, and the lag of each partition."""
    groups = [
        _head(each)
        | {
            "members": [_member(member) for member in each.group.members],
            "partitions": [_lag(lag) for lag in each.lags],
        }
        for each in seen
    ]
    return document({"groups": groups, "warnings": [problem_object(problem) for problem in warnings]})


def lags(seen: Sequence[GroupState], warnings: Iterable[Problem] = ()) -> str:
    """Return `groups`, each with the lag of each partition."""
    groups = [_head(each) | {"partitions": [_lag(lag) for lag in each.lags]} for each in seen]
    return document({"groups": groups, "warnings": [problem_object(problem) for problem in warnings]})


def resets(planned: Sequence[GroupReset], warnings: Iterable[Problem] = (), *, is_done: bool) -> str:
    """Return `executed`, and `groups` with each partition's commit before and after, `error` where it was refused."""
    groups = [
        {
            "groupId": each.group_id,
            "offsets": [
                {
                    "topic": change.topic_partition.topic,
                    "partition": change.topic_partition.partition,
                    "committed": change.old,
                    "new": change.new,
                    "latest": change.latest,
                    "lag": change.lag,
                    "error": each.refused.get(change.topic_partition),
                }
                for change in each.changes
            ],
        }
        for each in planned
    ]
    return document(
        {"executed": is_done, "groups": groups, "warnings": [problem_object(problem) for problem in warnings]}
    )


def deletions(planned: Sequence[GroupDeletion], *, is_done: bool) -> str:
    """Return `executed`, and `groups` with the commits that go with each, `error` where it was not deleted."""
    groups = [
        {
            "groupId": each.group.group_id,
            "state": each.group.state,
            "committedOffsets": len(each.group.committed),
            "error": each.refused,
        }
        for each in planned
    ]
    return document({"executed": is_done, "groups": groups})


def _head(seen: GroupState) -> dict[str, object]:
    group = seen.group
    return {
        "groupId": group.group_id,
        "type": group.kind,
        "protocolType": group.protocol_type,
        "state": group.state or None,
        "assignor": group.protocol or None,
        "coordinator": group.coordinator,
        "coordinatorHost": seen.coordinator_host,
        "coordinatorAfterPlan": seen.coordinator_after,
        "offsetsPartition": seen.offsets_partition,
        "totalLag": seen.total_lag,
    }


def _member(member: GroupMember) -> dict[str, object]:
    return {
        "memberId": member.member_id,
        "clientId": member.client_id,
        "host": member.host,
        "instanceId": member.instance_id,
        "rack": member.rack,
        "subscription": list(member.subscription),
        "subscriptionPattern": member.subscription_pattern,
        "assignment": {topic: list(partitions) for topic, partitions in sorted(member.assignment.items())},
    }


def _lag(each: PartitionLag) -> dict[str, object]:
    return {
        "topic": each.topic_partition.topic,
        "partition": each.topic_partition.partition,
        "committed": each.committed,
        "end": each.end,
        "lag": each.lag,
        "memberId": each.member_id,
    }
