"""What a doctor asks: versions, rights, each log dir, and settings as they are in force."""

from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING

from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
)
from kafka.protocol.consumer import HeartbeatRequest
from kafka.protocol.metadata import MetadataRequest

from reconciler.admin.client import observe
from reconciler.admin.client.errors import AUTHORIZATION_FAILED, NONE, missing_right, name_of
from reconciler.admin.client.requests import KIP_860
from reconciler.admin.client.sample import replicas_told
from reconciler.admin.client.wire import Wire, batches
from reconciler.model.vitals import DiskReport, Features, LogDirState, Quorum, QuorumMember, Rights

if TYPE_CHECKING:
    from kafka.protocol.admin import DescribeConfigsResponse, DescribeLogDirsResponse, DescribeQuorumResponse

OPERATIONS = {
    3: "Read",
    4: "Write",
    5: "Create",
    6: "Delete",
    7: "Alter",
    8: "Describe",
    9: "ClusterAction",
    10: "DescribeConfigs",
    11: "AlterConfigs",
    12: "IdempotentWrite",
}
"""Kafka's AclOperation by its code, which is the bit that stands for it in answers."""
GROUP_VERSION = "group.version"
NOBODY = "reconciler-doctor"


def features(wire: Wire) -> Features:
    """Return what the brokers can do, as one of them tells, and as the cluster has switched it on."""
    response = wire.read(observe.api_versions)
    finalized = {one.name: one.max_version_level for one in response.finalized_features or ()}
    return Features(
        release=observe.kafka_version(wire),
        finalized=dict(sorted(finalized.items())),
        supported={one.name: one.max_version for one in sorted(response.supported_features or (), key=_name)},
        has_factor_guard=wire.is_supported(AlterPartitionReassignmentsRequest, KIP_860),
        has_consumer_groups=finalized.get(GROUP_VERSION, 0) > 0,
    )


def quorum(wire: Wire) -> Quorum:
    """Return the metadata quorum, as its leader tells it."""
    told = observe.metadata_quorum(wire)
    if told is None:
        return Quorum(None)
    leader = next(one for one in told.current_voters if one.replica_id == told.leader_id)
    members = ([_member(one, leader) for one in some] for some in (told.current_voters, told.observers))
    voters, observers = (tuple(sorted(some, key=lambda one: one.id)) for some in members)
    return Quorum(told.leader_id, voters, observers)


def _member(
    told: "DescribeQuorumResponse.TopicData.PartitionData.ReplicaState",
    leader: "DescribeQuorumResponse.TopicData.PartitionData.ReplicaState",
) -> QuorumMember:
    """Return how far one is behind: the leader has caught up when it answers. -1: not heard of yet."""
    records = leader.log_end_offset - told.log_end_offset if told.log_end_offset >= 0 else None
    since = told.last_caught_up_timestamp
    return QuorumMember(told.replica_id, records, leader.last_caught_up_timestamp - since if since >= 0 else None)


def rights(wire: Wire, topics: Collection[str], groups: Collection[str]) -> Rights:
    """Return what this user may do to the cluster, to every topic that it sees or that is named, to these groups."""
    cluster = wire.read(lambda: DescribeClusterRequest(include_cluster_authorized_operations=True))
    seen = _topics(wire, None)
    named = [name for some in batches(sorted(set(topics) - seen.keys()), 500) for name in _hidden(wire, some)]
    return Rights(
        cluster=_operations(cluster.authorized_operations),
        topics=seen,
        groups={group: _on_group(wire, group) for group in sorted(groups)},
        hidden=frozenset(named),
    )


def disk_report(wire: Wire, broker_ids: Collection[int]) -> DiskReport:
    """Return every log dir of these brokers and what it holds; a broker that does not answer is `silent`.

    Raises MissingRight without Describe on the cluster: Kafka then answers as if there were no log dirs.
    """
    answers = wire.read_each({broker: lambda: DescribeLogDirsRequest(topics=None) for broker in sorted(broker_ids)})
    for answer in answers.values():
        # A broker has at least one log dir, so none means that the right is missing: before version 3 nothing tells.
        if getattr(answer, "error_code", NONE) in AUTHORIZATION_FAILED or not answer.results:
            raise missing_right("Describe", "cluster", (), "Reading log dirs")
    return DiskReport(
        dirs=tuple(state for broker, answer in sorted(answers.items()) for state in _dirs(broker, answer)),
        replicas=tuple(sorted(one for broker, answer in answers.items() for one in replicas_told(broker, answer))),
        silent=tuple(sorted(set(broker_ids) - answers.keys())),
    )


def broker_settings(wire: Wire, broker_ids: Collection[int], keys: Collection[str]) -> dict[int, dict[str, str]]:
    """Return these configs of each broker as they are in force; one that does not answer is left out."""
    builds = {broker: partial(_settings_request, broker, sorted(keys)) for broker in sorted(broker_ids)}
    return {broker: _settings(answer) for broker, answer in sorted(wire.read_each(builds).items())}


def _name(feature: object) -> str:
    return str(getattr(feature, "name", ""))


def _topics(wire: Wire, names: Collection[str] | None) -> dict[str, frozenset[str]]:
    response = wire.read(lambda: _topics_request(names))
    found = {one.name: _operations(one.authorized_operations) for one in response.topics if one.error_code == NONE}
    return dict(sorted(found.items()))


def _hidden(wire: Wire, names: Collection[str]) -> Iterator[str]:
    """Yield those of the topics that this user may not describe; one that does not exist is told as such only then."""
    response = wire.read(lambda: _topics_request(names))
    yield from sorted(one.name for one in response.topics if one.error_code in AUTHORIZATION_FAILED)


def _topics_request(names: Collection[str] | None) -> MetadataRequest:
    form = MetadataRequest.MetadataRequestTopic
    return MetadataRequest(
        topics=None if names is None else [form(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )


def _on_group(wire: Wire, group: str) -> frozenset[str]:
    """Return what joining that group takes, if this user has it: a heartbeat of nobody is refused for it first.

    Sent once, like a write: any broker says whether the right is missing before it looks for the coordinator.
    """
    response = wire.write(lambda: HeartbeatRequest(group_id=group, generation_id=-1, member_id=NOBODY))
    return frozenset() if response.error_code in AUTHORIZATION_FAILED else frozenset({"Describe", "Read"})


def _operations(codes: Collection[int] | None) -> frozenset[str]:
    return frozenset(OPERATIONS[code] for code in codes or () if code in OPERATIONS)


def _dirs(broker: int, answer: "DescribeLogDirsResponse") -> Iterator[LogDirState]:
    for result in sorted(answer.results, key=lambda result: result.log_dir):
        error = name_of(result.error_code) if result.error_code != NONE else None
        yield LogDirState(broker, result.log_dir, error, bool(getattr(result, "is_cordoned", False)))


def _settings_request(broker: int, keys: Collection[str]) -> DescribeConfigsRequest:
    form = DescribeConfigsRequest.DescribeConfigsResource
    resource = form(resource_type=observe.BROKER_RESOURCE, resource_name=str(broker), configuration_keys=list(keys))
    return DescribeConfigsRequest(resources=[resource], include_synonyms=False, include_documentation=False)


def _settings(answer: "DescribeConfigsResponse") -> dict[str, str]:
    hidden = [result.resource_name for result in answer.results if result.error_code in AUTHORIZATION_FAILED]
    if hidden:
        raise missing_right("DescribeConfigs", "cluster", hidden, "Reading configs")
    return {
        config.name: config.value
        for result in answer.results
        for config in sorted(result.configs, key=_name)
        if config.value is not None
    }
