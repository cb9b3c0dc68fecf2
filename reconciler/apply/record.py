"""What a run remembers between turns: only what the cluster cannot tell."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.apply.observed import Observed, is_in_sync
from reconciler.apply.partition_path import Place, PlanPaths, Position
from reconciler.model.cluster import LogDir
from reconciler.model.move import Move
from reconciler.model.problem import Problem
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

SETTLE = timedelta(seconds=120)
"""How long metadata may lag behind the controller; 65 s were seen on a small cluster after a mass creation."""

UNCLEAR = timedelta(seconds=5)
"""How long a partition may look as if somebody else moved it before that is believed."""

NEARLY_NOTHING = 256 * 1024 * 1024

Replica = tuple[TopicPartition, int]

CHANCE = 10_000
"""The part of what is left to copy that is no progress yet: 100 MB of a terabyte."""


class MoveState(StrEnum):
    """Where a move of the current stage stands."""

    TO_DO = "toDo"
    SETTLING = "settling"
    IN_FLIGHT = "inFlight"
    UNSYNCED = "unsynced"
    DONE = "done"
    CONFLICT = "conflict"


UNFINISHED = frozenset({MoveState.TO_DO, MoveState.SETTLING, MoveState.IN_FLIGHT, MoveState.UNSYNCED})


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
"""Which state may follow which, from one turn to the next."""


@dataclass(frozen=True, slots=True)
class History:
    """What earlier turns saw of one move.

    `quiet_until`: when a submitted move that does not show is to do again. `off_since`: since when it looks as if
    somebody else moved the partition; `lagging_since`: since when metadata shows a state that must be of the past.
    """

    state: MoveState = MoveState.TO_DO
    quiet_until: datetime | None = None
    attempts: int = 0
    off_since: datetime | None = None
    lagging_since: datetime | None = None
    is_seen_in_flight: bool = False

    def is_off_for(self, patience: timedelta, now: datetime) -> bool:
        """Whether the partition has been off its path for that long."""
        return self.off_since is not None and now - self.off_since >= patience

    def is_lagging_for(self, patience: timedelta, now: datetime) -> bool:
        """Whether metadata has shown the past for that long."""
        return self.lagging_since is not None and now - self.lagging_since >= patience


def state_of(position: Position, link: int, history: History, now: datetime, *, is_synced: bool) -> MoveState:
    """Return where the move from the list `link` of a path stands, given what earlier turns saw of it."""
    if position.is_off:
        return MoveState.CONFLICT if history.is_off_for(UNCLEAR, now) else MoveState.SETTLING
    if _is_past(position, link, history):
        return MoveState.CONFLICT if history.is_lagging_for(SETTLE, now) else MoveState.SETTLING
    if position.index > link + 1:
        return MoveState.DONE
    if position.place is Place.MOVING:
        return MoveState.IN_FLIGHT
    if position.index == link + 1:
        return MoveState.DONE if is_synced else MoveState.UNSYNCED
    return _at_start(history, now)


def _is_past(position: Position, link: int, history: History) -> bool:
    """Whether only metadata that lags can show this: an earlier stage's state, or one from before the move ended."""
    if position.reached < link:
        return True
    is_at_start = position.reached == link and position.place is not Place.MOVING
    return is_at_start and (position.place is Place.BETWEEN or history.is_seen_in_flight)


def _at_start(history: History, now: datetime) -> MoveState:
    """Tell a move that was never submitted from one whose effect metadata does not show yet."""
    if history.quiet_until is not None and now < history.quiet_until:
        return MoveState.SETTLING
    return MoveState.TO_DO


def next_history(history: History, position: Position, link: int, now: datetime, *, is_synced: bool) -> History:
    """Return the history after this turn; a transition that is not in the table is a conflict."""
    state = state_of(position, link, history, now, is_synced=is_synced)
    if state not in LEGAL[history.state]:
        state = MoveState.CONFLICT
    is_lagging = not position.is_off and _is_past(position, link, history)
    return replace(
        history,
        state=state,
        off_since=(history.off_since or now) if position.is_off else None,
        lagging_since=(history.lagging_since or now) if is_lagging else None,
        is_seen_in_flight=history.is_seen_in_flight or state is MoveState.IN_FLIGHT,
    )


@dataclass(frozen=True, slots=True)
class BadDisk:
    """Since when a broker has a log dir that is offline, or only ones that are nearly full, and which.

    `usable_bytes`: what is left in all its log dirs, where all of them are nearly full.
    """

    since: datetime
    path: str
    is_offline: bool
    usable_bytes: int | None = None

    def told(self, broker: int) -> str:
        """Return it in words."""
        if self.is_offline:
            return f"log dir {self.path} of broker {broker} is offline"
        return f"log dir {self.path} of broker {broker} has {self.usable_bytes} bytes left"


def bad_disks_of(
    known: Mapping[int, BadDisk], log_dirs: Mapping[int, tuple[LogDir, ...]], now: datetime
) -> Mapping[int, BadDisk]:
    """Return the bad disks after a look at some brokers' log dirs; of the other brokers what was known stays."""
    found = {broker: bad for broker, bad in known.items() if broker not in log_dirs}
    for broker, told in log_dirs.items():
        offline = [one for one in told if one.is_offline]
        rest = [one for one in told if not one.is_offline]
        nearly_full = rest if all(is_nearly_full(one) for one in rest) else []
        if offline or nearly_full:
            since = known[broker].since if broker in known else now
            usable = sum(one.usable_bytes or 0 for one in nearly_full) if nearly_full else None
            found[broker] = BadDisk(since, (offline or nearly_full)[0].path, bool(offline), usable)
    return found


def is_nearly_full(log_dir: LogDir) -> bool:
    """Whether a log dir is about to fail: less than 2 % of it, and less than 256 MiB, is left; unknown is not full."""
    usable, total = log_dir.usable_bytes, log_dir.total_bytes
    return usable is not None and total is not None and usable < min(NEARLY_NOTHING, total // 50)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request for one item that the cluster does not show yet: how often it was made, and when it may be again."""

    count: int
    quiet_until: datetime


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The memory of the current stage.

    `throttled_brokers`: those that have this stage's rate, as far as they were asked; `unreached_since`: since when
    one that lives could not be asked.
    `progressed_at`: when last a replica came closer to its leader than ever, or in sync, or a move ended; bytes alone
    are no progress, because producers may write as fast. `least_lag`: how close each new replica came, in bytes;
    `copied_bytes` and `sized`: what was copied, and which replicas told it, at the last measurement. `fenced_since`:
    since when a broker of this stage is seen dead. `bad_disks`: by broker. `left_alone`: partitions given up, and why.
    `warned`: what was told already.
    """

    stage_index: int
    started_at: datetime
    progressed_at: datetime
    throttled_brokers: frozenset[int] = frozenset()
    unreached_since: Mapping[int, datetime] = field(default_factory=dict)
    has_lists_on: bool = False
    polls: int = 0
    histories: Mapping[TopicPartition, History] = field(default_factory=dict)
    fenced_since: Mapping[int, datetime] = field(default_factory=dict)
    bad_disks: Mapping[int, BadDisk] = field(default_factory=dict)
    least_lag: Mapping[Replica, int] = field(default_factory=dict)
    sized: frozenset[Replica] = frozenset()
    copied_when_progressed: int = 0
    warned: frozenset[str] = frozenset()
    left_alone: Mapping[TopicPartition, Problem] = field(default_factory=dict)
    attempts: Mapping[str, Attempt] = field(default_factory=dict)
    copied_bytes: int = 0
    synced_replicas: int = 0

    def history(self, topic_partition: TopicPartition) -> History:
        """Return what earlier turns saw of a partition's move."""
        return self.histories.get(topic_partition, History())

    def state(self, topic_partition: TopicPartition) -> MoveState:
        """Return the last state of a partition's move."""
        return self.history(topic_partition).state

    def watched(self, stage: ReassignStage) -> tuple[Move, ...]:
        """Return the stage's moves that are not given up."""
        return tuple(move for move in stage.moves if move.topic_partition not in self.left_alone)

    def is_dead_for(self, broker_id: int, patience: timedelta, now: datetime) -> bool:
        """Whether that broker has been dead for that long."""
        since = self.fenced_since.get(broker_id)
        return since is not None and now - since >= patience

    def submitted(self, moves: Iterable[Move], quiet_until: datetime) -> "RunRecord":
        """Return the record with these moves being handed to the controller once more."""
        histories = dict(self.histories)
        for move in moves:
            known = self.history(move.topic_partition)
            histories[move.topic_partition] = replace(known, quiet_until=quiet_until, attempts=known.attempts + 1)
        return replace(self, histories=histories, polls=0)

    def answered(self, topic_partition: TopicPartition, quiet_until: datetime) -> "RunRecord":
        """Return the record after the controller answered for one submitted move."""
        known = replace(self.history(topic_partition), quiet_until=quiet_until)
        return replace(self, histories={**self.histories, topic_partition: known})

    def attempted(self, items: Iterable[str], quiet_until: datetime) -> "RunRecord":
        """Return the record with a request for these items being made once more."""
        attempts = dict(self.attempts)
        for item in items:
            known = attempts.get(item)
            attempts[item] = Attempt(known.count + 1 if known else 1, quiet_until)
        return replace(self, attempts=attempts, polls=0)

    def quieted(self, items: Iterable[str], quiet_until: datetime) -> "RunRecord":
        """Return the record with another time at which these items may be asked for again."""
        changed = {item: replace(self.attempts[item], quiet_until=quiet_until) for item in items}
        return replace(self, attempts={**self.attempts, **changed})

    def is_quiet(self, item: str, now: datetime) -> bool:
        """Whether a request for that item may still be taking effect."""
        attempt = self.attempts.get(item)
        return attempt is not None and now < attempt.quiet_until

    def count(self, item: str) -> int:
        """Return how often that item was asked for."""
        attempt = self.attempts.get(item)
        return attempt.count if attempt else 0

    def unthrottled(self) -> "RunRecord":
        """Return the record without what it knows of throttles: they are to be put on anew, and at once."""
        others = {item: attempt for item, attempt in self.attempts.items() if item != "throttle"}
        return replace(self, throttled_brokers=frozenset(), attempts=others)

    def leaving_alone(self, topic_partition: TopicPartition, problem: Problem) -> "RunRecord":
        """Return the record after one partition was given up."""
        return replace(self, left_alone={**self.left_alone, topic_partition: problem})


def note(paths: PlanPaths, stage: ReassignStage, observed: Observed, record: RunRecord, now: datetime) -> RunRecord:
    """Return the record after a look at a stage of moves: their states, dead brokers, and whether anything went on."""
    watched = record.watched(stage)
    histories = {
        move.topic_partition: next_history(
            record.history(move.topic_partition),
            paths.position(move.topic_partition, observed),
            paths.link(stage, move),
            now,
            is_synced=is_in_sync(move, observed),
        )
        for move in watched
    }
    copied = _copied(watched, observed)
    least_lag, is_closer = _closer(watched, observed, record)
    synced = sum(_synced(move, observed) for move in watched)
    seen = {key: history.state for key, history in histories.items()}
    before = {key: record.state(key) for key in histories}
    has_progressed = is_closer or synced > record.synced_replicas or seen != before
    return replace(
        record,
        histories={**record.histories, **histories},
        fenced_since=_fenced_since(stage, observed, record, now),
        unreached_since={broker: at for broker, at in record.unreached_since.items() if observed.is_alive(broker)},
        bad_disks=bad_disks_of(record.bad_disks, observed.log_dirs, now),
        progressed_at=now if has_progressed else record.progressed_at,
        least_lag=least_lag,
        sized=frozenset(observed.replica_bytes) if observed.replica_bytes else record.sized,
        copied_bytes=copied if observed.replica_bytes else record.copied_bytes,
        copied_when_progressed=max(copied, record.copied_bytes) if has_progressed else record.copied_when_progressed,
        synced_replicas=max(synced, record.synced_replicas),
        polls=0 if has_progressed else record.polls + 1,
    )


def _synced(move: Move, observed: Observed) -> int:
    partition = observed.partition(move.topic_partition)
    return len(set(move.to_replicas) & set(partition.isr)) if partition else 0


def _fenced_since(stage: ReassignStage, observed: Observed, record: RunRecord, now: datetime) -> Mapping[int, datetime]:
    brokers = {broker for move in stage.moves for broker in move.to_replicas}
    return {broker: record.fenced_since.get(broker, now) for broker in observed.dead_of(brokers)}


def _closer(moves: Sequence[Move], observed: Observed, record: RunRecord) -> tuple[Mapping[Replica, int], bool]:
    """Return how close each new replica ever came to its leader, and whether one came closer now.

    Where a leader's size is not told, bytes copied have to do.
    """
    lags: dict[Replica, int] = {}
    is_blind = False
    for move in moves:
        source = _leader_bytes(move, observed)
        for replica in ((move.topic_partition, broker) for broker in move.added):
            size = observed.replica_bytes.get(replica)
            if size is not None and source is not None:
                lags[replica] = max(0, source - size)
            is_blind = is_blind or (size is not None and source is None)
    nearer = {replica: lag for replica, lag in lags.items() if _is_nearer(lag, record.least_lag.get(replica))}
    has_more = is_blind and _copied(moves, observed) > record.copied_bytes
    return {**record.least_lag, **nearer}, bool(nearer) or has_more


def _is_nearer(lag: int, least: int | None) -> bool:
    """Whether a replica came closer by more than chance: what is written meanwhile comes and goes."""
    return least is None or lag < least - least // CHANCE


def _copied(moves: Sequence[Move], observed: Observed) -> int:
    return sum(observed.replica_bytes.get((move.topic_partition, b), 0) for move in moves for b in move.added)


def _leader_bytes(move: Move, observed: Observed) -> int | None:
    partition = observed.partition(move.topic_partition)
    if partition is None or partition.leader is None:
        return None
    return observed.replica_bytes.get((move.topic_partition, partition.leader))
