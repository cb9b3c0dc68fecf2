"""Reads what Cruise Control's reporter wrote into its topic since it was read last, and writes it as samples."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from reconciler.admin.port import EARLIEST, LATEST, Admin
from reconciler.balance.files.cruise_control_state import ReadState, read_state, write_state
from reconciler.balance.files.sample_writer import Round, write_reports
from reconciler.balance.model.cruise_control import TOPICS, Metric, Report, Reports, decoded
from reconciler.model.cluster import Topic, leaders_of
from reconciler.model.problem import InvalidInput, Problem
from reconciler.model.topic_partition import TopicPartition

NO_TOPIC = "KR446"
OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
WHOLE_AFTER_SECONDS = 30
"""A broker sends all of a report within a few seconds; what is younger may lack a part."""
WAIT_SECONDS = 600
"""How long reports wait for a partition that cannot be read: parts of them may lie in it."""
ROWS_AT_ONCE = 500_000
"""How many partitions are written at once, where there are hours to read."""


@dataclass(slots=True)
class CruiseControl:
    """The reporter's topic, and how far it was read."""

    topic: str | None = None
    """None: whichever of the names that it usually has."""
    since: timedelta = timedelta(hours=1)
    """How far back to begin where nothing was read before."""
    _reports: Reports = field(default_factory=Reports)
    _positions: dict[int, int] = field(default_factory=dict)
    _begin: int = EARLIEST
    _unbegun: set[TopicPartition] = field(default_factory=set)
    """Partitions of which no leader has told yet where to begin."""
    _newest: dict[int, int] = field(default_factory=dict)
    _waiting: list[Report] = field(default_factory=list)
    """What is not written yet. A round that the cluster ends early leaves it to the next one."""

    def collect(self, admin: Admin, out: Path, cluster: str, at: datetime) -> tuple[Round, tuple[str, ...]]:
        """Write what was reported since the last time; return how much, and what could not be read."""
        topic = self._begun(admin, out, cluster, at)
        written, untold = Round(0, 0), dict[str, None]()
        keys = {TopicPartition(topic, number) for number in self._positions}
        # Brokers never stop writing: a round reads up to where each partition ended when the round began.
        ends = {key: offset or 0 for key, offset in admin.log_offsets(keys, LATEST).items()} if keys else {}
        silent = (keys | self._unbegun) - ends.keys()
        _tell_silent(silent, untold)
        behind = {key for key, end in ends.items() if self._positions[key.partition] != end}
        is_at_end = False
        while not is_at_end:
            is_at_end = not (behind and self._read(admin, ends, behind, untold))
            unread = silent | (behind if is_at_end else keys)
            until = self._whole_until(int(at.timestamp() * 1000), unread, is_at_end=is_at_end)
            leaders = _leaders(admin, self._reports.topics(until))
            self._waiting += self._reports.whole(leaders, until)
            if is_at_end or sum(len(report.partitions) for report in self._waiting) > ROWS_AT_ONCE:
                written = _sum(written, write_reports(out, cluster, at, self._waiting))
                self._waiting = []
                positions = self._reports.read_again_from(self._positions)
                write_state(out, cluster, ReadState(topic, positions, self._reports.told))
        return written, tuple(untold)

    def _begun(self, admin: Admin, out: Path, cluster: str, at: datetime) -> str:
        """Return the topic's name; find where to begin in each partition that was not read before."""
        topic: Topic | None
        if self.topic is None or not self._positions:
            topic = self._found(admin)
            self.topic = topic.name
            state = read_state(out, cluster)
            if state is not None and state.topic == topic.name:
                self._positions, self._reports.told = dict(state.positions), dict(state.told)
            self._begin = EARLIEST if self._positions else int((at - self.since).timestamp() * 1000)
        else:
            # Partitions may have been added since the last round.
            topic = admin.topics((self.topic,)).get(self.topic)
        for partition in topic.partitions if topic is not None else ():
            if partition.partition not in self._positions:
                self._unbegun.add(TopicPartition(self.topic, partition.partition))
        if self._unbegun:
            found = admin.log_offsets(self._unbegun, self._begin)
            # Where no record is that late, whatever comes is.
            empty = [key for key, offset in found.items() if offset is None]
            for key, offset in {**found, **(admin.log_offsets(empty, LATEST) if empty else {})}.items():
                self._positions[key.partition] = offset or 0
            self._unbegun -= found.keys()
        return self.topic

    def _found(self, admin: Admin) -> Topic:
        names = (self.topic,) if self.topic is not None else TOPICS
        topics = admin.topics(names)
        for name in names:
            if name in topics:
                return topics[name]
        message = f"there is no topic {' and no topic '.join(names)}, or this user may not see it: name the one that "
        raise InvalidInput([Problem(NO_TOPIC, f"{message}Cruise Control's metrics reporter writes to")])

    def _read(
        self,
        admin: Admin,
        ends: Mapping[TopicPartition, int],
        behind: set[TopicPartition],
        untold: dict[str, None],
    ) -> bool:
        """Take in what comes next in the partitions behind; return whether any moved. Those at their end leave them."""
        asked = {key: self._positions[key.partition] for key in behind}
        told = admin.records(asked)
        _tell_silent(asked.keys() - told.keys(), untold)
        has_moved = False
        for key, records in told.items():
            offset = records.next_offset
            if records.error == OUT_OF_RANGE:
                offset = admin.log_offsets([key], EARLIEST).get(key) or 0
                untold[f"records of {key} were deleted before they were read"] = None
            elif records.error is not None:
                untold[f"the leader of {key} answers {records.error}: its records are read later"] = None
            self._positions[key.partition] = offset
            metrics = list(_metrics(records.values, key, untold))
            self._reports.add(metrics, key.partition)
            if metrics:
                newest = max(metric.milliseconds for _, metric in metrics)
                self._newest[key.partition] = max(newest, self._newest.get(key.partition, newest))
            has_moved |= offset != asked[key]
            if offset >= ends[key]:
                behind.discard(key)
        return has_moved

    def _whole_until(self, now: int, unread: AbstractSet[TopicPartition], *, is_at_end: bool) -> int:
        """Return before which time all was read: that of the partition furthest behind of those not read to their end.

        Where a round ends with such partitions, the next ones wait for them, but not for ever.
        """
        until = min((self._newest.get(key.partition, 0) for key in unread), default=now)
        if is_at_end:
            until = min(now, max(until, now - WAIT_SECONDS * 1000))
        return until - WHOLE_AFTER_SECONDS * 1000


def _tell_silent(keys: AbstractSet[TopicPartition], untold: dict[str, None]) -> None:
    untold |= dict.fromkeys(f"{key} has no leader that answers: its records are read later" for key in sorted(keys))


def _metrics(
    values: Sequence[tuple[int, bytes]], key: TopicPartition, untold: dict[str, None]
) -> Iterator[tuple[int, Metric]]:
    for offset, value in values:
        try:
            metric = decoded(value)
        except ValueError as error:
            untold[f"a record of {key} {error}: left out"] = None
            continue
        if metric is not None:
            yield offset, metric


def _leaders(admin: Admin, topics: set[str]) -> Mapping[TopicPartition, int | None]:
    return leaders_of(admin.topics(sorted(topics)).values()) if topics else {}


def _sum(one: Round, other: Round) -> Round:
    return Round(one.partitions + other.partitions, one.replicas + other.replicas, one.brokers + other.brokers)
