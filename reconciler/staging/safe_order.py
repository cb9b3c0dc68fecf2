"""Searches an order of steps in which each has room, for runs in which greedy packing got stuck.

The question is a packing problem that is hard in general, so the search is bounded by counts, never by time: the same
input gives the same order on any machine.
"""

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.model.desired import MovePolicy
from reconciler.staging.room import Room
from reconciler.staging.step import Step, Urgency

# Longer runs are not searched, and no search asks more often whether a step fits: less than a second on one core.
MOST_STEPS, MOST_ASKED = 300, 100_000

Rank = int
Following = Sequence[Rank | None]
"""The step after each in its partition's chain, by rank."""


def safe_order(
    steps: Sequence[Step], following: Following, firsts: Sequence[Rank], room: Room
) -> tuple[Rank, ...] | None:
    """Return all steps by rank, one after the other, so that each fits as it begins; None where no order was found.

    Whatever fits at once fits one after the other, so a search over single steps misses nothing but what the count cuts
    off; with several log dirs to a broker, where the order decides which dir a replica goes to, it may miss more.
    """
    return _Search(steps, following, room).found(firsts) if 0 < len(steps) <= MOST_STEPS else None


def loads_in_order(
    steps: Sequence[Step], following: Following, order: Sequence[Rank], policy: MovePolicy, room: Room
) -> Iterator[list[Rank]]:
    """Yield the ranks of each stage: the steps in that order, as many at once as limits allow."""
    load: list[Rank] = []
    waiting: set[Rank | None] = set()
    for rank in order:
        step = steps[rank]
        is_alike = not load or steps[load[0]].is_handover == step.is_handover
        is_room = len(load) < policy.per_stage and rank not in waiting
        if load and not (is_alike and is_room and room.fits(step)):
            room.end([steps[placed] for placed in load])
            yield load
            load, waiting = [], set()
        load.append(rank)
        room.begin(step)
        waiting.add(following[rank])
    room.end([steps[placed] for placed in load])
    yield load


@dataclass(frozen=True, slots=True)
class _State:
    """Steps that are done, as bits by rank, those that are ready, in the order in which they are tried, the room."""

    done: int
    ready: tuple[Rank, ...]
    room: Room


class _Search:
    """Depth first: the most urgent steps first, and of these what frees the most; what failed is not tried again."""

    def __init__(self, steps: Sequence[Step], following: Following, room: Room) -> None:
        self._steps = steps
        self._following = following
        self._room = room
        # As packing has it: leaderships leave first, unless there is something to repair.
        handovers_first = steps[0].urgency >= Urgency.REPAIRED
        self._key = [
            (not (handovers_first and step.is_handover), step.urgency, room.net(step), rank)
            for rank, step in enumerate(steps)
        ]
        self._failed: set[int] = set()
        self._left = MOST_ASKED

    def found(self, firsts: Sequence[Rank]) -> tuple[Rank, ...] | None:
        order: list[Rank] = []
        state = _State(0, tuple(sorted(firsts, key=self._key.__getitem__)), self._room)
        path = [(state, self._choices(state))]
        while state.ready:
            rank = next(path[-1][1], None)
            if rank is not None:
                order.append(rank)
                state = self._after(state, rank)
                path.append((state, self._choices(state)))
            elif order:
                # Which steps are done decides the room, whatever the order was: no way from here on fits either.
                self._failed.add(state.done)
                path.pop()
                order.pop()
                state = path[-1][0]
            else:
                return None
        return tuple(order)

    def _choices(self, state: _State) -> Iterator[Rank]:
        """Yield the steps that fit, up to one that takes room from no other: what works without it works after it."""
        for rank in state.ready:
            self._left -= 1
            if self._left < 0:
                return
            step = self._steps[rank]
            if state.room.fits(step):
                if state.done | 1 << rank not in self._failed:
                    yield rank
                if not state.room.is_watched(step):
                    return

    def _after(self, state: _State, rank: Rank) -> _State:
        step, following, room = self._steps[rank], self._following[rank], state.room.copy()
        room.begin(step)
        room.end([step])
        ready = [other for other in state.ready if other != rank]
        if following is not None:
            insort(ready, following, key=self._key.__getitem__)
        return _State(state.done | 1 << rank, tuple(ready), room)
