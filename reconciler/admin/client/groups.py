"""Reads consumer groups: members, assignments, committed offsets; each group is asked of its own coordinator."""

import struct
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer import ConsumerProtocolAssignment, ConsumerProtocolSubscription, OffsetFetchRequest

from reconciler.admin.client import messages
from reconciler.admin.client.errors import AUTHORIZATION_FAILED, NONE, missing_right, name_of
from reconciler.admin.client.wire import Wire, batches, tries
from reconciler.model.cluster import CLASSIC, CONSUMER, Group, GroupMember
from reconciler.model.lock import LOCK_GROUP
from reconciler.model.problem import ClusterUnavailable
from reconciler.model.words import named_some

if TYPE_CHECKING:
    from kafka.protocol.admin import DescribeGroupsResponse, ListGroupsResponse
    from kafka.protocol.consumer import OffsetFetchResponse

GROUPS_A_REQUEST = 100  # Kafka keeps at most 1 MB of a group by default, so that any answer is read (ANSWER_BYTES)
# KIP-709: from version 8 on one request asks for many groups; topic names go up to version 9.
MANY_GROUPS, NAMED_TOPICS = 8, 9
# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR: ask again, perhaps another broker.
ELSEWHERE = frozenset({14, 15, 16})
GROUP_ID_NOT_FOUND = 69
DEAD = "Dead"
WITHOUT_OFFSETS = "share"
# What the assignors that Kafka ships write into user data repeats what members own; of large groups it is megabytes.
KAFKAS_OWN = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})

Offsets = dict[str, dict[int, int]]


# kafka-python knows the requests of KIP-848 by number only. The library is untyped: neither ApiMessage nor the argument
# of its metaclass is known to mypy.
class ConsumerGroupDescribeRequest(ApiMessage, load_json=messages):  # type: ignore[misc, call-arg]
    """Asks a coordinator for its KIP-848 groups (API 69)."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=messages):  # type: ignore[misc, call-arg]
    """What a KIP-848 group looks like: its server-side assignor, and each member with what it owns by now."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """A group as its coordinator lists it."""

    group_id: str
    state: str
    kind: str
    protocol_type: str
    coordinator: int


def groups(wire: Wire, alive: Collection[int]) -> tuple[Group, ...]:
    """Return every group; those of a broker that does not answer are left out.

    Raises MissingRight where some may not be described, with the names of all of them, and ClusterUnavailable where a
    coordinator stays busy: a group is never shown without the members that it has.
    """
    return tuple(_until_told(wire, lambda: _list(wire, alive)).values())


def all_groups(
    wire: Wire, alive: Collection[int], group_ids: Collection[str] | None = None, but: Collection[str] = ()
) -> dict[str, Group]:
    """Return these groups, or every one `but` some; one that does not exist is left out.

    Raises ClusterUnavailable where a broker does not list its groups or a coordinator stays busy, and MissingRight,
    with all their names, for groups that may not be described.
    """
    if group_ids is None:
        return _until_told(wire, lambda: [one for one in _list_of_each(wire, alive) if one.group_id not in but])
    wanted = frozenset(group_ids)
    found = _until_told(wire, lambda: [each for each in _list_of_each(wire, alive) if each.group_id in wanted])
    _check_for_hidden_groups(wire, sorted(wanted - found.keys()))
    return found


def _until_told(wire: Wire, listing: Callable[[], Collection[_Listed]]) -> dict[str, Group]:
    """Return the groups that are listed; one whose coordinator is busy or has moved is listed and asked for again."""
    found: dict[str, Group] = {}
    hidden: set[str] = set()
    elsewhere: Mapping[str, int] = {}
    for _ in tries(wire.retry_seconds):
        read = _read(wire, [each for each in listing() if each.group_id not in {*found, *hidden}])
        found |= {group.group_id: group for group in read.found if group.group_id not in read.elsewhere}
        hidden |= read.hidden
        elsewhere = read.elsewhere
        if not elsewhere:
            _refuse_hidden(hidden)
            return dict(sorted(found.items()))
    raise _busy(elsewhere)


@dataclass(frozen=True, slots=True)
class _ReadGroups:
    """Groups that were read; `elsewhere` maps those that their coordinator could not tell of to its error code.

    `hidden`: those that this user may not describe.
    """

    found: tuple[Group, ...]
    elsewhere: Mapping[str, int]
    hidden: frozenset[str]


def _read(wire: Wire, listed: Collection[_Listed]) -> _ReadGroups:
    found: dict[str, Group] = {}
    elsewhere: dict[str, int] = {}
    # Of share groups nothing else is asked that would say so.
    hidden = {*hidden_groups(wire, [group.group_id for group in listed if group.kind == WITHOUT_OFFSETS])}
    for group, told, offsets in _answers(wire, listed):
        codes = [answer.error_code for answer in (told, offsets) if answer is not None]
        if group.group_id in hidden or AUTHORIZATION_FAILED & {*codes}:
            hidden.add(group.group_id)
            continue
        if GROUP_ID_NOT_FOUND in codes or (told is not None and told.group_state == DEAD):
            continue  # deleted since it was listed
        found[group.group_id] = _group(group, told, _committed(offsets) if offsets is not None else {})
        busy = next((code for code in codes if code in ELSEWHERE), NONE)
        if busy != NONE:
            elsewhere[group.group_id] = busy
    return _ReadGroups(tuple(found[group_id] for group_id in sorted(found)), elsewhere, frozenset(hidden))


def _answers(wire: Wire, listed: Collection[_Listed]) -> Iterator[tuple[_Listed, ApiMessage | None, ApiMessage | None]]:
    """Yield each group with its description and its offsets, None where it has none to ask for."""
    for coordinator in sorted({group.coordinator for group in listed}):
        of_one = [group for group in listed if group.coordinator == coordinator]
        for some in batches(of_one, GROUPS_A_REQUEST):
            classic = _describe(wire, coordinator, [group.group_id for group in some if group.kind == CLASSIC])
            modern = _describe_modern(wire, coordinator, [group.group_id for group in some if group.kind == CONSUMER])
            committed = offsets(wire, coordinator, [each.group_id for each in some if each.kind != WITHOUT_OFFSETS])
            described = {**classic, **modern}
            for group in some:
                yield group, described.get(group.group_id), committed.get(group.group_id)


def _list(wire: Wire, alive: Collection[int]) -> list[_Listed]:
    """Ask every broker: each lists the groups that it coordinates."""
    answers = wire.read_each(dict.fromkeys(sorted(alive), ListGroupsRequest))
    return _all_listed(answers)


def _list_of_each(wire: Wire, alive: Collection[int]) -> list[_Listed]:
    """Ask every broker, and one that is silent until it answers or time is up."""
    answers = wire.read_each(dict.fromkeys(sorted(alive), ListGroupsRequest))
    answers |= {broker: wire.read(ListGroupsRequest, broker) for broker in sorted(alive) if broker not in answers}
    return _all_listed(answers)


def _all_listed(answers: "Mapping[int, ListGroupsResponse]") -> list[_Listed]:
    """Return the groups that brokers listed, without the one that is our lock: nothing is consumed in it."""
    told = [_listed(group, broker) for broker, answer in sorted(answers.items()) for group in answer.groups]
    return [group for group in told if group.group_id != LOCK_GROUP]


def _listed(told: "ListGroupsResponse.ListedGroup", broker: int) -> _Listed:
    kind = (told.group_type or CLASSIC).lower()  # brokers before 3.8 do not tell it
    return _Listed(told.group_id, told.group_state or "", kind, told.protocol_type or "", broker)


def _check_for_hidden_groups(wire: Wire, group_ids: Collection[str]) -> None:
    """Raise MissingRight where some of these are hidden."""
    _refuse_hidden(hidden_groups(wire, group_ids))


def listed_groups(wire: Wire) -> list[str]:
    """Return the ids of all groups that brokers list, of every kind; a silent broker's are left out."""
    return sorted(one.group_id for one in _list(wire, wire.brokers()))


def hidden_groups(wire: Wire, group_ids: Collection[str]) -> list[str]:
    """Return those of the groups that this user may not describe: any broker says so, whatever kind they are."""
    answers = (wire.read(partial(DescribeGroupsRequest, groups=some)) for some in batches(group_ids, GROUPS_A_REQUEST))
    return [one.group_id for answer in answers for one in answer.groups if one.error_code in AUTHORIZATION_FAILED]


def _describe(
    wire: Wire, coordinator: int, group_ids: list[str]
) -> Mapping[str, "DescribeGroupsResponse.DescribedGroup"]:
    if not group_ids:
        return {}
    answer = wire.read(lambda: DescribeGroupsRequest(groups=group_ids), coordinator)
    return _by_id(answer.groups)


def _describe_modern(wire: Wire, coordinator: int, group_ids: list[str]) -> Mapping[str, ApiMessage]:
    if not group_ids or not wire.is_supported(ConsumerGroupDescribeRequest, 0):
        return {}
    answer = wire.read(lambda: ConsumerGroupDescribeRequest(group_ids=group_ids), coordinator)
    return _by_id(answer.groups)


def _by_id(told: Iterable[ApiMessage]) -> dict[str, ApiMessage]:
    return {group.group_id: group for group in told}


def _refuse_hidden(group_ids: Collection[str]) -> None:
    if group_ids:
        raise missing_right("Describe", "group", group_ids, "Reading groups")


def offsets(wire: Wire, coordinator: int, group_ids: list[str]) -> Mapping[str, ApiMessage]:
    """Return what the coordinator tells of these groups' committed offsets, with their metadata."""
    if not group_ids:
        return {}
    if wire.is_supported(OffsetFetchRequest, MANY_GROUPS):
        form = OffsetFetchRequest.OffsetFetchRequestGroup
        asked = [form(group_id=group_id, topics=None) for group_id in group_ids]
        answer = wire.read(lambda: OffsetFetchRequest(groups=asked, max_version=NAMED_TOPICS), coordinator)
        return {told.group_id: told for told in answer.groups}
    builds = {group_id: partial(OffsetFetchRequest, group_id=group_id, topics=None) for group_id in group_ids}
    return {group_id: wire.read(build, coordinator) for group_id, build in builds.items()}


def _committed(told: "OffsetFetchResponse") -> Offsets:
    found = {
        topic.name: {
            partition.partition_index: partition.committed_offset
            for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
            if partition.error_code == NONE and partition.committed_offset >= 0
        }
        for topic in sorted(told.topics or (), key=lambda topic: topic.name)
    }
    return {topic: offsets for topic, offsets in found.items() if offsets}


def _group(listed: _Listed, described: ApiMessage | None, offsets: Offsets) -> Group:
    group = Group(
        listed.group_id,
        listed.state,
        "",
        listed.coordinator,
        (),
        offsets,
        listed.kind,
        protocol_type=listed.protocol_type,
    )
    if described is None or described.error_code != NONE:
        return group
    if listed.kind == CONSUMER:
        protocol = described.assignor_name or ""
        return replace(group, state=described.group_state, protocol=protocol, members=_modern_members(described))
    protocol_type = described.protocol_type or listed.protocol_type
    protocol = described.protocol_data or ""
    is_consumer = protocol_type == CONSUMER
    found = (
        _member(told, is_consumer=is_consumer, has_user_data=protocol not in KAFKAS_OWN) for told in described.members
    )
    return replace(
        group,
        state=described.group_state or listed.state,
        protocol=protocol,
        members=tuple(sorted(found, key=lambda member: member.member_id)),
        protocol_type=protocol_type,
    )


def _modern_members(described: ApiMessage) -> tuple[GroupMember, ...]:
    """Return the members of a KIP-848 group, by id; what they own, not what the assignor wants them to own next."""
    found = (
        GroupMember(
            member_id=member.member_id,
            client_id=member.client_id,
            host=member.client_host.removeprefix("/"),
            instance_id=member.instance_id,
            rack=member.rack_id or None,
            subscription=tuple(sorted(member.subscribed_topic_names)),
            assignment={
                topic.topic_name: tuple(sorted(topic.partitions))
                for topic in sorted(member.assignment.topic_partitions, key=lambda topic: topic.topic_name)
                if topic.partitions
            },
            subscription_pattern=member.subscribed_topic_regex or None,
        )
        for member in described.members
    )
    return tuple(sorted(found, key=lambda member: member.member_id))


def _member(
    told: "DescribeGroupsResponse.DescribedGroup.DescribedGroupMember", *, is_consumer: bool, has_user_data: bool
) -> GroupMember:
    # What a member wrote is its own: the library's describe_groups fails for all groups where it cannot read one's.
    subscription = _decoded(ConsumerProtocolSubscription, told.member_metadata) if is_consumer else None
    assignment = _decoded(ConsumerProtocolAssignment, told.member_assignment) if is_consumer else None
    return GroupMember(
        member_id=told.member_id,
        client_id=told.client_id or "",
        host=(told.client_host or "").removeprefix("/"),
        instance_id=told.group_instance_id,
        rack=getattr(subscription, "rack_id", None) or None,
        subscription=tuple(sorted(subscription.topics)) if subscription is not None else (),
        assignment=_assigned(assignment) if assignment is not None else {},
        user_data=_base64(getattr(subscription, "user_data", None)) if has_user_data else None,
    )


def _base64(data: bytes | None) -> str | None:
    return b64encode(data).decode() if data is not None else None


def _assigned(assignment: ConsumerProtocolAssignment) -> dict[str, tuple[int, ...]]:
    # librdkafka's sticky assignor names a topic once for each run of its partitions, so it may stand there twice.
    found: dict[str, set[int]] = defaultdict(set)
    for told in assignment.assigned_partitions:
        found[told.topic].update(told.partitions)
    return {topic: tuple(sorted(found[topic])) for topic in sorted(found) if found[topic]}


def _decoded(form: type[ConsumerProtocolSubscription], data: bytes | None) -> ConsumerProtocolSubscription | None:
    """Return the decoded bytes, None where they are not what the group's protocol type promises."""
    if not data:
        return None
    try:
        return form.decode(data)
    except (ValueError, IndexError, struct.error, UnicodeDecodeError):
        return None


def _busy(elsewhere: Mapping[str, int]) -> ClusterUnavailable:
    code = min(elsewhere.items())[1]
    return ClusterUnavailable(
        f"The coordinator of group {named_some(sorted(elsewhere), 1)} answered {name_of(code)}: it is starting or "
        "moving. Try again in a moment; if it stays so, look at the leaders of __consumer_offsets."
    )
