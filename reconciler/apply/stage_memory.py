"""Remembers what the cluster cannot tell, from one turn to the next: each move's state, attempts, dead brokers, disks.

`note` adds a look at the cluster to the memory; everything here is pure, and gone when the process ends.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.apply.dir_moves import DirHistory, DirState
from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import MovePlace, Place, PlanPaths, Position
from reconciler.model.cluster import LogDir
from reconciler.model.move import DirMove, Move
from reconciler.model.problem import Problem
from reconciler.model.stage import CopyingStage, LogDirsStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import size

SETTLE = timedelta(seconds=120)
"""How long metadata may lag behind the controller; 65 s were seen on a small cluster after a mass creation."""
DEAD = timedelta(seconds=30)
"""How long a broker may be dead, or not be reached, before its moves are given up; a restart takes 10 to 20 s."""
UNCLEAR = timedelta(seconds=5)
"""How long a partition may look as if somebody else moved it before that is believed."""
NEARLY_NOTHING = 256 * 1024 * 1024
"""Bytes left below which a log dir counts as full, if it is also below 2 %: a quarter of Kafka's default segment."""
CHANCE = 10_000
"""The part of what is left to copy that is no progress yet: 100 MB of a terabyte."""

Replica = tuple[TopicPartition, int]


class MoveState(StrEnum):
    """Where a move of the current stage stands."""

    TO_DO = "toDo"
    SETTLING = "settling"
    """It was submitted a moment ago, or metadata shows what may be of the past: look again."""
    IN_FLIGHT = "inFlight"
    UNSYNCED = "unsynced"
    DONE = "done"
    CONFLICT = "conflict"


_S = MoveState
LEGAL: Mapping[MoveState, frozenset[MoveState]] = {
    _S.TO_DO: frozenset(_S),
    _S.SETTLING: frozenset(_S),
    # A move in flight that is suddenly to do again was cancelled, and not by this run: it is not fought over.
    _S.IN_FLIGHT: frozenset({_S.IN_FLIGHT, _S.SETTLING, _S.UNSYNCED, _S.DONE, _S.CONFLICT}),
    _S.UNSYNCED: frozenset({_S.UNSYNCED, _S.SETTLING, _S.DONE, _S.CONFLICT}),
    _S.DONE: frozenset({_S.DONE, _S.SETTLING, _S.UNSYNCED, _S.CONFLICT}),
    _S.CONFLICT: frozenset({_S.CONFLICT}),
}
"""Which state may follow which, from one turn to the next; anything else is somebody else's doing."""


@dataclass(frozen=True, slots=True)
class History:
    """What earlier turns saw of one move."""

    state: MoveState = MoveState.TO_DO
    quiet_until: datetime | None = None
    """When a submitted move that does not show is to do again."""
    attempts: int = 0
    off_since: datetime | None = None
    """Since when it looks as if somebody else moved the partition."""
    lagging_since: datetime | None = None
    """Since when metadata shows a state that must be of the past."""
    is_seen_in_flight: bool = False


def state_of(position: Position, link: int, history: History, now: datetime, *, is_synced: bool) -> MoveState:
    """Return where the move from the list `link` of a path stands, given what earlier turns saw of it."""
    place = position.move_place(link)
    if place is MovePlace.OFF:
        return _S.CONFLICT if _has_lasted(history.off_since, UNCLEAR, now) else _S.SETTLING
    if _is_past(position, link, history):
        return _S.CONFLICT if _has_lasted(history.lagging_since, SETTLE, now) else _S.SETTLING
    if place is MovePlace.PAST:
        return _S.DONE
    if place is MovePlace.IN_FLIGHT:
        return _S.IN_FLIGHT
    if place is MovePlace.AT_END:
        return _S.DONE if is_synced else _S.UNSYNCED
    # A move that was never submitted looks like one whose effect metadata does not show yet.
    return _S.SETTLING if history.quiet_until is not None and now < history.quiet_until else _S.TO_DO


def _has_lasted(since: datetime | None, patience: timedelta, now: datetime) -> bool:
    return since is not None and now - since >= patience


def _is_past(position: Position, link: int, history: History) -> bool:
    """Whether only metadata that lags can show this: an earlier stage's state, or one from before the move ended."""
    place = position.move_place(link)
    is_at_start = place in {MovePlace.AT_START, MovePlace.STOPPED}
    is_back = is_at_start and (position.place is Place.BETWEEN or history.is_seen_in_flight)
    return place is MovePlace.BEFORE or is_back


def next_history(history: History, position: Position, link: int, now: datetime, *, is_synced: bool) -> History:
    """Return the history after this turn; a transition that is not in the table is a conflict."""
    state = state_of(position, link, history, now, is_synced=is_synced)
    if state not in LEGAL[history.state]:
        state = _S.CONFLICT
    is_off = position.move_place(link) is MovePlace.OFF
    is_lagging = not is_off and _is_past(position, link, history)
    return replace(
        history,
        state=state,
        off_since=(history.off_since or now) if is_off else None,
        lagging_since=(history.lagging_since or now) if is_lagging else None,
        is_seen_in_flight=history.is_seen_in_flight or state is _S.IN_FLIGHT,
    )


@dataclass(frozen=True, slots=True)
class BadDisk:
    """A broker's log dir that takes nothing more in: it is offline, or all the broker's log dirs are nearly full.

    Kafka keeps a broker alive whose log dir failed (a full or broken disk), lists the move for ever and says nothing:
    only DescribeLogDirs tells (seen on 4.1.1).
    """

    since: datetime
    path: str
    is_offline: bool
    usable_bytes: int | None = None
    """What is left in all its log dirs, where all of them are nearly full."""

    def told(self, broker: int) -> str:
        """Return it in words."""
        what = "is offline" if self.is_offline else f"has {size(self.usable_bytes or 0)} left"
        return f"log dir {self.path} of broker {broker} {what}"


def bad_disks_of(
    known: Mapping[int, BadDisk], log_dirs: Mapping[int, tuple[LogDir, ...]], now: datetime
) -> Mapping[int, BadDisk]:
    """Return the bad disks after a look at some brokers' log dirs; of the other brokers what was known stays."""
    found = {broker: bad for broker, bad in known.items() if broker not in log_dirs}
    for broker, told in log_dirs.items():
        offline = [one for one in told if one.is_offline]
        rest = [one for one in told if not one.is_offline]
        nearly_full = rest if all(_is_nearly_full(one) for one in rest) else []
        if offline or nearly_full:
            since = known[broker].since if broker in known else now
            usable = sum(one.usable_bytes or 0 for one in nearly_full) if nearly_full else None
            found[broker] = BadDisk(since, (offline or nearly_full)[0].path, bool(offline), usable)
    return found


def _is_nearly_full(log_dir: LogDir) -> bool:
    usable, total = log_dir.usable_bytes, log_dir.total_bytes
    return usable is not None and total is not None and usable < min(NEARLY_NOTHING, total // 50)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request for one item that the cluster does not show yet: how often it was made, and when it may be again."""

    count: int
    quiet_until: datetime


@dataclass(frozen=True, slots=True)
class StageMemory:
    """The memory of the current stage."""

    stage_index: int
    started_at: datetime
    progressed_at: datetime
    """When last a replica came closer to its leader than ever, or in sync, or a move ended. Bytes alone are no
    progress, because producers may write as fast."""
    throttled_brokers: frozenset[int] = frozenset()
    """Those that have this stage's rate, as far as they were asked."""
    unreached_since: Mapping[int, datetime] = field(default_factory=dict)
    """Since when a broker that lives could not be asked to throttle."""
    hidden: frozenset[int] = frozenset()
    """Those of them that were asked again, in vain, once that had lasted: time alone gives no broker up."""
    has_throttles_on: bool = False
    polls: int = 0
    """Looks in a row that showed nothing new."""
    is_resting: bool = False
    """The time given is over: no move begins any more, and the run stops once those in flight have ended."""
    histories: Mapping[TopicPartition, History] = field(default_factory=dict)
    dirs: Mapping[Replica, DirHistory] = field(default_factory=dict)
    """The same of replicas that move between log dirs."""
    fenced_since: Mapping[int, datetime] = field(default_factory=dict)
    """Since when a broker of this stage is seen dead."""
    leaderless_since: Mapping[TopicPartition, datetime] = field(default_factory=dict)
    """Since when a partition of this stage has no leader, or no living replica in sync."""
    bad_disks: Mapping[int, BadDisk] = field(default_factory=dict)
    least_lag: Mapping[Replica, int] = field(default_factory=dict)
    """How close each new replica ever came to its leader, in bytes."""
    sized: frozenset[Replica] = frozenset()
    """The replicas that told their size at the last measurement: others are in no log dir that works."""
    copied_when_progressed: int = 0
    copied_bytes: int = 0
    """What was copied at the last measurement."""
    synced_replicas: int = 0
    warned: frozenset[str] = frozenset()
    left_alone: Mapping[TopicPartition, Problem] = field(default_factory=dict)
    """Partitions given up, and why."""
    attempts: Mapping[str, Attempt] = field(default_factory=dict)

    def history(self, topic_partition: TopicPartition) -> History:
        """Return what earlier turns saw of a partition's move."""
        return self.histories.get(topic_partition, History())

    def state(self, topic_partition: TopicPartition) -> MoveState:
        """Return the last state of a partition's move."""
        return self.history(topic_partition).state

    def watched(self, stage: ReassignStage) -> tuple[Move, ...]:
        """Return the stage's moves that are not given up."""
        return tuple(move for move in stage.moves if move.topic_partition not in self.left_alone)

    def is_done(self, stage: CopyingStage) -> bool:
        """Whether every move of the stage that is not given up is done."""
        if isinstance(stage, LogDirsStage):
            return all(self.dir_history(move).state is DirState.DONE for move in self.dirs_watched(stage))
        return all(self.state(move.topic_partition) is MoveState.DONE for move in self.watched(stage))

    @property
    def states(self) -> Counter[str]:
        """How many moves of the stage stand how."""
        moves = (history.state.value for history in self.histories.values())
        return Counter(moves) + Counter(history.state.value for history in self.dirs.values())

    def is_at_rest(self, stage: CopyingStage) -> bool:
        """Whether moves of the stage are left, and none of them has begun."""
        if isinstance(stage, LogDirsStage):
            return {self.dir_history(move).state for move in self.dirs_watched(stage)} - {DirState.DONE} == {
                DirState.TO_DO
            }
        states = {self.state(move.topic_partition) for move in self.watched(stage)} - {MoveState.DONE}
        return states == {MoveState.TO_DO}

    def dir_history(self, move: DirMove) -> DirHistory:
        """Return what earlier turns saw of a move between log dirs."""
        return self.dirs.get(move.replica, DirHistory())

    def dirs_watched(self, stage: LogDirsStage) -> tuple[DirMove, ...]:
        """Return the stage's moves between log dirs that are not given up."""
        return tuple(move for move in stage.moves if self.dir_history(move).problem is None)

    def with_dir(self, move: DirMove, history: DirHistory) -> "StageMemory":
        """Return the memory with another history of one move between log dirs."""
        return replace(self, dirs={**self.dirs, move.replica: history})

    def chosen(self, moves: Iterable[DirMove], quiet_until: datetime) -> "StageMemory":
        """Return the memory with these moves being asked for once more."""
        dirs = dict(self.dirs)
        for move in moves:
            known = self.dir_history(move)
            dirs[move.replica] = replace(known, quiet_until=quiet_until, attempts=known.attempts + 1)
        return replace(self, dirs=dirs, polls=0)

    def is_dead_for(self, broker_id: int, patience: timedelta, now: datetime) -> bool:
        """Whether that broker has been dead for that long."""
        return _has_lasted(self.fenced_since.get(broker_id), patience, now)

    def is_leaderless_for(self, topic_partition: TopicPartition, patience: timedelta, now: datetime) -> bool:
        """Whether that partition has had no leader for that long."""
        return _has_lasted(self.leaderless_since.get(topic_partition), patience, now)

    def submitted(self, moves: Iterable[Move], quiet_until: datetime) -> "StageMemory":
        """Return the memory with these moves being handed to the controller once more."""
        histories = dict(self.histories)
        for move in moves:
            known = self.history(move.topic_partition)
            histories[move.topic_partition] = replace(known, quiet_until=quiet_until, attempts=known.attempts + 1)
        return replace(self, histories=histories, polls=0)

    def answered(self, topic_partition: TopicPartition, quiet_until: datetime) -> "StageMemory":
        """Return the memory after the controller answered for one submitted move."""
        known = replace(self.history(topic_partition), quiet_until=quiet_until)
        return replace(self, histories={**self.histories, topic_partition: known})

    def attempted(self, items: Iterable[str], quiet_until: datetime) -> "StageMemory":
        """Return the memory with a request for these items being made once more."""
        attempts = {**self.attempts, **{item: Attempt(self.count(item) + 1, quiet_until) for item in items}}
        return replace(self, attempts=attempts, polls=0)

    def quieted(self, item: str, quiet_until: datetime) -> "StageMemory":
        """Return the memory with another time at which this item may be asked for again."""
        changed = replace(self.attempts[item], quiet_until=quiet_until)
        return replace(self, attempts={**self.attempts, item: changed})

    def is_quiet(self, item: str, now: datetime) -> bool:
        """Whether a request for that item may still be taking effect."""
        attempt = self.attempts.get(item)
        return attempt is not None and now < attempt.quiet_until

    def count(self, item: str) -> int:
        """Return how often that item was asked for."""
        attempt = self.attempts.get(item)
        return attempt.count if attempt else 0

    def unthrottled(self) -> "StageMemory":
        """Return the memory without what it knows of throttles: they are to be put on anew, and at once."""
        others = {item: attempt for item, attempt in self.attempts.items() if item != "throttle"}
        return replace(self, throttled_brokers=frozenset(), attempts=others)

    def leaving_alone(self, topic_partition: TopicPartition, problem: Problem) -> "StageMemory":
        """Return the memory after one partition was given up."""
        return replace(self, left_alone={**self.left_alone, topic_partition: problem})


def note(paths: PlanPaths, stage: ReassignStage, observed: Observed, memory: StageMemory, now: datetime) -> StageMemory:
    """Return the memory after a look at a stage of moves: their states, dead brokers, and whether anything went on."""
    watched = memory.watched(stage)
    histories = {
        move.topic_partition: next_history(
            memory.history(move.topic_partition),
            paths.position(move.topic_partition, observed),
            paths.link(stage, move),
            now,
            is_synced=observed.is_in_sync(move),
        )
        for move in watched
    }
    sizes = observed.replica_bytes
    copied = sum(sizes.get((move.topic_partition, broker), 0) for move in watched for broker in move.added)
    least_lag, is_closer = _closer(watched, observed, memory, copied)
    synced = 0
    for move in watched:
        partition = observed.partition(move.topic_partition)
        synced += len(set(move.to_replicas) & set(partition.isr)) if partition else 0
    has_new_state = any(history.state != memory.state(key) for key, history in histories.items())
    has_progressed = is_closer or synced > memory.synced_replicas or has_new_state
    dead = observed.dead_of({broker for move in stage.moves for broker in move.to_replicas})
    there = [move.topic_partition for move in watched if observed.partition(move.topic_partition) is not None]
    return replace(
        memory,
        histories={**memory.histories, **histories},
        fenced_since={broker: memory.fenced_since.get(broker, now) for broker in dead},
        leaderless_since={key: memory.leaderless_since.get(key, now) for key in there if not observed.has_source(key)},
        unreached_since={broker: at for broker, at in memory.unreached_since.items() if observed.is_alive(broker)},
        hidden=frozenset(broker for broker in memory.hidden if observed.is_alive(broker)),
        bad_disks=bad_disks_of(memory.bad_disks, observed.log_dirs, now),
        progressed_at=now if has_progressed else memory.progressed_at,
        least_lag=least_lag,
        sized=frozenset(sizes) if sizes else memory.sized,
        copied_bytes=copied if sizes else memory.copied_bytes,
        copied_when_progressed=max(copied, memory.copied_bytes) if has_progressed else memory.copied_when_progressed,
        synced_replicas=max(synced, memory.synced_replicas),
        polls=0 if has_progressed else memory.polls + 1,
    )


def _closer(
    moves: Sequence[Move], observed: Observed, memory: StageMemory, copied: int
) -> tuple[Mapping[Replica, int], bool]:
    """Return how close each new replica ever came to its leader, and whether one came closer now.

    Where a leader's size is not told, the bytes `copied` have to do.
    """
    nearer: dict[Replica, int] = {}
    is_blind = False
    for move in moves:
        key = move.topic_partition
        partition = observed.partition(key)
        leader = partition.leader if partition is not None else None
        source = observed.replica_bytes.get((key, leader)) if leader is not None else None
        for replica in ((key, broker) for broker in move.added):
            size = observed.replica_bytes.get(replica)
            is_blind = is_blind or (size is not None and source is None)
            if size is None or source is None:
                continue
            lag, least = max(0, source - size), memory.least_lag.get(replica)
            # Closer by more than chance: what is written meanwhile comes and goes.
            if least is None or lag < least - least // CHANCE:
                nearer[replica] = lag
    return {**memory.least_lag, **nearer}, bool(nearer) or (is_blind and copied > memory.copied_bytes)
