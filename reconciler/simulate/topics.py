"""Topics that are created, grown and deleted, with Kafka's own validation."""

import base64
import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from reconciler.model.change import CreatePartitions, CreateTopic
from reconciler.model.cluster import DELETE_TOPICS, Cluster, Partition, Topic
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.answers import Denied, Outcome
from reconciler.simulate.configs import validate_topic_configs
from reconciler.simulate.controller import Controller, controller_of
from reconciler.simulate.partition import validate_assignment
from reconciler.simulate.placement import striped
from reconciler.simulate.requests import MAX_RECORDS
from reconciler.simulate.storage import with_partitions, without_topic

UNKNOWN_TOPIC, DELETION_DISABLED = Denied("UNKNOWN_TOPIC_OR_PARTITION"), Denied("TOPIC_DELETION_DISABLED")
INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__share_group_state", "__transaction_state"))
MAX_NAME_LENGTH = 249

Assignment = Mapping[int, Sequence[int]]
Change = TypeVar("Change", CreatePartitions, CreateTopic)


def create_topics(cluster: Cluster, changes: Sequence[CreateTopic], *, seed: int = 0) -> Outcome[str]:
    """Create topics; their ids follow from the cluster's, the name, the time and `seed`, which must not repeat."""
    if sum(max(change.partitions, len(change.assignment)) for change in changes) > MAX_RECORDS:
        denied = Denied("POLICY_VIOLATION", "Excessively large number of partitions per request.")
        return Outcome(cluster, {change.topic: denied for change in changes})
    return _one_by_one(cluster, changes, lambda now, change: _created(now, change, seed))


def create_partitions(cluster: Cluster, changes: Sequence[CreatePartitions]) -> Outcome[str]:
    """Add partitions to topics."""
    return _one_by_one(cluster, changes, _grown)


def _one_by_one(
    cluster: Cluster, changes: Sequence[Change], perform: Callable[[Cluster, Change], Cluster | Denied]
) -> Outcome[str]:
    """Perform the changes in order; one that is denied leaves the cluster as it is."""
    answers: dict[str, Denied | None] = {}
    for change in changes:
        result = perform(cluster, change)
        if isinstance(result, Denied):
            answers[change.topic] = result
        else:
            answers[change.topic] = None
            cluster = result
    return Outcome(cluster, answers)


def delete_topics(cluster: Cluster, names: Collection[str]) -> Outcome[str]:
    """Delete topics, reassignments in flight included."""
    if "false" in cluster.in_force(DELETE_TOPICS).values():
        return Outcome(cluster, dict.fromkeys(names, DELETION_DISABLED))
    answers: dict[str, Denied | None] = {}
    for name in names:
        answers[name] = None if name in cluster.topics else UNKNOWN_TOPIC
        if name in cluster.topics:
            cluster = without_topic(cluster, name)
    return Outcome(cluster, answers)


def _created(cluster: Cluster, change: CreateTopic, seed: int) -> Cluster | Denied:
    controller = controller_of(cluster)
    assignment = change.assignment or striped(cluster, change.partitions, change.replication_factor)
    denied = (
        _name_problem(cluster, change.topic)
        or validate_topic_configs(cluster, change.configs)
        or (assignment if isinstance(assignment, Denied) else _assignment_problem(assignment, controller))
    )
    if denied is not None or isinstance(assignment, Denied):
        return denied or UNKNOWN_TOPIC
    topic = Topic(
        change.topic,
        topic_id=_topic_id(cluster, change.topic, seed),
        is_internal=change.topic in INTERNAL_TOPICS,
        configs=dict(sorted(change.configs.items())),
    )
    topics = {**cluster.topics, topic.name: topic}
    empty = replace(cluster, topics={name: topics[name] for name in sorted(topics)})
    return _with_new_partitions(empty, topic.name, assignment, controller)


def _grown(cluster: Cluster, change: CreatePartitions) -> Cluster | Denied:
    topic = cluster.topics.get(change.topic)
    if topic is None:
        return UNKNOWN_TOPIC
    count = len(topic.partitions)
    denied = _growth_problem(change, count)
    if denied is not None:
        return denied
    replication_factor = len(topic.partitions[0].replicas)
    assignment: Assignment | Denied = change.assignment
    if not assignment:
        assignment = striped(cluster, change.to_count - count, replication_factor, first=count)
    if isinstance(assignment, Denied):
        return assignment
    controller = controller_of(cluster)
    denied = _assignment_problem(assignment, controller, replication_factor)
    if denied is not None:
        return denied
    return _with_new_partitions(cluster, change.topic, assignment, controller)


def _growth_problem(change: CreatePartitions, count: int) -> Denied | None:
    if change.to_count == count:
        return Denied("INVALID_PARTITIONS", f"Topic already has {count} partition(s).")
    if change.to_count < count:
        return Denied(
            "INVALID_PARTITIONS",
            f"The topic {change.topic} currently has {count} partition(s); {change.to_count} would not be an increase.",
        )
    added = change.to_count - count
    if change.assignment and len(change.assignment) != added:
        return Denied(
            "INVALID_REPLICA_ASSIGNMENT",
            f"Attempted to add {added} additional partition(s), but only {len(change.assignment)} assignment(s) "
            "were specified.",
        )
    return None


def _assignment_problem(
    assignment: Assignment, controller: Controller, replication_factor: int | None = None
) -> Denied | None:
    """Return why that assignment is refused; of a new topic the first partition sets the factor."""
    for number in sorted(assignment):
        replicas = assignment[number]
        denied = validate_assignment(replicas, controller, replication_factor)
        if denied is not None:
            return denied
        if controller.alive.isdisjoint(replicas):
            return Denied(
                "INVALID_REPLICA_ASSIGNMENT",
                f"All brokers specified in the manual partition assignment for partition {number} are fenced or in "
                "controlled shutdown.",
            )
        replication_factor = len(replicas)
    return _numbering_problem(assignment)


def _numbering_problem(assignment: Assignment) -> Denied | None:
    numbers = sorted(assignment)
    if numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    return Denied("INVALID_REPLICA_ASSIGNMENT", "partitions should be a consecutive 0-based integer sequence")


def _with_new_partitions(cluster: Cluster, topic: str, assignment: Assignment, controller: Controller) -> Cluster:
    has_log_dirs = any(broker.log_dirs for broker in cluster.brokers.values())
    new = {
        TopicPartition(topic, number): _new_partition(number, assignment[number], controller, has_log_dirs=has_log_dirs)
        for number in sorted(assignment)
    }
    return with_partitions(cluster, new)


def _new_partition(number: int, replicas: Sequence[int], controller: Controller, *, has_log_dirs: bool) -> Partition:
    isr = tuple(replica for replica in replicas if replica in controller.alive)
    return Partition(
        number,
        leader=isr[0],
        replicas=tuple(replicas),
        isr=isr,
        sizes=(0,) * len(replicas),
        log_dirs=(None,) * len(replicas) if has_log_dirs else (),
        end_offset=0,
    )


def _name_problem(cluster: Cluster, name: str) -> Denied | None:
    reason = _invalid_name(name)
    if reason is not None:
        return Denied("INVALID_TOPIC_EXCEPTION", f"Topic name is invalid: {reason}")
    if name in cluster.topics:
        return Denied("TOPIC_ALREADY_EXISTS", f"Topic '{name}' already exists.")
    unified = name.replace(".", "_")
    colliding = next((one for one in sorted(cluster.topics) if one.replace(".", "_") == unified), None)
    if colliding is not None:
        return Denied("INVALID_TOPIC_EXCEPTION", f"Topic '{name}' collides with existing topic: {colliding}")
    return None


def _invalid_name(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in {".", ".."}:
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not re.fullmatch(r"[a-zA-Z0-9._-]+", name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def _topic_id(cluster: Cluster, name: str, seed: int) -> str:
    """Return an id in Kafka's form: 16 bytes as URL-safe base64."""
    text = "\n".join((cluster.cluster_id, name, cluster.observed_at or "", str(seed)))
    digest = hashlib.sha256(text.encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
