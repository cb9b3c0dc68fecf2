"""Estimates how long stages take, and how long their busiest broker needs at least.

A broker's throttle counts each direction by itself (KIP-73), so a stage takes as long as its busiest broker needs for
the bytes that it takes in, or gives out as leader.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from reconciler.model.admission import Copy, Slots
from reconciler.model.cluster import Cluster
from reconciler.model.desired import MovePolicy
from reconciler.model.move import Move
from reconciler.model.stage import ReassignStage, Stage, elections_of
from reconciler.model.topic_partition import TopicPartition

Ints: TypeAlias = npt.NDArray[np.int64]

# Without a throttle nobody knows the rate: about what one gigabit of network carries.
ASSUMED_BYTES_PER_SECOND = 100 * 1024 * 1024
# What a stage takes beside the bytes: throttles on and off, and the looks that see it end.
SECONDS_A_STAGE = 5
# A slot is taken for so long at least: a replica has to be created, to join the ISR, and to be seen there.
SECONDS_A_COPY = 2
# The busiest broker's bytes are simulated in so many spans. A span is at least so many units, of which a byte may be
# many: rates are whole units, and brokers must not run out of them.
SPANS, LEAST_SPAN = 64, 1024 * 1024
# So often a span is shared out anew: what is left over then is lost to nobody, as it is a few bytes.
ROUNDS = 12


def busiest_bytes(copies: Iterable[tuple[Move, int | None]]) -> int:
    """Return the most bytes that one broker takes in or gives out, for moves with the leader that serves each."""
    arriving: Counter[int] = Counter()
    leaving: Counter[int] = Counter()
    for move, source in copies:
        added = move.added
        for broker_id in added:
            arriving[broker_id] += move.bytes // len(added)
        if source is not None and added:
            leaving[source] += move.bytes
    return max(max(arriving.values(), default=0), max(leaving.values(), default=0))


def seconds(size: int, throttle_bytes_per_second: int | None) -> int:
    """Return the whole seconds that so many bytes take on one broker, in one direction."""
    return -(-size // (throttle_bytes_per_second or ASSUMED_BYTES_PER_SECOND))


def stage_seconds(copies: Iterable[tuple[Move, int | None]], policy: MovePolicy) -> int:
    """Return how long a run takes for a stage of these moves, with the leader that serves each; 0 for orders alone."""
    rate = policy.throttle_bytes_per_second or ASSUMED_BYTES_PER_SECOND
    # A copy keeps its slot at least so long; the other slots go on copying meanwhile, so a broker loses only a part.
    least = SECONDS_A_COPY * rate // policy.per_broker
    copying = [(move, source) for move, source in copies if move.added]
    return SECONDS_A_STAGE + -(-_Simulation(copying, least, policy.per_broker).run() // rate) if copying else 0


class _Simulation:
    """Runs the copies of one stage with the admission that a run follows; time is in bytes at a broker's whole rate.

    Brokers share their rate evenly among the copies in flight, and what one copy cannot use, others may (max-min
    fairness, which is what a quota of a broker comes to). Time goes in spans, and a span in rounds: each gives every
    copy its even part of what both its brokers have left, then lets the next ones in where some have ended.

    `_into`, `_out_of` [replicas to copy]: the row of the broker that receives, and of the leader that serves; `_left`:
    bytes still to come; `_move`: the number of its move. `_room` [rows]: what a broker can still do in this span.
    """

    def __init__(self, copying: Sequence[tuple[Move, int | None]], least: int, per_broker: int) -> None:
        self._copies = [Copy(move.added, source) for move, source in copying]
        self._slots = Slots(per_broker)
        self._waiting = list(range(len(copying)))
        rows: dict[tuple[int | None, bool], int] = {}
        for copy in self._copies:
            for slot in (*((broker, False) for broker in copy.added), (copy.source, True)):
                rows.setdefault(slot, len(rows))
        self._into = np.array([rows[broker, False] for copy in self._copies for broker in copy.added])
        self._out_of = np.array([rows[copy.source, True] for copy in self._copies for _ in copy.added])
        self._move = np.repeat(np.arange(len(copying)), [len(copy.added) for copy in self._copies])
        self._left = np.array([max(least, move.bytes // len(move.added)) for move, _ in copying])[self._move]
        self._room = np.zeros(len(rows), dtype=np.int64)
        self._take(np.arange(len(self._left)), self._left)
        self._scale = max(1, LEAST_SPAN * SPANS // max(1, -int(self._room.min())))
        self._left *= self._scale
        self._span = -int(self._room.min()) * self._scale // SPANS + 1

    def run(self) -> int:
        """Return when the last copy has ended."""
        in_flight, spans = self._admitted(np.zeros(0, dtype=np.int64)), 0
        while True:
            self._room[:] = self._span
            for _ in range(ROUNDS):
                if not len(in_flight):
                    # Rounded down: shares are whole units, and what they leave over comes to less than a byte.
                    return ((spans + 1) * self._span - int(self._room.min())) // self._scale
                in_flight, is_spent = self._round(in_flight)
                if is_spent:
                    break
            spans += 1

    def _round(self, in_flight: Ints) -> tuple[Ints, bool]:
        """Return what is in flight after a round, and whether nobody could give anything in it."""
        into, out_of = self._into[in_flight], self._out_of[in_flight]
        rivals = np.maximum(
            np.bincount(into, minlength=len(self._room)) + np.bincount(out_of, minlength=len(self._room)), 1
        )
        share = self._room // rivals
        given = np.minimum(self._left[in_flight], np.minimum(share[into], share[out_of]))
        self._take(in_flight, given)
        self._left[in_flight] -= given
        has_ended = self._left[in_flight] == 0
        if not has_ended.any():
            return in_flight, not given.any()
        left = in_flight[~has_ended]
        for number in np.setdiff1d(self._move[in_flight], self._move[left]).tolist():
            self._slots.free(self._copies[number])
        return self._admitted(left), False

    def _take(self, replicas: Ints, sizes: Ints) -> None:
        np.subtract.at(self._room, self._into[replicas], sizes)
        np.subtract.at(self._room, self._out_of[replicas], sizes)

    def _admitted(self, in_flight: Ints) -> Ints:
        """Return what is in flight once all those have begun that find a slot."""
        begun = list(self._slots.admitted((number, self._copies[number]) for number in self._waiting))
        if not begun:
            return in_flight
        self._waiting = sorted(set(self._waiting).difference(begun))
        return np.concatenate([in_flight, np.flatnonzero(np.isin(self._move, begun))])


def served_moves(stages: Sequence[Stage], observed: Cluster) -> Iterator[tuple[Move, int | None]]:
    """Yield every move in order, with the leader that serves its copies; None where the partition has none."""
    leaders: dict[TopicPartition, int | None] = {}
    for stage in stages:
        if isinstance(stage, ReassignStage):
            for move in stage.moves:
                leader = _leader(move.topic_partition, leaders, observed)
                yield move, leader
                # A reassignment moves the leadership only if its leader is not in the target; then the first one leads.
                leaders[move.topic_partition] = leader if leader in move.to_replicas else move.to_replicas[0]
        leaders.update({election.topic_partition: election.leader for election in elections_of(stage)})


def _leader(
    topic_partition: TopicPartition, leaders: dict[TopicPartition, int | None], observed: Cluster
) -> int | None:
    if topic_partition in leaders:
        return leaders[topic_partition]
    partition = observed.partition(topic_partition)
    return partition.leader if partition else None


def busiest_broker_seconds(stages: Sequence[Stage], observed: Cluster, policy: MovePolicy) -> int:
    """Return the whole run's busiest broker's bytes in, or out of the leaders that serve them, over the rate."""
    return seconds(busiest_bytes(served_moves(stages, observed)), policy.throttle_bytes_per_second)
