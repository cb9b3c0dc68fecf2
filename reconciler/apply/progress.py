"""Measures a stage of moves: asks brokers for bytes copied, computes how far it is, how fast, how long to go."""

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from reconciler.apply.dir_moves import DirState, copied_inside, left_inside
from reconciler.apply.observed import Observed
from reconciler.apply.session import Session
from reconciler.apply.stage_memory import MoveState, Replica, StageMemory
from reconciler.model.cluster import Partition
from reconciler.model.move import Move
from reconciler.model.problem import ClusterUnavailable, MissingRight
from reconciler.model.run import Outcome, RunProgress
from reconciler.model.stage import CopyingStage, LogDirsStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition

ReplicaBytes = Mapping[tuple[TopicPartition, int], int]

WINDOW = timedelta(seconds=60)
"""The time that a rate is taken over: a throttle works in 11 windows of 1 s, so less would jump."""

LOG_INTERVAL = timedelta(seconds=60)
"""How long the journal may be silent in a stage of moves."""

SOONEST_LOG = timedelta(seconds=10)
"""How soon a change of state is told after the last line: hundreds of small moves may end within a minute."""

OFTEN, SELDOM = timedelta(seconds=3), timedelta(seconds=15)
"""Every broker answers for its own disks, so they are not asked in each turn, but at intervals between these two."""

LOOKS = 20
"""An interval is this part of the stage's time so far: the longer it takes, the less its disks are asked."""


def copied_bytes(move: Move, sizes: ReplicaBytes) -> int:
    """Return what a move in flight has copied by now, never more than it has to."""
    found = _held(move, sizes)
    return min(found, move.bytes) if move.is_size_known else found


def _remaining_bytes(move: Move, partition: Partition | None, sizes: ReplicaBytes) -> int:
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
    """A sliding window over what one stage has copied and has still to copy."""

    samples: deque[_Sample] = field(default_factory=deque)
    largest: dict[TopicPartition, int] = field(default_factory=dict)
    """The most bytes that each move was seen to hold; a partition that grows ends with more than was planned."""
    inside: dict[Replica, tuple[int, int]] = field(default_factory=dict)
    """What each move between log dirs had copied, and had left to copy, when its broker told last."""

    def read(
        self, stage: ReassignStage, stages: int, memory: StageMemory, observed: Observed, sizes: ReplicaBytes
    ) -> RunProgress:
        """Return where the stage stands at its last sample."""
        done = {move.topic_partition for move in stage.moves if memory.state(move.topic_partition) is MoveState.DONE}
        copied = 0
        for move in stage.moves:
            key = move.topic_partition
            self.largest[key] = max(self.largest.get(key, 0), _held(move, sizes))
            copied += max(self.largest[key], move.bytes) if key in done else self.largest[key]
        under_way = [move for move in memory.watched(stage) if move.topic_partition not in done]
        left = sum(_remaining_bytes(move, observed.partition(move.topic_partition), sizes) for move in under_way)
        return self._told(stage, stages, len(done), copied, left)

    def read_inside(self, stage: LogDirsStage, stages: int, memory: StageMemory, observed: Observed) -> RunProgress:
        """Return where a stage of moves between log dirs stands; what its brokers do not tell counts as it was."""
        for move in stage.moves:
            if memory.dir_history(move).state is not DirState.BLOCKED:
                self.inside[move.replica] = (copied_inside(move, observed), left_inside(move, observed))
        known = [self.inside.get(move.replica, (0, move.bytes)) for move in stage.moves]
        left = sum(
            remaining
            for move, (_, remaining) in zip(stage.moves, known, strict=True)
            if memory.dir_history(move).problem is None
        )
        done = sum(memory.dir_history(move).state is DirState.DONE for move in stage.moves)
        return self._told(stage, stages, done, sum(copied for copied, _ in known), left)

    def _told(self, stage: CopyingStage, stages: int, done: int, copied: int, left: int) -> RunProgress:
        # What is left may grow while data is written: the time left is taken from how fast it shrinks.
        shrinks = self._per_second(lambda first, last: first.remaining - last.remaining)
        return RunProgress(
            stage=stage.number,
            stages=stages,
            done_moves=done,
            moves=len(stage.moves),
            copied_bytes=copied,
            total_bytes=copied + left,
            bytes_per_second=self._per_second(lambda first, last: last.copied - first.copied),
            eta_seconds=left / shrinks if shrinks else None,
        )

    def sample(self, now: datetime, seen: RunProgress) -> None:
        """Remember where the stage stood at that time, and forget what is older than the window."""
        self.samples.append(_Sample(now, seen.copied_bytes, seen.total_bytes - seen.copied_bytes))
        while len(self.samples) > 2 and now - self.samples[0].time > WINDOW:  # noqa: PLR2004 - a rate takes two
            self.samples.popleft()

    @property
    def sampled_at(self) -> datetime | None:
        """When it was last told where the stage stands."""
        return self.samples[-1].time if self.samples else None

    def _per_second(self, difference: Callable[[_Sample, _Sample], int]) -> float | None:
        """Return how fast something changed over the window, None until two samples differ in time."""
        if len(self.samples) < 2:  # noqa: PLR2004 - a rate takes two
            return None
        first, last = self.samples[0], self.samples[-1]
        seconds = (last.time - first.time).total_seconds()
        return max(0.0, difference(first, last) / seconds) if seconds > 0 else None


@dataclass(slots=True)
class ProgressLog:
    """What was told last in one stage, and when."""

    session: Session
    last: Mapping[str, int] | None = None
    last_at: datetime | None = None

    def told(self, seen: RunProgress, memory: StageMemory, now: datetime) -> None:
        """Write a line where one is due; the first look at a stage is none."""
        counts = memory.states
        if self.last is None or self.last_at is None:
            self.last, self.last_at = counts, now
            return
        silence = now - self.last_at
        if silence < SOONEST_LOG or (counts == self.last and silence < LOG_INTERVAL):
            return
        self.last, self.last_at = counts, now
        self.session.write_event(
            "progress",
            Outcome.ONGOING,
            moves=dict(sorted(counts.items())),
            copiedBytes=seen.copied_bytes,
            totalBytes=seen.total_bytes,
            bytesPerSecond=None if seen.bytes_per_second is None else round(seen.bytes_per_second),
        )


@dataclass(slots=True)
class Disks:
    """What brokers last told of their disks in one stage."""

    session: Session
    sizes: ReplicaBytes = field(default_factory=dict)
    """Bytes by (partition, broker), as they were at `sizes_at`."""
    sizes_at: datetime | None = None
    since: datetime | None = None
    """When they were first asked for."""
    is_denied: bool = False

    def added_to(self, observed: Observed, stage: ReassignStage) -> Observed:
        """Return the look with what is copied, and the destinations' log dirs, where it is time to ask."""
        copying = [move for move in stage.moves if move.added and move.topic_partition in observed.reassignments]
        if not copying or self.is_denied or not self._is_due():
            return observed
        self.sizes_at, self.sizes = self.session.now(), {}
        self.since = self.since or self.sizes_at
        try:
            return self._looked(observed, copying)
        except MissingRight as error:
            self.is_denied = True
            self.session.say(f"what is copied, and whether a destination's disk fails, cannot be seen: {error}")
        except ClusterUnavailable:
            pass  # The next turn asks again, and tells of an outage where it is one.
        return observed

    def _looked(self, observed: Observed, copying: Collection[Move]) -> Observed:
        keys = [move.topic_partition for move in copying]
        filling = {broker for move in copying for broker in move.added}
        held = [observed.partition(key) for key in keys]
        leading = {one.leader for one in held if one is not None and one.leader is not None}
        found = self.session.admin.disks(sorted(b for b in filling | leading if observed.is_alive(b)), keys)
        self.sizes = found.replica_bytes
        log_dirs = {broker: dirs for broker, dirs in found.log_dirs.items() if broker in filling}
        return replace(observed, replica_bytes=self.sizes, log_dirs=log_dirs)

    def _is_due(self) -> bool:
        if self.sizes_at is None or self.since is None:
            return True
        now = self.session.now()
        return now - self.sizes_at >= min(SELDOM, max(OFTEN, (now - self.since) / LOOKS))
