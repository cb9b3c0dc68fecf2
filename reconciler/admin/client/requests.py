"""Sends what is written: one answer an item, batches as large as the controller can take, no blind repetition."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)

from reconciler.admin.client.errors import (
    AUTHORIZATION_FAILED,
    ELECTION_NOT_NEEDED,
    NOT_CONTROLLER,
    REPLICA_NOT_AVAILABLE,
    THROTTLING_QUOTA_EXCEEDED,
    UNKNOWN_TOPIC_OR_PARTITION,
    answer,
    check_cluster_right,
    missing_right,
    name_of,
)
from reconciler.admin.client.exchange import NotSent
from reconciler.admin.client.observe import BROKER_RESOURCE, TOPIC_RESOURCE, config_question
from reconciler.admin.client.wire import Build, Wire, batches, by_topic, tries
from reconciler.admin.port import Answer
from reconciler.admin.waits import waiting_for
from reconciler.model.change import ConfigChange, ConfigOperation, CreatePartitions, CreateTopic
from reconciler.model.cluster import TOPIC_THROTTLES
from reconciler.model.problem import ClusterUnavailable
from reconciler.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.api_message import ApiMessage

Key = TypeVar("Key")
Item = TypeVar("Item")

# The controller takes 10,000 records a request and answers strangely above (half done, or done and told as failed).
PARTITIONS_A_REQUEST = 1_000
TOPICS_A_REQUEST = 500
PREFERRED = 0
KIP_860 = 1
OPERATIONS = {ConfigOperation.SET: 0, ConfigOperation.DELETE: 1, ConfigOperation.APPEND: 2, ConfigOperation.SUBTRACT: 3}
MOST_WAITS = 10
LONGEST_WAIT_SECONDS = 60.0
# A broker reads what the controller wrote within a fraction of a second; one that lags behind is not waited for longer.
IN_FORCE_SECONDS, IN_FORCE_ASK_SECONDS, IN_FORCE_PAUSE_SECONDS = 5.0, 2.0, 0.05
ALL_REPLICAS = "*"
NOT_THERE_YET = frozenset({UNKNOWN_TOPIC_OR_PARTITION, REPLICA_NOT_AVAILABLE})


def reassign(
    wire: Wire, targets: Mapping[TopicPartition, Sequence[int] | None], *, is_replication_factor_change_allowed: bool
) -> dict[TopicPartition, Answer]:
    """Submit targets (None cancels), with the controller's own words about each partition."""
    is_guarded = not is_replication_factor_change_allowed and wire.is_supported(
        AlterPartitionReassignmentsRequest, KIP_860
    )
    # With its lowest version set, the library cannot fall back to one that leaves the field out, unsaid.
    guard = {"allow_replication_factor_change": False, "min_version": KIP_860} if is_guarded else {}
    topic_form = AlterPartitionReassignmentsRequest.ReassignableTopic
    form = topic_form.ReassignablePartition

    def request(some: Sequence[TopicPartition]) -> "ApiMessage":
        topics = [
            topic_form(
                name=topic, partitions=[form(partition_index=n, replicas=_listed(targets, topic, n)) for n in numbers]
            )
            for topic, numbers in by_topic(some).items()
        ]
        return AlterPartitionReassignmentsRequest(timeout_ms=wire.write_timeout_ms, topics=topics, **guard)

    found: dict[TopicPartition, Answer] = {}
    for some in batches(sorted(targets), PARTITIONS_A_REQUEST):
        response = wire.write(partial(request, some))
        check_cluster_right(response.error_code, "Alter", "Reassigning partitions")
        whole = answer(response.error_code, response.error_message)
        told = {
            TopicPartition(topic.name, partition.partition_index): answer(partition.error_code, partition.error_message)
            for topic in response.responses
            for partition in topic.partitions
        }
        found |= {key: whole if not whole.is_ok else told.get(key, _untold()) for key in some}
    return found


def elect_preferred_leaders(wire: Wire, topic_partitions: Collection[TopicPartition]) -> dict[TopicPartition, Answer]:
    """Elect the first replicas of exactly these partitions; each one's own answer is read."""
    form = ElectLeadersRequest.TopicPartitions
    found: dict[TopicPartition, Answer] = {}
    for some in batches(sorted(set(topic_partitions)), PARTITIONS_A_REQUEST):
        # Never None, which would mean every partition of the cluster.
        asked = [form(topic=topic, partitions=numbers) for topic, numbers in by_topic(some).items()]
        response = wire.write(partial(_election, wire, asked))
        check_cluster_right(response.error_code, "Alter", "Electing leaders")
        whole = answer(response.error_code, None)
        told = {
            TopicPartition(result.topic, partition.partition_id): _elected(
                partition.error_code, partition.error_message
            )
            for result in response.replica_election_results
            for partition in result.partition_result
        }
        found |= {key: whole if not whole.is_ok else told.get(key, _untold()) for key in some}
    return found


def create_topics(wire: Wire, changes: Sequence[CreateTopic], *, is_validated_only: bool = False) -> dict[str, Answer]:
    """Create topics with their explicit assignments, or as Kafka places them where a change has none."""

    def request(some: Sequence[CreateTopic]) -> "ApiMessage":
        topics = [_creatable(change) for change in some]
        return CreateTopicsRequest(topics=topics, timeout_ms=wire.write_timeout_ms, validate_only=is_validated_only)

    weighed = {change.topic: (change, max(change.partitions, len(change.assignment))) for change in changes}
    send = _sender(wire, is_validated_only=is_validated_only)
    return _in_batches(send, weighed, request, lambda response: response.topics, ("Create", "Creating a topic"))


def create_partitions(
    wire: Wire, changes: Sequence[CreatePartitions], *, is_validated_only: bool = False
) -> dict[str, Answer]:
    """Add partitions with their explicit assignments, or as Kafka places them where a change has none."""

    def request(some: Sequence[CreatePartitions]) -> "ApiMessage":
        topics = [_growing(change) for change in some]
        return CreatePartitionsRequest(topics=topics, timeout_ms=wire.write_timeout_ms, validate_only=is_validated_only)

    weighed = {change.topic: (change, change.to_count - change.from_count) for change in changes}
    send = _sender(wire, is_validated_only=is_validated_only)
    return _in_batches(send, weighed, request, lambda response: response.results, ("Alter", "Adding partitions"))


def delete_topics(wire: Wire, names: Collection[str]) -> dict[str, Answer]:
    """Delete topics."""
    form = DeleteTopicsRequest.DeleteTopicState

    def request(some: Sequence[str]) -> "ApiMessage":
        # Versions up to 5 take names alone; later ones take a name or an id.
        topics = [form(name=name) for name in some]
        return DeleteTopicsRequest(topics=topics, topic_names=list(some), timeout_ms=wire.write_timeout_ms)

    weighed = {name: (name, 1) for name in sorted(set(names))}
    send = _sender(wire, is_validated_only=False)
    return _in_batches(send, weighed, request, lambda response: response.responses, ("Delete", "Deleting a topic"))


def alter_topic_configs(
    wire: Wire, changes: Mapping[str, Sequence[ConfigChange]], *, is_validated_only: bool = False
) -> dict[str, Answer]:
    """Change topic configs incrementally, all of a topic's keys at once; throttle lists are in force on return.

    A missing right is the answer of its topics alone: Kafka has changed the others.
    """
    send = _sender(wire, is_validated_only=is_validated_only)
    found: dict[str, Answer] = {}
    for some in batches(sorted(changes), TOPICS_A_REQUEST):
        resources = {name: changes[name] for name in some}
        response = send.send(partial(_alteration, TOPIC_RESOURCE, resources, is_validated_only=is_validated_only))
        told = {result.resource_name: result for result in response.responses}
        hidden = [name for name, result in told.items() if result.error_code in AUTHORIZATION_FAILED]
        right = str(missing_right("AlterConfigs", "topic", hidden, "Changing a topic's configs")) if hidden else ""
        answers = {
            name: answer(result.error_code, right if name in hidden else result.error_message)
            for name, result in told.items()
        }
        found |= {name: answers.get(name, _untold()) for name in some}
        if not is_validated_only:
            await_throttle_lists(wire, {name: changes[name] for name in some if found[name].is_ok})
    return found


def alter_broker_configs(wire: Wire, broker_id: int, changes: Sequence[ConfigChange]) -> Answer:
    """Change one broker's dynamic configs; only that broker can answer, so its silence is told as its own."""
    # The library's own method refuses the rates of throttles: DescribeConfigs calls them read-only.
    try:
        response = wire.write_to(broker_id, partial(_alteration, BROKER_RESOURCE, {str(broker_id): changes}))
    except NotSent as error:
        raise ClusterUnavailable(
            f"Broker {broker_id} does not answer ({error}), and only it can change its own configs. "
            "See that it runs and can be reached from here, then try again."
        ) from None
    told = next(iter(response.responses), None)
    if told is None:
        return _untold()
    check_cluster_right(told.error_code, "AlterConfigs", "Changing a broker's configs")
    return answer(told.error_code, told.error_message)


def await_throttle_lists(wire: Wire, changes: Mapping[str, Sequence[ConfigChange]]) -> None:
    """Return once every broker that answers shows the items appended to throttle lists, or after 5 s.

    A broker applies what the controller has written in batches, and in each batch the partitions before the configs
    (BrokerMetadataPublisher). So where a reassignment falls into one batch with the list, fetching begins without it.
    """
    lists = {
        (topic, change.key): frozenset(change.value.split(","))
        for topic, made in changes.items()
        for change in made
        if change.key in TOPIC_THROTTLES and change.operation is ConfigOperation.APPEND
    }
    if not lists:
        return
    question = config_question(TOPIC_RESOURCE, sorted({topic for topic, _ in lists}), TOPIC_THROTTLES)
    pending = wire.brokers()
    for _ in tries(IN_FORCE_SECONDS, IN_FORCE_PAUSE_SECONDS):
        pending = _behind(wire.read_each(dict.fromkeys(pending, question), IN_FORCE_ASK_SECONDS), lists)
        if not pending:
            return


def choose_log_dirs(wire: Wire, broker_id: int, choices: Mapping[TopicPartition, str]) -> dict[TopicPartition, Answer]:
    """Tell one broker in which of its log dirs replicas belong.

    Of one that is yet to come Kafka remembers the dir first, and then answers that it has no such replica (KIP-113,
    ReplicaManager): with REPLICA_NOT_AVAILABLE, or UNKNOWN_TOPIC_OR_PARTITION where that broker has not heard of the
    topic yet.
    """
    found: dict[TopicPartition, Answer] = {}
    for some in batches(sorted(choices), PARTITIONS_A_REQUEST):
        try:
            response = wire.write_to(broker_id, partial(_placing, {key: choices[key] for key in some}))
        except NotSent as error:
            raise ClusterUnavailable(
                f"Broker {broker_id} does not answer ({error}), and only it can take a choice of its log dirs. "
                "See that it runs and can be reached from here, then try again."
            ) from None
        told = {
            TopicPartition(topic.topic_name, partition.partition_index): partition.error_code
            for topic in response.results
            for partition in topic.partitions
        }
        for code in told.values():
            check_cluster_right(code, "Alter", "Choosing the log dirs of replicas")
        found |= {key: _chosen(told[key]) if key in told else _untold() for key in some}
    return found


def _placing(choices: Mapping[TopicPartition, str]) -> "ApiMessage":
    form = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    dirs = []
    for path in sorted(set(choices.values())):
        topics = by_topic([key for key in choices if choices[key] == path])
        listed = [form.AlterReplicaLogDirTopic(name=name, partitions=numbers) for name, numbers in topics.items()]
        dirs.append(form(path=path, topics=listed))
    return AlterReplicaLogDirsRequest(dirs=dirs)


def _chosen(code: int) -> Answer:
    return Answer() if code in NOT_THERE_YET else answer(code, None)


@dataclass(frozen=True, slots=True)
class _Sender:
    """How a request about topics is sent: one that changes nothing may be repeated, and tells rights item by item."""

    send: "Callable[[Build], ApiMessage]"
    is_validated_only: bool

    def check_rights(self, told: "Mapping[str, ApiMessage]", right: tuple[str, str]) -> None:
        hidden = [name for name, result in told.items() if result.error_code in AUTHORIZATION_FAILED]
        if hidden and not self.is_validated_only:
            raise missing_right(right[0], "topic", hidden, right[1])


def _sender(wire: Wire, *, is_validated_only: bool) -> _Sender:
    return _Sender(wire.read if is_validated_only else wire.write, is_validated_only)


def _in_batches(
    sender: _Sender,
    weighed: Mapping[str, tuple[Item, int]],
    request: Callable[[Sequence[Item]], "ApiMessage"],
    results: "Callable[[ApiMessage], Iterable[ApiMessage]]",
    right: tuple[str, str],
) -> dict[str, Answer]:
    """Send topics in requests of at most so many partitions; those the mutation quota refused are sent again later."""
    found: dict[str, Answer] = {}
    for some in _by_weight(weighed):
        left = dict(some)
        for _ in range(MOST_WAITS):
            response = sender.send(partial(request, tuple(left.values())))
            told = {result.name: result for result in results(response)}
            sender.check_rights(told, right)
            found |= {name: answer(result.error_code, result.error_message) for name, result in told.items()}
            # Of these two nothing was done: the controller's mutation quota is used up (KIP-599), or it has just moved.
            again = (THROTTLING_QUOTA_EXCEEDED, NOT_CONTROLLER)
            left = {name: item for name, item in left.items() if name in told and told[name].error_code in again}
            if not left:
                break
            with waiting_for("the quota of changes of topics (controller_mutation_rate) to let more through"):
                time.sleep(min(LONGEST_WAIT_SECONDS, max(0.1, response.throttle_time_ms / 1000)))
        found |= {name: _untold() for name in some if name not in found}
    return dict(sorted(found.items()))


def _by_weight(weighed: Mapping[str, tuple[Item, int]]) -> list[dict[str, Item]]:
    groups: list[dict[str, Item]] = []
    room = 0
    for name, (item, weight) in sorted(weighed.items()):
        if not groups or weight > room or len(groups[-1]) >= TOPICS_A_REQUEST:
            groups.append({})
            room = PARTITIONS_A_REQUEST
        groups[-1][name] = item
        room -= weight
    return groups


def _creatable(change: CreateTopic) -> "CreateTopicsRequest.CreatableTopic":
    form = CreateTopicsRequest.CreatableTopic
    assignments = [
        form.CreatableReplicaAssignment(partition_index=number, broker_ids=list(replicas))
        for number, replicas in sorted(change.assignment.items())
    ]
    configs = [form.CreatableTopicConfig(name=key, value=value) for key, value in sorted(change.configs.items())]
    # With an explicit assignment both counts must be -1.
    return form(
        name=change.topic,
        num_partitions=-1 if assignments else change.partitions,
        replication_factor=-1 if assignments else change.replication_factor,
        assignments=assignments,
        configs=configs,
    )


def _growing(change: CreatePartitions) -> "CreatePartitionsRequest.CreatePartitionsTopic":
    form = CreatePartitionsRequest.CreatePartitionsTopic
    lists = [list(replicas) for _, replicas in sorted(change.assignment.items())]
    assignments = [form.CreatePartitionsAssignment(broker_ids=replicas) for replicas in lists] or None
    return form(name=change.topic, count=change.to_count, assignments=assignments)


def _election(wire: Wire, asked: "Sequence[ElectLeadersRequest.TopicPartitions]") -> "ApiMessage":
    return ElectLeadersRequest(
        election_type=PREFERRED, topic_partitions=list(asked), timeout_ms=wire.write_timeout_ms, min_version=1
    )


def _elected(code: int, message: str | None) -> Answer:
    return Answer() if code == ELECTION_NOT_NEEDED else answer(code, message)


def _alteration(
    kind: int, resources: Mapping[str, Sequence[ConfigChange]], *, is_validated_only: bool = False
) -> "ApiMessage":
    form = IncrementalAlterConfigsRequest.AlterConfigsResource
    return IncrementalAlterConfigsRequest(
        resources=[
            form(resource_type=kind, resource_name=name, configs=[_alterable(form, change) for change in changes])
            for name, changes in sorted(resources.items())
        ],
        validate_only=is_validated_only,
    )


def _alterable(form: "IncrementalAlterConfigsRequest.AlterConfigsResource", change: ConfigChange) -> "ApiMessage":
    value = None if change.operation is ConfigOperation.DELETE else change.value
    return form.AlterableConfig(name=change.key, config_operation=OPERATIONS[change.operation], value=value)


def _behind(answers: "Mapping[int, ApiMessage]", lists: Mapping[tuple[str, str], frozenset[str]]) -> list[int]:
    """Return the brokers that have not read the items of each topic and key; one that is silent is not waited for."""
    return [broker for broker, answer in answers.items() if not _is_shown(answer, lists)]


def _is_shown(answer: "ApiMessage", lists: Mapping[tuple[str, str], frozenset[str]]) -> bool:
    found = {
        (result.resource_name, config.name): frozenset((config.value or "").split(","))
        for result in answer.results
        for config in result.configs
    }
    return all(
        items <= found.get(key, frozenset()) or ALL_REPLICAS in found.get(key, ()) for key, items in lists.items()
    )


def _listed(targets: Mapping[TopicPartition, Sequence[int] | None], topic: str, number: int) -> list[int] | None:
    target = targets[TopicPartition(topic, number)]
    return None if target is None else list(target)


def _untold() -> Answer:
    return Answer(name_of(-1), "Kafka did not answer for this item: look whether it happened.")
