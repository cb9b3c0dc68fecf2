"""The state of one move of the current stage, and which states may follow which."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from reconciler.apply.course import Place, Position
from reconciler.apply.observed import Observed
from reconciler.model.move import Move

SETTLE = timedelta(seconds=120)
"""How long metadata may lag behind the controller; 65 s were seen on a small cluster after a mass creation."""
UNCLEAR = timedelta(seconds=5)
"""How long a partition may look as if somebody else moved it before that is believed."""


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
        """Whether the partition has been off its course for that long."""
        return self.off_since is not None and now - self.off_since >= patience

    def is_lagging_for(self, patience: timedelta, now: datetime) -> bool:
        """Whether metadata has shown the past for that long."""
        return self.lagging_since is not None and now - self.lagging_since >= patience


def awaited(move: Move, observed: Observed) -> tuple[int, ...]:
    """Return the replicas that must live, and be in sync in the end: of a change of order, only those that live."""
    if move.is_reorder:
        return tuple(replica for replica in move.to_replicas if observed.is_alive(replica))
    return move.to_replicas


def is_in_sync(move: Move, observed: Observed) -> bool:
    """Whether all replicas that the move waits for are in sync."""
    partition = observed.partition(move.topic_partition)
    return partition is not None and set(awaited(move, observed)) <= set(partition.isr)


def state_of(position: Position, link: int, history: History, now: datetime, *, is_synced: bool) -> MoveState:
    """Return where the move from the list `link` of a course stands, given what earlier turns saw of it."""
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
