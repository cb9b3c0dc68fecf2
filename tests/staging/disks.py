"""A law of staging: what lies on each disk while the stages run, a broker's log dirs as Kafka fills them."""

import re
from collections import Counter
from dataclasses import dataclass

from staging.drawn import Case

from reconciler.model.desired import BrokerState
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

DISK_CODES = ("KR413", "KR816")


@dataclass
class Disks:
    """What lies on each disk while the stages run: a disk is a broker, or one of its log dirs where these are known."""

    case: Case
    held: Counter[tuple[int, str]]
    logs: Counter[tuple[int, str]]
    lies_in: dict[tuple[TopicPartition, int], str]
    peak: Counter[tuple[int, str]]
    filled: Counter[tuple[int, str]]

    @classmethod
    def of(cls, case: Case) -> "Disks":
        disks = cls(case, Counter(), Counter(), {}, Counter(), Counter())
        for name, partition in case.observed.partitions():
            for number, path in zip(partition.replicas, partition.log_dirs or [None] * 9, strict=False):
                disks.lies_in[name, number] = (path or "") if disks.is_told(number) else ""
                disks.held[number, disks.lies_in[name, number]] += partition.sizes[0] or 0
                disks.logs[number, disks.lies_in[name, number]] += 1
        disks.peak = Counter(disks.held)
        return disks

    def is_told(self, number: int) -> bool:
        """Whether the broker has several log dirs, and what lies in them is known."""
        told = all(
            partition.log_dirs for _, partition in self.case.observed.partitions() if number in partition.replicas
        )
        return told and len(self.case.observed.brokers[number].log_dirs) > 1

    def paths(self, number: int) -> list[str]:
        dirs = self.case.observed.brokers[number].log_dirs
        return sorted(one.path for one in dirs) if self.is_told(number) else [""]

    def most(self, number: int, path: str, arrivals: int, leaving: int) -> int:
        """Return how many of so many new replicas Kafka may put there: it takes the fewest logs, this one of equals.

        The logs that leave it in the stage may have left before any comes, and those of other dirs not yet.
        """
        logs = {one: self.logs[number, one] for one in self.paths(number)}
        logs[path] -= leaving
        begun = logs[path]
        for _ in range(arrivals):
            logs[min(logs, key=lambda one: (logs[one], one != path))] += 1
        return logs[path] - begun

    def run(self, stage: ReassignStage) -> None:
        arriving: dict[int, list[tuple[TopicPartition, int]]] = {}
        for move in sorted(stage.moves, key=lambda move: move.topic_partition):
            for number in move.added:
                size = move.bytes // len(move.added)
                arriving.setdefault(number, []).append((move.topic_partition, size))
        for number, replicas in arriving.items():
            for path in self.paths(number):
                leaving = sum(
                    number in move.removed and self.lies_in[move.topic_partition, number] == path
                    for move in stage.moves
                )
                most = self.most(number, path, len(replicas), leaving)
                worst = self.held[number, path] + sum(sorted((size for _, size in replicas), reverse=True)[:most])
                # Empty replicas fill nothing.
                if worst > self.held[number, path]:
                    self.filled[number, path] = max(self.filled[number, path], worst)
                    self.peak[number, path] = max(self.peak[number, path], worst)
            for name, size in replicas:
                path = min(self.paths(number), key=lambda one: (self.logs[number, one], one))
                self.lies_in[name, number] = path
                self.held[number, path] += size
                self.logs[number, path] += 1
        for move in stage.moves:
            partition = self.case.observed.partition(move.topic_partition)
            assert partition is not None
            for number in move.removed:
                path = self.lies_in[move.topic_partition, number]
                self.held[number, path] -= partition.sizes[0] or 0
                self.logs[number, path] -= 1


def disks_are_counted_with_old_replicas_until_their_move_has_ended(case: Case) -> None:
    disks = Disks.of(case)
    whole, peak = Counter[int](), Counter[int]()
    for (number, _), size in disks.held.items():
        whole[number] += size
    peak.update(whole)
    for stage in case.staged().stages:
        if isinstance(stage, ReassignStage):
            disks.run(stage)
            for move in stage.moves:
                whole.update(dict.fromkeys(move.added, move.bytes // max(1, len(move.added))))
            peak = Counter({number: max(peak[number], whole[number]) for number in whole})
            for move in stage.moves:
                partition = case.observed.partition(move.topic_partition)
                assert partition is not None
                whole.subtract(dict.fromkeys(move.removed, partition.sizes[0] or 0))
    assert case.staged().disk_peak == {number: peak[number] for number in sorted(case.observed.brokers)}
    told = case.staged().log_dirs
    assert told.keys() == {number for number in case.observed.brokers if disks.is_told(number)}
    for number, dirs in told.items():
        assert {one.path: one.peak_bytes for one in dirs} == {p: disks.peak[number, p] for p in disks.paths(number)}
    predicted = {
        (name, number): path for name, to in case.staged().predicted_log_dirs.items() for number, path in to.items()
    }
    assert predicted == {
        (move.topic_partition, number): disks.lies_in[move.topic_partition, number]
        for stage in case.staged().stages
        if isinstance(stage, ReassignStage)
        for move in stage.moves
        for number in move.added
        if disks.is_told(number)
    }
    _no_disk_is_too_full_unless_told(case, disks)


def _no_disk_is_too_full_unless_told(case: Case, disks: Disks) -> None:
    share = case.wanted.cluster.limits.disk_use
    found = [problem for problem in case.staged().violations + case.staged().warnings if problem.code in DISK_CODES]
    too_full, is_left_so = set[tuple[int, str]](), set[tuple[int, str]]()
    for number, path in disks.held.keys() | disks.filled.keys():
        filled, end = disks.filled[number, path], disks.held[number, path] if share is not None else 0
        size = max(filled, end if _keeps_replicas(case, number) else 0)
        dirs = [one for one in case.observed.brokers[number].log_dirs if path in ("", one.path)]
        total = sum(one.total_bytes or 0 for one in dirs)
        if dirs and size > int(total * (1 if share is None else share)):
            (too_full if filled >= size else is_left_so).add((number, dirs[0].path if len(dirs) == 1 else ""))
    for when, expected in (("at the worst moment", too_full), ("in the end", is_left_so)):
        pattern = rf"broker (\d+) would hold .*? of \S+ \S+?(?: in (\S+))? {when}, "
        named = [match for problem in found if (match := re.search(pattern, problem.message))]
        assert {(int(match[1]), match[2] or "") for match in named} == expected
    assert len(found) == len(too_full) + len(is_left_so)
    assert {problem.code for problem in found} <= {"KR816" if share is None else "KR413"}


def _keeps_replicas(case: Case, number: int) -> bool:
    state = case.wanted.cluster.broker(number).state
    return case.observed.is_alive(number) and state not in {BrokerState.DRAINING, BrokerState.ABSENT}
