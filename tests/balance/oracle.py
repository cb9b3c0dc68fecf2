"""The balance of a cluster in plain Python, from its definitions: what the Spark job must equal on small data."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from helpers.samples.hole_oracle import expected_fills, whole

from reconciler.model.cluster import Cluster

Name = tuple[object, ...]
CLUSTER: Name = ("cluster",)
SECONDS = 60


class Sample(NamedTuple):
    """One partition in one bucket; the bucket is a number, rates and size are None where not known."""

    topic: str
    partition: int
    bucket: int
    bytes_in: float | None
    bytes_out: float | None
    size_bytes: int | None


@dataclass
class Told:
    """What is to be told of one broker, rack, log dir, topic or cluster."""

    replicas: int = 0
    leaders: int = 0
    preferred: int = 0
    preferred_led: int = 0
    size: int = 0
    unknown_sizes: int = 0


class Replica(NamedTuple):
    """One replica, and the names of all it belongs to."""

    key: tuple[str, int]
    names: tuple[Name, ...]
    is_leader: bool
    is_preferred: bool
    followers: int
    size: int | None


def replicas_of(cluster: Cluster) -> Iterator[Replica]:
    """Yield each replica of the cluster; its log dirs are told by the partitions themselves."""
    for topic in cluster.topics.values():
        for partition in topic.partitions:
            for position, broker in enumerate(partition.replicas):
                rack = cluster.brokers[broker].rack
                names: list[Name] = [CLUSTER, ("rack", rack), ("broker", broker), ("topic", topic.name)]
                log_dir = partition.log_dirs[position] if partition.log_dirs else None
                names += [("logDir", broker, log_dir)] if log_dir is not None else []
                yield Replica(
                    (topic.name, partition.partition),
                    tuple(names),
                    partition.leader == broker,
                    position == 0,
                    len(partition.replicas) - 1,
                    partition.sizes[position] if partition.sizes else None,
                )


def counts(cluster: Cluster) -> Mapping[Name, Told]:
    """Return counts and sizes by name; what holds nothing is not there."""
    found: defaultdict[Name, Told] = defaultdict(Told)
    for replica in replicas_of(cluster):
        for name in replica.names:
            told = found[name]
            told.replicas += 1
            told.leaders += replica.is_leader
            told.preferred += replica.is_preferred
            told.preferred_led += replica.is_preferred and replica.is_leader
            told.size += replica.size or 0
            told.unknown_sizes += replica.size is None
    return found


def sums(cluster: Cluster, samples: Sequence[Sample], way: str) -> Mapping[Name, Mapping[int, float]]:
    """Return, by name and bucket, what comes `in`, goes `out` or lies on disk (`size`), where known."""
    by_key = defaultdict(list)
    for sample in samples:
        by_key[sample.topic, sample.partition].append(sample)
    found: defaultdict[Name, defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for replica in replicas_of(cluster):
        for sample in by_key[replica.key]:
            value = _value(replica, sample, way)
            if value is not None:
                for name in replica.names:
                    found[name][sample.bucket].append(value)
    return {name: {bucket: _total(values) for bucket, values in told.items()} for name, told in found.items()}


def filled(cluster: Cluster, samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples of the cluster's partitions, and what is to be put in where a rate is missing."""
    found = {(one.topic, one.partition, one.bucket): one for one in samples}
    known = {replica.key for replica in replicas_of(cluster)}
    series: dict[tuple[str, str, int, str], dict[int, int]] = defaultdict(dict)
    for one in samples:
        for rate in ("bytes_in", "bytes_out"):
            value = getattr(one, rate)
            if (one.topic, one.partition) in known and value is not None:
                series["", one.topic, one.partition, rate][one.bucket * SECONDS] = whole(value * 1000)
    for (_, topic, partition), made in expected_fills(series).rates.items():
        for start, rates in made.items():
            key = (topic, partition, start // SECONDS)
            seen = found.get(key, Sample(*key, None, None, None))
            bytes_in, bytes_out = (
                rates[rate] / 1000 if rate in rates else known
                for rate, known in (("bytes_in", seen.bytes_in), ("bytes_out", seen.bytes_out))
            )
            found[key] = seen._replace(bytes_in=bytes_in, bytes_out=bytes_out)
    return list(found.values())


def averages(cluster: Cluster, samples: Sequence[Sample], way: str) -> Mapping[Name, float]:
    """Return, by name, the sum of what its replicas carry on average, each rate over what was seen of it."""
    seen: defaultdict[tuple[str, int], list[Sample]] = defaultdict(list)
    for sample in samples:
        seen[sample.topic, sample.partition].append(sample)
    means = [
        Sample(*key, 0, _mean(one.bytes_in for one in told), _mean(one.bytes_out for one in told), None)
        for key, told in seen.items()
    ]
    return {name: of_bucket[0] for name, of_bucket in sums(cluster, means, way).items()}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _total(known) / len(known) if known else None


def growths(cluster: Cluster, samples: Sequence[Sample], a_day: float) -> Mapping[Name, tuple[float, float]]:
    """Return, by name, what its partitions' slopes come to in bytes a day, and their sum without signs."""
    sizes: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for sample in samples:
        if sample.size_bytes is not None:
            sizes[sample.topic, sample.partition].append((sample.bucket, sample.size_bytes))
    found: defaultdict[Name, list[float]] = defaultdict(list)
    for replica in replicas_of(cluster):
        told = sizes[replica.key]
        if len(told) > 1:
            slope = float(_slope(told)) * a_day
            for name in replica.names:
                found[name].append(slope)
    return {name: (sum(slopes), sum(map(abs, slopes))) for name, slopes in found.items()}


def _slope(points: Sequence[tuple[int, int]]) -> Fraction:
    buckets, sizes = (Fraction(sum(each), len(points)) for each in zip(*points, strict=True))
    rise = sum(((x - buckets) * (y - sizes) for x, y in points), Fraction())
    return rise / sum(((x - buckets) ** 2 for x, _ in points), Fraction())


def _total(values: Iterable[float]) -> float:
    return float(sum(Fraction(value) for value in values))


def _value(replica: Replica, sample: Sample, way: str) -> float | None:
    if way == "in":
        return sample.bytes_in
    if way == "size":
        return sample.size_bytes
    if not replica.is_leader or sample.bytes_out is None:
        return None
    if replica.followers == 0:
        return sample.bytes_out
    return None if sample.bytes_in is None else sample.bytes_out + sample.bytes_in * replica.followers


def busiest(cluster: Cluster, samples: Sequence[Sample]) -> int:
    """Return the bucket in which the cluster's partitions take in and send most; of equals, the first."""
    known = {replica.key for replica in replicas_of(cluster)}
    totals: defaultdict[int, float] = defaultdict(float)
    for sample in samples:
        if (sample.topic, sample.partition) in known:
            totals[sample.bucket] += (sample.bytes_in or 0) + (sample.bytes_out or 0)
    return min(totals, key=lambda bucket: (-totals[bucket], bucket))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the percentile by linear interpolation between closest ranks."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
