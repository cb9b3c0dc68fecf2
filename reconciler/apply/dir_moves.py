"""Computes where each move between the log dirs of a broker stands: the broker alone tells, in DescribeLogDirs.

in the dir before ---- a future replica fills in the dir after ----> in the dir after
     AT_START                           MOVING                            AT_END
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import PlanPaths
from reconciler.model.cluster import LogDir
from reconciler.model.move import DirMove
from reconciler.model.problem import Problem
from reconciler.model.stage import LogDirsStage
from reconciler.model.tally import Standing

UNCLEAR = timedelta(seconds=5)
"""How long a replica may look as if somebody else moved it before that is believed: the swap is no single step."""


class DirPlace(StrEnum):
    """Where a replica that is to go to another log dir of its broker was found."""

    AT_START = "atStart"
    MOVING = "moving"
    AT_END = "atEnd"
    TURNED = "turned"
    """It has arrived, and is copied back: what it came from was chosen just as it arrived."""
    ELSEWHERE = "elsewhere"
    """In another log dir, or on its way to one."""
    GONE = "gone"
    """The broker has no such replica any more."""
    OFFLINE = "offline"
    """The broker does not tell of it, and a log dir of the broker is offline."""
    UNSEEN = "unseen"
    """The broker is not alive, or did not answer."""


_HIDDEN = frozenset({DirPlace.OFFLINE, DirPlace.UNSEEN})
IS_OFF = frozenset({DirPlace.ELSEWHERE, DirPlace.GONE, DirPlace.TURNED})


def dir_place(move: DirMove, observed: Observed) -> DirPlace:
    """Return where that replica is."""
    partition = observed.partition(move.topic_partition)
    if partition is None or move.broker not in partition.replicas:
        return DirPlace.GONE
    disks = observed.disks
    if disks is None or move.broker not in disks.log_dirs:
        return DirPlace.UNSEEN
    path, future = disks.replica_paths.get(move.replica), disks.futures.get(move.replica)
    target = future.path if future is not None else None
    if path is None:
        return DirPlace.OFFLINE if offline_dirs(observed, move.broker) else DirPlace.GONE
    return _BY_DIRS.get((_end(move, path), _end(move, target)), DirPlace.ELSEWHERE)


_BY_DIRS: Mapping[tuple[str | None, str | None], DirPlace] = {
    ("from", None): DirPlace.AT_START,
    ("from", "to"): DirPlace.MOVING,
    ("to", None): DirPlace.AT_END,
    ("to", "from"): DirPlace.TURNED,
}
"""By where the replica lies, and where its future replica is filled."""


def _end(move: DirMove, path: str | None) -> str | None:
    return {None: None, move.from_dir: "from", move.to_dir: "to"}.get(path, "other")


def found_in(move: DirMove, observed: Observed) -> str:
    """Return in words where the replica of a move was found."""
    partition = observed.partition(move.topic_partition)
    if partition is None:
        return observed.absence(move.topic_partition.topic)
    if move.broker not in partition.replicas:
        return f"no replica there, but on {list(partition.target_replicas)}"
    disks = observed.disks
    path = disks.replica_paths.get(move.replica) if disks is not None else None
    future = disks.futures.get(move.replica) if disks is not None else None
    if path is None:
        return "none that can be read"
    return f"{path}, on its way to {future.path}" if future is not None else path


def log_dirs_of(observed: Observed, broker: int) -> tuple[LogDir, ...]:
    """Return the log dirs that a broker told of."""
    return observed.disks.log_dirs.get(broker, ()) if observed.disks is not None else ()


def offline_dirs(observed: Observed, broker: int) -> tuple[str, ...]:
    """Return a broker's log dirs that are offline."""
    return tuple(one.path for one in log_dirs_of(observed, broker) if one.is_offline)


def copied_inside(move: DirMove, observed: Observed) -> int:
    """Return what a move between log dirs has copied by now."""
    place = dir_place(move, observed)
    if place is DirPlace.AT_END:
        return _size(move, observed)
    future = observed.disks.futures.get(move.replica) if observed.disks is not None else None
    return (future.size_bytes or 0) if future is not None and place is DirPlace.MOVING else 0


def left_inside(move: DirMove, observed: Observed) -> int:
    """Return what a move between log dirs has still to copy."""
    return max(0, _size(move, observed) - copied_inside(move, observed))


def _size(move: DirMove, observed: Observed) -> int:
    """Return the bytes of a replica: as its broker tells, else as planned."""
    known = observed.disks.replica_bytes.get(move.replica) if observed.disks is not None else None
    return move.bytes if known is None else known


_STANDING = {
    DirPlace.MOVING: Standing.IN_FLIGHT,
    DirPlace.AT_END: Standing.DONE,
    DirPlace.ELSEWHERE: Standing.FOREIGN,
    DirPlace.GONE: Standing.FOREIGN,
    DirPlace.TURNED: Standing.FOREIGN,
}


def dir_standing(move: DirMove, observed: Observed, *, is_withdrawn: bool = False) -> Standing:
    """Return where a move between log dirs stands; what the broker does not tell of counts as to do."""
    standing = _STANDING.get(dir_place(move, observed), Standing.LEFT)
    return Standing.TAKEN_BACK if is_withdrawn and standing is Standing.LEFT else standing


def are_dirs_done(stage: LogDirsStage, observed: Observed) -> bool:
    """Whether each replica of a stage lies where it belongs."""
    return all(dir_place(move, observed) is DirPlace.AT_END for move in stage.moves)


def dir_moves_under_way(paths: PlanPaths, observed: Observed) -> tuple[DirMove, ...]:
    """Return the plan's moves between log dirs that are in flight."""
    places = {DirPlace.MOVING, DirPlace.TURNED}
    return tuple(move for move in paths.dir_moves if dir_place(move, observed) in places)


def dir_moves_unseen(paths: PlanPaths, observed: Observed) -> tuple[DirMove, ...]:
    """Return the plan's moves between log dirs of which nobody can tell: their broker is not alive, or silent."""
    return tuple(move for move in paths.dir_moves if dir_place(move, observed) is DirPlace.UNSEEN)


def stale_dirs(stage: LogDirsStage, observed: Observed) -> Iterator[Problem]:
    """Yield what is neither as the plan saw it nor as it wants it: replicas, and log dirs that are gone or offline."""
    for move in stage.moves:
        place, dirs = dir_place(move, observed), {one.path: one for one in log_dirs_of(observed, move.broker)}
        if place in IS_OFF:
            expected = f"{move.from_dir} or {move.to_dir}"
            yield Problem("KR502", f"{move}: expected in {expected}, found in {found_in(move, observed)}")
        for path in (move.from_dir, move.to_dir) if dirs and place is not DirPlace.AT_END else ():
            if path not in dirs or dirs[path].is_offline:
                what = "is offline" if path in dirs else "is not there any more"
                yield Problem("KR502", f"log dir {path} of broker {move.broker} {what}: the plan moves {move} by it")


class DirState(StrEnum):
    """Where a move between log dirs stands for the run that makes it."""

    TO_DO = "toDo"
    SETTLING = "settling"
    """It was asked for a moment ago, or it is unclear where it stands: look again."""
    IN_FLIGHT = "inFlight"
    DONE = "done"
    BLOCKED = "blocked"
    """A log dir is offline, or the broker does not answer."""
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class DirHistory:
    """What earlier turns saw of one move between log dirs."""

    state: DirState = DirState.TO_DO
    quiet_until: datetime | None = None
    """When a move that was asked for and does not show is to do again."""
    attempts: int = 0
    off_since: datetime | None = None
    """Since when it looks as if somebody else had a hand in it."""
    is_seen_in_flight: bool = False
    problem: Problem | None = None
    """Why it is given up."""

    @property
    def is_begun(self) -> bool:
        """Whether its broker was asked for it, or was seen to copy, and has not told that it has ended."""
        return bool(self.attempts or self.is_seen_in_flight) and self.state is not DirState.DONE


def next_dir_history(history: DirHistory, place: DirPlace, now: datetime) -> DirHistory:
    """Return the history after a look. A move in flight that is suddenly to do again was taken back by somebody.

    Not so after a log dir failed, or the broker was away: it may have dropped the copy then.
    """
    is_taken_back = place is DirPlace.AT_START and history.is_seen_in_flight
    is_off = place in IS_OFF or is_taken_back
    off_since = (history.off_since or now) if is_off else None
    state = _dir_state(history, place, now)
    if off_since is not None:
        state = DirState.CONFLICT if now - off_since >= UNCLEAR else DirState.SETTLING
    is_seen = place is DirPlace.MOVING or (history.is_seen_in_flight and place not in _HIDDEN)
    return replace(history, state=state, off_since=off_since, is_seen_in_flight=is_seen)


def _dir_state(history: DirHistory, place: DirPlace, now: datetime) -> DirState:
    match place:
        case DirPlace.AT_END:
            return DirState.DONE
        case DirPlace.MOVING:
            return DirState.IN_FLIGHT
        case DirPlace.AT_START:
            is_quiet = history.quiet_until is not None and now < history.quiet_until
            return DirState.SETTLING if is_quiet else DirState.TO_DO
        case _:
            return DirState.BLOCKED
