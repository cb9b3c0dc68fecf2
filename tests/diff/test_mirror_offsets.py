"""Offset syncs and checkpoints are read from MirrorMaker 2's bytes, and tell where a commit lies in the copy.

The bytes are made with `struct`, as `OffsetSync` and `Checkpoint` of Kafka write them. Translations stand in a table
made by hand from `OffsetSyncStoreTest`. Bounds are held against mirrors that are played record by record.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from reconciler.diff import mirror_offsets
from reconciler.diff.mirror_offsets import (
    ForeignRecord,
    SyncHistory,
    aligned,
    aligned_from,
    checkpoint,
    offset_sync,
    translated,
)
from reconciler.model.against import Checkpoint, OffsetSync
from reconciler.model.topic_partition import TopicPartition

KEY = TopicPartition("topic1", 2)
SYNC_KEY, SYNC_VALUE = b"\0\6topic1\0\0\0\2", b"\0\0\0\0\0\0\0\x64\0\0\0\0\0\0\0\xc8"
MARK_KEY, MARK_VALUE = b"\0\1g" + SYNC_KEY, b"\0\0" + SYNC_VALUE + b"\0\4note"


def text(words: str) -> bytes:
    return struct.pack(">h", len(words.encode())) + words.encode()


def test_an_offset_sync_is_read() -> None:
    assert offset_sync(SYNC_KEY, SYNC_VALUE) == OffsetSync(KEY, 100, 200)
    key = text("bestellungen-ä") + struct.pack(">i", 70_000)
    found = offset_sync(key, struct.pack(">qq", 1 << 40, (1 << 63) - 1))
    assert found == OffsetSync(TopicPartition("bestellungen-ä", 70_000), 1 << 40, (1 << 63) - 1)


def test_a_checkpoint_is_read() -> None:
    assert checkpoint(MARK_KEY, MARK_VALUE) == Checkpoint("g", KEY, 100, 200)
    key = text("") + text("us.orders") + struct.pack(">i", 0)
    value = struct.pack(">hqq", 0, 5, 0) + text("")
    assert checkpoint(key, value) == Checkpoint("", TopicPartition("us.orders", 0), 5, 0)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, SYNC_VALUE),
        (b"", SYNC_VALUE),
        (SYNC_KEY[:-1], SYNC_VALUE),
        (SYNC_KEY + b"\0", SYNC_VALUE),
        (b"\xff\xff" + SYNC_KEY[2:], SYNC_VALUE),  # a null, which Kafka does not write here
        (b"\0\2\xc3\x28\0\0\0\2", SYNC_VALUE),  # no UTF-8
        (SYNC_KEY[:-4] + b"\xff\xff\xff\xff", SYNC_VALUE),
        (SYNC_KEY, b""),
        (SYNC_KEY, SYNC_VALUE[:8] + b"\xff" * 8),
        (SYNC_KEY, SYNC_VALUE[:-1]),
        (SYNC_KEY, SYNC_VALUE + b"\0"),
        (SYNC_KEY, b"\xff" * 16),
        (b'{"topic": "topic1"}', b'{"offset": 1}'),
    ],
)
def test_foreign_bytes_are_no_offset_sync(key: bytes | None, value: bytes) -> None:
    with pytest.raises(ForeignRecord):
        offset_sync(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, MARK_VALUE),
        (SYNC_KEY, MARK_VALUE),
        (b"\0\0" + MARK_KEY, MARK_VALUE),
        (MARK_KEY, b"\0\1" + MARK_VALUE[2:]),  # a version to come
        (MARK_KEY, MARK_VALUE[:-1]),
        (MARK_KEY, MARK_VALUE + b"\0"),
        (MARK_KEY, SYNC_VALUE),
        (MARK_KEY, b"\0\0" + b"\xff" * 16 + b"\0\0"),
    ],
)
def test_foreign_bytes_are_no_checkpoint(key: bytes | None, value: bytes) -> None:
    with pytest.raises(ForeignRecord):
        checkpoint(key, value)


def kept(pairs: Iterable[tuple[int, int]]) -> SyncHistory:
    history = SyncHistory()
    for upstream, downstream in pairs:
        history.take(OffsetSync(KEY, upstream, downstream))
    return history


EVERY_TENTH = [(offset, offset) for offset in range(0, 1001, 10)]


@pytest.mark.parametrize(
    ("pairs", "committed", "expected"),
    [
        # testOffsetTranslation
        ([(100, 200)], 150, 201),
        ([(100, 200), (150, 251)], 150, 251),
        ([(100, 200), (150, 251)], 5, None),
        ([(100, 200), (150, 251), (200, 10)], 200, 10),
        ([(100, 200), (150, 251), (200, 10), (20, 20)], 20, 20),
        # testNoTranslationIfStoreNotStarted, once it is started
        ([(100, 200)], 0, None),
        ([(100, 200)], 100, 200),
        ([(100, 200)], 200, 201),
        # testNoTranslationIfNoOffsetSync
        ([], 0, None),
        # testPastOffsetTranslation: around a sync that is kept, and after the topic's offsets went back
        (EVERY_TENTH, 999, 991),
        (EVERY_TENTH, 1000, 1000),
        (EVERY_TENTH, 1001, 1001),
        (EVERY_TENTH, 1002, 1001),
        ([*EVERY_TENTH, (1500, 11000), (900, 12000)], 899, None),
        ([*EVERY_TENTH, (1500, 11000), (900, 12000)], 900, 12000),
        ([*EVERY_TENTH, (1500, 11000), (900, 12000)], 2000, 12001),
    ],
)
def test_a_commit_is_translated_as_kafka_does(
    pairs: Sequence[tuple[int, int]], committed: int, expected: int | None
) -> None:
    assert translated(kept(pairs).syncs, committed) == expected


def test_very_many_syncs_are_thinned_out_and_the_last_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_offsets, "MOST_SYNCS", 64)
    syncs = kept((offset * 2, offset) for offset in range(10_000)).syncs
    assert len(syncs) <= 64
    assert [each.downstream for each in syncs[-30:]] == list(range(9970, 10_000))
    assert syncs[0].upstream == 0
    assert all(each.upstream == each.downstream * 2 for each in syncs)


@dataclass
class Mirror:
    """A topic whose offsets have gaps, and its copy, written record by record as MirrorMaker 2 does."""

    random: Random
    topic: list[int] = field(default_factory=list)
    """The offsets that hold a record; the gaps are transaction markers, and what compaction took."""
    end: int = 0
    copy: list[int] = field(default_factory=list)
    """Of which offset of the topic each record of the copy is."""
    syncs: list[tuple[int, int]] = field(default_factory=list)

    def produce(self, count: int) -> None:
        for _ in range(count):
            self.topic.append(self.end)
            self.end += 1 if self.random.random() < 0.8 else self.random.randint(2, 9)

    def copy_on(self, count: int, *, again: int = 0) -> None:
        """Start, and copy so many records more; `again`: of those that were copied before, as many once more."""
        done = max(self.copy, default=-1)
        first = max(0, sum(offset <= done for offset in self.topic) - again)
        previous = None
        for upstream in self.topic[first : first + again + count]:
            self.copy.append(upstream)
            # As `OffsetSyncWriter`: at a start, behind a gap, and now and then.
            if previous is None or upstream != previous + 1 or self.random.random() < 0.2:
                self.syncs.append((upstream, len(self.copy) - 1))
            previous = upstream

    def compact(self) -> None:
        """Let compaction take the older syncs."""
        del self.syncs[: self.random.randint(0, len(self.syncs) - 1)]

    def missed(self, committed: int, start: int) -> int:
        unread = {upstream for upstream in self.copy if upstream >= committed}
        return len(unread - set(self.copy[start:]))

    def twice(self, committed: int, start: int) -> int:
        return sum(upstream < committed for upstream in self.copy[start:])

    @property
    def lacking(self) -> int:
        return len(set(self.topic) - set(self.copy))


@pytest.mark.parametrize("seed", range(60))
def test_bounds_hold_whatever_was_copied(seed: int) -> None:
    random = Random(seed)
    mirror = Mirror(random)
    mirror.produce(random.randint(5, 60))
    mirror.copy_on(random.randint(1, 40))
    for _ in range(random.choice([0, 0, 1, 2])):
        mirror.produce(random.randint(0, 20))
        mirror.copy_on(random.randint(1, 20), again=random.randint(0, 10))
    mirror.compact()
    found = aligned(kept(mirror.syncs), mirror.end, len(mirror.copy))
    assert mirror.lacking <= found.lag_at_most
    assert found.lag is None or mirror.lacking <= found.lag <= found.lag_at_most
    exact = 0
    for committed in range(mirror.end + 1):
        low, high = found.position(committed)
        assert mirror.twice(committed, high) == 0
        start = translated(found.syncs, committed)
        assert (low is None) == (start is None)
        if low is not None and start is not None:
            assert start <= low <= high
            assert mirror.missed(committed, low) == 0
            exact += low == high
    assert exact


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_without_syncs_where_both_logs_begin_together(seed: int) -> None:
    random = Random(seed)
    mirror = Mirror(random)
    mirror.produce(random.randint(5, 60))
    mirror.copy_on(random.randint(0, 70))
    found = aligned_from((0, 0), mirror.end, len(mirror.copy))
    assert found.lag is not None
    assert mirror.lacking <= found.lag
    for committed in range(mirror.end + 1):
        low, high = found.position(committed)
        assert low is not None
        assert (mirror.missed(committed, low), mirror.twice(committed, high)) == (0, 0)


def test_a_copy_without_gaps_is_known_to_the_record_between_syncs_and_at_its_end() -> None:
    found = aligned(kept([(100, 0), (200, 100)]), 251, 151)
    assert [found.position(committed) for committed in (100, 101, 150, 200, 201, 230, 251)] == [
        (0, 0), (1, 1), (50, 50), (100, 100), (101, 101), (130, 130), (151, 151)
    ]  # fmt: skip
    assert (found.lag, found.lag_at_most) == (0, 50)
    assert found.position(99) == (None, 0)


def test_where_the_copy_has_offsets_of_others_only_what_the_syncs_say_is_told() -> None:
    """Transactions of the copy took five offsets between the syncs, and perhaps some behind them."""
    found = aligned(kept([(0, 0), (10, 15)]), 31, 30)
    assert not found.is_alone
    assert (found.lag, found.lag_at_most) == (None, 20)
    assert found.position(0) == (0, 0)
    assert found.position(5) == (1, 15)
    assert found.position(10) == (15, 15)
    assert found.position(20) == (16, 30)
    assert aligned(kept([(0, 0), (10, 15)]), 11, 16).lag == 0


def test_a_copy_that_has_more_than_its_topic_tells_no_lag() -> None:
    assert aligned(kept([(0, 0)]), 5, 9).lag is None


def test_records_that_were_deleted_before_the_copy_began_are_none_it_lacks() -> None:
    found = aligned_from((40, 0), 90, 0)
    assert (found.lag, found.position(10), found.position(70)) == (50, (0, 0), (0, 0))
