"""Counts each broker's bytes from stage to stage.

Inside a stage new replicas only add to what a broker holds: Kafka deletes an old replica once its move has ended, and
in which order the moves of one stage end is unknown. So old replicas are taken off between stages only.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from fractions import Fraction

import numpy as np

from reconciler.model.cluster import Cluster
from reconciler.model.columns import NONE, sums
from reconciler.model.disk_space import bytes_held
from reconciler.model.move import DirMove, Reason
from reconciler.model.table_maker import table_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.staging.log_dirs import broker_dirs
from reconciler.staging.step import Step, Steps

WHOLE = Fraction(1)
# How often packing may be stuck before log dirs no longer count: each time costs a stage that does little else.
MOST_YIELDS = 8
Created = tuple[TopicPartition, tuple[int, ...]]


class DiskUse:
    """The bytes that each broker holds while steps are placed, and the most it ever held.

    A broker is watched where its capacity is known and its copies could fill it beyond the share allowed. One that
    ends above that share anyway is watched against what it ends with: then the excess is the least there can be. Where
    a broker has several log dirs and they are known, each of them is watched instead.

    `peak`: the most each broker holds at any moment; `filled`: the most right after something begins to come in.
    """

    def __init__(
        self,
        observed: Cluster,
        steps: Steps,
        share: Fraction | None,
        created: Iterable[Created] = (),
        inside: Sequence[DirMove] = (),
    ) -> None:
        """Take the state before the first stage; no share means that only a full disk is too much.

        `created`: partitions that are made before anything moves, with their replicas. `inside`: moves inside brokers
        that end before anything else does.
        """
        self._observed = observed
        self.dirs = broker_dirs(observed, share or WHOLE)
        arriving = _arriving(steps)
        self._asked: defaultdict[int, Counter[str]] = defaultdict(Counter)
        for step in steps if self.dirs else ():
            for broker_id in step.added:
                path = self._asked_dir(step, broker_id)
                if path is not None:
                    arriving[broker_id] -= step.load
                    self._asked[broker_id][path] += step.load
        self.held = bytes_held(observed)
        # A broker whose bytes are not known is not watched: any figure would be a guess.
        self.allowed = {
            broker_id: int(total * (share or WHOLE))
            for broker_id, total in ((id_, broker.total_bytes) for id_, broker in observed.brokers.items())
            if total is not None and broker_id in self.held
        }
        self.peak = dict(self.held)
        self.filled: dict[int, int] = {}
        self._yields = 0
        self.first = self.moved_inside(inside)
        self._watch_dirs(steps, arriving, created)
        self._ceiling = self._ceilings(steps, arriving)

    def copy(self) -> "DiskUse":
        """Return the same state, to be changed apart."""
        other = copy(self)
        other.held, other.peak, other.filled = dict(self.held), dict(self.peak), dict(self.filled)
        other.dirs = {broker_id: dirs.copy() for broker_id, dirs in self.dirs.items()}
        other._ceiling = dict(self._ceiling)  # noqa: SLF001 - its own class
        return other

    @property
    def excess(self) -> int:
        """The bytes by which disks, while they took something in, were above what is allowed."""
        whole = (
            max(0, size - self.allowed[broker_id])
            for broker_id, size in self.filled.items()
            if broker_id in self.allowed and broker_id not in self.dirs
        )
        return sum(whole) + sum(dirs.excess for dirs in self.dirs.values())

    @property
    def is_limited(self) -> bool:
        """Whether any disk could be filled too far."""
        return bool(self._ceiling or self.dirs)

    def shortfall(self, step: Step) -> int:
        """Return by how many bytes the step, begun now, would overfill the fullest of its disks; 0: it fits."""
        ceiling, dirs = self._ceiling, self.dirs
        if not ceiling and not dirs:
            return 0
        short = 0
        # An empty replica fills no disk, whatever the disk holds.
        for broker_id in step.added if step.load else ():
            if broker_id in ceiling:
                short = max(short, self.held[broker_id] + step.load - ceiling[broker_id])
            elif broker_id in dirs:
                short = max(short, dirs[broker_id].shortfall(step.load, self._asked_dir(step, broker_id)))
        for broker_id, path, _ in self._removed_from_dirs([step]):
            short = max(short, dirs[broker_id].shortfall_without(path))
        return short

    @property
    def is_forced(self) -> bool:
        """Whether a step had to pass that did not fit."""
        return self._yields > 0

    def is_watched(self, step: Step) -> bool:
        """Whether a disk of the step could be filled too far."""
        return any(map(self._is_filling, step.added)) or any(broker_id in self.dirs for broker_id in step.removed)

    def net(self, step: Step) -> int:
        """Return how many bytes more the watched brokers hold once the step has ended; negative: so many less."""
        freed = (self._freed(step, broker_id) for broker_id in filter(self._is_filling, step.removed))
        return step.load * sum(map(self._is_filling, step.added)) - sum(freed)

    def begin(self, step: Step) -> None:
        """Take the step's copies in."""
        for broker_id in step.added:
            if broker_id in self.held:
                self._take(broker_id, step.load)
            if broker_id in self.dirs:
                path = self._asked_dir(step, broker_id)
                self.dirs[broker_id].begin(step.move.topic_partition, step.load, path)
        for broker_id, path, _ in self._removed_from_dirs([step]):
            self.dirs[broker_id].leave(path)

    def end(self, steps: Sequence[Step]) -> None:
        """Free what the steps of an ended stage removed."""
        for step in steps:
            for broker_id in step.removed:
                if broker_id in self.held:
                    self.held[broker_id] -= self._freed(step, broker_id)
        if self.dirs:
            removed = self._by_broker(steps)
            for broker_id in sorted(removed.keys() | {one for step in steps for one in step.added if one in self.dirs}):
                self.dirs[broker_id].end(removed[broker_id])

    def take_and_free(self, steps: Steps) -> None:
        """Take in what all steps of a stage copy, and then free what they removed: of disks that nothing limits."""
        for broker_id, size in _arriving(steps).items():
            if broker_id in self.held:
                self._take(broker_id, size)
        for broker_id, size in self._leaving(steps).items():
            if broker_id in self.held:
                self.held[broker_id] -= size

    def _take(self, broker_id: int, size: int) -> None:
        """Take so many bytes in."""
        self.held[broker_id] += size
        self.peak[broker_id] = max(self.peak[broker_id], self.held[broker_id])
        if size:
            self.filled[broker_id] = max(self.filled.get(broker_id, 0), self.held[broker_id])

    def _leaving(self, steps: Steps) -> dict[int, int]:
        """Return the bytes that these steps remove, by broker; 0 of what is not known."""
        table, moves = table_of(self._observed), steps.moves
        if not moves.is_removed.any():
            return {}
        rows = moves.rows_in(table)
        known = np.flatnonzero(rows >= 0)
        gone = np.where(moves.is_removed, moves.before, NONE)[known]
        return sums(gone, table.sizes_on(rows[known], gone))

    def yield_to(self, step: Step, waiting: Iterable[Step]) -> None:
        """Let a step pass that nothing can make fit: its destinations may hold that much from now on.

        With it those log dirs are given up that are too full for a step that waits and that nothing will leave, as no
        order can help them; after a few times all are.
        """
        self._yields += 1
        for broker_id in step.added:
            if broker_id in self._ceiling:
                # What is over the limit now may stay so: the ceiling keeps what comes later from adding to it.
                needed = self.held[broker_id] + step.load
                self._ceiling[broker_id] = max(self._ceiling[broker_id], needed)
            elif broker_id in self.dirs:
                self.dirs[broker_id].yield_to(step.load, self._asked_dir(step, broker_id))
        if self._yields > MOST_YIELDS:
            for dirs in self.dirs.values():
                dirs.give_up()
        for other in waiting if self.dirs else ():
            for broker_id in other.added:
                if broker_id in self.dirs and self._asked_dir(other, broker_id) is None:
                    self.dirs[broker_id].give_up(other.load)

    def moved_inside(self, moves: Sequence[DirMove]) -> list[list[DirMove]]:
        """Return moves inside brokers in sets, one after the other, and count them.

        In a set each copy counts from its start, and nothing that it leaves is free: so whatever part of it is done, no
        log dir holds more than was counted. Where nothing fits, what is too much by the least goes all the same.
        """
        waiting: dict[int, list[DirMove]] = {}
        for move in sorted(moves, key=lambda one: (one.reason is not Reason.DRAINING, -one.bytes, one.topic_partition)):
            waiting.setdefault(move.broker, []).append(move)
        sets: list[list[DirMove]] = []
        while waiting:
            begun = {broker_id: self._begun_inside(broker_id, left) for broker_id, left in sorted(waiting.items())}
            for broker_id, some in begun.items():
                for move in some:
                    self.dirs[broker_id].give(move.from_dir, move.bytes)
                    self.held[broker_id] -= move.bytes
                    waiting[broker_id].remove(move)
                if not waiting[broker_id]:
                    del waiting[broker_id]
            # In turns, so that all brokers copy from the beginning on.
            turns = sorted((turn, id_) for id_, some in begun.items() for turn in range(len(some)))
            sets.append([begun[id_][turn] for turn, id_ in turns])
        return sets

    def _begun_inside(self, broker_id: int, waiting: Sequence[DirMove]) -> list[DirMove]:
        dirs = self.dirs[broker_id]
        fitting = []
        for move in waiting:
            if not dirs.over(move.to_dir, move.bytes):
                self._take_inside(move)
                fitting.append(move)
        if fitting:
            return fitting
        forced = min(waiting, key=lambda one: (dirs.over(one.to_dir, one.bytes), one.topic_partition))
        self._take_inside(forced)
        return [forced]

    def _take_inside(self, move: DirMove) -> None:
        self.dirs[move.broker].take(move.to_dir, move.bytes)
        self.held[move.broker] += move.bytes
        self.peak[move.broker] = max(self.peak[move.broker], self.held[move.broker])

    def _asked_dir(self, step: Step, broker_id: int) -> str | None:
        """Return the log dir that a new replica is asked to go to, None where Kafka chooses."""
        named = step.move.log_dirs
        return named.get(broker_id) if named and broker_id in self.dirs else None

    def _is_filling(self, broker_id: int) -> bool:
        """Whether what comes to that broker could fill a disk too far."""
        return broker_id in self._ceiling or broker_id in self.dirs

    def _watch_dirs(self, steps: Steps, arriving: Mapping[int, int], created: Iterable[Created]) -> None:
        if not self.dirs:
            return
        for topic_partition, replicas in sorted(created):
            for broker_id in replicas:
                if broker_id in self.dirs:
                    self.dirs[broker_id].create(topic_partition)
        departing = self._by_broker(steps)
        for broker_id, dirs in self.dirs.items():
            dirs.watch(arriving.get(broker_id, 0), departing[broker_id], self._asked.get(broker_id))

    def _by_broker(self, steps: Iterable[Step]) -> defaultdict[int, list[tuple[str, int]]]:
        """Return the dir and the bytes of each replica that these steps remove, by broker."""
        found: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
        for broker_id, path, size in self._removed_from_dirs(steps):
            found[broker_id].append((path, size))
        return found

    def _removed_from_dirs(self, steps: Iterable[Step]) -> Iterator[tuple[int, str, int]]:
        """Yield the broker, the dir and the bytes of each replica that these steps remove from a dir that is known."""
        for step in steps if self.dirs else ():
            for broker_id in step.removed:
                path = self._log_dir(step, broker_id) if broker_id in self.dirs else None
                if path is not None:
                    yield broker_id, path, self._freed(step, broker_id)

    def _log_dir(self, step: Step, broker_id: int) -> str | None:
        """Return where the replica lies, None if that dir is offline."""
        partition = self._observed.partition(step.move.topic_partition)
        if partition is None or broker_id not in partition.replicas:
            return None
        path = partition.log_dirs[partition.replicas.index(broker_id)]
        return path if path is not None and self.dirs[broker_id].has(path) else None

    def _freed(self, step: Step, broker_id: int) -> int:
        partition = self._observed.partition(step.move.topic_partition)
        if partition is None:
            return 0
        # A replica that lags has less than a whole copy: what it has is what its removal frees.
        size = partition.size_on(broker_id)
        return size if size is not None else partition.bytes_to_copy or 0

    def _ceilings(self, steps: Steps, arriving: Mapping[int, int]) -> dict[int, int]:
        tight = {
            broker_id: allowed
            for broker_id, allowed in self.allowed.items()
            if broker_id not in self.dirs
            and arriving.get(broker_id)
            and self.held[broker_id] + arriving[broker_id] > allowed
        }
        if not tight:
            return tight
        # Even the best order leaves a broker with what it ends with; a lower ceiling would only force steps through.
        leaving = self._leaving(steps)
        return {
            broker_id: max(allowed, self.held[broker_id] + arriving[broker_id] - leaving.get(broker_id, 0))
            for broker_id, allowed in tight.items()
        }


def _arriving(steps: Steps) -> Counter[int]:
    """Return the bytes that these steps copy, by broker."""
    moves = steps.moves
    return Counter(sums(np.where(moves.is_added, moves.after, NONE), moves.bytes_a_copy[:, None]))
