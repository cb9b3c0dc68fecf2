"""The history of a cluster in plain Python, from its definitions: what the Spark job must equal on small data."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean, median

from balance import oracle
from balance.oracle import Name, Sample
from helpers.samples.hole_oracle import expected_fills

from reconciler.model.cluster import Cluster
from reconciler.model.evenness import Evenness, evenness

Broker = int | None
HOUR, DAY_HOURS, WEEK_HOURS = 3600, 24, 168


@dataclass(frozen=True)
class Clock:
    """When buckets are: the first one's start in seconds since 1970, their length, and how many there are."""

    first: int
    step: int
    buckets: int

    def hour(self, bucket: int) -> int:
        return (self.first + bucket * self.step) // HOUR

    @property
    def last(self) -> int:
        """When the last bucket ends."""
        return self.first + self.buckets * self.step

    @property
    def hours(self) -> tuple[int, int]:
        return self.first // HOUR, -(-self.last // HOUR)

    @property
    def unit(self) -> int:
        begins, ends = self.hours
        return DAY_HOURS if ends - begins >= 48 else 1

    def period(self, bucket: int) -> int:
        return self.hour(bucket) // self.unit - self.hours[0] // self.unit

    @property
    def halves(self) -> tuple[int, int, int]:
        begins, ends = self.hours
        hours = ends - begins
        half = 168 if hours >= 336 else hours // 48 * 24 if hours >= 48 else hours // 2
        return ends - 2 * half, ends - half, ends


def _name(broker: Broker) -> Name:
    return oracle.CLUSTER if broker is None else ("broker", broker)


def filled(samples: Sequence[Sample], clock: Clock, cluster: Cluster) -> list[Sample]:
    """Return the samples with the rates that are estimated of each partition, from its first known one on."""
    known = {replica.key for replica in oracle.replicas_of(cluster)}
    told = {(one.topic, one.partition, one.bucket): one for one in samples}
    series: dict[tuple[str, str, int, str], dict[int, int]] = defaultdict(dict)
    for one in samples:
        for rate in ("bytes_in", "bytes_out"):
            value = getattr(one, rate)
            if value is not None and (one.topic, one.partition) in known:
                second = clock.first + one.bucket * clock.step
                series["", one.topic, one.partition, rate][second] = round(value * 1000)
    fills = expected_fills(series)
    for (_, topic, partition), made in fills.rates.items():
        own = [of for key, of in series.items() if key[1:3] == (topic, partition)]
        first = min(second for of in own for second in of)
        for second, rates in made.items():
            if second >= first:
                bucket = (second - clock.first) // clock.step
                one = told.get((topic, partition, bucket), Sample(topic, partition, bucket, None, None, None))
                taken, sent = (rates.get(rate) for rate in ("bytes_in", "bytes_out"))
                told[topic, partition, bucket] = one._replace(
                    bytes_in=one.bytes_in if taken is None else taken / 1000,
                    bytes_out=one.bytes_out if sent is None else sent / 1000,
                )
    return list(told.values())


def means(
    cluster: Cluster, samples: Sequence[Sample], way: str, place: Callable[[int], int]
) -> Mapping[Broker, Mapping[int, float]]:
    """Return the mean of what each broker, and the cluster, carries, over the buckets of each place."""
    sums = oracle.sums(cluster, samples, way)
    found: dict[Broker, Mapping[int, float]] = {}
    for broker in (None, *cluster.brokers):
        at: defaultdict[int, list[float]] = defaultdict(list)
        for bucket, value in sums.get(_name(broker), {}).items():
            at[place(bucket)].append(value)
        found[broker] = {each: fmean(values) for each, values in at.items()}
    return found


def hour_of_week(clock: Clock) -> Callable[[int], int]:
    """Return which hour of the week a bucket is in; the first of January 1970 was a Thursday."""
    return lambda bucket: (clock.hour(bucket) + 3 * DAY_HOURS) % WEEK_HOURS


def sizes(cluster: Cluster, samples: Sequence[Sample], clock: Clock) -> Mapping[int, Mapping[int, int]]:
    """Return, for each broker and period, the last known sizes of what it holds."""
    last: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    for sample in sorted(samples, key=lambda one: one.bucket):
        if sample.size_bytes is not None:
            last[sample.topic, sample.partition][clock.period(sample.bucket)] = sample.size_bytes
    found: dict[int, dict[int, int]] = {}
    for broker in cluster.brokers:
        found[broker] = {}
        for at in range(clock.period(clock.buckets - 1) + 1):
            total = 0
            for replica in oracle.replicas_of(cluster):
                if ("broker", broker) in replica.names:
                    known = [size for period, size in last[replica.key].items() if period <= at]
                    total += known[-1] if known else 0
            found[broker][at] = total
    return found


def even(values: Iterable[float | None]) -> Evenness | None:
    """Return how even these are; None where one is not known."""
    told = list(values)
    return None if None in told else evenness((value or 0.0, 1) for value in told)


def skews(cluster: Cluster, samples: Sequence[Sample], clock: Clock) -> Mapping[tuple[int, str], Evenness | None]:
    """Return how even in, out and sizes are in each period, by the placement of today."""
    replicas = list(oracle.replicas_of(cluster))
    holds = {broker: any(("broker", broker) in one.names for one in replicas) for broker in cluster.brokers}
    leads = {b: any(("broker", b) in one.names and one.is_leader for one in replicas) for b in cluster.brokers}
    held = sizes(cluster, samples, clock)
    found = {}
    for way, busy in (("in", holds), ("out", leads)):
        by_broker = means(cluster, samples, way, clock.period)
        for at in range(clock.period(clock.buckets - 1) + 1):
            found[at, way] = even(by_broker[one].get(at) if busy[one] else 0.0 for one in cluster.brokers)
    for at in range(clock.period(clock.buckets - 1) + 1):
        found[at, "size"] = even(held[one][at] for one in cluster.brokers)
    return found


def compared(
    cluster: Cluster, samples: Sequence[Sample], clock: Clock
) -> Mapping[tuple[str, int], dict[str, Fraction]]:
    """Return each partition's rates and sizes in the earlier time and the later one, where both are known."""
    start, middle, end = clock.halves
    known = {replica.key for replica in oracle.replicas_of(cluster)}
    told = [one for one in samples if (one.topic, one.partition) in known]
    seen = {clock.hour(one.bucket) for one in told if one.bytes_in is not None or one.bytes_out is not None}
    both = {hour for hour in seen if start <= hour < middle and hour + middle - start in seen}
    both |= {hour + middle - start for hour in both}
    by_key = defaultdict(list)
    for one in told:
        by_key[one.topic, one.partition].append(one)
    found: dict[tuple[str, int], dict[str, Fraction]] = {}
    for key, own in by_key.items():
        first = clock.first + min(one.bucket for one in own) * clock.step
        figures: dict[str, Fraction] = {}
        for half, begins, ends in (("before", start, middle), ("after", middle, end)):
            opens, closes = max(begins * HOUR, clock.first), min(ends * HOUR, clock.last)
            left = min(Fraction(1), max(Fraction(0), Fraction(closes - first, closes - opens)))
            inside = [one for one in own if clock.hour(one.bucket) in both and begins <= clock.hour(one.bucket) < ends]
            for way in ("in", "out"):
                rates = [Fraction(rate) for one in inside if (rate := getattr(one, f"bytes_{way}")) is not None]
                if rates:
                    figures[f"{way}_{half}"] = sum(rates, Fraction()) / len(rates) * left
                elif left == 0:
                    figures[f"{way}_{half}"] = Fraction(0)
            until = [one for one in own if one.size_bytes is not None and clock.hour(one.bucket) < ends]
            if until:
                figures[f"size_{half}"] = Fraction(max(until, key=lambda one: one.bucket).size_bytes or 0)
            elif half == "before" and first >= middle * HOUR:
                figures["size_before"] = Fraction(0)
        figures["is_new"] = Fraction(first >= middle * HOUR)
        found[key] = figures
    return found


def slow_windows(
    samples: Sequence[tuple[int, int, float, float]], *, least_ms: float = 20.0
) -> Mapping[int, list[tuple[int, bool]]]:
    """Return, for each broker, its windows of five minutes and whether it was slow in it, by Cruise Control's method.

    `samples`: second, broker, flush in milliseconds, bytes a second in, one a window.
    """
    own: dict[int, dict[int, tuple[float, float]]] = defaultdict(dict)
    for second, broker, flush, taken in samples:
        if taken >= 1024 * 1024:
            own[broker][second // 300 * 300] = (flush, flush / taken)
    found: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for broker, windows in own.items():
        for window, figures in sorted(windows.items()):
            hour = window // HOUR
            peers = [others[window] for others in own.values() if window in others]
            abnormal = []
            for place in (0, 1):
                history = [
                    told[place]
                    for at, told in windows.items()
                    if hour - 24 <= at // HOUR <= hour - 1 and (place == 1 or told[0] > 5)
                ]
                is_new = len(history) >= 10 and figures[place] > 3 * oracle.percentile(history, 0.9)
                is_odd = len(peers) >= 2 and figures[place] > 3 * median(one[place] for one in peers)
                abnormal.append(is_new or is_odd)
            found[broker].append((window, all(abnormal) and figures[0] > least_ms))
    return found


def slow_times(windows: Sequence[tuple[int, bool]]) -> list[tuple[int, int | None, int]]:
    """Return since when, until when, and the most points, of each time in which a broker came to five points."""
    found: list[tuple[int | None, int | None, int]] = []
    score, most = 0, 0
    since: int | None = None
    until: int | None = None
    for window, is_slow in windows:
        if is_slow:
            since = window if since is None else since
            score, until = min(score + 1, 50), None
            most = max(most, score)
        elif score:
            score, until = score - 1, window if until is None else until
            if score == 0:
                found.append((since, until, most))
                since, until, most = None, None, 0
    if since is not None:
        found.append((since, until, most))
    return [(begun, ended, points) for begun, ended, points in found if begun is not None and points >= 5]
