"""Commits offsets and deletes groups, each at its coordinator; nothing is repeated blindly."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from kafka.protocol.admin import DeleteGroupsRequest
from kafka.protocol.consumer import OffsetCommitRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from reconciler.admin.client.errors import AUTHORIZATION_FAILED, NONE, answer, missing_right, name_of
from reconciler.admin.client.exchange import NotSent
from reconciler.admin.client.wire import Wire, batches, tries
from reconciler.admin.port import Answer
from reconciler.model.problem import ClusterUnavailable
from reconciler.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.api_message import ApiMessage

Key = TypeVar("Key", str, TopicPartition)

# One request is one batch of records in __consumer_offsets, which is bounded by max.message.bytes.
PARTITIONS_A_REQUEST = 1_000
GROUPS_A_REQUEST = 500
MANY_KEYS, GROUP_KEY = 4, 0
NAMED_TOPICS = 9  # later versions of OffsetCommit take topic ids
GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED = 30, 29
# COORDINATOR_LOAD_IN_PROGRESS and NOT_COORDINATOR: certainly nothing was done. COORDINATOR_NOT_AVAILABLE is not among
# them: it is also Kafka's answer where the write to __consumer_offsets timed out, which may still have succeeded.
NOT_DONE = frozenset({14, 16})


def commit_offsets(wire: Wire, group_id: str, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, Answer]:
    """Commit offsets for a group without members, with Kafka's own answer for each partition."""

    def send(coordinator: int, some: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        response = wire.write_to(coordinator, partial(_commit, group_id, {key: offsets[key] for key in some}))
        return {
            TopicPartition(topic.name, partition.partition_index): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }

    found: dict[TopicPartition, Answer] = {}
    for some in batches(sorted(offsets), PARTITIONS_A_REQUEST):
        codes = _at_coordinators(wire, dict.fromkeys(some, group_id), send)
        if GROUP_AUTHORIZATION_FAILED in codes.values():
            raise missing_right("Read", "group", [group_id], "Committing offsets for a group")
        found |= {key: _answer(code, "Read", "topic", key.topic, "Committing offsets") for key, code in codes.items()}
    return found


def delete_groups(wire: Wire, group_ids: Collection[str]) -> dict[str, Answer]:
    """Delete groups without members, with Kafka's own answer for each."""

    def send(coordinator: int, some: Sequence[str]) -> dict[str, int]:
        response = wire.write_to(coordinator, lambda: DeleteGroupsRequest(groups_names=list(some)))
        return {result.group_id: result.error_code for result in response.results}

    found: dict[str, Answer] = {}
    for some in batches(sorted(set(group_ids)), GROUPS_A_REQUEST):
        codes = _at_coordinators(wire, {group_id: group_id for group_id in some}, send)
        found |= {key: _answer(code, "Delete", "group", key, "Deleting a group") for key, code in codes.items()}
    return found


def _at_coordinators(
    wire: Wire, group_of: Mapping[Key, str], send: Callable[[int, Sequence[Key]], Mapping[Key, int]]
) -> dict[Key, int]:
    """Send each item to its group's coordinator; again, perhaps elsewhere, what was certainly not done."""
    found: dict[Key, int] = {}
    left, reason = sorted(group_of), ""
    for _ in tries(wire.retry_seconds):
        reason = ""
        for coordinator, some in _by_coordinator(wire, group_of, left).items():
            try:
                codes = send(coordinator, some)
            except NotSent as error:
                reason = str(error)
                continue
            # What the answer leaves out is not taken for done: -1 is Kafka's UNKNOWN_SERVER_ERROR.
            found |= {key: codes.get(key, -1) for key in some}
        left = [key for key in left if key not in found or found[key] in NOT_DONE]
        if not left:
            return dict(sorted(found.items()))
    told = reason or name_of(found[left[0]])
    raise ClusterUnavailable(
        f"The coordinator of group {group_of[left[0]]} does not answer ({told}): "
        f"{len(left)} of {len(group_of)} items are certainly not written. Try again."
    )


def _by_coordinator(wire: Wire, group_of: Mapping[Key, str], keys: Sequence[Key]) -> dict[int, list[Key]]:
    found_at = coordinators(wire, {group_of[key] for key in keys})
    found: dict[int, list[Key]] = defaultdict(list)
    for key in keys:
        found[found_at[group_of[key]]].append(key)
    return dict(sorted(found.items()))


def coordinators(wire: Wire, group_ids: Collection[str]) -> dict[str, int]:
    """Return the coordinator of each group; a cluster without `__consumer_offsets` makes that topic first."""
    asked = sorted(group_ids)
    codes: dict[str, int] = {}
    for _ in tries(wire.retry_seconds):
        response = wire.read(partial(coordinator_question, asked))
        codes = {told.key: told.error_code for told in response.coordinators}
        hidden = [group_id for group_id, code in codes.items() if code in AUTHORIZATION_FAILED]
        if hidden:
            raise missing_right("Describe", "group", hidden, "Finding a group's coordinator")
        if not any(codes.values()):
            return {told.key: told.node_id for told in response.coordinators}
    group_id, code = next((key, code) for key, code in sorted(codes.items()) if code != NONE)
    raise ClusterUnavailable(
        f"Group {group_id} has no coordinator ({name_of(code)}). "
        "Look at the leaders of __consumer_offsets, then try again."
    )


def coordinator_question(group_ids: Sequence[str]) -> FindCoordinatorRequest:
    """Return the request for the coordinators of these groups."""
    # From version 4 on it takes many keys and answers for each; earlier ones take one, and answer in another form.
    return FindCoordinatorRequest(key_type=GROUP_KEY, coordinator_keys=group_ids, min_version=MANY_KEYS)


def _commit(group_id: str, offsets: Mapping[TopicPartition, int]) -> "ApiMessage":
    form = OffsetCommitRequest.OffsetCommitRequestTopic
    by_topic: dict[str, list[ApiMessage]] = defaultdict(list)
    for (topic, partition), offset in sorted(offsets.items()):
        by_topic[topic].append(
            form.OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata="")
        )
    # No generation and no member: the broker takes it only while the group has no members.
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[form(name=topic, partitions=partitions) for topic, partitions in by_topic.items()],
        max_version=NAMED_TOPICS,
    )


def _answer(code: int, operation: str, resource: str, name: str, need: str) -> Answer:
    if code in AUTHORIZATION_FAILED:
        return Answer(name_of(code), str(missing_right(operation, resource, [name], need)))
    return answer(code, None)
