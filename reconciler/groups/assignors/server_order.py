"""The order in which Kafka's server-side assignors walk topics and partitions: by topic id, in Java's hash sets."""

import base64
import binascii
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

from reconciler.model.assignment import SubscribedTopic
from reconciler.model.java_hash import FIRST_CAPACITY, MASK, bin_of, capacity_for, java_order, text_hash

_ID_BYTES = 16
_WHOLE = 1 << 64


def id_bits(topic_id: str | None) -> tuple[int, int] | None:
    """Return the two signed 64-bit halves of a topic id, by which Kafka sorts ids; None where there is none to read."""
    try:
        raw = base64.b64decode((topic_id or "") + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(raw) != _ID_BYTES:
        return None
    return int.from_bytes(raw[: _ID_BYTES // 2], signed=True), int.from_bytes(raw[_ID_BYTES // 2 :], signed=True)


def set_order(names: Iterable[str], topics: Mapping[str, SubscribedTopic]) -> tuple[str, ...]:
    """Return the topics that exist, as the hash set of a subscription's topic ids has them.

    Topics whose id is not known have no such order: if one of them has none, all are in the order of their names.
    """
    listed = sorted(set(names), key=java_order)
    known = [name for name in listed if name in topics]
    bits = _bits(known, topics)
    if bits is None:
        return tuple(known)
    # TopicIds counts the names that do not exist, walks a hash set of names, and is copied into one of ids.
    capacity = _copied_capacity(len(listed))
    by_name = sorted(known, key=lambda name: bin_of(text_hash(name), capacity))
    return tuple(sorted(by_name, key=lambda name: bin_of(_id_hash(bits[name]), capacity)))


def map_order(names: Sequence[str], size: int, topics: Mapping[str, SubscribedTopic]) -> tuple[str, ...]:
    """Return topics, given as `set_order` has them, as a member's assignment of `size` topics has them.

    Of topics in one bin, that one comes first which the member got last: computeIfAbsent puts it at the bin's head.
    """
    bits = _bits(names, topics)
    if bits is None:
        return tuple(names)
    capacity = capacity_for(size)
    last_first = tuple(reversed(names))
    return tuple(sorted(last_first, key=lambda name: bin_of(_id_hash(bits[name]), capacity)))


def partitions_in_set_order(partitions: Sequence[int]) -> Sequence[int]:
    """Return a topic's partitions, given ascending, as the hash set has them that a target assignment is read into."""
    capacity = _copied_capacity(len(partitions))
    if not partitions or partitions[-1] < capacity:
        return partitions
    return sorted(partitions, key=lambda partition: bin_of(partition, capacity))


def fullest_first(subscribers: Mapping[str, Collection[int]], topics: Mapping[str, SubscribedTopic]) -> tuple[str, ...]:
    """Return the topics by partitions for each subscriber, most first; then fewest subscribers; then topic id."""
    bits = _bits(subscribers, topics)

    def key(name: str) -> tuple[Fraction, int, tuple[int, int], bytes]:
        count = len(subscribers[name])
        by_id = bits[name] if bits is not None else (0, 0)
        return -Fraction(topics[name].partitions, count), count, by_id, java_order(name)

    return tuple(sorted(subscribers, key=key))


def _bits(names: Iterable[str], topics: Mapping[str, SubscribedTopic]) -> dict[str, tuple[int, int]] | None:
    """Return the id of each topic; None where one of them is not known."""
    bits: dict[str, tuple[int, int]] = {}
    for name in names:
        found = id_bits(topics[name].topic_id)
        if found is None:
            return None
        bits[name] = found
    return bits


def _id_hash(bits: tuple[int, int]) -> int:
    """Return `Uuid.hashCode`, as an unsigned 32-bit number."""
    both = (bits[0] ^ bits[1]) % _WHOLE
    return (both >> 32 ^ both) & MASK


def _copied_capacity(size: int) -> int:
    """Return the number of bins of `new HashSet<>(collection)`, which is not that of a set which grew."""
    wanted = max(4 * size // 3 + 1, FIRST_CAPACITY)
    return 1 << (wanted - 1).bit_length()
