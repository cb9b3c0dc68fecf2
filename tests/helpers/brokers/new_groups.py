"""Joins groups of the kinds that no Python client has: share groups (KIP-932) and streams groups (KIP-1071).

    join_share_group(kafka, "shared", "orders"); join_streams_group(kafka, "streamed", "orders")

The group is there once a member has joined; that it is never heard of again empties it, and it stays.
"""

import socket
import uuid

from helpers.brokers.cluster import KafkaCluster
from helpers.waiting import HANG

SHARE_HEARTBEAT, STREAMS_HEARTBEAT = (76, 1), (88, 0)
"""Requests by their key, and the version that is written here."""
NULL, NO_TAGS, FALSE = b"\0", b"\0", b"\0"


def join_share_group(kafka: KafkaCluster, group: str, topic: str) -> None:
    """Join a share group that reads a topic."""
    member = str(uuid.uuid4())
    _join(kafka, SHARE_HEARTBEAT, _text(group) + _text(member) + _int(0) + NULL + _list(_text(topic)) + NO_TAGS)


def join_streams_group(kafka: KafkaCluster, group: str, topic: str) -> None:
    """Join a streams group with a topology that reads a topic."""
    member, process = str(uuid.uuid4()), str(uuid.uuid4())
    # Its source topics; no pattern, changelogs, repartition topics and copartitions.
    subtopology = _text("0") + _list(_text(topic)) + _list() * 5 + NO_TAGS
    topology = b"\x01" + _int(0) + _list(subtopology) + NO_TAGS
    tasks = _list() * 3
    rest = _text(process) + b"\xff" + NULL * 3 + FALSE + NO_TAGS
    begin = _text(group) + _text(member) + _int(0) + _int(0) + NULL + NULL + _int(60_000)
    _join(kafka, STREAMS_HEARTBEAT, begin + topology + tasks + rest)


def _join(kafka: KafkaCluster, request: tuple[int, int], body: bytes) -> None:
    codes: dict[str, int] = {}

    def has_joined() -> bool:
        for address in kafka.bootstrap.split(","):
            codes[address] = _asked(address, request, body)
        return 0 in codes.values()  # the coordinator's; the others are none

    kafka.wait_for(has_joined, f"a group to take a member (request {request})", seen=lambda: codes)


def _asked(address: str, request: tuple[int, int], body: bytes) -> int:
    """Return the error code of the answer."""
    host, _, port = address.rpartition(":")
    key, version = (number.to_bytes(2) for number in request)
    frame = key + version + _int(1) + b"\0\1t" + NO_TAGS + body
    with socket.create_connection((host, int(port)), timeout=HANG) as connected, connected.makefile("rb") as stream:
        connected.sendall(_int(len(frame)) + frame)
        answer = stream.read(int.from_bytes(stream.read(4)))
    # Behind the correlation id and its tags: how long a quota holds back, the code.
    return int.from_bytes(answer[9:11], signed=True)


def _int(number: int) -> bytes:
    return number.to_bytes(4)


def _text(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


def _list(*items: bytes) -> bytes:
    return bytes([len(items) + 1]) + b"".join(items)
