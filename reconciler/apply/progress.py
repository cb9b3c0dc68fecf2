"""How far a stage is, how fast it goes, and how long it will take."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reconciler.apply.moves import MoveState
from reconciler.apply.record import RunRecord
from reconciler.model.move import Move
from reconciler.model.run import RunProgress
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

ReplicaBytes = Mapping[tuple[TopicPartition, int], int]

WINDOW = timedelta(seconds=60)


def copied_bytes(move: Move, sizes: ReplicaBytes) -> int:
    """Return what a move in flight has copied by now, never more than it has to."""
    found = sum(sizes.get((move.topic_partition, broker), 0) for broker in move.added)
    return min(found, move.bytes) if move.is_size_known else found


@dataclass(slots=True)
class Meter:
    """A sliding window over the bytes copied in one stage."""

    samples: deque[tuple[datetime, int]] = field(default_factory=deque)

    def read(self, stage: ReassignStage, stages: int, record: RunRecord, sizes: ReplicaBytes) -> RunProgress:
        """Return where the stage stands at its last sample."""
        done = [move for move in stage.moves if record.state(move.topic_partition) is MoveState.DONE]
        done_keys = {move.topic_partition for move in done}
        under_way = [move for move in stage.moves if move.topic_partition not in done_keys]
        copied = sum(move.bytes for move in done) + sum(copied_bytes(move, sizes) for move in under_way)
        total = max(stage.bytes, copied)
        rate = self.rate()
        return RunProgress(
            stage=stage.number,
            stages=stages,
            done_moves=len(done),
            moves=len(stage.moves),
            copied_bytes=copied,
            total_bytes=total,
            bytes_per_second=rate,
            eta_seconds=(total - copied) / rate if rate else None,
        )

    def sample(self, now: datetime, copied: int) -> None:
        """Remember what was copied by now, and forget what is older than the window."""
        self.samples.append((now, copied))
        while len(self.samples) > 2 and now - self.samples[0][0] > WINDOW:  # noqa: PLR2004 - a rate takes two
            self.samples.popleft()

    def rate(self) -> float | None:
        """Return the bytes per second over the window, None until two samples differ in time."""
        if len(self.samples) < 2:  # noqa: PLR2004 - a rate takes two
            return None
        (first, copied_then), (last, copied_now) = self.samples[0], self.samples[-1]
        seconds = (last - first).total_seconds()
        return max(0.0, (copied_now - copied_then) / seconds) if seconds > 0 else None
