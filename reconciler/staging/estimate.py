"""Estimates how long stages take, and how long their busiest broker needs at least.

A broker's throttle counts each direction by itself (KIP-73), so a stage takes as long as its busiest broker needs for
the bytes that it takes in, or gives out as leader.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.admission import Copy, Window
from reconciler.model.cluster import Cluster
from reconciler.model.columns import NONE, Ints, counted, is_at, places_in, sums
from reconciler.model.desired import MovePolicy
from reconciler.model.move import Move
from reconciler.model.move_table import Moves, table_of_moves
from reconciler.model.stage import ReassignStage, Stage, elections_of
from reconciler.model.table_maker import table_of
from reconciler.staging.dealing import Loads

# Without a throttle nobody knows the rate: about what one gigabit of network carries.
ASSUMED_BYTES_PER_SECOND = 100 * 1024 * 1024
# What a stage takes beside the bytes: throttles on and off, and the looks that see it end.
SECONDS_A_STAGE = 5
# A slot is taken for so long at least: a replica has to be created, to join the ISR, and to be seen there.
SECONDS_A_COPY = 2
# What a stage's busiest broker does is simulated in so many spans; twice as many change an estimate by 0.03 % at most.
# A span is at least so many units, of which a byte may be many: shares are whole units, and none may be lost in them.
SPANS, LEAST_SPAN = 32, 1024 * 1024
# So often what a span leaves is shared out; what is left over after the last is an even part of it at least.
ROUNDS = 12
# So many copies, of several stages, are simulated at once: more do not fit a core's cache.
COPIES_AT_ONCE = 1 << 15
# Sums of sizes stay below this, so that they fit 64 bits.
MOST_UNITS = 1 << 60


def seconds(size: int, throttle_bytes_per_second: int | None) -> int:
    """Return the whole seconds that so many bytes take on one broker, in one direction."""
    return -(-size // (throttle_bytes_per_second or ASSUMED_BYTES_PER_SECOND))


def stage_seconds(stages: Sequence[Loads], policy: MovePolicy) -> list[int]:
    """Return how long a run takes for each stage, given what its steps ask in their order; 0 for orders alone."""
    rate = policy.throttle_bytes_per_second or ASSUMED_BYTES_PER_SECOND
    # A copy keeps its slot at least so long; the other slots go on copying meanwhile, so a broker loses only a part.
    least = SECONDS_A_COPY * rate // policy.per_broker
    copying = [loads.part(np.flatnonzero(loads.rows[:, 0])) for loads in stages]
    ends = [end for together in _together(copying) for end in _Simulation(together, least, policy.per_broker).run()]
    return [
        SECONDS_A_STAGE + -(-end // rate) if len(loads.rows) else 0 for loads, end in zip(copying, ends, strict=True)
    ]


def _together(stages: Iterable[Loads]) -> Iterator[list[Loads]]:
    """Yield the stages that are simulated at once."""
    together: list[Loads] = []
    count = 0
    for loads in stages:
        if together and count + len(loads.rows) > COPIES_AT_ONCE:
            yield together
            together, count = [], 0
        together.append(loads)
        count += len(loads.rows)
    if together:
        yield together


class _Simulation:
    """Runs the copies of stages, each by itself, with the admission that a run follows; time is in bytes at full rate.

    Brokers share their rate evenly among the copies in flight, and what one copy cannot use, others may (max-min
    fairness, which is what a quota of a broker comes to). Time goes in spans. In each, what the brokers have is filled
    in (progressive filling, Bertsekas and Gallager 1987): a copy gets its last bytes where even parts suffice, and a
    broker whose copies could all use more is spent. So each round settles some copies for good. Where copies end, the
    next ones are let in, and share what the span has left.

    `_asked` are all stages' moves. A row is a broker in one direction in one stage. `_into`, `_out_of` [replicas]: the
    row that receives, and the one that serves; `_left`: units still to come; `_move`: the number of its move. `_span`
    [rows]: what a row does in a span, `_room` what it can still do in this one. `_scale` [stages]: units a byte.
    """

    def __init__(self, stages: Sequence[Loads], least: int, per_broker: int) -> None:
        self._asked = rows = np.concatenate([loads.rows for loads in stages])
        self._move = np.nonzero(rows[:, :-1])[0]
        self._count = np.bincount(self._move, minlength=len(rows))
        into, out_of = rows[:, :-1][rows[:, :-1] > 0], rows[self._move, -1]
        stage = np.arange(len(stages)).repeat([len(loads.rows) for loads in stages])[self._move]
        width = int(rows.max(initial=0)) + 1
        cells, row = np.unique(
            np.concatenate([stage, stage]) * width + np.concatenate([into, out_of]), return_inverse=True
        )
        self._into, self._out_of, self._stage = row[: len(into)], row[len(into) :], cells // width
        unit = stages[0].unit
        sizes = np.maximum(-(-least // unit), np.concatenate([loads.sizes[:, 0] for loads in stages]))
        more = -(-int(sizes.sum()) * width // MOST_UNITS) or 1
        self._bytes = unit * more
        self._left = -(-sizes // more)[self._move]
        self._room = np.zeros(len(cells), dtype=np.int64)
        self._take(self._into, self._out_of, self._left)
        busiest = np.ones(len(stages), dtype=np.int64)
        np.maximum.at(busiest, self._stage, -self._room)
        self._scale = np.maximum(1, LEAST_SPAN * SPANS // busiest)
        self._left *= self._scale[self._stage[self._into]]
        self._span = (busiest * self._scale // SPANS + 1)[self._stage]
        self._end = np.zeros(len(stages), dtype=np.int64)
        self._first = np.cumsum(self._count) - self._count
        self._windows = self._queued(per_broker)

    def _queued(self, per_broker: int) -> dict[int, Window]:
        """Return the window of each move that may have to wait for a slot.

        A broker with no more copies in the whole stage than it has slots never makes one wait, so those that touch no
        other broker need not be counted.
        """
        is_tight = self._counted(self._into, self._out_of) > per_broker
        windows: dict[int, Window] = {}
        found: dict[int, Window] = {}
        numbers = np.unique(self._move[is_tight[self._into] | is_tight[self._out_of]])
        stages = self._stage[self._into[self._first[numbers]]]
        columns = (each.tolist() for each in (numbers, stages, self._asked[numbers]))
        for number, stage, (*added, source) in zip(*columns, strict=True):
            found[number] = windows.setdefault(stage, Window(per_broker))
            found[number].add(number, Copy(tuple(filter(None, added)), source or None))
        return found

    def run(self) -> list[int]:
        """Return when the last copy of each stage has ended."""
        in_flight, spans = self._begun(), 0
        while len(in_flight):
            self._room[:] = self._span
            sharing = in_flight
            while len(sharing):
                self._fill(sharing)
                has_ended = self._left[in_flight] == 0
                ended, in_flight = in_flight[has_ended], in_flight[~has_ended]
                touched = np.concatenate([self._into[ended], self._out_of[ended]])
                until = (spans + 1) * self._span[touched] - self._room[touched]
                np.maximum.at(self._end, self._stage[touched], until)
                next_ones = self._after(ended)
                in_flight = np.concatenate([in_flight, next_ones])
                has_room = (self._room[self._into[in_flight]] > 0) & (self._room[self._out_of[in_flight]] > 0)
                sharing = in_flight[has_room] if len(next_ones) else next_ones
            spans += 1
        # Rounded down: shares are whole units, and what they leave over comes to less than a byte.
        return [int(end) * self._bytes for end in self._end // self._scale]

    def _fill(self, sharing: Ints) -> None:
        """Give these copies what the brokers have left."""
        for number in range(ROUNDS):
            if not len(sharing):
                return
            into, out_of, left = self._into[sharing], self._out_of[sharing], self._left[sharing]
            share = self._room // np.maximum(self._counted(into, out_of), 1)
            given = np.minimum(np.minimum(share[into], share[out_of]), left)
            is_spent = self._counted(into[given < share[into]], out_of[given < share[out_of]]) == 0
            is_settled = (given == left) | is_spent[into] | is_spent[out_of] | (number == ROUNDS - 1)
            given = given[is_settled]
            self._take(into[is_settled], out_of[is_settled], given)
            self._left[sharing[is_settled]] -= given
            sharing = sharing[~is_settled]

    def _counted(self, into: Ints, out_of: Ints) -> Ints:
        rows = len(self._room)
        return np.bincount(into, minlength=rows) + np.bincount(out_of, minlength=rows)

    def _take(self, into: Ints, out_of: Ints, sizes: Ints) -> None:
        np.subtract.at(self._room, into, sizes)
        np.subtract.at(self._room, out_of, sizes)

    def _begun(self) -> Ints:
        """Return the replicas in flight at the begin."""
        is_begun = np.ones(len(self._asked), dtype=np.bool_)
        is_begun[list(self._windows)] = False
        for window in dict.fromkeys(self._windows.values()):
            is_begun[window.begun()] = True
        return np.flatnonzero(is_begun[self._move])

    def _after(self, ended: Ints) -> Ints:
        """Return the replicas that begin once these have ended: a move keeps its slots until its last one has."""
        np.subtract.at(self._count, self._move[ended], 1)
        moves = np.unique(self._move[ended])
        freed: defaultdict[Window, list[int]] = defaultdict(list)
        for number in moves[self._count[moves] == 0].tolist():
            if number in self._windows:
                freed[self._windows[number]].append(number)
        begun = np.array([one for window, numbers in freed.items() for one in window.after(numbers)], dtype=np.int64)
        count = self._count[begun]
        return np.repeat(self._first[begun], count) + counted(count)


@dataclass(frozen=True, slots=True)
class Served(Iterable[tuple[Move, int | None]]):
    """Moves in order, with the leader that serves the copies of each; NONE where the partition has none."""

    moves: Moves
    source: Ints

    def __iter__(self) -> Iterator[tuple[Move, int | None]]:
        sources = (None if one < 0 else one for one in self.source.tolist())
        return zip(self.moves, sources, strict=True)

    def by_stage(self, stages: Sequence[Stage]) -> Iterator[tuple[ReassignStage, "Served"]]:
        """Yield each stage of moves with its own."""
        start = 0
        for stage in stages:
            if isinstance(stage, ReassignStage):
                rows = np.arange(start, start + len(stage.moves))
                start += len(rows)
                yield stage, Served(self.moves.part(rows), self.source[rows])


def served_moves(stages: Sequence[Stage], observed: Cluster) -> Served:
    """Return every move between brokers, in order, with the leader that serves it."""
    every, table = table_of_moves(stages), table_of(observed)
    partitions, first, place = np.unique(every.partition, return_index=True, return_inverse=True)
    leader = table.leaders(table.rows_at(every.topics, every.topic[first], every.number[first]))
    source, start = np.full(len(every), NONE, dtype=np.int64), 0
    for stage in stages:
        if isinstance(stage, ReassignStage):
            rows = slice(start, start + len(stage.moves))
            after, start = every.after[rows], rows.stop
            source[rows] = now = leader[place[rows]]
            # A reassignment moves the leadership only if its leader is not in the target; then the first one leads.
            leader[place[rows]] = np.where(is_at(now[:, None], after)[:, 0], now, after[:, 0])
        elected = elections_of(stage)
        led = places_in(partitions, every.partitions_of([each.topic_partition for each in elected]))
        leader[led[led >= 0]] = np.array([each.leader for each in elected], dtype=np.int64)[led >= 0]
    return Served(every, source)


def busiest_broker_seconds(served: Served, policy: MovePolicy) -> int:
    """Return the busiest broker's bytes in, or out of the leaders that serve them, over the rate."""
    moves = served.moves
    into = sums(np.where(moves.is_added, moves.after, NONE), moves.bytes_a_copy[:, None])
    out_of = sums(np.where(moves.copies > 0, served.source, NONE), moves.bytes)
    return seconds(max([*into.values(), *out_of.values()], default=0), policy.throttle_bytes_per_second)
