"""Tells by names and labels what exported figures mean, and computes from them what each broker carries.

Names are compared without case and separators, with the label `name` behind them: the JMX exporter's rule files spell
one metric in many ways. `spark.metric_names` goes by the same patterns.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

FORM = "counttotal|total|count|oneminuterate"
TOPIC_RATE = rf"^kafkaserverbrokertopicmetrics({FORM})?(bytesin|bytesout|messagesin)(persec)?({FORM})?$"
_NUMBERED = ("broker_id", "broker", "kafka_broker_id", "node_id")
_NAMED = ("instance", "pod", "host", "kubernetes_pod_name")
BROKER_LABELS = (*_NUMBERED, *_NAMED)
"""The labels that tell brokers apart, the surest first."""
_BROKER_RATE = re.compile(
    rf"kafkaserverbrokertopicmetrics({FORM})?(replicationbytesin|bytesin|bytesout)(persec)?({FORM})?"
)
_LATENCY = re.compile(r"kafkanetworkrequestmetrics(?:(99|999)thpercentile)?totaltimems(?:(99|999)thpercentile)?")
_FLUSH = re.compile(r"kafkaloglogflushstats(?:(99|999)thpercentile)?logflushrateandtimems(?:(99|999)thpercentile)?")
_CPU = re.compile(r"(?:jvm|javalang)?(?:os|operatingsystem)?processcpuload")
_REQUESTS = {"produce": "produce_ms", "fetchconsumer": "fetch_consumer_ms", "fetchfollower": "fetch_follower_ms"}
_RATES = {"bytesin": "bytes_in", "bytesout": "bytes_out", "replicationbytesin": "replication_bytes_in"}
_SEPARATORS = re.compile("[^A-Za-z0-9]")


class Exported(NamedTuple):
    """A figure as an exporter tells it, under its metric's name and with its labels."""

    name: str
    labels: Mapping[str, str]
    value: float


class BrokerSample(NamedTuple):
    """What a broker carries at a moment; rates are per second, `cpu` is a share of the machine, null is unknown.

    Times are the 99.9th percentile in milliseconds, else the 99th.
    """

    broker: int
    bytes_in: float | None = None
    bytes_out: float | None = None
    replication_bytes_in: float | None = None
    cpu: float | None = None
    produce_ms: float | None = None
    fetch_consumer_ms: float | None = None
    fetch_follower_ms: float | None = None
    log_flush_ms: float | None = None


class TopicRate(NamedTuple):
    """What a topic's partitions that one broker leads carry together, each second."""

    broker: int
    topic: str
    bytes_in: float | None = None
    bytes_out: float | None = None


@dataclass(frozen=True, slots=True)
class Brokers:
    """The brokers of a cluster, and which of them a host's name means: none where several share it."""

    ids: frozenset[int]
    by_host: Mapping[str, int]

    @classmethod
    def of(cls, hosts: Mapping[int, str | None]) -> "Brokers":
        """Return the brokers that have these hosts, which go by their first part too, as pods do."""
        named: dict[str, set[int]] = defaultdict(set)
        for broker, host in hosts.items():
            known = (host or "").lower()
            short = known.partition(".")[0]
            for name in {known} | ({short} if not short.isdecimal() else set()):
                named[name].add(broker)
        return cls(frozenset(hosts), {name: min(ids) for name, ids in named.items() if name and len(ids) == 1})

    def named_by(self, labels: Mapping[str, str]) -> int | None:
        """Return whose figure has these labels, by an id or else by a host; None where they name no broker."""
        for label in _NUMBERED:
            told = labels.get(label, "")
            if told.isdecimal() and int(told) in self.ids:
                return int(told)
        for label in _NAMED:
            host = re.sub(r":\d+$", "", labels.get(label, "").lower())
            for name in (host, host.partition(".")[0]):
                if name in self.by_host:
                    return self.by_host[name]
        return None


@dataclass(frozen=True, slots=True)
class Carried:
    """What exporters told of a moment, and in words what they did not."""

    brokers: tuple[BrokerSample, ...] = ()
    topics: tuple[TopicRate, ...] = ()
    untold: tuple[str, ...] = ()


class _Meaning(NamedTuple):
    """What a figure is: a measure of a broker, or of a topic on it; of several the lowest `rank` counts."""

    measure: str
    topic: str | None = None
    is_counter: bool = False
    rank: int = 0


class _Key(NamedTuple):
    broker: int
    topic: str | None
    measure: str


@dataclass(slots=True)
class Counters:
    """Remembers what was counted at each last look, because a counter's rate is what it grew by since."""

    last: dict[tuple[_Key, int], tuple[float, float]] = field(default_factory=dict)

    def a_second(self, key: tuple[_Key, int], value: float, at: float) -> float | None:
        """Return the growth a second since the last look, None at the first; a counter begins anew with its broker."""
        before = self.last.get(key)
        self.last[key] = at, value
        if before is None or at <= before[0]:
            return None
        grown = value - before[1] if value >= before[1] else value
        return grown / (at - before[0])


def carried(figures: Iterable[Exported], brokers: Brokers, counters: Counters, at: float) -> Carried:
    """Return the load of the brokers by these figures of one time (`at`, in seconds).

    If one figure of a broker has two values, as in a Prometheus of two clusters, none of that broker's figures count.
    """
    best: dict[_Key, tuple[int, float | None]] = {}
    twice: set[int] = set()
    strangers: set[str] = set()
    seen: dict[tuple[_Key, int], float] = {}
    for figure in figures:
        meaning = _meaning(figure)
        if meaning is None or not 0 <= figure.value < inf:
            continue
        whose = brokers.named_by(figure.labels)
        if whose is None:
            strangers.add(next((figure.labels[name] for name in BROKER_LABELS if name in figure.labels), "no broker"))
            continue
        key = _Key(whose, meaning.topic, meaning.measure)
        if seen.setdefault((key, meaning.rank), figure.value) != figure.value:
            twice.add(whose)
            continue
        told = figure.value
        rate = counters.a_second((key, meaning.rank), told, at) if meaning.is_counter else told
        if key not in best or (meaning.rank, rate is None) < (best[key][0], best[key][1] is None):
            best[key] = meaning.rank, rate
    known = {key: value for key, (_, value) in best.items() if key.broker not in twice}
    return Carried(_brokers(known), _topics(known), (*_of_strangers(strangers), *_of_twice(twice)))


def _meaning(figure: Exported) -> _Meaning | None:
    plain = _SEPARATORS.sub("", figure.name + figure.labels.get("name", "")).lower()
    topic = figure.labels.get("topic")
    if found := _BROKER_RATE.fullmatch(plain):
        form = (found[1] or "") + (found[4] or "")
        is_counter = form in {"total", "count", "counttotal"} or (not form and found[3] is not None)
        return _Meaning(_RATES[found[2]], topic, is_counter, rank=0 if is_counter else 1)
    if topic is not None:
        return None
    if found := _LATENCY.fullmatch(plain):
        measure = _REQUESTS.get(_SEPARATORS.sub("", figure.labels.get("request", "")).lower())
        return _of_percentile(measure, found, figure)
    if found := _FLUSH.fullmatch(plain):
        return _of_percentile("log_flush_ms", found, figure)
    return _Meaning("cpu") if _CPU.fullmatch(plain) else None


def _of_percentile(measure: str | None, found: re.Match[str], figure: Exported) -> _Meaning | None:
    percentile = found[1] or found[2] or figure.labels.get("quantile", "").removeprefix("0.")
    if measure is None or percentile not in {"99", "999"}:
        return None
    return _Meaning(measure, rank=0 if percentile == "999" else 1)


def _brokers(known: Mapping[_Key, float | None]) -> tuple[BrokerSample, ...]:
    of: dict[int, dict[str, float]] = defaultdict(dict)
    for key, value in known.items():
        if key.topic is None and value is not None:
            of[key.broker][key.measure] = value
    return tuple(BrokerSample(broker, **of[broker]) for broker in sorted(of))


def _topics(known: Mapping[_Key, float | None]) -> tuple[TopicRate, ...]:
    of: dict[tuple[int, str], dict[str, float]] = defaultdict(dict)
    for key, value in known.items():
        if key.topic is not None and value is not None and key.measure in {"bytes_in", "bytes_out"}:
            of[key.broker, key.topic][key.measure] = value
    return tuple(TopicRate(broker, topic, **of[broker, topic]) for broker, topic in sorted(of))


def _of_strangers(strangers: set[str]) -> Iterable[str]:
    if strangers:
        some = ", ".join(sorted(strangers)[:3])
        yield f"figures of {some} are of no broker that is known by its id or host: not used"


def _of_twice(twice: set[int]) -> Iterable[str]:
    if twice:
        brokers = ", ".join(map(str, sorted(twice)))
        yield f"figures of broker {brokers} are told twice, as of two clusters: unknown; pick one by --prometheus-match"
