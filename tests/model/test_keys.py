"""Partitions of keys, against what Kafka 4.3's own Java classes and kafka-python's partitioner say."""

from itertools import product
from math import gcd

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as murmur2_of_another_client

from reconciler.model import keys
from reconciler.model.keys import HASHES, KeyGrowth, hashes_moved, murmur2, partition_of


# What BuiltInPartitioner and Utils of kafka-clients 4.3.0 print: the hash, and the partition of 12, 18 and 1000.
@pytest.mark.parametrize(
    ("key", "its_hash", "partitions"),
    [
        ("", 275646681, (9, 9, 681)),
        ("00", 375494588, (8, 8, 588)),
        ("ff", -311467685, (3, 15, 963)),
        ("61", -1563381124, (4, 4, 524)),
        ("6162", 316155434, (2, 14, 434)),
        ("616263", 479470107, (3, 3, 107)),
        ("61626364", -1323649548, (8, 2, 100)),
        ("757365722d3432", 1459644460, (4, 16, 460)),
        ("e697a5e69cac", -700811021, (3, 9, 627)),
        ("f09f9880", 131881617, (9, 9, 617)),
        ("000000000000002a", 506863552, (4, 4, 552)),
        ("ffffffffffffffff", 185950397, (5, 11, 397)),
        ("637573746f6d65722d3432", -542987495, (9, 3, 153)),
        ("80818283848586", -47880214, (10, 4, 434)),
    ],
)
def test_a_key_goes_where_the_java_client_sends_it(key: str, its_hash: int, partitions: tuple[int, ...]) -> None:
    data = bytes.fromhex(key)
    assert murmur2(data) == its_hash % (1 << 32)
    assert tuple(partition_of(data, count) for count in (12, 18, 1000)) == partitions


@given(st.binary(max_size=40), st.integers(1, 5000))
def test_a_key_goes_where_another_client_sends_it(key: bytes, partitions: int) -> None:
    assert partition_of(key, partitions) == (murmur2_of_another_client(key) & 0x7FFFFFFF) % partitions


@pytest.mark.parametrize("hashes", [1, 7, 720, 1009])
def test_the_share_of_keys_that_move_is_what_counting_them_says(hashes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "HASHES", hashes)
    for before, after in product(range(1, 31), repeat=2):
        moved = sum(1 for one in range(hashes) if one % before != one % after)
        assert hashes_moved(before, after) == moved, (before, after)


def test_of_all_hashes_nearly_as_many_stay_as_the_common_divisor_says() -> None:
    for before, after in product((1, 2, 6, 12, 18, 97, 1000), repeat=2):
        staying = (HASHES - hashes_moved(before, after)) / HASHES
        # Of a run of lcm(before, after) hashes min(before, after) stay: gcd / max.
        assert staying == pytest.approx(gcd(before, after) / max(before, after), abs=1e-4)


def test_the_percentage_is_rounded_and_the_count_is_exact() -> None:
    grown = KeyGrowth(18, 16, hashes_moved(12, 18))
    assert (grown.hashes_moved, grown.percent_moved) == (1431655760, 66.666666)
