"""Orders as Java walks its hash maps and sorts its strings: some of Kafka's assignors follow that order.

A bin of eight keys or more, which Java turns into a tree, is walked here as the list it was.
"""

import struct
from collections.abc import Iterable, Sequence

MASK = 0xFFFFFFFF
FIRST_CAPACITY = 16


def java_order(text: str) -> bytes:
    """Return a key that sorts texts as Java's `String.compareTo` does: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def text_hash(text: str) -> int:
    """Return `String.hashCode`, as an unsigned 32-bit number."""
    units = java_order(text)
    value = 0
    for unit in struct.unpack(f">{len(units) // 2}H", units):
        value = 31 * value + unit & MASK
    return value


def partition_hash(hash_of_topic: int, partition: int) -> int:
    """Return `TopicPartition.hashCode` for a topic whose name has this hash, unsigned."""
    return (31 * (31 + partition) + hash_of_topic) & MASK


def hash_map_order(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the keys as a `java.util.HashMap` walks them into which they were put in this order, one by one."""
    listed = list(dict.fromkeys(keys))
    capacity = capacity_for(len(listed))
    hashes = [text_hash(key) for key in listed]
    return tuple(listed[place] for place in _walk(hashes, capacity))


def capacity_for(size: int) -> int:
    """Return the number of bins that a map has which grew from empty to this size."""
    capacity = FIRST_CAPACITY
    while is_too_full(size, capacity):
        capacity *= 2
    return capacity


def is_too_full(size: int, capacity: int) -> bool:
    """Whether a map doubles its bins on reaching this size."""
    return 4 * size > 3 * capacity


def bin_of(key_hash: int, capacity: int) -> int:
    """Return the number of the bin that a key with this hash stands in."""
    return (key_hash ^ key_hash >> 16) & capacity - 1


def _walk(hashes: Sequence[int], capacity: int) -> list[int]:
    # A bin keeps the order of arrival, also when it is split; Python's sort is stable.
    return sorted(range(len(hashes)), key=lambda place: bin_of(hashes[place], capacity))
