"""Asks what the doctor shows: the features of brokers, the metadata quorum, and what this user may do."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from kafka.admin import ACLOperation
from kafka.protocol import admin
from kafka.protocol.consumer import HeartbeatRequest

from reconciler.admin.client import observe
from reconciler.admin.client.errors import AUTHORIZATION_FAILED, NONE
from reconciler.admin.client.groups import hidden_groups, listed_groups
from reconciler.admin.client.requests import KIP_860
from reconciler.admin.client.wire import Wire, batches
from reconciler.model.problem import NotOffered
from reconciler.model.vitals import LACKABLE, Features, Quorum, QuorumMember, Rights

if TYPE_CHECKING:
    from kafka.protocol.admin import DescribeQuorumResponse

OPERATIONS = {one.value: one.name.title().replace("_", "") for one in ACLOperation if one > ACLOperation.ALL}
"""Kafka's operations (`DescribeConfigs`) by code; an answer sets the bit of that number for each (KIP-430)."""
TOPICS_A_REQUEST = 500  # as many as one request for metadata should name
GROUP_VERSION = "group.version"  # the feature that switches the groups of KIP-848 on
NOBODY = "reconciler-doctor"  # a member id that no group has


def features(wire: Wire) -> Features:
    """Return what the brokers can do, as one of them tells, and as the cluster has switched it on."""
    response = wire.read(observe.api_versions)
    finalized = {one.name: one.max_version_level for one in response.finalized_features or ()}
    return Features(
        kafka_version=observe.kafka_version(wire),
        finalized=dict(sorted(finalized.items())),
        supported={
            one.name: one.max_version
            for one in sorted(response.supported_features or (), key=lambda feature: feature.name)
        },
        has_factor_guard=wire.is_supported(admin.AlterPartitionReassignmentsRequest, KIP_860),
        has_consumer_groups=finalized.get(GROUP_VERSION, 0) > 0,
        lacking=lacking(wire),
    )


def lacking(wire: Wire) -> tuple[str, ...]:
    """Return which requests of LACKABLE the brokers do not take."""
    return tuple(name for name in LACKABLE if not wire.is_supported(getattr(admin, f"{name}Request"), 0))


def quorum(wire: Wire) -> Quorum:
    """Return the metadata quorum, as its leader tells it; raises NotOffered where brokers do not take the question."""
    if not wire.is_supported(admin.DescribeQuorumRequest, 0):
        raise NotOffered.of("DescribeQuorum")
    told = observe.metadata_quorum(wire)
    if told is None:
        return Quorum(None)
    leader = next(one for one in told.current_voters if one.replica_id == told.leader_id)
    members = ([_member(one, leader) for one in some] for some in (told.current_voters, told.observers))
    voters, observers = (tuple(sorted(some, key=lambda one: one.id)) for some in members)
    return Quorum(told.leader_id, voters, observers, told.leader_epoch)


def _member(
    told: "DescribeQuorumResponse.TopicData.PartitionData.ReplicaState",
    leader: "DescribeQuorumResponse.TopicData.PartitionData.ReplicaState",
) -> QuorumMember:
    """Return how far one is behind: the leader has caught up when it answers. -1: not heard of yet."""
    records = leader.log_end_offset - told.log_end_offset if told.log_end_offset >= 0 else None
    since = told.last_caught_up_timestamp
    return QuorumMember(told.replica_id, records, leader.last_caught_up_timestamp - since if since >= 0 else None)


def rights(wire: Wire, topics: Collection[str], groups: Collection[str]) -> Rights:
    """Return what this user may do to the cluster, to every topic that it sees or that is named, to these groups.

    Of the other groups that there are, whether it may describe them.

    Where the cluster does not tell, that is everything, as without an authorizer: a request says itself if it may not.
    """
    seen = _topics(wire)
    named = batches(sorted(set(topics) - seen.keys()), TOPICS_A_REQUEST)
    others = [group for group in listed_groups(wire) if group not in groups]
    hidden = hidden_groups(wire, others)
    described = {group: frozenset[str]() if group in hidden else frozenset({"Describe"}) for group in others}
    return Rights(
        cluster=_on_cluster(wire),
        topics=seen,
        groups=dict(sorted({**described, **{group: _on_group(wire, group) for group in groups}}.items())),
        hidden=frozenset(name for some in named for name in _hidden(wire, some)),
    )


def _topics(wire: Wire) -> dict[str, frozenset[str]]:
    response = wire.read(observe.metadata_question(None, has_rights=True))
    found = {one.name: _operations(one.authorized_operations) for one in response.topics if one.error_code == NONE}
    return dict(sorted(found.items()))


def _hidden(wire: Wire, names: Collection[str]) -> list[str]:
    """Return those of the topics that this user may not describe; Kafka says so only of topics that are named."""
    response = wire.read(observe.metadata_question(names, has_rights=True))
    return [one.name for one in response.topics if one.error_code in AUTHORIZATION_FAILED]


def _on_cluster(wire: Wire) -> frozenset[str]:
    if not wire.is_supported(admin.DescribeClusterRequest, 0):
        return frozenset(OPERATIONS.values())
    response = wire.read(lambda: admin.DescribeClusterRequest(include_cluster_authorized_operations=True))
    return _operations(response.authorized_operations)


def _on_group(wire: Wire, group: str) -> frozenset[str]:
    """Return what joining that group takes, if this user has it: a heartbeat of nobody is refused for it first.

    Sent once, like a write: any broker says whether the right is missing before it looks for the coordinator.
    """
    response = wire.write(lambda: HeartbeatRequest(group_id=group, generation_id=-1, member_id=NOBODY))
    return frozenset() if response.error_code in AUTHORIZATION_FAILED else frozenset({"Describe", "Read"})


def _operations(codes: Collection[int] | None) -> frozenset[str]:
    return frozenset(OPERATIONS[code] for code in codes or () if code in OPERATIONS)
