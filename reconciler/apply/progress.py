"""How far a stage is, how fast it goes, and how long it will take."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from reconciler.apply.moves import MoveState
from reconciler.apply.observed import Observed
from reconciler.apply.record import RunRecord
from reconciler.model.cluster import Partition
from reconciler.model.move import Move
from reconciler.model.run import RunProgress
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

ReplicaBytes = Mapping[tuple[TopicPartition, int], int]

WINDOW = timedelta(seconds=60)


def copied_bytes(move: Move, sizes: ReplicaBytes) -> int:
    """Return what a move in flight has copied by now, never more than it has to."""
    found = _held(move, sizes)
    return min(found, move.bytes) if move.is_size_known else found


def remaining_bytes(move: Move, partition: Partition | None, sizes: ReplicaBytes) -> int:
    """Return what a move has still to copy: up to what its leader holds by now, else up to what was planned."""
    leader = partition.leader if partition else None
    source = sizes.get((move.topic_partition, leader)) if leader is not None else None
    if source is None:
        return max(0, move.bytes - _held(move, sizes))
    held = (sizes.get((move.topic_partition, broker), 0) for broker in move.added)
    return sum(max(0, source - size) for size in held)


def _held(move: Move, sizes: ReplicaBytes) -> int:
    return sum(sizes.get((move.topic_partition, broker), 0) for broker in move.added)


class _Sample(NamedTuple):
    time: datetime
    copied: int
    remaining: int


@dataclass(slots=True)
class Meter:
    """A sliding window over what one stage has copied and has still to copy.

    `largest`: the most that each move was seen to hold; a partition that grows ends with more than was planned.
    """

    samples: deque[_Sample] = field(default_factory=deque)
    largest: dict[TopicPartition, int] = field(default_factory=dict)

    def read(
        self, stage: ReassignStage, stages: int, record: RunRecord, observed: Observed, sizes: ReplicaBytes
    ) -> RunProgress:
        """Return where the stage stands at its last sample."""
        for move in stage.moves:
            held = max(self.largest.get(move.topic_partition, 0), _held(move, sizes))
            self.largest[move.topic_partition] = held
        done = {move.topic_partition for move in stage.moves if record.state(move.topic_partition) is MoveState.DONE}
        copied = sum(self._copied(move, is_done=move.topic_partition in done) for move in stage.moves)
        under_way = [move for move in record.watched(stage) if move.topic_partition not in done]
        left = sum(remaining_bytes(move, observed.partition(move.topic_partition), sizes) for move in under_way)
        return RunProgress(
            stage=stage.number,
            stages=stages,
            done_moves=len(done),
            moves=len(stage.moves),
            copied_bytes=copied,
            total_bytes=copied + left,
            bytes_per_second=self.rate(),
            eta_seconds=self._seconds_left(left),
        )

    def _copied(self, move: Move, *, is_done: bool) -> int:
        held = self.largest[move.topic_partition]
        return max(held, move.bytes) if is_done else held

    def sample(self, now: datetime, seen: RunProgress) -> None:
        """Remember where the stage stood at that time, and forget what is older than the window."""
        self.samples.append(_Sample(now, seen.copied_bytes, seen.total_bytes - seen.copied_bytes))
        while len(self.samples) > 2 and now - self.samples[0].time > WINDOW:  # noqa: PLR2004 - a rate takes two
            self.samples.popleft()

    @property
    def sampled_at(self) -> datetime | None:
        """When it was last told where the stage stands."""
        return self.samples[-1].time if self.samples else None

    def rate(self) -> float | None:
        """Return the bytes per second over the window, None until two samples differ in time."""
        return self._per_second(lambda first, last: last.copied - first.copied)

    def _seconds_left(self, left: int) -> float | None:
        """Return the time left at the rate at which what is left shrinks; None while it does not."""
        rate = self._per_second(lambda first, last: first.remaining - last.remaining)
        return left / rate if rate else None

    def _per_second(self, difference: Callable[[_Sample, _Sample], int]) -> float | None:
        if len(self.samples) < 2:  # noqa: PLR2004 - a rate takes two
            return None
        first, last = self.samples[0], self.samples[-1]
        seconds = (last.time - first.time).total_seconds()
        return max(0.0, difference(first, last) / seconds) if seconds > 0 else None
