"""Draws clusters whose partitions fill and empty as Kafka's logs do, hour by hour: segments, retention, compaction.

It knows nothing of how sizes are foretold. Records come in with a daily and a weekly rhythm, growth, days that are
busier than others, and chance. A segment is rolled when it is full or old; the retention of time deletes a segment once
its newest record is too old, that of bytes while what is left is still enough; the cleaner rewrites a compacted log
once half of it is dirty; a tiered log keeps what its local retention says.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic

HOUR, DAY, WEEK = 1, 24, 168
MIB, GIB = 1 << 20, 1 << 30
BEFORE, SEEN, AHEAD = 45 * DAY, 28 * DAY, 14 * DAY  # hours that are played before samples begin, with them, after them
_WHOLE = BEFORE + SEEN + AHEAD
NOW = SEEN - 1  # the hour of the last sample, counted from the first


@dataclass(frozen=True)
class TracedTopic:
    """A topic: Kafka's configs in hours and bytes (None: no limit), and what comes in."""

    name: str
    partitions: int
    hourly_bytes: float
    growth_a_day: float
    retention_hours: float | None = 7 * DAY
    retention_bytes: int | None = None
    segment_bytes: int = GIB
    segment_hours: float = 7 * DAY
    is_compacted: bool = False
    is_deleted: bool = True
    is_tiered: bool = False
    local_hours: float | None = None
    made_at: int = 0

    @property
    def is_bounded(self) -> bool:
        """Whether a retention keeps it from growing for ever."""
        by_hours, by_bytes = self.retention_hours, self.retention_bytes
        return self.is_deleted and (by_hours is not None or by_bytes is not None)

    @property
    def kept_hours(self) -> float | None:
        """How long a record stays on the broker's disk."""
        return self.local_hours if self.is_tiered and self.local_hours is not None else self.retention_hours

    @property
    def configs(self) -> dict[str, str]:
        """The topic's configs as Kafka has them."""
        policy = ",".join(["compact"] * self.is_compacted + ["delete"] * self.is_deleted)
        found = {
            "cleanup.policy": policy,
            "retention.ms": str(-1 if self.retention_hours is None else int(self.retention_hours * 3_600_000)),
            "retention.bytes": str(-1 if self.retention_bytes is None else self.retention_bytes),
            "segment.bytes": str(self.segment_bytes),
            "segment.ms": str(int(self.segment_hours * 3_600_000)),
        }
        if self.is_tiered:
            local = -2 if self.local_hours is None else int(self.local_hours * 3_600_000)
            found |= {"remote.storage.enable": "true", "local.retention.ms": str(local)}
        return found


@dataclass
class Trace:
    """A cluster: its topics, where partitions stand, and each one's size in each hour from the first sample on."""

    name: str
    topics: dict[str, TracedTopic] = field(default_factory=dict)
    places: dict[tuple[str, int], tuple[tuple[int, str], ...]] = field(default_factory=dict)
    sizes: dict[tuple[str, int], list[int | None]] = field(default_factory=dict)
    missed: dict[tuple[str, int], set[int]] = field(default_factory=dict)

    def disk(self, broker: int, log_dir: str, hour: int) -> int:
        """Return what lies on a disk at that hour."""
        here = (key for key, places in self.places.items() if (broker, log_dir) in places)
        return sum(self.sizes[key][hour] or 0 for key in here)

    @property
    def disks(self) -> list[tuple[int, str]]:
        """Every disk that holds something."""
        return sorted({place for places in self.places.values() for place in places})


def drawn_trace(seed: int, *, topics: int = 14, brokers: int = 4) -> Trace:
    """Return a cluster drawn with that seed."""
    random = Random(seed)
    trace = Trace(f"trace-{seed:02}")
    business = _days(random, 0.04)
    noise = random.uniform(0.03, 0.12)
    for number in range(topics):
        topic = _topic(random, f"topic-{number:02}")
        trace.topics[topic.name] = topic
        days = [common + own for common, own in zip(business, _days(random, noise), strict=True)]
        shape = random.uniform(0.2, 0.8), random.uniform(0, 0.6), random.randrange(DAY)
        for partition in range(topic.partitions):
            key = topic.name, partition
            share = random.uniform(0.7, 1.3)
            trace.sizes[key] = _played(random, topic, share, days, shape)
            on = random.sample(range(1, brokers + 1), min(3, brokers))
            trace.places[key] = tuple((broker, random.choice(["/d1", "/d2"])) for broker in on)
    _miss(random, trace)
    return trace


def _topic(random: Random, name: str) -> TracedTopic:
    made = random.randrange(BEFORE + 2 * DAY, BEFORE + SEEN - DAY) if random.random() < 0.15 else 0
    segment = random.choice([GIB, GIB, 256 * MIB, 100 * MIB])
    rate = 20 * MIB * random.lognormvariate(0, 1.3)
    growth = random.choice([0.0, random.uniform(-0.004, 0.01)])
    week = 7.0 * DAY
    kinds: list[dict[str, object]] = [
        {},
        {"retention_hours": random.choice([6.0, 24.0, 72.0])},
        {"retention_hours": random.choice([336.0, 720.0])},
        {"retention_hours": None, "retention_bytes": random.choice([5, 10, 20]) * segment},
        {"retention_bytes": random.choice([5, 10, 40]) * segment},
        {"retention_hours": None},
        {"is_compacted": True, "is_deleted": False},
        {"is_compacted": True, "retention_hours": week},
        {"is_tiered": True, "retention_hours": 60.0 * DAY, "local_hours": random.choice([12.0, 48.0])},
        {"is_tiered": True, "retention_hours": week, "local_hours": None},
    ]
    kind = random.choices(kinds, weights=[5, 3, 2, 2, 2, 3, 2, 1, 1, 1])[0]
    return TracedTopic(
        name,
        random.randint(1, 4),
        rate,
        growth,
        segment_bytes=segment,
        made_at=made,
        **kind,  # type: ignore[arg-type]
    )


def _days(random: Random, noise: float) -> list[float]:
    """Return how much busier than usual each day is, as a logarithm: days are like the day before, with chance."""
    found, level = [], 0.0
    for _ in range(_WHOLE // DAY + 1):
        level = 0.6 * level + random.gauss(0, noise)
        found.append(level)
    return found


def _played(
    random: Random, topic: TracedTopic, share: float, days: list[float], shape: tuple[float, float, int]
) -> list[int | None]:
    daily, weekend, peak = shape
    log = _Log(topic, random)
    found: list[int | None] = []
    for hour in range(_WHOLE):
        if hour >= topic.made_at:
            rhythm = 1 + daily * math.cos(2 * math.pi * (hour - peak) / DAY)
            rhythm *= 1 - weekend * (hour // DAY % 7 >= 5)
            rate = topic.hourly_bytes * share * rhythm * math.exp(topic.growth_a_day * (hour - BEFORE) / DAY)
            log.take(hour, int(rate * math.exp(days[hour // DAY] + random.gauss(0, 0.15))))
        if hour >= BEFORE:
            found.append(log.size if hour >= topic.made_at else None)
    return found


class _Log:
    """One partition's log: segments of [first hour, last hour, bytes], the last one active, the first ones clean."""

    def __init__(self, topic: TracedTopic, random: Random) -> None:
        self.topic = topic
        self.segments: list[list[int]] = []
        self.clean = 0
        self.keys = int(topic.hourly_bytes * random.uniform(50, 400))

    @property
    def size(self) -> int:
        return sum(segment[2] for segment in self.segments)

    def take(self, hour: int, count: int) -> None:
        topic = self.topic
        while count > 0:
            last = self.segments[-1] if self.segments else None
            if last is None or last[2] >= topic.segment_bytes or hour - last[0] >= topic.segment_hours:
                last = [hour, hour, 0]
                self.segments.append(last)
            part = min(count, topic.segment_bytes - last[2])
            last[1], last[2] = hour, last[2] + part
            count -= part
        if topic.is_compacted:
            self._clean()
        if topic.is_deleted:
            self._delete(hour)

    def _clean(self) -> None:
        """Rewrite all but the active segment: the more it is, the more of it are keys that are there already."""
        closed = [segment[2] for segment in self.segments[:-1]]
        dirty = sum(closed[self.clean :])
        if dirty and dirty >= sum(closed[: self.clean]):
            left = self.keys * (1 - math.exp(-sum(closed) / self.keys))
            for segment in self.segments[:-1]:
                segment[2] = int(segment[2] * left / sum(closed))
            self.clean = len(closed)

    def _delete(self, hour: int) -> None:
        topic = self.topic
        kept = topic.kept_hours
        while len(self.segments) > 1:
            first = self.segments[0]
            is_old = kept is not None and hour - first[1] > kept
            is_over = topic.retention_bytes is not None and self.size - first[2] >= topic.retention_bytes
            if not (is_old or is_over):
                break
            self.segments.pop(0)
            self.clean = max(0, self.clean - 1)


def _miss(random: Random, trace: Trace) -> None:
    """Leave out hours at random, and half a day of a broker's partitions."""
    broken, at = random.randint(1, 3), random.randrange(SEEN - 12)
    for key, places in trace.places.items():
        lost = {hour for hour in range(SEEN) if random.random() < 0.05}
        if places[0][0] == broken:
            lost |= set(range(at, at + 12))
        trace.missed[key] = lost


def cluster_of(trace: Trace, free: Mapping[tuple[int, str], int]) -> Cluster:
    """Return the cluster as it is at the last sample, with so many bytes free on each disk."""
    brokers = {}
    for broker in sorted({broker for broker, _ in trace.disks}):
        mine = [disk for disk in trace.disks if disk[0] == broker]
        dirs = tuple(LogDir(disk[1], trace.disk(*disk, NOW) + free[disk], free[disk]) for disk in mine)
        brokers[broker] = Broker(broker, rack="abc"[broker % 3], log_dirs=dirs)
    partitions: dict[str, list[Partition]] = {}
    for (topic, number), places in sorted(trace.places.items()):
        replicas = tuple(broker for broker, _ in places)
        size = trace.sizes[topic, number][NOW] or 0
        on = tuple(path for _, path in places)
        one = Partition(number, replicas[0], replicas, replicas, sizes=(size,) * len(replicas), log_dirs=on)
        partitions.setdefault(topic, []).append(one)
    topics = {name: Topic(name, tuple(made), configs=trace.topics[name].configs) for name, made in partitions.items()}
    return Cluster(trace.name, brokers=brokers, topics=topics)


def samples_of(trace: Trace, hours: int = SEEN) -> Iterator[tuple[str, int, int, int]]:
    """Yield what was seen in the last so many hours: topic, partition, hour, size."""
    for (topic, partition), sizes in sorted(trace.sizes.items()):
        for hour in range(SEEN - hours, SEEN):
            size = sizes[hour]
            if size is not None and hour not in trace.missed[topic, partition]:
                yield topic, partition, hour, size
