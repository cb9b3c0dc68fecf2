"""Tells where a record goes by its key, as the Java client's default partitioner does, and which keys growth moves.

Source: `BuiltInPartitioner.partitionForKey` and `Utils.murmur2` of Kafka's clients, the same since 0.8.2.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Annotated

HASHES = 1 << 31
"""How many hash values there are: the client takes the sign bit off, and not the absolute value."""
_WORD = 0xFFFFFFFF
_SEED, _MULTIPLIER, _SHIFT = 0x9747B28C, 0x5BD1E995, 24


def murmur2(data: bytes) -> int:
    """Return the client's hash of these bytes, as an unsigned 32-bit number."""
    whole = len(data) & ~3
    value = _SEED ^ len(data)
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _MULTIPLIER & _WORD
        word = (word ^ word >> _SHIFT) * _MULTIPLIER & _WORD
        value = value * _MULTIPLIER & _WORD ^ word
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _WORD
    value = (value ^ value >> 13) * _MULTIPLIER & _WORD
    return value ^ value >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition, of so many, that a record with this key goes to."""
    return (murmur2(key) & HASHES - 1) % partitions


def hashes_moved(before: int, after: int) -> int:
    """Return how many of all HASHES have another partition among `after` than among `before`.

    A hash stays where both remainders are one number. That number is below the smaller count, and the hash is that
    number modulo the least common multiple: so many of each run of that length stay, its first ones.
    """
    length, smaller = lcm(before, after), min(before, after)
    runs, rest = divmod(HASHES, length)
    return HASHES - runs * smaller - min(rest, smaller)


@dataclass(frozen=True, slots=True)
class KeyGrowth:
    """What becomes of keys where the topic has another number of partitions."""

    partitions: Annotated[int, "How many partitions it would have."]
    partition: Annotated[int, "The partition that the key would go to."]
    hashes_moved: Annotated[int, "How many of the 2147483648 hash values would have another partition."]

    @property
    def share(self) -> Fraction:
        """The share of keys that would go to another partition, for keys whose hashes are spread evenly."""
        return Fraction(self.hashes_moved, HASHES)

    @property
    def percent_moved(self) -> Annotated[float, "The same, in percent of all."]:
        """The share in percent, rounded to six places."""
        return round(float(self.share * 100), 6)
