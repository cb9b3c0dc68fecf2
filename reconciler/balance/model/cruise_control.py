"""Decodes the records that Cruise Control's metrics reporter writes, and makes samples of what each broker reports.

A record (MetricSerde of linkedin/cruise-control) is big-endian: what it is of (a byte: 0 a broker, 1 a topic on it, 2 a
replica on it), the version of that form (a byte, 0), the type (a byte, RawMetricType), milliseconds since 1970 (long),
the broker's id (int), then for a topic or replica the length of the topic's name (int) and the name in UTF-8, for a
replica its partition (int), and the figure (double). All that a broker reports at once has one time.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from struct import Struct
from struct import error as StructError  # noqa: N812 - the class of struct's errors
from typing import NamedTuple

from reconciler.balance.model.exported import BrokerSample, TopicRate
from reconciler.balance.model.shares import RATES, split
from reconciler.model.sample import ReplicaOnDisk
from reconciler.model.topic_partition import TopicPartition

TOPICS = ("__CruiseControlMetrics", "strimzi.cruisecontrol.metrics")
"""The reporter's own name for its topic, and the one that Strimzi sets."""
_HEAD, _INT, _FIGURE = Struct(">bbbqi"), Struct(">i"), Struct(">d")
_BROKER, _TOPIC, _REPLICA = range(3)
_VERSION = 0
_OF_BROKERS = {
    0: "bytes_in",
    1: "bytes_out",
    5: "cpu",
    6: "replication_bytes_in",
    50: "produce_ms",
    52: "fetch_consumer_ms",
    54: "fetch_follower_ms",
    62: "log_flush_ms",
}
"""Types of ALL_TOPIC_BYTES_IN and so on; times are the 99.9th percentiles of the total time."""
_OF_TOPICS = {2: "bytes_in", 3: "bytes_out", 15: "messages_in"}
_PARTITION_SIZE = 4
_GONE_AFTER = 3_600_000
"""Milliseconds without a report, after which a broker counts as gone: nothing is read again for its sake."""
_METADATA = "__cluster_metadata"
"""The log of the controllers: no topic that anybody else knows of."""


class Metric(NamedTuple):
    """A figure that a broker reports of itself, of a topic, or of a replica."""

    milliseconds: int
    broker: int
    measure: str
    value: float
    topic: str = ""
    partition: int = -1


def decoded(record: bytes) -> Metric | None:
    """Return what a record tells, None for a figure that samples do not have; raises ValueError for what is none."""
    try:
        kind, version, type_, milliseconds, broker = _HEAD.unpack_from(record)
        if version != _VERSION or kind not in {_BROKER, _TOPIC, _REPLICA}:
            raise ValueError(f"is of form {kind}, version {version}")
        place, topic, partition = _HEAD.size, "", -1
        if kind != _BROKER:
            (length,) = _INT.unpack_from(record, place)
            place += _INT.size
            topic = record[place : place + length].decode() if length >= 0 else ""
            place += length
        if kind == _REPLICA:
            (partition,) = _INT.unpack_from(record, place)
            place += _INT.size
        (value,) = _FIGURE.unpack_from(record, place)
        if place + _FIGURE.size != len(record):
            raise ValueError("has bytes behind its figure")
    except (StructError, UnicodeDecodeError):
        raise ValueError("is cut short or no metric") from None
    measure = _measure(kind, type_)
    if measure is None or not isfinite(value) or value < 0 or topic == _METADATA:
        return None
    return Metric(milliseconds, broker, measure, value, topic, partition)


def _measure(kind: int, type_: int) -> str | None:
    if kind == _BROKER:
        return _OF_BROKERS.get(type_)
    if kind == _TOPIC:
        return _OF_TOPICS.get(type_)
    return "size_bytes" if type_ == _PARTITION_SIZE else None


class PartitionReport(NamedTuple):
    """What a partition's leader reported of it: its size, and its shares of its topic's rates, None where unknown.

    The rates stand in the order of a sample's columns.
    """

    topic_partition: TopicPartition
    rates: tuple[float | None, ...]
    size_bytes: int

    @property
    def is_estimated(self) -> bool:
        """Whether any rate is known: each of them is a share."""
        return any(rate is not None for rate in self.rates)


@dataclass(frozen=True, slots=True)
class Report:
    """All that one broker reported at once."""

    milliseconds: int
    broker: BrokerSample
    replicas: tuple[ReplicaOnDisk, ...]
    partitions: tuple[PartitionReport, ...]


Positions = Mapping[int, int]
"""The offset to go on at, by partition of the reporter's topic."""


@dataclass(slots=True)
class Reports:
    """Gathers metrics until a broker's report is whole, which only time can tell: nothing says where one ends."""

    told: dict[int, int] = field(default_factory=dict)
    """The time of the last report of each broker that was told: no earlier one is told again."""
    _open: dict[tuple[int, int], list[Metric]] = field(default_factory=lambda: defaultdict(list))
    _begins: dict[tuple[int, int], dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    _sizes: dict[int, Mapping[TopicPartition, int]] = field(default_factory=dict)

    def add(self, metrics: Iterable[tuple[int, Metric]], number: int) -> None:
        """Take in what was read, each with its offset, of that partition of the reporter's topic."""
        for offset, metric in metrics:
            key = metric.milliseconds, metric.broker
            self._open[key].append(metric)
            self._begins[key].setdefault(number, offset)

    def topics(self, until: int) -> set[str]:
        """Return the topics that reports from before that time tell of."""
        return {one.topic for key, metrics in self._open.items() if key[0] < until for one in metrics if one.topic}

    def whole(self, leaders: Mapping[TopicPartition, int | None], until: int) -> list[Report]:
        """Return the reports from before that time, in order; what was told before only tells what grew since."""
        found = []
        for milliseconds, broker in sorted(key for key in self._open if key[0] < until):
            report = self._report(milliseconds, broker, self._open.pop((milliseconds, broker)), leaders)
            if milliseconds > self.told.get(broker, -1):
                found.append(report)
                self.told[broker] = milliseconds
        return found

    def read_again_from(self, positions: Positions) -> dict[int, int]:
        """Return where to begin another time: before what is open, and before the last report of each broker told.

        That one tells what the next one's partitions have grown by. Of a broker that is gone there is no next one.
        """
        newest = max(self.told.values(), default=0)
        last = {(told, broker) for broker, told in self.told.items() if newest - told < _GONE_AFTER}
        for key in [key for key in self._begins if key not in self._open and key not in last]:
            del self._begins[key]
        return {
            number: min([offset, *(begun[number] for begun in self._begins.values() if number in begun)])
            for number, offset in positions.items()
        }

    def _report(
        self, milliseconds: int, broker: int, metrics: list[Metric], leaders: Mapping[TopicPartition, int | None]
    ) -> Report:
        sizes = {TopicPartition(one.topic, one.partition): int(one.value) for one in metrics if one.partition >= 0}
        before = self._sizes.get(broker, {})
        self._sizes[broker] = sizes
        led = {key: leaders.get(key) for key in sizes if leaders.get(key) == broker}
        grown = {key: float(sizes[key] - before[key]) for key in led if key in before}
        rates = split(_topic_rates(broker, metrics), led, grown)
        of_broker = {one.measure: one.value for one in metrics if not one.topic}
        return Report(
            milliseconds,
            BrokerSample(broker, **of_broker),
            tuple(ReplicaOnDisk(key, broker, "", size) for key, size in sorted(sizes.items())),
            tuple(
                PartitionReport(key, tuple(rates.get(key, {}).get(rate) for rate in RATES), sizes[key])
                for key in sorted(led)
            ),
        )


def _topic_rates(broker: int, metrics: Iterable[Metric]) -> list[TopicRate]:
    rates: dict[str, dict[str, float]] = defaultdict(dict)
    for one in metrics:
        if one.topic and one.partition < 0:
            rates[one.topic][one.measure] = one.value
    return [TopicRate(broker, topic, **told) for topic, told in sorted(rates.items())]
