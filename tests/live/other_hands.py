"""What somebody else does to a cluster, through another client: see also `helpers.brokers.controller`.

reassign(kafka.bootstrap, {"orders-0": (1, 2, 5)})   # AlterPartitionReassignments, over whatever is in flight
pin(kafka.bootstrap, {("orders", 0, 4): "/d2"})      # AlterReplicaLogDirs for a replica that is yet to come
bury(kafka.bootstrap)                                # ends the lock of a process that is dead, without the wait
"""

import struct
from collections.abc import Mapping, Sequence

from confluent_kafka.admin import AdminClient
from helpers.brokers.controller import NO_TAGS, _ask
from helpers.waiting import HANG
from kafka.admin import KafkaAdminClient, MemberToRemove

ALTER_REASSIGNMENTS = 45
LOCK_GROUP = "__reconciler-lock"
TIMEOUT_MS = 30_000


def reassign(bootstrap: str, targets: Mapping[str, Sequence[int]]) -> None:
    """Ask the controller to bring these partitions to these ordered replicas; fail where it refuses one."""
    answer = _ask(bootstrap, ALTER_REASSIGNMENTS, struct.pack(">i", TIMEOUT_MS) + _topics(targets) + NO_TAGS)
    answer.number(4)  # throttle time
    error, why = answer.number(2), answer.text()
    assert error == 0, f"error {error} {why}"
    for _ in range(answer.count()):
        topic = answer.text()
        for _ in range(answer.count()):
            number, error, why = answer.number(4), answer.number(2), answer.text()
            answer.tags()
            assert error == 0, f"{topic}-{number}: error {error} {why}"
        answer.tags()


def bury(bootstrap: str) -> None:
    """Take every member out of the lock's group: its process is dead, and its session need not be waited for."""
    groups = AdminClient({"bootstrap.servers": bootstrap}).list_groups(LOCK_GROUP, timeout=HANG)
    members = [member.id for group in groups for member in group.members]
    if not members:
        return
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    try:
        admin.remove_group_members(LOCK_GROUP, [MemberToRemove(member_id=member) for member in members])
    finally:
        admin.close()


def _topics(targets: Mapping[str, Sequence[int]]) -> bytes:
    """Return the compact array of topics of a request of version 0, one topic an entry for each partition."""
    by_topic: dict[str, dict[int, Sequence[int]]] = {}
    for name, replicas in sorted(targets.items()):
        topic, _, number = name.rpartition("-")
        by_topic.setdefault(topic, {})[int(number)] = replicas
    return _array([_topic(name, partitions) for name, partitions in by_topic.items()])


def _topic(name: str, partitions: Mapping[int, Sequence[int]]) -> bytes:
    return _text(name) + _array([_partition(*one) for one in partitions.items()]) + NO_TAGS


def _partition(number: int, replicas: Sequence[int]) -> bytes:
    return struct.pack(">i", number) + _array([struct.pack(">i", one) for one in replicas]) + NO_TAGS


def _text(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


def _array(items: Sequence[bytes]) -> bytes:
    """Return a compact array; those of a test have fewer than 127 items, so its length is one byte."""
    assert len(items) < 127
    return bytes([len(items) + 1]) + b"".join(items)


def pin(bootstrap: str, places: Mapping[tuple[str, int, int], str]) -> None:
    """Have replicas that are yet to come, by (topic, partition, broker), made in these log dirs."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    try:
        admin.alter_replica_log_dirs(dict(places))
    finally:
        admin.close()
