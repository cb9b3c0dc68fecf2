"""What a stage may come to: parts of its moves in flight or done, in any order, as brokers without staging see them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from staging.drawn import Case
from staging.laws import imbalance

from reconciler.model.move import Move
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

Ints: TypeAlias = npt.NDArray[np.int64]


class Times(NamedTuple):
    """When each move begins and ends [samples, moves], as any order; `never` where it does not."""

    begin: Ints
    end: Ints
    never: int


def times(moves: int, seed: int, subsets: int) -> Times:
    """Return every prefix of the moves in their order, all in flight and all done, and then random subsets."""
    draw, never = np.random.default_rng(seed), 4 * moves + 9
    turn = np.arange(moves)
    prefix = np.arange(moves + 1)[:, None] > turn
    begun = np.concatenate([prefix, prefix, draw.random((subsets, moves)) < draw.random((subsets, 1))])
    ended = np.concatenate([prefix & False, prefix, draw.random((subsets, moves)) < draw.random((subsets, 1))]) & begun
    # Two moments a move, in any order; the first of them is when it begins.
    moments = np.argsort(draw.random((len(begun), 2 * moves)), axis=1).reshape(len(begun), moves, 2)
    moments[: 2 * (moves + 1)] = 2 * turn[:, None] + np.arange(2)
    moments.sort(axis=2)
    return Times(np.where(begun, moments[:, :, 0], never), np.where(ended, moments[:, :, 1], never), never)


class Event(NamedTuple):
    """A replica that arrives at a broker as its move begins, or leaves it as that ends; `dir` is where it lies."""

    move: int
    arrives: bool
    size: int
    dir: int


@dataclass
class Broker:
    """The log dirs of one broker: bytes and logs [dirs]; one dir without a name where they are not told."""

    paths: list[str]
    held: Ints
    logs: Ints

    def fullest(self, events: Sequence[Event], at: Times) -> Ints:
        """Return the most bytes that each dir holds when a replica comes in; -1 where none ever does.

        A new replica goes to the dir with the fewest logs (LogManager.nextLogDirs), of equals to any. What leaves is no
        log any more once its move has ended; its bytes stay for as long as the broker wants to (file.delete.delay.ms).
        """
        when = np.stack([(at.begin if one.arrives else at.end)[:, one.move] for one in events], axis=1)
        order, samples = np.argsort(when, axis=1, kind="stable"), np.arange(len(when))
        held, logs = np.tile(self.held, (len(when), 1)), np.tile(self.logs, (len(when), 1))
        luck = np.random.default_rng(len(events)).random((len(when), len(events), len(self.paths)))
        _, arrives, size, lies = (np.array(column) for column in zip(*events, strict=True))
        fullest = np.full(len(self.paths), -1)
        for turn in range(len(events)):
            event = order[:, turn]
            happens = when[samples, event] < at.never
            comes = happens & arrives[event]
            goes = samples[happens & ~arrives[event] & (lies[event] >= 0)]
            logs[goes, lies[event[goes]]] -= 1
            chosen = np.argmin(logs + luck[:, turn], axis=1)[comes]
            held[comes, chosen] += size[event[comes]]
            logs[comes, chosen] += 1
            np.maximum.at(fullest, chosen, held[comes, chosen])
        return fullest


@dataclass
class Disks:
    """All brokers, and where each replica lies."""

    brokers: dict[int, Broker]
    lies_in: dict[tuple[TopicPartition, int], str]

    @classmethod
    def of(cls, case: Case) -> "Disks":
        silent = {replica for _, one in case.observed.partitions() if not one.log_dirs for replica in one.replicas}
        brokers = {}
        for number, broker in case.observed.brokers.items():
            is_told = len(broker.log_dirs) > 1 and number not in silent
            paths = sorted(one.path for one in broker.log_dirs) if is_told else [""]
            brokers[number] = Broker(paths, np.zeros(len(paths), dtype=np.int64), np.zeros(len(paths), dtype=np.int64))
        disks = cls(brokers, {})
        for name, partition in case.observed.partitions():
            for number, path in zip(partition.replicas, partition.log_dirs or [None] * 9, strict=False):
                disks.lay(name, number, path or "", partition.sizes[0] or 0)
        return disks

    def lay(self, name: TopicPartition, number: int, path: str, size: int) -> None:
        broker = self.brokers[number]
        at = broker.paths.index(path) if path in broker.paths else 0
        self.lies_in[name, number] = broker.paths[at]
        broker.held[at] += size
        broker.logs[at] += 1

    def take(self, name: TopicPartition, number: int, size: int) -> None:
        broker, path = self.brokers[number], self.lies_in.pop((name, number))
        broker.held[broker.paths.index(path)] -= size
        broker.logs[broker.paths.index(path)] -= 1

    def events(self, number: int, moves: Sequence[Move]) -> Iterator[Event]:
        paths = self.brokers[number].paths
        for turn, move in enumerate(moves):
            if number in move.added:
                yield Event(turn, arrives=True, size=move.bytes // len(move.added), dir=-1)
            if number in move.removed:
                yield Event(turn, arrives=False, size=0, dir=paths.index(self.lies_in[move.topic_partition, number]))


def disks_hold_in_every_part(case: Case, seed: int, subsets: int) -> None:
    """No log dir ever holds more than the plan tells for it, whatever part of a stage is in flight or done."""
    disks, staged = Disks.of(case), case.staged()
    for stage in staged.stages:
        if not isinstance(stage, ReassignStage):
            continue
        at = times(len(stage.moves), seed, subsets)
        for number, broker in disks.brokers.items():
            events = list(disks.events(number, stage.moves))
            if not any(one.arrives for one in events):
                continue
            fullest = broker.fullest(events, at).tolist()
            told = {one.path: one.peak_bytes for one in staged.log_dirs.get(number, ())}
            told = told or {"": staged.disk_peak[number]}
            for path, size in zip(broker.paths, fullest, strict=True):
                assert size <= told[path], (stage.number, number, path, size, told[path])
        for move in stage.moves:
            partition = case.observed.partition(move.topic_partition)
            assert partition is not None
            for number in move.added:
                path = staged.predicted_log_dirs.get(move.topic_partition, {}).get(number, "")
                disks.lay(move.topic_partition, number, path, move.bytes // len(move.added))
            for number in move.removed:
                disks.take(move.topic_partition, number, partition.sizes[0] or 0)


def partitions_are_safe_in_every_part(case: Case) -> None:
    """Each move of a stage is of another partition; its racks and its in-sync replicas hold before and after it ends.

    In flight it has all replicas that it had. Rules look at one partition, so they hold in any part if they do in each.
    """
    racks = case.rules["t"].racks
    lists = {name: partition.replicas for name, partition in case.observed.partitions()}
    in_sync = {name: set(partition.isr) - case.dead for name, partition in case.observed.partitions()}
    goals = {move.topic_partition: move.to_replicas for move in case.moves}
    least = int(case.observed.topics["t"].configs.get("min.insync.replicas", "1"))
    for stage in case.staged().stages:
        if not isinstance(stage, ReassignStage):
            continue
        assert len({move.topic_partition for move in stage.moves}) == len(stage.moves)
        for move in stage.moves:
            name = move.topic_partition
            before, after = lists[name], move.to_replicas
            assert move.from_replicas == before
            assert imbalance(case, after, racks) <= imbalance(case, before, racks), (stage.number, name)
            # Kafka ends a move once all of its target is in sync; a change of order ends at once.
            synced = in_sync[name] if set(after) == set(before) else set(after)
            assert len(synced) >= min(least, len(in_sync[name]), len(goals[name])), (stage.number, name)
            lists[name], in_sync[name] = after, synced
