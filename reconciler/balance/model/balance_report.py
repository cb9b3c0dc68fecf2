"""Holds what `balance` finds: the load of brokers, racks, log dirs, topics and clusters, before and after a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.model.evenness import Evenness
from reconciler.model.problem import Problem


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
    """Bytes a second, of the sum in each time bucket: its mean, 95th percentile and maximum over the buckets.

    `peak` is its value in the cluster's busiest bucket. Each is None where nothing is known; percentile and maximum
    also where the loads of partitions were read, from which they do not follow. `coverage`: of the samples that should
    be there, the share that is (0 to 1), over the replicas for what comes in and over the leaders for what goes out.
    """

    average: float | None = None
    p95: float | None = None
    maximum: float | None = None
    peak: float | None = None
    coverage: float | None = None

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
    """What one broker, rack, log dir, topic or cluster carries, followers' traffic counted.

    `leaders`: partitions that it leads now, `preferred_leaders`: whose first replica it holds. `bytes_in`: what all its
    replicas take in. `bytes_out`: what consumers take from its leaders, and what the followers of these fetch.
    `size_bytes` is the sum of the known sizes, None where none is; `unknown_sizes` counts replicas without one. What is
    free of `total_bytes` on its disks, and `days_until_full` at `growth_bytes_per_day`, are None where they are not
    known, the days also where nothing grows. Growth is the sum of what its partitions grow; the days of a broker, rack
    or cluster are those of the first of its log dirs that is full. `leader_imbalance` is Kafka's own ratio: of the
    partitions that prefer this broker, the share that it does not lead (0 to 1; None where none prefers it).
    """

    replicas: int = 0
    leaders: int = 0
    preferred_leaders: int = 0
    size_bytes: int | None = None
    bytes_in: Rate = Rate()
    bytes_out: Rate = Rate()
    growth_bytes_per_day: float | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    days_until_full: float | None = None
    leader_imbalance: float | None = None
    unknown_sizes: int = 0


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a plan copies to a broker and takes away from it; of a cluster, all that is copied and all that goes."""

    arriving_replicas: int = 0
    arriving_bytes: int = 0
    leaving_replicas: int = 0
    leaving_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LoadRow:
    """One broker, rack, log dir, topic or the whole cluster; only the fields that name it are set.

    `before` is None for what the plan creates. `after` is None without a plan, and for what the plan deletes. A rack of
    None is that of brokers without one; replicas whose log dir is not known are in no log dir's row. A broker has its
    rack beside it, and its `capacity`: a weight, 0 where it is to be empty. `moved`: brokers and the cluster, with a
    plan.
    """

    level: Level
    broker: int | None = None
    rack: str | None = None
    log_dir: str | None = None
    topic: str | None = None
    capacity: int | None = None
    is_alive: bool = True
    before: Load | None = None
    after: Load | None = None
    moved: Traffic | None = None


@dataclass(frozen=True, slots=True)
class Skew:
    """How even one measure is over the brokers; `statistic` for rates only, `after` None without a plan."""

    measure: Measure
    statistic: RateStatistic | None = None
    before: Evenness | None = None
    after: Evenness | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """The time buckets that samples fill: how many, the usual seconds between two, the first and last start (ISO)."""

    buckets: int
    seconds: int
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class ClusterBalance:
    """One cluster. Rows are sorted by what names them, topics by their traffic, the greatest first.

    `topics` holds the greatest only; `topic_count` is how many there are. `span` is None where loads were read.
    """

    name: str
    total: LoadRow
    brokers: tuple[LoadRow, ...] = ()
    racks: tuple[LoadRow, ...] = ()
    log_dirs: tuple[LoadRow, ...] = ()
    topics: tuple[LoadRow, ...] = ()
    topic_count: int = 0
    partition_count: int = 0
    skews: tuple[Skew, ...] = ()
    span: Span | None = None
    cluster_id: str | None = None
    observed_at: str | None = None
    plan_id: str | None = None
    warnings: tuple[Problem, ...] = ()

    def skew(self, measure: Measure, statistic: RateStatistic | None = None) -> Skew | None:
        """Return how even that measure is, None where it is not known."""
        return next((each for each in self.skews if (each.measure, each.statistic) == (measure, statistic)), None)


@dataclass(frozen=True, slots=True)
class BalanceReport:
    """The balance of each cluster, by name.

    `from_samples`: rates are those of time buckets; otherwise loads were read, so averages and peaks only. `source`
    names what was read. `defects`: how often samples broke each rule (`load_report.Rule`, by its name), most often 0,
    over all clusters; empty where loads were read. Rules are held against what the figures come from: bytes and sizes,
    and offsets only where a rate had to be made from them.
    """

    source: str
    from_samples: bool
    clusters: tuple[ClusterBalance, ...] = ()
    defects: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()

    @property
    def has_plan(self) -> bool:
        """Whether there is an after to compare with."""
        return any(cluster.plan_id is not None for cluster in self.clusters)
