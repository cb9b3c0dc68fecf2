"""What the cluster says, as values: few large requests, and never an empty answer taken for an empty cluster."""

import base64
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import UUID

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from reconciler.admin.client.errors import (
    AUTHORIZATION_FAILED,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    missing_right,
    name_of,
)
from reconciler.admin.client.wire import Wire, batches
from reconciler.admin.port import LATEST, Reassignment
from reconciler.model.cluster import BROKER_SETTINGS, Broker, LogDir, Partition, Topic
from reconciler.model.problem import ClusterUnavailable, MissingRight
from reconciler.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.admin import DescribeConfigsResponse, DescribeLogDirsResponse, DescribeQuorumResponse
    from kafka.protocol.metadata import MetadataResponse

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
DYNAMIC_TOPIC_CONFIG, DYNAMIC_BROKER_CONFIG, DYNAMIC_DEFAULT_BROKER_CONFIG = 1, 2, 3
CLUSTER_DEFAULT = ""
TOPICS_A_REQUEST = 500
PARTITIONS_A_REQUEST = 20_000
METADATA_TOPIC = "__cluster_metadata"
# The highest metadata.version of each release: what its features are named after.
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
}

Tick = Callable[[int, int], None]
"""Called with how much has been read, and how much there is."""


@dataclass(frozen=True, slots=True)
class Disks:
    """What the log dirs hold: `replicas` maps (partition, broker) to bytes and path; `dirs` a broker to its dirs."""

    dirs: Mapping[int, tuple[LogDir, ...]] = field(default_factory=dict)
    replicas: Mapping[tuple[TopicPartition, int], tuple[int, str]] = field(default_factory=dict)


def cluster_id_and_brokers(wire: Wire) -> tuple[str, dict[int, Broker]]:
    """Return the cluster's id and every registered broker; before Kafka 4.0 fenced ones are not listed."""
    response = wire.read(lambda: DescribeClusterRequest(include_fenced_brokers=True))
    if response.error_code != NONE:
        raise _refused(response.error_code, response.error_message, "the cluster cannot be described")
    found = (
        Broker(
            id=broker.broker_id,
            rack=broker.rack,
            host=broker.host,
            port=broker.port,
            is_fenced=bool(broker.is_fenced),
        )
        for broker in response.brokers
    )
    return str(response.cluster_id), {broker.id: broker for broker in sorted(found, key=lambda broker: broker.id)}


def controller_id(wire: Wire) -> int | None:
    """Return the active controller: the metadata quorum's leader. What DescribeCluster calls so is any live broker."""
    told = metadata_quorum(wire)
    return None if told is None else told.leader_id


def metadata_quorum(wire: Wire) -> "DescribeQuorumResponse.TopicData.PartitionData | None":
    """Return what the metadata quorum's leader tells of it; None while there is no leader."""
    topic_data = DescribeQuorumRequest.TopicData
    partition = topic_data.PartitionData(partition_index=0)
    request = [topic_data(topic_name=METADATA_TOPIC, partitions=[partition])]
    response = wire.read(lambda: DescribeQuorumRequest(topics=request))
    _check_cluster_right(response.error_code, response.error_message, "Finding the controller")
    return next((p for topic in response.topics for p in topic.partitions if p.leader_id >= 0), None)


def kafka_version(wire: Wire) -> str | None:
    """Return the release whose features the cluster has switched on (`4.3`), None where that is not known."""
    response = wire.read(api_versions)
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features or ()}
    level = levels.get("metadata.version", 0)
    return next((release for last, release in sorted(LAST_METADATA_VERSION.items()) if 0 < level <= last), None)


def reassignments(wire: Wire) -> dict[TopicPartition, Reassignment]:
    """Return every reassignment in flight: each broker passes this question on to the active controller."""
    response = wire.read(lambda: ListPartitionReassignmentsRequest(timeout_ms=wire.write_timeout_ms, topics=None))
    _check_cluster_right(response.error_code, response.error_message, "Listing reassignments")
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
    wanted = [None] if names is None else batches(sorted(set(names)), TOPICS_A_REQUEST * 4)
    responses = wire.read_many([_metadata(some) for some in wanted])
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
    return {name: _with_reassignments(topic, before, after) for name, topic in found.items()}


def topic_configs(wire: Wire, names: Collection[str], tick: Tick | None = None) -> dict[str, dict[str, str]]:
    """Return the dynamic overrides of these topics; one that does not exist is left out.

    Where a right is missing, all topics that it is missing on are named at once.
    """
    found: dict[str, dict[str, str]] = {}
    hidden: list[str] = []
    groups = batches(sorted(set(names)), TOPICS_A_REQUEST)
    # A few requests at a time: their answers are large.
    for some in batches(groups, 4):
        for response in wire.read_many([config_question(TOPIC_RESOURCE, group) for group in some]):
            hidden += _hidden(response)
            found |= _overrides(response, DYNAMIC_TOPIC_CONFIG, "topic") if not hidden else {}
        if tick is not None:
            tick(min(len(names), len(found)), len(names))
    if hidden:
        raise _unreadable("topic", hidden)
    return dict(sorted(found.items()))


def broker_configs(wire: Wire, broker_ids: Collection[int]) -> dict[int, dict[str, str]]:
    """Return the dynamic overrides of these brokers; each is asked itself, one that does not answer is left out."""
    builds = {broker: config_question(BROKER_RESOURCE, [str(broker)]) for broker in sorted(broker_ids)}
    answers = wire.read_each(builds)
    return {
        broker: _overrides(answer, DYNAMIC_BROKER_CONFIG, "cluster")[str(broker)] for broker, answer in answers.items()
    }


def with_configs(wire: Wire, brokers: Mapping[int, Broker]) -> dict[int, Broker]:
    """Return the brokers with their dynamic overrides and the settings in force; of one that is silent, neither."""
    alive = [broker.id for broker in brokers.values() if not broker.is_fenced]
    answers = wire.read_each({id_: config_question(BROKER_RESOURCE, [str(id_)]) for id_ in sorted(alive)})
    told = {id_: _overrides(answer, DYNAMIC_BROKER_CONFIG, "cluster")[str(id_)] for id_, answer in answers.items()}
    settings = {id_: _settings(answer) for id_, answer in answers.items()}
    return {
        id_: replace(broker, configs=told.get(id_, {}), settings=settings.get(id_, {}))
        for id_, broker in brokers.items()
    }


def _settings(answer: "DescribeConfigsResponse") -> dict[str, str]:
    """Return the settings that plans depend on, as they are in force: dynamic, static or Kafka's own."""
    return {
        config.name: config.value
        for result in answer.results
        for config in sorted(result.configs, key=lambda config: config.name)
        if config.name in BROKER_SETTINGS and config.value is not None
    }


def cluster_default_configs(wire: Wire) -> dict[str, str]:
    """Return the dynamic configs that hold for every broker without an override of its own."""
    response = wire.read(config_question(BROKER_RESOURCE, [CLUSTER_DEFAULT]))
    return _overrides(response, DYNAMIC_DEFAULT_BROKER_CONFIG, "cluster")[CLUSTER_DEFAULT]


def disks(wire: Wire, broker_ids: Collection[int], topic_partitions: Collection[TopicPartition] | None = None) -> Disks:
    """Return what the log dirs of these brokers hold, of these partitions or of all; a silent broker is left out.

    Of some partitions it is asked again and again: then one that was silent a moment ago is not waited for.
    """
    if topic_partitions is None:
        asked = None
    else:
        form = DescribeLogDirsRequest.DescribableLogDirTopic
        asked = [form(topic=topic, partitions=numbers) for topic, numbers in _by_topic(topic_partitions).items()]
    builds = {broker: lambda: DescribeLogDirsRequest(topics=asked) for broker in sorted(broker_ids)}
    answers = wire.read_each(builds, is_waiting_for_all=topic_partitions is None)
    dirs = {broker: _log_dirs(answer) for broker, answer in answers.items()}
    replicas = {
        (TopicPartition(topic.name, replica.partition_index), broker): (replica.partition_size, result.log_dir)
        for broker, answer in answers.items()
        for result in answer.results
        for topic in result.topics
        for replica in topic.partitions
        if not replica.is_future_key
    }
    return Disks(dirs, replicas)


def end_offsets(wire: Wire, leaders: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int]:
    """Return the end offset of each partition, asked of its leader; what no leader told is left out."""
    found = log_offsets(wire, leaders, LATEST)
    return {key: offset for key, offset in found.items() if offset is not None}


def log_offsets(wire: Wire, leaders: Mapping[TopicPartition, int | None], at: int) -> dict[TopicPartition, int | None]:
    """Return each partition's offset at EARLIEST, LATEST or a time in ms (None: no record is that late).

    Each is asked of its leader; what no leader told is left out.
    """
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    for topic_partition, leader in sorted(leaders.items()):
        if leader is not None:
            by_leader[leader].append(topic_partition)
    found: dict[TopicPartition, int | None] = {}
    for turn in range(max((len(batches(some, PARTITIONS_A_REQUEST)) for some in by_leader.values()), default=0)):
        some_of_each = {
            leader: batches(some, PARTITIONS_A_REQUEST)[turn : turn + 1] for leader, some in by_leader.items()
        }
        builds = {leader: _offsets(some[0], at) for leader, some in sorted(some_of_each.items()) if some}
        for answer in wire.read_each(builds).values():
            for topic in answer.topics:
                for partition in topic.partitions:
                    if partition.error_code == NONE:
                        offset = partition.offset if partition.offset >= 0 else None
                        found[TopicPartition(topic.name, partition.partition_index)] = offset
    return found


def check_for_hidden_topics(wire: Wire, known: Collection[str], on_disk: Iterable[TopicPartition]) -> None:
    """Raise MissingRight where a log dir holds a topic that this user may not describe: Kafka leaves it out."""
    unseen = {topic_partition.topic for topic_partition in on_disk} - set(known)
    for some in batches(sorted(unseen), TOPICS_A_REQUEST):
        _topics_of(wire.read(_metadata(some)))


def api_versions() -> ApiVersionsRequest:
    """Return the request for what a broker speaks and what the cluster has switched on."""
    # A broker refuses the request without a name and a version of the client.
    return ApiVersionsRequest(client_software_name="kafka-reconciler", client_software_version="1", min_version=3)


def _metadata(names: Collection[str] | None) -> Callable[[], MetadataRequest]:
    form = MetadataRequest.MetadataRequestTopic
    return lambda: MetadataRequest(
        topics=None if names is None else [form(name=name) for name in names], allow_auto_topic_creation=False
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


def _overrides(response: "DescribeConfigsResponse", source: int, resource: str) -> dict[str, dict[str, str]]:
    """Return each resource's configs of that source; a sensitive value comes as null and is left out."""
    results = response.results
    hidden = _hidden(response)
    if hidden:
        raise _unreadable(resource, hidden)
    failed = next((r for r in results if r.error_code not in (NONE, UNKNOWN_TOPIC_OR_PARTITION)), None)
    if failed is not None:
        raise _refused(failed.error_code, failed.error_message, f"the configs of {failed.resource_name} cannot be read")
    return {
        result.resource_name: {
            config.name: config.value
            for config in sorted(result.configs, key=lambda config: config.name)
            if config.config_source == source and config.value is not None
        }
        for result in results
        if result.error_code == NONE
    }


def _hidden(response: "DescribeConfigsResponse") -> list[str]:
    return [result.resource_name for result in response.results if result.error_code in AUTHORIZATION_FAILED]


def _unreadable(resource: str, hidden: Collection[str]) -> MissingRight:
    return missing_right("DescribeConfigs", resource, hidden, "Reading configs")


def _log_dirs(response: "DescribeLogDirsResponse") -> tuple[LogDir, ...]:
    # A broker has at least one log dir, so none means that the right is missing: before version 3 nothing else tells.
    if getattr(response, "error_code", NONE) in AUTHORIZATION_FAILED or not response.results:
        raise missing_right("Describe", "cluster", (), "Reading log dirs")
    return tuple(
        LogDir(
            result.log_dir,
            _known(result.total_bytes),
            _known(result.usable_bytes),
            is_offline=result.error_code != NONE,
            is_cordoned=bool(getattr(result, "is_cordoned", False)),
        )
        for result in sorted(response.results, key=lambda result: result.log_dir)
    )


def _known(size: int | None) -> int | None:
    return size if size is not None and size >= 0 else None


def _offsets(topic_partitions: Collection[TopicPartition], at: int) -> Callable[[], ListOffsetsRequest]:
    topic_form = ListOffsetsRequest.ListOffsetsTopic
    form = topic_form.ListOffsetsPartition
    asked = [
        topic_form(name=topic, partitions=[form(partition_index=n, timestamp=at) for n in numbers])
        for topic, numbers in _by_topic(topic_partitions).items()
    ]
    return lambda: ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=asked)


def _by_topic(topic_partitions: Collection[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(set(topic_partitions)):
        found[topic].append(partition)
    return found


def _check_cluster_right(code: int, message: str | None, need: str) -> None:
    if code in AUTHORIZATION_FAILED:
        raise missing_right("Describe", "cluster", (), need)
    if code != NONE:
        raise _refused(code, message, f"{need[0].lower()}{need[1:]} failed")


def _refused(code: int, message: str | None, what: str) -> ClusterUnavailable:
    return ClusterUnavailable(f"Kafka answered {name_of(code)}: {what}{f' ({message})' if message else ''}. Try again.")
