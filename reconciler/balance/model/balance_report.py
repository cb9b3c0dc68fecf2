"""Holds what `balance` finds: the load of brokers, racks, log dirs, topics and clusters, before and after a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar

from reconciler.model.codec import ALWAYS, HIDDEN, REQUIRED, Integer, Key, Pattern, When
from reconciler.model.evenness import Evenness
from reconciler.model.problem import Problem, ReportedProblem


class Level(StrEnum):
    """What a load is summed over."""

    CLUSTER = "cluster"
    RACK = "rack"
    BROKER = "broker"
    LOG_DIR = "logDir"
    TOPIC = "topic"


class Measure(StrEnum):
    """What evenness is told of; those of rates once for each statistic."""

    REPLICAS = "replicas"
    LEADERS = "leaders"
    SIZE = "sizeBytes"
    IN = "bytesIn"
    OUT = "bytesOut"


class RateStatistic(StrEnum):
    """Which figure of a rate."""

    AVERAGE = "average"
    P95 = "p95"
    MAXIMUM = "maximum"
    PEAK = "peak"


@dataclass(frozen=True, slots=True)
class Rate:
    """Bytes a second, of the sum in each time bucket; null where nothing is known."""

    average: Annotated[float | None, REQUIRED, "The mean over the buckets."] = None
    p95: Annotated[float | None, REQUIRED, "The 95th percentile; null also where loads were read."] = None
    maximum: Annotated[float | None, REQUIRED, "The maximum; null also where loads were read."] = None
    peak: Annotated[float | None, REQUIRED, "Its value in the cluster's busiest bucket."] = None
    coverage: Annotated[
        float | None,
        REQUIRED,
        "Of the samples that should be there, the share that is (0 to 1): over the replicas for what comes in, over "
        "the leaders for what goes out.",
    ] = None

    def of(self, statistic: RateStatistic) -> float | None:
        """Return that figure."""
        match statistic:
            case RateStatistic.AVERAGE:
                return self.average
            case RateStatistic.P95:
                return self.p95
            case RateStatistic.MAXIMUM:
                return self.maximum
            case RateStatistic.PEAK:
                return self.peak


@dataclass(frozen=True, slots=True)
class Load:
    """What a broker, rack, log dir, topic or cluster carries, followers' traffic counted."""

    replicas: Annotated[int, REQUIRED, "Replicas that it holds."] = 0
    leaders: Annotated[int, REQUIRED, "Partitions that it leads."] = 0
    preferred_leaders: Annotated[int, REQUIRED, "Partitions whose first replica it holds."] = 0
    size_bytes: Annotated[int | None, REQUIRED, "The sum of its replicas' known sizes; null: none is known."] = None
    bytes_in: Annotated[Rate, Key("bytesInPerSecond"), REQUIRED, "What all its replicas take in."] = Rate()
    bytes_out: Annotated[
        Rate,
        Key("bytesOutPerSecond"),
        REQUIRED,
        "What consumers take from its leaders, and what the followers of these fetch.",
    ] = Rate()
    growth_bytes_per_day: Annotated[
        float | None, REQUIRED, "The slope of the size over time, by least squares, summed over partitions."
    ] = None
    total_bytes: Annotated[Integer | None, REQUIRED, "What its disks hold."] = None
    free_bytes: Annotated[Integer | None, REQUIRED, "What is free on them."] = None
    days_until_full: Annotated[
        float | None,
        REQUIRED,
        "Days until the first of its log dirs is full if its partitions grow on as they did. Null also "
        "where nothing grows, or where no log dir is full within ten years.",
    ] = None
    leader_imbalance: Annotated[
        float | None,
        REQUIRED,
        "Kafka's own ratio: of the partitions that prefer this broker, the share that it does not lead (0 to 1; null: "
        "none prefers it). Kafka's line is 0.1.",
    ] = None
    unknown_sizes: Annotated[int, REQUIRED, "Replicas whose size is not known."] = 0


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a plan copies to a broker and takes away from it; of a cluster, all that is copied and all that goes."""

    arriving_replicas: Annotated[int, REQUIRED, "Replicas that are copied to it."] = 0
    arriving_bytes: Annotated[int, REQUIRED, "Their bytes."] = 0
    leaving_replicas: Annotated[int, REQUIRED, "Replicas that go."] = 0
    leaving_bytes: Annotated[int, REQUIRED, "Their bytes."] = 0


_BROKER, _RACK, _LOG_DIR, _TOPIC = (
    When(lambda row: row.level is Level.BROKER),
    When(lambda row: row.level in {Level.BROKER, Level.RACK}),
    When(lambda row: row.level is Level.LOG_DIR),
    When(lambda row: row.level is Level.TOPIC),
)
_BROKER_ID = When(lambda row: row.level in {Level.BROKER, Level.LOG_DIR})


@dataclass(frozen=True, slots=True)
class LoadRow:
    """A broker, rack, log dir, topic or the whole cluster; only what names it is there.

    Replicas whose log dir is not known are in no log dir's row.
    """

    level: Annotated[Level, HIDDEN]
    broker: Annotated[int | None, ALWAYS, _BROKER_ID, "The broker's id."] = None
    rack: Annotated[str | None, ALWAYS, _RACK, "Its rack; null: that of brokers without one."] = None
    log_dir: Annotated[str | None, ALWAYS, _LOG_DIR, "The log dir's path."] = None
    topic: Annotated[str | None, ALWAYS, _TOPIC, "The topic's name."] = None
    capacity: Annotated[int | None, ALWAYS, _BROKER, "A weight; 0: declared to end empty."] = None
    weights: Annotated[
        Mapping[str, int],
        _BROKER,
        "Its weights by measure, those that differ from its capacity; that of disk may be the disks' size.",
    ] = field(default_factory=dict)
    is_alive: Annotated[bool, ALWAYS, _BROKER, "Whether it is registered and not fenced."] = True
    before: Annotated[Load | None, REQUIRED, "As it is observed; null for what a plan creates."] = None
    after: Annotated[Load | None, REQUIRED, "As a plan leaves it; null without one, and for what it deletes."] = None
    moved: Annotated[
        Traffic | None, "What the plan copies to it and takes away: of brokers and the cluster, with a plan."
    ] = None


@dataclass(frozen=True, slots=True)
class Skew:
    """How even one measure is over the brokers."""

    measure: Annotated[Measure, "What it is told of."]
    statistic: Annotated[RateStatistic | None, REQUIRED, "Which figure of a rate; null for counts and sizes."] = None
    before: Annotated[Evenness | None, REQUIRED, "As it is observed."] = None
    after: Annotated[Evenness | None, REQUIRED, "As a plan leaves it; null without one."] = None


@dataclass(frozen=True, slots=True)
class Span:
    """The time buckets that samples fill."""

    buckets: Annotated[int, "How many buckets have samples."]
    seconds: Annotated[int, "The usual time from one bucket to the next."]
    first: Annotated[str, "Start of the first bucket, ISO 8601."]
    last: Annotated[str, "Start of the last bucket, ISO 8601."]


@dataclass(frozen=True, slots=True)
class Headroom:
    """How much of a broker's network may be used, moves included: a share of `most` bytes a second and direction.

    Without `most` of what was seen of each broker at the most.
    """

    share: float
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Busiest:
    """The broker that carries most, and how much."""

    broker: Annotated[int, "Its id."]
    bytes_per_second: Annotated[float, "The most in any time bucket of that hour."]


@dataclass(frozen=True, slots=True)
class HourOfWeek:
    """One hour of the week, over all weeks that samples cover."""

    hour: Annotated[str, Pattern("^(mon|tue|wed|thu|fri|sat|sun) [0-2][0-9]:00$"), "When it begins, in UTC."]
    busiest_in: Annotated[Busiest | None, REQUIRED, "The broker that takes in most then; null: not known."] = None
    busiest_out: Annotated[Busiest | None, REQUIRED, "The broker that sends most then; null: not known."] = None
    throttle_bytes_per_second: Annotated[
        int | None,
        REQUIRED,
        "The highest throttle of moves beside which each broker stays within the headroom, in and out; 0: none does.",
    ] = None


_Rows = tuple[LoadRow, ...]


@dataclass(frozen=True, slots=True)
class ClusterBalance:
    """A cluster that was compared. Rows are sorted by what names them."""

    name: Annotated[str, Key("cluster"), "The name that samples call it by."]
    total: Annotated[LoadRow, "The whole cluster."]
    brokers: Annotated[_Rows, REQUIRED, "Each broker, by id."] = ()
    racks: Annotated[_Rows, REQUIRED, "Each rack; null is that of brokers without one."] = ()
    log_dirs: Annotated[_Rows, REQUIRED, "Each log dir."] = ()
    topics: Annotated[_Rows, REQUIRED, "The thousand with most traffic, the greatest first; --out has all."] = ()
    topic_count: Annotated[int, REQUIRED, "How many topics there are, on either side."] = 0
    partition_count: Annotated[int, Key("partitions"), REQUIRED, "How many partitions there are, before a plan."] = 0
    skews: Annotated[
        tuple[Skew, ...], Key("evenness"), REQUIRED, "How even each measure is over the brokers, by capacity."
    ] = ()
    span: Annotated[Span | None, REQUIRED, "The time buckets that samples fill; null where loads were read."] = None
    hours: Annotated[
        tuple[HourOfWeek, ...], "With --headroom: each hour of the week that has samples, from Monday on."
    ] = ()
    cluster_id: Annotated[str | None, REQUIRED, "Kafka's own id."] = None
    observed_at: Annotated[str | None, REQUIRED, "When it was observed, ISO 8601 in UTC."] = None
    plan_id: Annotated[str | None, REQUIRED, "The plan that `after` is of; null without one."] = None
    warnings: Annotated[tuple[Problem, ...], HIDDEN] = ()

    @property
    def reported_warnings(
        self,
    ) -> Annotated[tuple[ReportedProblem, ...], Key("warnings"), "What is not known, or was left out."]:
        """The warnings as JSON tells them."""
        return tuple(map(ReportedProblem.of, self.warnings))

    def skew(self, measure: Measure, statistic: RateStatistic | None = None) -> Skew | None:
        """Return how even that measure is, None where it is not known."""
        return next((each for each in self.skews if (each.measure, each.statistic) == (measure, statistic)), None)


@dataclass(frozen=True, slots=True)
class BalanceReport:
    """The balance of each cluster. Rates are bytes a second, followers' traffic counted; null is unknown."""

    format_version: ClassVar[
        Annotated[str, Pattern(r"^1\.[0-9]+$"), "Version of this form; another major one would be another form."]
    ] = "1.0"
    source: Annotated[str, "The samples or loads that were read."]
    from_samples: Annotated[bool, "False: loads were read, so percentiles and maxima are null."]
    clusters: Annotated[tuple[ClusterBalance, ...], REQUIRED, "Each cluster that was compared, by name."] = ()
    defects: Annotated[
        Mapping[str, int],
        REQUIRED,
        "How often samples broke each rule, most often 0, over all clusters; empty where loads were read. Rules are "
        "held against what the figures come from: bytes and sizes, and offsets where a rate had to be made from them.",
    ] = field(default_factory=dict)
    warnings: Annotated[tuple[Problem, ...], HIDDEN] = ()
    samples: Annotated[int, HIDDEN] = 0
    """How many samples count, or time buckets of partitions where samples had to be put in order; 0 for loads."""

    @property
    def reported_warnings(
        self,
    ) -> Annotated[tuple[ReportedProblem, ...], Key("warnings"), "What is not known, or was left out."]:
        """The warnings as JSON tells them."""
        return tuple(map(ReportedProblem.of, self.warnings))

    @property
    def has_plan(self) -> bool:
        """Whether there is an after to compare with."""
        return any(cluster.plan_id is not None for cluster in self.clusters)
