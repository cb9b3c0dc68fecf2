"""Reads MirrorMaker 2's offset syncs and checkpoints, and tells by them where a topic's offset lies in its copy.

Forms and meaning are those of `OffsetSync`, `Checkpoint` and `OffsetSyncStore` in Kafka's `connect/mirror`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct

from reconciler.model.against import Checkpoint, OffsetSync
from reconciler.model.topic_partition import TopicPartition

_SHORT, _INT, _PAIR = Struct(">h"), Struct(">i"), Struct(">qq")
_VERSION = 0
"""The only version of a checkpoint's value that there is (Kafka 2.4 to 4.3)."""

MOST_SYNCS = 4096
"""How many are kept of a partition. MirrorMaker 2 itself keeps 64."""


class ForeignRecord(Exception):
    """A record that has not the form of its topic."""


def offset_sync(key: bytes | None, value: bytes) -> OffsetSync:
    """Return the offset sync of a record; raises ForeignRecord."""
    read = _Reader(key)
    topic_partition = TopicPartition(read.text(), read.number(_INT))
    read.end()
    read = _Reader(value)
    upstream, downstream = read.pair()
    read.end()
    return OffsetSync(topic_partition, upstream, downstream)


def checkpoint(key: bytes | None, value: bytes) -> Checkpoint:
    """Return the checkpoint of a record; raises ForeignRecord."""
    read = _Reader(key)
    group_id, copy = read.text(), TopicPartition(read.text(), read.number(_INT))
    read.end()
    read = _Reader(value)
    version = read.number(_SHORT)
    if version != _VERSION:
        raise ForeignRecord(f"version {version}")
    upstream, downstream = read.pair()
    read.text()  # the commit's own metadata
    read.end()
    return Checkpoint(group_id, copy, upstream, downstream)


class _Reader:
    """Takes one field after the other off some bytes."""

    def __init__(self, content: bytes | None) -> None:
        if content is None:
            raise ForeignRecord("no key")
        self._left = content

    def _take(self, length: int) -> bytes:
        if not 0 <= length <= len(self._left):
            raise ForeignRecord("cut off")
        taken, self._left = self._left[:length], self._left[length:]
        return taken

    def number(self, form: Struct) -> int:
        found: int = form.unpack(self._take(form.size))[0]
        if found < 0:
            raise ForeignRecord("below zero")
        return found

    def pair(self) -> tuple[int, int]:
        first, second = _PAIR.unpack(self._take(_PAIR.size))
        if first < 0 or second < 0:
            raise ForeignRecord("an offset below zero")
        return first, second

    def text(self) -> str:
        try:
            return self._take(self.number(_SHORT)).decode("utf-8")
        except UnicodeDecodeError:
            raise ForeignRecord("no UTF-8") from None

    def end(self) -> None:
        if self._left:
            raise ForeignRecord("too long")


@dataclass(slots=True)
class SyncHistory:
    """The offset syncs of one partition, both offsets rising, of those that still hold.

    `is_alone`: between no two of them has the copy more offsets than the topic, as another writer, transactions or
    records that were copied again give it. MirrorMaker 2 writes a sync wherever it skips an offset of the topic, and
    when it starts again, so that nothing can be hidden between two of them.
    """

    syncs: list[OffsetSync] = field(default_factory=list)
    is_alone: bool = True

    def take(self, one: OffsetSync) -> None:
        """Add the next one, in the order in which they were written.

        Where the topic's offsets go back, records are copied again, and where the copy's do, it was made again: what
        was told before holds no longer. Of very many, every second of the older half goes.
        """
        if self.syncs:
            last = self.syncs[-1]
            if one.upstream <= last.upstream or one.downstream <= last.downstream:
                self.syncs.clear()
                self.is_alone = True
            else:
                self.is_alone &= one.downstream - last.downstream <= one.upstream - last.upstream
        self.syncs.append(one)
        if len(self.syncs) > MOST_SYNCS:
            del self.syncs[1 : MOST_SYNCS // 2 : 2]


Syncs = Mapping[TopicPartition, SyncHistory]


def translated(syncs: Sequence[OffsetSync], committed: int) -> int | None:
    """Return where MirrorMaker 2 would have that commit go on; None: it has no sync at or before it.

    Behind a sync it goes one offset on, as nobody knows which records were copied. Of all syncs it keeps fewer the
    older they are, so its own checkpoints may lie before this.
    """
    before = _at_or_before(syncs, committed)
    return None if before is None else before.downstream + (before.upstream < committed)


def _at_or_before(syncs: Sequence[OffsetSync], offset: int) -> OffsetSync | None:
    index = bisect_right(syncs, offset, key=_upstream)
    return syncs[index - 1] if index else None


def _upstream(sync: OffsetSync) -> int:
    return sync.upstream


@dataclass(frozen=True, slots=True)
class Alignment:
    """What is known of where a partition's offsets lie in its copy; `aligned` and `aligned_from` make it.

    `syncs`: both offsets rising. `end`, `copy_end`: behind the last record. `origin`: offsets of topic and copy from
    which on each record was copied, before which the topic has none; without one there are syncs.

    `is_alone`: nothing shows that the copy has more offsets than the topic between any two that are known.
    """

    syncs: Sequence[OffsetSync]
    end: int
    copy_end: int
    origin: tuple[int, int] | None
    is_alone: bool

    @property
    def _copied(self) -> tuple[int, int]:
        """The offset of topic and of copy behind the last record that is certainly copied."""
        if self.syncs:
            return self.syncs[-1].upstream + 1, self.syncs[-1].downstream + 1
        return self.origin or (0, 0)

    @property
    def lag_at_most(self) -> int:
        """How many of the topic's offsets lie behind the last that is certainly copied."""
        return self.end - self._copied[0]

    @property
    def lag(self) -> int | None:
        """The same, if all that the copy has behind it was copied too; None where that cannot be."""
        behind = self.copy_end - self._copied[1]
        if not behind or not self.lag_at_most:
            return self.lag_at_most
        return self.lag_at_most - behind if self.is_alone else None

    def position(self, committed: int) -> tuple[int | None, int]:
        """Return the least and the greatest offset of the copy where the record at that offset, or the next, may lie.

        The least is None where nothing is known: of what lies before the first sync, the copy may have any part again.
        """
        if self.origin is not None:
            committed = max(committed, self.origin[0])
        highs = [self.copy_end]
        index = bisect_left(self.syncs, committed, key=_upstream)
        behind = self.syncs[index] if index < len(self.syncs) else None
        if behind is not None:
            highs.append(behind.downstream)
        before = self._before(committed)
        if before is None:
            return None, min(highs)
        upstream, lowest = before
        lows = [lowest]
        if self.is_alone:
            highs.append(lowest + committed - upstream)
            lows.append(self.copy_end - (self.end - committed))
            if behind is not None:
                lows.append(behind.downstream - (behind.upstream - committed))
        return max(lows), min(highs)

    def _before(self, committed: int) -> tuple[int, int] | None:
        """Return the last offsets of topic and copy, known to lie at one place, of those at or before the commit."""
        sync = _at_or_before(self.syncs, committed)
        if sync is not None:
            step = int(sync.upstream < committed)
            return sync.upstream + step, sync.downstream + step
        return self.origin


def aligned(history: SyncHistory, end: int, copy_end: int) -> Alignment:
    """Return what the syncs, one at least, tell of a partition and its copy."""
    last = history.syncs[-1]
    is_alone = history.is_alone and copy_end - last.downstream <= end - last.upstream
    return Alignment(history.syncs, end, copy_end, None, is_alone)


def aligned_from(origin: tuple[int, int], end: int, copy_end: int) -> Alignment:
    """Return what it tells that copying began at these offsets of topic and copy."""
    return Alignment((), end, copy_end, origin, copy_end - origin[1] <= end - origin[0])
