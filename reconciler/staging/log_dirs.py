"""Predicts which log dir Kafka picks for each new replica, and counts the bytes of each from stage to stage."""

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from reconciler.model.cluster import Cluster
from reconciler.model.columns import sums
from reconciler.model.table_maker import table_of
from reconciler.model.topic_partition import TopicPartition


@dataclass(slots=True)
class Dir:
    """One log dir: the bytes that it has, may hold and holds, and its number of logs.

    `is_open`: new replicas may go there. `ceiling`: the bytes that packing keeps it below, None where nothing can fill
    it, or nothing can be helped. `departing`: bytes that are still to leave it. `leaving`: how many of its logs leave
    in this stage, and `most`, how many of the stage's new replicas may go there. `peak`: the most that it holds at any
    moment, `filled` while a new replica may come in, and `doubtful` the same if in every stage the largest replicas
    went there, by `slack` more than predicted.
    """

    path: str
    total: int
    allowed: int
    held: int
    logs: int
    is_open: bool = True
    ceiling: int | None = None
    departing: int = 0
    leaving: int = 0
    most: int = 0
    peak: int = 0
    filled: int = 0
    slack: int = 0
    doubtful: int = 0


class BrokerDirs:
    """Counts the log dirs of one broker that has several.

    Kafka puts a new replica into the dir with the fewest logs (LogManager.nextLogDirs), however full it is. Which of a
    stage's replicas come first, which logs have left by then, and which of two dirs with as many logs is taken, nobody
    can know. So inside a stage each dir counts the largest replicas that may go there, and none of its bytes freed.
    Between stages they count as if they had come in order of topic and partition, each to the first path among equals.
    """

    def __init__(self, dirs: Sequence[Dir]) -> None:
        """Begin with what was observed."""
        self.dirs = tuple(dirs)
        self.predicted: dict[TopicPartition, str] = {}
        self._dir = {one.path: one for one in self.dirs}
        self._open = [one for one in self.dirs if one.is_open]
        self._arrivals: list[tuple[TopicPartition, int]] = []
        self._loads: list[int] = []
        self._arriving = 0

    @property
    def excess(self) -> int:
        """The bytes by which dirs, while they took something in, were above what is allowed."""
        return sum(max(0, one.filled - one.allowed) for one in self.dirs)

    def copy(self) -> "BrokerDirs":
        """Return the same state, to be changed apart."""
        other = BrokerDirs([copy(one) for one in self.dirs])
        other.predicted = dict(self.predicted)
        other._arriving = self._arriving
        return other

    def watch(
        self, arriving: int, departing: Iterable[tuple[str, int]], asked: Mapping[str, int] | None = None
    ) -> None:
        """Keep each dir within what it may hold, where so many bytes to come could fill it beyond.

        `asked`: bytes that come to a dir because it is asked for; `arriving`: those that Kafka puts where it likes.
        """
        self._arriving = arriving
        for path, size in departing:
            self._dir[path].departing += size
        for one in self.dirs if asked else self._open:
            coming = asked.get(one.path, 0) if asked else 0
            if one.held + arriving + coming > one.allowed:
                # Even the best order leaves a dir with what it ends with.
                one.ceiling = one.allowed if arriving else max(one.allowed, one.held + coming - one.departing)

    def has(self, path: str) -> bool:
        """Whether that dir is one of them."""
        return path in self._dir

    def create(self, topic_partition: TopicPartition) -> None:
        """Take in a replica without data."""
        self._predict(topic_partition, 0)

    def shortfall(self, load: int, path: str | None = None) -> int:
        """Return by how many bytes a dir could be overfull once a replica of so many comes too, to that dir or any."""
        if path is not None:
            one = self._dir[path]
            return 0 if one.ceiling is None else max(0, one.held + load - one.ceiling)
        watched = (one for one in self._open if one.ceiling is not None)
        return max((self._needed(one, load) - (one.ceiling or 0) for one in watched), default=0)

    def shortfall_without(self, path: str) -> int:
        """Return by how many bytes the dir could be overfull once one more of its logs leaves in the stage."""
        one = self._dir[path]
        if one.ceiling is None or not self._loads:
            return 0
        return self._worst(one, self._most(one, len(self._loads), one.leaving + 1)) - one.ceiling

    def begin(self, topic_partition: TopicPartition, load: int, path: str | None = None) -> None:
        """Take in a new replica of so many bytes, in that dir or wherever it goes."""
        if path is not None:
            self.take(path, load)
            return
        self._arriving -= load
        self._arrivals.append((topic_partition, load))
        insort(self._loads, load)
        for one in self._open:
            one.most = self._most(one, len(self._loads), one.leaving)

    def take(self, path: str, load: int) -> None:
        """Take in a replica of so many bytes in that dir."""
        one = self._dir[path]
        one.held += load
        one.logs += 1
        one.peak, one.filled = max(one.peak, one.held), max(one.filled, one.held if load else 0)

    def give(self, path: str, load: int) -> None:
        """Let a replica go that has moved to another dir."""
        one = self._dir[path]
        one.held -= load
        one.logs -= 1

    def over(self, path: str, load: int) -> int:
        """Return the bytes by which that dir would be above what is allowed with so many more."""
        one = self._dir[path]
        return max(0, one.held + load - one.allowed)

    def leave(self, path: str) -> None:
        """Let a log of that dir leave in this stage, at any time: until then it counts, and then more may come."""
        one = self._dir[path]
        one.leaving += 1
        one.most = self._most(one, len(self._loads), one.leaving) if one.is_open else 0

    def yield_to(self, load: int, path: str | None = None) -> None:
        """Let a replica pass that nothing can make fit, to that dir or any.

        The dir may hold what it needs now, and its share of all that is to come; one that yields again is given up.
        """
        if path is not None:
            one = self._dir[path]
            one.ceiling = None if one.ceiling is None else max(one.ceiling, one.held + load)
            return
        # What is still to come spreads evenly at best: by number of logs, which large and small replicas share.
        share = self._arriving // len(self._open)
        for one in self._open:
            if one.ceiling is not None and (needed := self._needed(one, load)) > one.ceiling:
                end = one.held - one.departing + share
                one.ceiling = None if one.ceiling > one.allowed else max(needed, end)

    def give_up(self, load: int | None = None) -> None:
        """No longer keep those dirs within bounds that nothing will leave and that such a replica overfills, or all."""
        for one in self._open:
            is_stuck = load is not None and not one.departing and self._needed(one, load) > (one.ceiling or 0)
            if load is None or is_stuck:
                one.ceiling = None

    def end(self, removed: Iterable[tuple[str, int]]) -> None:
        """End the stage: its replicas are in, and then these, each with its dir and bytes, are gone."""
        for one in self._open:
            if any(self._loads[-one.most :] if one.most else ()):
                worst = self._worst(one, one.most)
                one.filled = max(one.filled, worst)
                one.peak = max(one.peak, worst)
                one.doubtful = max(one.doubtful, worst + one.slack)
                one.slack += worst
            else:
                one.slack += one.held
        # Any order may come true. One is taken, so that the next stage has something to start from.
        for topic_partition, load in sorted(self._arrivals):
            self._predict(topic_partition, load)
        for one in self._open:
            one.slack -= one.held
        for one in self.dirs:
            one.most = one.leaving = 0
        for path, size in removed:
            self._dir[path].held -= size
            self._dir[path].departing -= size
            self._dir[path].logs -= 1
        self._arrivals, self._loads = [], []

    def _predict(self, topic_partition: TopicPartition, load: int) -> None:
        # LogManager.nextLogDirs counts logs, not bytes.
        one = min(self._open, key=lambda one: (one.logs, one.path))
        one.held += load
        one.logs += 1
        self.predicted[topic_partition] = one.path

    def _most(self, one: Dir, arrivals: int, leaving: int) -> int:
        """Return how many of so many new replicas may go there, if so many of its logs may have left before."""
        most = one.most
        while most < arrivals:
            # Kafka takes this dir only while no other has fewer logs, so the others are filled up to as many first.
            logs = one.logs - leaving + most
            if most + sum(max(0, logs - other.logs) for other in self._open if other is not one) >= arrivals:
                break
            most += 1
        return most

    def _worst(self, one: Dir, most: int) -> int:
        """Return the bytes that the dir holds with the largest of the stage's replicas, so many."""
        return one.held + (sum(self._loads[-most:]) if most else 0)

    def _needed(self, one: Dir, load: int) -> int:
        """Return the bytes that a dir could hold once a replica of so many comes too, 0 where it cannot go there."""
        most = self._most(one, len(self._loads) + 1, one.leaving)
        if not most:
            return 0
        largest = self._loads[-most:]
        if len(largest) < most:
            return one.held + sum(largest) + load
        return one.held + sum(largest) + max(0, load - largest[0])


def broker_dirs(observed: Cluster, share: Fraction) -> Mapping[int, BrokerDirs]:
    """Return the brokers with several log dirs, where what lies in each is known; each may be full to `share`."""
    brokers = observed.brokers.items()
    several = {id_: dirs for id_, one in brokers if len(one.log_dirs) > 1 and (dirs := one.sized_dirs)}
    if not several:
        return {}
    table = table_of(observed)
    # One replica whose log dir is not told makes the number of logs wrong, and with it every prediction for that
    # broker.
    unknown = {*table.replicas[table.log_dirs < 0].tolist()}
    logs = {
        (broker_id, path): count
        for position, path in enumerate(table.paths)
        for broker_id, count in sums(table.replicas, (table.log_dirs == position).astype(np.int64)).items()
    }
    return {
        broker_id: BrokerDirs(
            [
                Dir(path, total, int(total * share), used, logs.get((broker_id, path), 0), is_open, peak=used)
                for path, used, total, is_open in sorted(several[broker_id])
            ]
        )
        for broker_id in sorted(several.keys() - unknown)
    }
