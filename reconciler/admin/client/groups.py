"""Consumer groups as they are: members, assignments, committed offsets."""

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import ConsumerProtocolAssignment, ConsumerProtocolSubscription, OffsetFetchRequest

from reconciler.admin.client.errors import AUTHORIZATION_FAILED, NONE, missing_right
from reconciler.admin.client.wire import Wire, batches
from reconciler.model.cluster import Group, GroupMember

if TYPE_CHECKING:
    from kafka.protocol.admin import DescribeGroupsResponse, ListGroupsResponse
    from kafka.protocol.consumer import OffsetFetchResponse

CONSUMER = "consumer"
CLASSIC = "classic"
GROUPS_A_REQUEST = 500
# KIP-709: from version 8 on one request asks for many groups; topic names go up to version 9.
MANY_GROUPS, NAMED_TOPICS = 8, 9

Offsets = dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True)
class _Listed:
    """A group as its coordinator lists it."""

    group_id: str
    state: str
    kind: str
    protocol_type: str
    coordinator: int


def groups(wire: Wire, alive: Collection[int]) -> tuple[Group, ...]:
    """Return every group this user may see; members of KIP-848 groups are not told, their state and offsets are."""
    listed = _list(wire, alive)
    found: list[Group] = []
    for coordinator in sorted({group.coordinator for group in listed}):
        of_one = [group for group in listed if group.coordinator == coordinator]
        for some in batches(of_one, GROUPS_A_REQUEST):
            described = _describe(wire, coordinator, [group.group_id for group in some if group.kind == CLASSIC])
            committed = _offsets(wire, coordinator, [group.group_id for group in some])
            found += [_group(group, described.get(group.group_id), committed.get(group.group_id, {})) for group in some]
    return tuple(sorted(found, key=lambda group: group.group_id))


def _list(wire: Wire, alive: Collection[int]) -> list[_Listed]:
    """Ask every broker: each lists the groups that it coordinates."""
    answers = wire.read_each(dict.fromkeys(sorted(alive), ListGroupsRequest))
    return [_listed(told, broker) for broker, answer in answers.items() for told in answer.groups]


def _listed(told: "ListGroupsResponse.ListedGroup", broker: int) -> _Listed:
    kind = (told.group_type or CLASSIC).lower()  # brokers before 3.8 do not tell it
    return _Listed(told.group_id, told.group_state or "", kind, told.protocol_type or "", broker)


def _describe(
    wire: Wire, coordinator: int, group_ids: list[str]
) -> Mapping[str, "DescribeGroupsResponse.DescribedGroup"]:
    if not group_ids:
        return {}
    answer = wire.read(lambda: DescribeGroupsRequest(groups=group_ids), coordinator)
    hidden = [group.group_id for group in answer.groups if group.error_code in AUTHORIZATION_FAILED]
    if hidden:
        raise missing_right("Describe", "group", hidden, "Reading a consumer group")
    return {group.group_id: group for group in answer.groups if group.error_code == NONE}


def _offsets(wire: Wire, coordinator: int, group_ids: list[str]) -> dict[str, Offsets]:
    if wire.is_supported(OffsetFetchRequest, MANY_GROUPS):
        form = OffsetFetchRequest.OffsetFetchRequestGroup
        asked = [form(group_id=group_id, topics=None) for group_id in group_ids]
        answer = wire.read(lambda: OffsetFetchRequest(groups=asked, max_version=NAMED_TOPICS), coordinator)
        return {told.group_id: _committed(told) for told in answer.groups}
    builds = {group_id: partial(OffsetFetchRequest, group_id=group_id, topics=None) for group_id in group_ids}
    return {group_id: _committed(wire.read(build, coordinator)) for group_id, build in builds.items()}


def _committed(told: "OffsetFetchResponse") -> Offsets:
    if told.error_code in AUTHORIZATION_FAILED:
        raise missing_right("Describe", "group", [told.group_id], "Reading committed offsets")
    found = {
        topic.name: {
            partition.partition_index: partition.committed_offset
            for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
            if partition.error_code == NONE and partition.committed_offset >= 0
        }
        for topic in sorted(told.topics or (), key=lambda topic: topic.name)
    }
    return {topic: offsets for topic, offsets in found.items() if offsets}


def _group(listed: _Listed, described: "DescribeGroupsResponse.DescribedGroup | None", offsets: Offsets) -> Group:
    if described is None:
        return Group(listed.group_id, listed.state, coordinator=listed.coordinator, offsets=offsets)
    is_consumer = (described.protocol_type or listed.protocol_type) == CONSUMER
    members = (_member(told, is_consumer=is_consumer) for told in described.members)
    return Group(
        group_id=listed.group_id,
        state=described.group_state or listed.state,
        protocol=described.protocol_data or "",
        coordinator=listed.coordinator,
        members=tuple(sorted(members, key=lambda member: member.member_id)),
        offsets=offsets,
    )


def _member(told: "DescribeGroupsResponse.DescribedGroup.DescribedGroupMember", *, is_consumer: bool) -> GroupMember:
    subscription = _decoded(ConsumerProtocolSubscription, told.member_metadata) if is_consumer else None
    assignment = _decoded(ConsumerProtocolAssignment, told.member_assignment) if is_consumer else None
    return GroupMember(
        member_id=told.member_id,
        client_id=told.client_id or "",
        host=(told.client_host or "").removeprefix("/"),
        instance_id=told.group_instance_id,
        rack=getattr(subscription, "rack_id", None),
        subscription=tuple(sorted(subscription.topics)) if subscription is not None else (),
        assignment=_assigned(assignment) if assignment is not None else {},
    )


def _assigned(assignment: ConsumerProtocolAssignment) -> dict[str, tuple[int, ...]]:
    return {topic: tuple(sorted(partitions)) for topic, partitions in sorted(assignment.assigned_partitions)}


def _decoded(form: type[ConsumerProtocolSubscription], data: bytes | None) -> ConsumerProtocolSubscription | None:
    """Return the decoded bytes, None where they are not what the group's protocol type promises."""
    if not data:
        return None
    try:
        return form.decode(data)
    except (ValueError, IndexError, struct.error, UnicodeDecodeError):
        return None
