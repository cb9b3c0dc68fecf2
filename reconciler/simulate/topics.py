"""Creates, grows and deletes topics, with Kafka's own validation, and places replicas where a request does not say."""

import base64
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TypeVar

from reconciler.model.change import CreatePartitions, CreateTopic
from reconciler.model.cluster import DELETE_TOPICS, Broker, Cluster, Partition, Topic
from reconciler.model.config_value import displayed_value
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.configs import validate_topic_configs
from reconciler.simulate.controller import MAX_RECORDS, Denied, Outcome, controller_of
from reconciler.simulate.partition import validate_assignment
from reconciler.simulate.storage import with_partitions, without_topic

UNKNOWN_TOPIC, DELETION_DISABLED = Denied("UNKNOWN_TOPIC_OR_PARTITION"), Denied("TOPIC_DELETION_DISABLED")
INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__share_group_state", "__transaction_state"))
MAX_NAME_LENGTH = 249
"""Kafka's own limit: a log's folder adds a dash and a partition's number, and file names end at 255 bytes."""

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
        answers[change.topic] = result if isinstance(result, Denied) else None
        cluster = cluster if isinstance(result, Denied) else result
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
    assignment = change.assignment or _striped(cluster, change.partitions, change.replication_factor)
    denied = _name_problem(cluster, change.topic) or validate_topic_configs(cluster, change.configs)
    if denied is not None:
        return denied
    if isinstance(assignment, Denied):
        return assignment
    topic = Topic(
        change.topic,
        topic_id=_topic_id(cluster, change.topic, seed),
        is_internal=change.topic in INTERNAL_TOPICS,
        configs={key: displayed_value(key, value) for key, value in sorted(change.configs.items())},
    )
    topics = {**cluster.topics, topic.name: topic}
    empty = replace(cluster, topics={name: topics[name] for name in sorted(topics)})
    return _with_new_partitions(empty, topic.name, assignment)


def _grown(cluster: Cluster, change: CreatePartitions) -> Cluster | Denied:
    topic = cluster.topics.get(change.topic)
    if topic is None:
        return UNKNOWN_TOPIC
    count = len(topic.partitions)
    denied = _growth_problem(change, count)
    if denied is not None:
        return denied
    # Kafka takes the factor from the topic's first partition, whatever the others have.
    factor = len(topic.partitions[0].replicas)
    assignment = change.assignment or _striped(cluster, change.to_count - count, factor, first=count)
    if isinstance(assignment, Denied):
        return assignment
    return _with_new_partitions(cluster, change.topic, assignment, factor)


def _striped(cluster: Cluster, partitions: int, replication_factor: int, *, first: int = 0) -> Assignment | Denied:
    """Return replicas in stripes over racks, as Kafka's placer makes them, but from a fixed start, not a random one.

    Fenced brokers are taken only where the living ones do not suffice, cordoned ones never (KIP-1066).
    """
    too_small = "Replication factor must be larger than 0, or -1 to use the default value."
    if replication_factor <= 0:
        return Denied("INVALID_REPLICATION_FACTOR", too_small)
    if partitions <= 0:
        return Denied("INVALID_PARTITIONS", "Number of partitions was set to an invalid non-positive value.")
    open_brokers = sorted(one.id for one in cluster.brokers.values() if not one.is_cordoned)
    alive = _alternating([broker for id_ in open_brokers if not (broker := cluster.brokers[id_]).is_fenced])
    reason = "All brokers are currently fenced." if not alive else None
    if replication_factor > len(open_brokers):
        is_any_closed = len(open_brokers) < len(cluster.brokers)
        closed = " or some brokers have all their log directories cordoned" if is_any_closed else ""
        reason = (
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(open_brokers)} broker(s) are registered{closed}."
        )
    if reason is not None:
        message = f"Unable to replicate the partition {replication_factor} time(s): {reason}"
        return Denied("INVALID_REPLICATION_FACTOR", message)
    fenced = tuple(id_ for id_ in open_brokers if id_ not in alive)
    return {
        number: (alive[number % len(alive) :] + alive[: number % len(alive)] + fenced)[:replication_factor]
        for number in range(first, first + partitions)
    }


def _alternating(brokers: Iterable[Broker]) -> tuple[int, ...]:
    """Return the brokers, one of each rack in turn, racks by name."""
    racks: dict[str, list[int]] = {}
    for broker in sorted(brokers, key=lambda one: (one.rack or "", one.id)):
        racks.setdefault(broker.rack or "", []).append(broker.id)
    return tuple(one for turn in zip_longest(*racks.values()) for one in turn if one is not None)


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


def _with_new_partitions(
    cluster: Cluster, topic: str, assignment: Assignment, replication_factor: int | None = None
) -> Cluster | Denied:
    """Return the cluster with these new, empty partitions; of a new topic the first one sets the factor."""
    controller = controller_of(cluster)
    has_log_dirs = any(broker.log_dirs for broker in cluster.brokers.values())
    new: dict[TopicPartition, Partition] = {}
    for number, replicas in sorted(assignment.items()):
        denied = validate_assignment(replicas, controller, replication_factor)
        if denied is not None:
            return denied
        isr = tuple(replica for replica in replicas if replica in controller.alive)
        if not isr:
            return Denied(
                "INVALID_REPLICA_ASSIGNMENT",
                f"All brokers specified in the manual partition assignment for partition {number} are fenced or in "
                "controlled shutdown.",
            )
        replication_factor = len(replicas)
        new[TopicPartition(topic, number)] = Partition(
            number,
            leader=isr[0],
            replicas=tuple(replicas),
            isr=isr,
            sizes=(0,) * len(replicas),
            log_dirs=(None,) * len(replicas) if has_log_dirs else (),
            end_offset=0,
        )
    numbers = sorted(assignment)
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return Denied("INVALID_REPLICA_ASSIGNMENT", "partitions should be a consecutive 0-based integer sequence")
    return with_partitions(cluster, new)


def _name_problem(cluster: Cluster, name: str) -> Denied | None:
    reason = None
    if not name:
        reason = "the empty string is not allowed"
    elif name in {".", ".."}:
        reason = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        reason = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not re.fullmatch(r"[a-zA-Z0-9._-]+", name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    if reason is not None:
        return Denied("INVALID_TOPIC_EXCEPTION", f"Topic name is invalid: {reason}")
    if name in cluster.topics:
        return Denied("TOPIC_ALREADY_EXISTS", f"Topic '{name}' already exists.")
    # Names of metrics hold _ in place of a dot, so the two would share theirs.
    unified = name.replace(".", "_")
    colliding = next((one for one in sorted(cluster.topics) if one.replace(".", "_") == unified), None)
    if colliding is not None:
        return Denied("INVALID_TOPIC_EXCEPTION", f"Topic '{name}' collides with existing topic: {colliding}")
    return None


def _topic_id(cluster: Cluster, name: str, seed: int) -> str:
    """Return an id in Kafka's form: 16 bytes as URL-safe base64."""
    text = "\n".join((cluster.cluster_id, name, cluster.observed_at or "", str(seed)))
    digest = hashlib.sha256(text.encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
