"""Computes what Kafka's server-side assignors start from: the order of topics and partitions, and what is held before.

The coordinator walks Java's hash sets of topic ids, and its order decides who gets which partition. What members hold
is the group's target assignment, which the coordinator keeps (KIP-848).
"""

import base64
import binascii
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from reconciler.model.assignment import SubscribedTopic, Subscriber
from reconciler.model.java_hash import FIRST_CAPACITY, MASK, bin_of, capacity_for, java_order, text_hash

_ID_BYTES = 16  # a topic id is a UUID
_WHOLE = 1 << 64  # Java's long wraps around there
Held = dict[str, tuple[int, ...]]
"""Topic -> its partitions, ascending; a topic without partitions is not there."""


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


@dataclass(frozen=True, slots=True)
class Target:
    """What each member holds, in the order of the members, and what of each topic is held at all.

    What a member holds is made for who asked: it may be changed into what the member gets.
    """

    held: tuple[Held, ...]
    taken: Mapping[str, frozenset[int] | set[int]]

    def free(self, topic: SubscribedTopic) -> Sequence[int]:
        """Return the topic's partitions that nobody holds, ascending."""
        taken = self.taken.get(topic.name, frozenset())
        if len(taken) == topic.partitions:
            return ()
        every = range(topic.partitions)
        return [partition for partition in every if partition not in taken] if taken else every


def target_before(members: Iterable[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Target:
    """Return what of each member's own exists, is subscribed to, and is not held by a member before it."""
    taken: dict[str, set[int]] = defaultdict(set)
    wanted: dict[tuple[str, ...], frozenset[str]] = {}
    held = []
    for member in members:
        subscription = member.subscription
        if subscription not in wanted:
            wanted[subscription] = frozenset(subscription).intersection(topics)
        names = wanted[subscription]
        own: Held = {}
        for name, owned in member.owned.items():
            if owned and name in names:
                kept = _untaken(owned, topics[name].partitions, taken[name])
                if kept:
                    own[name] = kept
        held.append(own)
    return Target(tuple(held), taken)


def _untaken(owned: tuple[int, ...], count: int, taken: set[int]) -> tuple[int, ...]:
    """Return those that exist and are not taken yet, and take them."""
    if owned[-1] >= count or not taken.isdisjoint(owned):
        owned = tuple(partition for partition in owned if partition < count and partition not in taken)
    taken.update(owned)
    return owned
