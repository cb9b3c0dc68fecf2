"""Holds what was wrong with the samples that loads were made of: counted rule by rule, never hidden."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Rule(StrEnum):
    """A way in which samples are not what they should be; each has one treatment, told by `treatment`."""

    UNREADABLE = "unreadable"
    INCOMPLETE = "incomplete"
    FUTURE = "future"
    UNKNOWN_PARTITION = "unknownPartition"
    UNKNOWN_BROKER = "unknownBroker"
    DUPLICATE = "duplicate"
    LATE = "late"
    NEGATIVE = "negative"
    NOT_A_NUMBER = "notANumber"
    COUNTER_RESET = "counterReset"
    FALLEN_OFFSET = "fallenOffset"
    GAP = "gap"
    MISSING_PARTITION = "missingPartition"
    ESTIMATED = "estimated"
    NOT_SPLIT = "notSplit"
    UNUSED_SERIES = "unusedSeries"

    @property
    def treatment(self) -> str:
        """What is counted and what was done with it, in words that follow a number."""
        return _TREATMENTS[self]


_TREATMENTS = {
    Rule.UNREADABLE: "samples with something that cannot be read: unknown",
    Rule.INCOMPLETE: "samples without a time, cluster, topic or partition: left out",
    Rule.FUTURE: "samples from the future: left out",
    Rule.UNKNOWN_PARTITION: "samples of partitions that the state does not have: left out",
    Rule.UNKNOWN_BROKER: "samples of replicas on brokers that are not known: left out",
    Rule.DUPLICATE: "samples of a partition and moment that has another: the last written counts",
    Rule.LATE: "samples written after newer ones: counted in their own time bucket",
    Rule.NEGATIVE: "samples with a negative figure: unknown",
    Rule.NOT_A_NUMBER: "samples with a rate that is NaN, infinite or above 1 TB a second: unknown",
    Rule.COUNTER_RESET: "counters that began anew: the rate is made of the new value alone",
    Rule.FALLEN_OFFSET: "log end offsets below an earlier one of the same log: unknown, no rate is made of them",
    Rule.GAP: "time buckets of partitions without a sample: not filled, coverage falls",
    Rule.MISSING_PARTITION: "partitions without a sample: not in the result",
    Rule.ESTIMATED: "samples with a rate that was not measured, but made from growth or a topic's rate",
    Rule.NOT_SPLIT: "rates of topics none of whose partitions is known at that moment: left out",
    Rule.UNUSED_SERIES: "series of Prometheus that tell nothing of a partition's log or a topic's rate: left out",
}


@dataclass(frozen=True, slots=True)
class ClusterSamples:
    """What was seen of one cluster, None being samples that name none.

    Times are ISO 8601 in UTC. `busiest_bucket`: the start of the time bucket with the most bytes in and out over all
    partitions, in which `peak` is taken; None where no rate is known. `step_seconds`: how far apart its time buckets
    usually are, which is what coverage is measured against. `defects` has every rule, most often with 0.
    """

    cluster: str | None
    partitions: int = 0
    samples: int = 0
    first_bucket: str | None = None
    last_bucket: str | None = None
    step_seconds: int | None = None
    busiest_bucket: str | None = None
    coverage: float | None = None
    defects: Mapping[Rule, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What `loads` read and found: clusters by name, and what it left unread."""

    bucket_seconds: int
    clusters: tuple[ClusterSamples, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def partitions(self) -> int:
        """The partitions in the result."""
        return sum(cluster.partitions for cluster in self.clusters)

    @property
    def samples(self) -> int:
        """The samples that counted."""
        return sum(cluster.samples for cluster in self.clusters)
