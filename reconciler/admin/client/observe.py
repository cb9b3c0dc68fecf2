"""Reads the cluster's metadata as values: brokers, topics, configs, what is in flight, eligible leaders (KIP-966).

Few large requests; and an empty answer is never taken for an empty cluster: Kafka answers so, too, where a right is
missing.
"""

import base64
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from kafka.admin import ConfigResourceType, ConfigSourceType
from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from reconciler.admin.client.errors import (
    AUTHORIZATION_FAILED,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    check_cluster_right,
    missing_right,
    name_of,
)
from reconciler.admin.client.wire import Wire, batches, tries
from reconciler.admin.port import Reassignment
from reconciler.model.cluster import BROKER_SETTINGS, Broker, Partition, Topic
from reconciler.model.config_value import UNREADABLE
from reconciler.model.problem import ClusterUnavailable, MissingRight, NamesDiffer
from reconciler.model.topic_configs import TOPIC_CONFIGS
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import few

if TYPE_CHECKING:
    from kafka.protocol.admin import DescribeConfigsResponse, DescribeQuorumResponse
    from kafka.protocol.api_message import ApiMessage
    from kafka.protocol.metadata import MetadataResponse

NOT_DEFAULT = frozenset(ConfigSourceType) - {ConfigSourceType.DEFAULT_CONFIG}
TOPIC_RESOURCE, BROKER_RESOURCE = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
TOPICS_A_REQUEST = 500  # an answer holds some forty configs of each
TOPICS_OF_METADATA = 2_000  # whose answers are smaller than those with configs
ELR_TOPICS_A_REQUEST = 200  # the broker pages by 2,000 partitions, and each page repeats the names that are left
LAG_SECONDS = 2.5  # how long a broker may be behind with what it has heard from the controller
METADATA_TOPIC = "__cluster_metadata"  # what the quorum of controllers replicates (KIP-500)
# The highest metadata.version of each release, which is all that a cluster tells of its version (KIP-584).
LAST_METADATA_VERSION = {
    11: "3.5",
    14: "3.6",
    19: "3.7",
    20: "3.8",
    21: "3.9",
    25: "4.0",
    27: "4.1",
    29: "4.2",
    30: "4.3",
    33: "4.4",
}

Tick = Callable[[int, int], None]
"""Called with how much has been read, and how much there is."""


def cluster_id_and_brokers(wire: Wire) -> tuple[str, dict[int, Broker]]:
    """Return the cluster's id and every registered broker; before Kafka 4.0 fenced ones are not listed."""
    is_described = wire.is_supported(DescribeClusterRequest, 0)
    cluster_id, found = _described(wire) if is_described else _of_metadata(wire.read(metadata_question(())))
    return cluster_id, {broker.id: broker for broker in sorted(found, key=lambda broker: broker.id)}


def _described(wire: Wire) -> tuple[str, Iterable[Broker]]:
    response = wire.read(lambda: DescribeClusterRequest(include_fenced_brokers=True))
    if response.error_code != NONE:
        raise _refused(response.error_code, response.error_message, "the cluster cannot be described")
    return str(response.cluster_id), (
        Broker(
            id=broker.broker_id, rack=broker.rack, host=broker.host, port=broker.port, is_fenced=bool(broker.is_fenced)
        )
        for broker in response.brokers
    )


def _of_metadata(told: "MetadataResponse") -> tuple[str, Iterable[Broker]]:
    """Return what clients learn of the cluster, the brokers that live: Redpanda tells no more."""
    brokers = (Broker(id=one.node_id, rack=one.rack, host=one.host, port=one.port) for one in told.brokers)
    return str(told.cluster_id), brokers


def controller_id(wire: Wire) -> int | None:
    """Return the active controller: the metadata quorum's leader. What DescribeCluster calls so is any live broker."""
    told = metadata_quorum(wire)
    return None if told is None else told.leader_id


def metadata_quorum(wire: Wire) -> "DescribeQuorumResponse.TopicData.PartitionData | None":
    """Return what the metadata quorum's leader tells of it; None while there is no leader, and where none is told."""
    if not wire.is_supported(DescribeQuorumRequest, 0):
        return None
    topic_data = DescribeQuorumRequest.TopicData
    partition = topic_data.PartitionData(partition_index=0)
    request = [topic_data(topic_name=METADATA_TOPIC, partitions=[partition])]
    response = wire.read(lambda: DescribeQuorumRequest(topics=request))
    _check_described(response.error_code, response.error_message, "Finding the controller")
    return next((p for topic in response.topics for p in topic.partitions if p.leader_id >= 0), None)


def kafka_version(wire: Wire) -> str | None:
    """Return the release whose features the cluster has switched on (`4.3`), None where that is not known."""
    response = wire.read(api_versions)
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features or ()}
    level = levels.get("metadata.version", 0)
    return next((release for last, release in sorted(LAST_METADATA_VERSION.items()) if 0 < level <= last), None)


def reassignments(wire: Wire) -> dict[TopicPartition, Reassignment]:
    """Return every reassignment in flight: each broker passes this question on to the active controller.

    A service that does not take the question starts none for its users either.
    """
    if not wire.is_supported(ListPartitionReassignmentsRequest, 0):
        return {}
    response = wire.read(lambda: ListPartitionReassignmentsRequest(timeout_ms=wire.write_timeout_ms, topics=None))
    _check_described(response.error_code, response.error_message, "Listing reassignments")
    found = {
        TopicPartition(topic.name, moving.partition_index): Reassignment(
            tuple(moving.replicas), tuple(moving.adding_replicas), tuple(moving.removing_replicas)
        )
        for topic in response.topics
        for moving in topic.partitions
    }
    return dict(sorted(found.items()))


def topics(wire: Wire, names: Collection[str] | None) -> dict[str, Topic]:
    """Return these topics, or all, as metadata shows them: no configs, no sizes, and in flight only the union."""
    if names is not None and not names:
        return {}
    wanted = [None] if names is None else batches(sorted(set(names)), TOPICS_OF_METADATA)
    responses = wire.read_many([metadata_question(some) for some in wanted])
    found = sorted(_topics_of(*responses), key=lambda topic: topic.name)
    return {topic.name: topic for topic in found}


def topics_with_reassignments(wire: Wire) -> dict[str, Topic]:
    """Return all topics, without configs and sizes, with what is in flight.

    Reassignments are listed before and after the topics: one that starts or ends in between counts as in flight, so
    that Kafka's union of old and new replicas is never taken for an assignment at rest.
    """
    before = reassignments(wire)
    found = topics(wire, None)
    after = reassignments(wire)
    _check_names(wire, {key.topic for key in after} - found.keys())
    return {name: _with_reassignments(topic, before, after) for name, topic in found.items()}


def _check_names(wire: Wire, moving: Collection[str]) -> None:
    """Raise NamesDiffer where topics stay in motion that metadata does not know; one that was just made is known soon.

    Raises MissingRight for one that this user may not describe: only where it is named does Kafka say so.
    """
    for _ in tries(LAG_SECONDS if moving else 0.0):
        moving = {*moving} - topics(wire, moving).keys()
        moving = moving & {key.topic for key in reassignments(wire)} if moving else ()
        if not moving:
            return
    raise names_differ("ListPartitionReassignments", moving, "Metadata")


def names_differ(listing: str, names: Collection[str], other: str) -> NamesDiffer:
    """Return the error for topics that the answer to one request lists, and that another request does not know."""
    return NamesDiffer(
        f"{listing} lists {few(sorted(names))}, which {other} does not know: names of topics differ between answers. "
        "A proxy that renames topics does that, and a broker whose metadata lags. Nothing is shown of such a cluster: "
        "connect to the brokers themselves, or try again."
    )


def topic_configs(
    wire: Wire,
    names: Collection[str],
    tick: Tick | None = None,
    *,
    sources: Collection[int] = (ConfigSourceType.DYNAMIC_TOPIC_CONFIG,),
) -> dict[str, dict[str, str]]:
    """Return the dynamic overrides of these topics, or what is set elsewhere; one that does not exist is left out.

    Where a right is missing, all topics that it is missing on are named at once.
    """
    found: dict[str, dict[str, str]] = {}
    hidden: list[str] = []
    groups = batches(sorted(set(names)), TOPICS_A_REQUEST)
    # A few requests at a time: their answers are large.
    for some in batches(groups, 4):
        for response in wire.read_many([config_question(TOPIC_RESOURCE, group) for group in some]):
            hidden += _hidden(response)
            found |= _configs(response, "topic", sources) if not hidden else {}
        if tick is not None:
            tick(min(len(names), len(found)), len(names))
    if hidden:
        raise _unreadable("topic", hidden)
    return dict(sorted(found.items()))


def broker_configs(wire: Wire, broker_ids: Collection[int]) -> dict[int, dict[str, str]]:
    """Return the dynamic overrides of these brokers; each is asked itself, one that does not answer is left out."""
    answers = _configs_of_brokers(wire, broker_ids)
    return {
        id_: _configs(answer, "cluster", (ConfigSourceType.DYNAMIC_BROKER_CONFIG,))[str(id_)]
        for id_, answer in answers.items()
    }


def broker_settings(wire: Wire, broker_ids: Collection[int], keys: Collection[str]) -> dict[int, dict[str, str]]:
    """Return these configs of each broker as they are in force; one that does not answer is left out."""
    answers = _configs_of_brokers(wire, broker_ids, sorted(keys))
    return {id_: _configs(answer, "cluster")[str(id_)] for id_, answer in answers.items()}


def with_configs(wire: Wire, brokers: Mapping[int, Broker]) -> dict[int, Broker]:
    """Return the brokers with their dynamic overrides and those settings in force that plans depend on.

    One that is silent, or not alive, has neither.
    """
    answers = _configs_of_brokers(wire, [broker.id for broker in brokers.values() if not broker.is_fenced])
    found = dict(brokers)
    for id_, answer in answers.items():
        in_force = _configs(answer, "cluster")[str(id_)]
        found[id_] = replace(
            brokers[id_],
            configs=_configs(answer, "cluster", (ConfigSourceType.DYNAMIC_BROKER_CONFIG,))[str(id_)],
            settings={key: value for key, value in in_force.items() if key in BROKER_SETTINGS},
        )
    return found


def with_eligible_leaders(wire: Wire, topics: Mapping[str, Topic]) -> dict[str, Topic]:
    """Return the topics with `elr` and `lastKnownElr` of each partition that is out of sync somewhere.

    Only these can have any, so a healthy cluster is asked nothing. Brokers before Kafka 4.0 do not tell.
    """
    doubtful = {name: topic for name, topic in sorted(topics.items()) if any(map(_is_out_of_sync, topic.partitions))}
    if not doubtful or not wire.is_supported(DescribeTopicPartitionsRequest, 0):
        return dict(topics)
    told = dict(
        pair for some in batches(list(doubtful), ELR_TOPICS_A_REQUEST) for pair in _eligible_leaders(wire, some)
    )
    return {name: _with_elr(topic, told) if name in doubtful else topic for name, topic in topics.items()}


def check_for_hidden_topics(wire: Wire, known: Collection[str], on_disk: Iterable[TopicPartition]) -> None:
    """Raise MissingRight where a log dir holds a topic that this user may not describe: Kafka leaves it out."""
    unseen = {topic_partition.topic for topic_partition in on_disk} - set(known)
    for some in batches(sorted(unseen), TOPICS_A_REQUEST):
        _topics_of(wire.read(metadata_question(some)))


def api_versions() -> ApiVersionsRequest:
    """Return the request for what a broker speaks and what the cluster has switched on."""
    # A broker refuses the request without a name and a version of the client.
    return ApiVersionsRequest(client_software_name="kafka-reconciler", client_software_version="1", min_version=3)


def metadata_question(names: Collection[str] | None, *, has_rights: bool = False) -> Callable[[], MetadataRequest]:
    """Return what makes the question for these topics, or all, and for what this user may do to each (KIP-430)."""
    form = MetadataRequest.MetadataRequestTopic
    return lambda: MetadataRequest(
        topics=None if names is None else [form(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=has_rights,
    )


def _topics_of(*responses: "MetadataResponse") -> list[Topic]:
    told = [topic for response in responses for topic in response.topics]
    hidden = [topic.name for topic in told if topic.error_code in AUTHORIZATION_FAILED]
    if hidden:
        raise missing_right("Describe", "topic", hidden, "Reading a topic")
    # Other errors: there is no such topic (any more), or no such name.
    return [_topic(topic) for topic in told if topic.partitions]


def _topic(told: "MetadataResponse.MetadataResponseTopic") -> Topic:
    partitions = (
        Partition(
            partition=partition.partition_index,
            leader=partition.leader_id if partition.leader_id >= 0 else None,
            replicas=tuple(partition.replica_nodes),
            isr=tuple(partition.isr_nodes),
        )
        for partition in sorted(told.partitions, key=lambda partition: partition.partition_index)
    )
    return Topic(told.name, tuple(partitions), _shown(told.topic_id), bool(told.is_internal))


def _shown(topic_id: UUID | None) -> str | None:
    """Return the id as Kafka's tools write it: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=") if topic_id else None


def _with_reassignments(
    topic: Topic, before: Mapping[TopicPartition, Reassignment], after: Mapping[TopicPartition, Reassignment]
) -> Topic:
    def updated(partition: Partition) -> Partition:
        key = TopicPartition(topic.name, partition.partition)
        moving = after.get(key)
        if moving is None and key in before and partition.replicas != before[key].target_replicas:
            moving = before[key]
        if moving is None:
            return partition
        return replace(
            partition,
            replicas=moving.replicas,
            adding_replicas=moving.adding_replicas,
            removing_replicas=moving.removing_replicas,
        )

    return replace(topic, partitions=tuple(map(updated, topic.partitions)))


def _is_out_of_sync(partition: Partition) -> bool:
    return len(partition.isr) < len(partition.replicas)


def _eligible_leaders(wire: Wire, names: list[str]) -> "Iterator[tuple[TopicPartition, ApiMessage]]":
    """Yield what one broker tells of these topics' partitions, page after page."""
    form, cursor = DescribeTopicPartitionsRequest.TopicRequest, None
    while True:
        request = partial(DescribeTopicPartitionsRequest, topics=[form(name=name) for name in names], cursor=cursor)
        answer = wire.read(request)
        for topic in answer.topics:
            for one in topic.partitions if topic.error_code == NONE else ():
                yield TopicPartition(topic.name, one.partition_index), one
        after = answer.next_cursor
        if after is None:
            return
        names = [name for name in names if name >= after.topic_name]
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=after.topic_name, partition_index=after.partition_index
        )


def _with_elr(topic: Topic, told: "Mapping[TopicPartition, ApiMessage]") -> Topic:
    def updated(partition: Partition) -> Partition:
        one = told.get(TopicPartition(topic.name, partition.partition))
        if one is None:
            return replace(partition, elr=None, last_known_elr=None)
        elr, last_known = (
            None if ids is None else tuple(sorted(set(ids).intersection(partition.replicas)))
            for ids in (one.eligible_leader_replicas, one.last_known_elr)
        )
        return replace(partition, elr=elr, last_known_elr=last_known)

    return replace(topic, partitions=tuple(map(updated, topic.partitions)))


def config_question(
    kind: int, names: Collection[str], keys: Collection[str] | None = None
) -> Callable[[], DescribeConfigsRequest]:
    """Return what makes the question for these resources' configs, for these keys or for all."""
    form = DescribeConfigsRequest.DescribeConfigsResource
    asked = None if keys is None else list(keys)
    return lambda: DescribeConfigsRequest(
        resources=[form(resource_type=kind, resource_name=name, configuration_keys=asked) for name in names],
        include_synonyms=False,
        include_documentation=False,
    )


def _configs_of_brokers(
    wire: Wire, broker_ids: Collection[int], keys: Collection[str] | None = None
) -> "Mapping[int, DescribeConfigsResponse]":
    # Each broker knows only its own configs: another answers error 42, "Unexpected broker id".
    return wire.read_each({id_: config_question(BROKER_RESOURCE, [str(id_)], keys) for id_ in sorted(broker_ids)})


def _configs(
    response: "DescribeConfigsResponse", resource: str, sources: Collection[int] | None = None
) -> dict[str, dict[str, str]]:
    """Return each resource's configs of these sources, or all as they are in force.

    An override that equals Kafka's default is one all the same: only its source tells. A sensitive value comes as null
    and is left out. So does the value of a topic's key that the broker's release has removed, which counts.
    """
    results = response.results
    hidden = _hidden(response)
    if hidden:
        raise _unreadable(resource, hidden)
    failed = next((r for r in results if r.error_code not in (NONE, UNKNOWN_TOPIC_OR_PARTITION)), None)
    if failed is not None:
        raise _refused(failed.error_code, failed.error_message, f"the configs of {failed.resource_name} cannot be read")
    return {
        result.resource_name: {
            config.name: UNREADABLE if config.value is None else config.value
            for config in sorted(result.configs, key=lambda config: config.name)
            if (config.value is not None or (resource == "topic" and config.name in TOPIC_CONFIGS))
            and (sources is None or config.config_source in sources)
        }
        for result in results
        if result.error_code == NONE
    }


def _hidden(response: "DescribeConfigsResponse") -> list[str]:
    return [result.resource_name for result in response.results if result.error_code in AUTHORIZATION_FAILED]


def _unreadable(resource: str, hidden: Collection[str]) -> MissingRight:
    return missing_right("DescribeConfigs", resource, hidden, "Reading configs")


def _check_described(code: int, message: str | None, need: str) -> None:
    check_cluster_right(code, "Describe", need)
    if code != NONE:
        raise _refused(code, message, f"{need[0].lower()}{need[1:]} failed")


def _refused(code: int, message: str | None, what: str) -> ClusterUnavailable:
    return ClusterUnavailable(f"Kafka answered {name_of(code)}: {what}{f' ({message})' if message else ''}. Try again.")
