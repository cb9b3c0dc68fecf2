"""Keeps the text of a lock's holder in the cluster: metadata of its group's offsets, one piece a partition.

A committed offset carries a few thousand characters of metadata, and one request commits many at once, as one batch of
records: all of it or nothing. Any partitions would do; those of `__consumer_offsets` are there wherever a group is.
The offset is -1, which is none: whoever watches the lag of groups sees nothing to watch.
"""

import zlib
from base64 import b85decode, b85encode
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kafka.protocol.consumer import OffsetCommitRequest

from reconciler.admin.client.errors import NONE, answer, name_of
from reconciler.admin.client.exchange import NotSent
from reconciler.admin.client.group_writes import NAMED_TOPICS, NOT_DONE, coordinators
from reconciler.admin.client.groups import offsets
from reconciler.admin.client.lock_member import ILLEGAL_GENERATION, REBALANCE, UNKNOWN_MEMBER, Member
from reconciler.admin.client.observe import topics
from reconciler.admin.client.wire import NotLetIn, Wire, tries
from reconciler.admin.port import Answer
from reconciler.model.lock import LOCK_GROUP, OFFSETS_TOPIC
from reconciler.model.problem import ClusterUnavailable, OutcomeUnknown

if TYPE_CHECKING:
    from kafka.protocol.api_message import ApiMessage

HIDDEN, TOO_LARGE = "TOPIC_AUTHORIZATION_FAILED", "OFFSET_METADATA_TOO_LARGE"
PIECE_CHARACTERS = (4096, 2048, 1024, 512, 256)
"""How long a piece may be, by `offset.metadata.max.bytes`: Kafka's default first, then what brokers may be set to."""
FORM, HEAD_CHARACTERS = "1", 24
NO_OFFSET = -1
KEEP_SECONDS = 20.0
MOST_CHARACTERS = 2 * 1024 * 1024
"""Of the pieces together, and of the text in them, which others can write: 20,000 moves take half."""
UNSETTLED = NOT_DONE | {ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCE}


def pieces(text: str, limit: int, length: int = PIECE_CHARACTERS[0]) -> list[str] | None:
    """Return the text in at most `limit` pieces of that length, each with its number; None where it does not fit."""
    if not text:
        return []
    packed = b85encode(zlib.compress(text.encode(), 9)).decode()
    size = length - HEAD_CHARACTERS
    parts = [packed[start : start + size] for start in range(0, len(packed), size)]
    head = f"{FORM} {zlib.crc32(packed.encode()):08x} {len(parts)}"
    return [f"{head} {number} {part}" for number, part in enumerate(parts)] if len(parts) <= limit else None


def joined(found: Sequence[str]) -> str:
    """Return the text of these pieces, in any order; "" where they are not all there, or not all of one text."""
    rows = [piece.split(" ", 4) for piece in found]
    parts = {row[3]: row[4] for row in rows if len(row) == len(("form", "checksum", "count", "number", "part"))}
    packed = "".join(parts.get(str(number), "") for number in range(len(rows)))
    head = [FORM, f"{zlib.crc32(packed.encode(errors='replace')):08x}", str(len(rows))]
    if any(row[:3] != head for row in rows) or len(packed) > MOST_CHARACTERS:
        return ""
    try:
        unpacked = zlib.decompressobj()
        text = unpacked.decompress(b85decode(packed), MOST_CHARACTERS).decode()
    except (ValueError, zlib.error):
        return ""
    return text if unpacked.eof else ""


def kept(wire: Wire) -> str:
    """Return the text that is kept, "" where there is none, or none that this user may see."""
    return joined([piece for piece in _found(wire).values() if piece])


def keep(wire: Wire, member: Member, text: str) -> Answer:
    """Keep a text in place of the one before, as that member of the group; only a settled group's word counts.

    Raises LockLost by the wire's guard, ClusterUnavailable where nobody takes it.
    """
    known = topics(wire, [OFFSETS_TOPIC])
    if OFFSETS_TOPIC not in known:
        return Answer(HIDDEN)  # the lock's group is there, so the topic is
    used = [number for number, piece in _found(wire).items() if piece]
    found = Answer(TOO_LARGE)
    for length in PIECE_CHARACTERS:
        written = pieces(text, len(known[OFFSETS_TOPIC].partitions), length)
        if written is None:
            break
        # At least one, so that a member that keeps nothing hears of a missing right too.
        count = max(1, len(written), max(used, default=-1) + 1)
        metadata = {number: written[number] if number < len(written) else "" for number in range(count)}
        found = _committed(wire, member, metadata)
        if found.error != TOO_LARGE or not written:
            break
    return found


def _committed(wire: Wire, member: Member, metadata: Mapping[int, str]) -> Answer:
    reason = ""
    for _ in tries(KEEP_SECONDS):
        try:
            coordinator = coordinators(wire, [LOCK_GROUP])[LOCK_GROUP]
            response = wire.write_to(coordinator, partial(_request, member, metadata))
            codes = {partition.error_code for topic in response.topics for partition in topic.partitions} - {NONE}
            if not codes & UNSETTLED:
                return answer(min(codes, default=NONE), None)
            reason = name_of(min(codes))
        except NotLetIn as error:
            raise error.refusal from None
        except (NotSent, OutcomeUnknown) as error:  # the same text twice is the text once
            reason = str(error)
    raise ClusterUnavailable(f"The coordinator of group {LOCK_GROUP} does not take the run's record ({reason}).")


def _request(member: Member, metadata: Mapping[int, str]) -> "ApiMessage":
    form = OffsetCommitRequest.OffsetCommitRequestTopic
    return OffsetCommitRequest(
        group_id=LOCK_GROUP,
        generation_id_or_member_epoch=member.generation,
        member_id=member.member_id,
        topics=[
            form(
                name=OFFSETS_TOPIC,
                partitions=[
                    form.OffsetCommitRequestPartition(
                        partition_index=number, committed_offset=NO_OFFSET, committed_metadata=text
                    )
                    for number, text in sorted(metadata.items())
                ],
            )
        ],
        max_version=NAMED_TOPICS,
    )


def _found(wire: Wire) -> dict[int, str]:
    """Return the metadata of each partition with a committed offset."""
    coordinator = coordinators(wire, [LOCK_GROUP])[LOCK_GROUP]
    told = offsets(wire, coordinator, [LOCK_GROUP])[LOCK_GROUP]
    return {
        partition.partition_index: partition.metadata or ""
        for topic in told.topics or ()
        for partition in topic.partitions
        if topic.name == OFFSETS_TOPIC and partition.error_code == NONE
    }
