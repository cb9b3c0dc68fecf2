"""Recognises exported figures by their names and labels, and computes each topic's rates on each broker.

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
_BROKER_RATE = re.compile(rf"kafkaserverbrokertopicmetrics({FORM})?(bytesin|bytesout)(persec)?({FORM})?")
_RATES = {"bytesin": "bytes_in", "bytesout": "bytes_out"}
_SEPARATORS = re.compile("[^A-Za-z0-9]")


class Exported(NamedTuple):
    """A figure as an exporter tells it, under its metric's name and with its labels."""

    name: str
    labels: Mapping[str, str]
    value: float


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

    topics: tuple[TopicRate, ...] = ()
    untold: tuple[str, ...] = ()


class _Meaning(NamedTuple):
    """A rate of a broker, or of a topic on it; a counter applies before a gauge."""

    measure: str
    topic: str | None
    is_counter: bool


class _Key(NamedTuple):
    broker: int
    topic: str | None
    measure: str


@dataclass(slots=True)
class Counters:
    """Remembers what was counted at each last look, because a counter's rate is what it grew by since."""

    last: dict[_Key, tuple[float, float]] = field(default_factory=dict)

    def a_second(self, key: _Key, value: float, at: float) -> float | None:
        """Return the growth a second since the last look, None at the first; a counter begins anew with its broker."""
        before = self.last.get(key)
        self.last[key] = at, value
        if before is None or at <= before[0]:
            return None
        grown = value - before[1] if value >= before[1] else value
        return grown / (at - before[0])


def carried(figures: Iterable[Exported], brokers: Brokers, counters: Counters, at: float) -> Carried:
    """Return the rates of topics by these figures of one time (`at`, in seconds).

    If one figure of a broker has two values, as in a Prometheus of two clusters, none of that broker's figures count.
    """
    best: dict[_Key, tuple[bool, float | None]] = {}
    twice: set[int] = set()
    strangers: set[str] = set()
    seen: dict[tuple[_Key, bool], float] = {}
    for figure in figures:
        meaning = _meaning(figure)
        if meaning is None or not 0 <= figure.value < inf:
            continue
        whose = brokers.named_by(figure.labels)
        if whose is None:
            strangers.add(next((figure.labels[name] for name in BROKER_LABELS if name in figure.labels), "no broker"))
            continue
        key, is_gauge = _Key(whose, meaning.topic, meaning.measure), not meaning.is_counter
        if seen.setdefault((key, is_gauge), figure.value) != figure.value:
            twice.add(whose)
            continue
        rate = figure.value if is_gauge else counters.a_second(key, figure.value, at)
        if key not in best or (is_gauge, rate is None) < (best[key][0], best[key][1] is None):
            best[key] = is_gauge, rate
    known = {key: value for key, (_, value) in best.items() if key.broker not in twice}
    untold = []
    if strangers:
        some = ", ".join(sorted(strangers)[:3])
        untold.append(f"figures of {some} are of no broker that is known by its id or host: not used")
    if twice:
        ids = ", ".join(map(str, sorted(twice)))
        untold.append(
            f"figures of broker {ids} are told twice, as of two clusters: unknown; pick one by --prometheus-match"
        )
    return Carried(_topics(known), tuple(untold))


def _meaning(figure: Exported) -> _Meaning | None:
    plain = _SEPARATORS.sub("", figure.name + figure.labels.get("name", "")).lower()
    found = _BROKER_RATE.fullmatch(plain)
    if found is None:
        return None
    form = (found[1] or "") + (found[4] or "")
    is_counter = form in {"total", "count", "counttotal"} or (not form and found[3] is not None)
    return _Meaning(_RATES[found[2]], figure.labels.get("topic"), is_counter)


def _topics(known: Mapping[_Key, float | None]) -> tuple[TopicRate, ...]:
    of: dict[tuple[int, str], dict[str, float]] = defaultdict(dict)
    for key, value in known.items():
        # A broker's own totals only show whether figures of two clusters meet: see `carried`.
        if key.topic is not None and value is not None:
            of[key.broker, key.topic][key.measure] = value
    return tuple(TopicRate(broker, topic, **of[broker, topic]) for broker, topic in sorted(of))
