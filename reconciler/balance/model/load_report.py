"""Holds what was wrong with the samples that loads were made of: counted rule by rule, never hidden."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar

from reconciler.model.codec import HIDDEN, REQUIRED, Key, Pattern


class Rule(StrEnum):
    """A way in which samples are not what they should be; each has one treatment, told by `treatment`."""

    UNREADABLE = "unreadable"
    INCOMPLETE = "incomplete"
    FUTURE = "future"
    UNKNOWN_PARTITION = "unknownPartition"
    DUPLICATE = "duplicate"
    LATE = "late"
    NEGATIVE = "negative"
    NOT_A_NUMBER = "notANumber"
    COUNTER_RESET = "counterReset"
    FALLEN_OFFSET = "fallenOffset"
    GAP = "gap"
    FILLED_BY_HOUR = "filledByHour"
    FILLED_BY_P95 = "filledByP95"
    FILLED_BY_TOPIC = "filledByTopic"
    NOT_FILLED = "notFilled"
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
    Rule.DUPLICATE: "samples of a partition and moment that has another: the last written counts",
    Rule.LATE: "samples written after newer ones: counted in their own time bucket",
    Rule.NEGATIVE: "samples with a negative figure: unknown",
    Rule.NOT_A_NUMBER: "samples with a rate that is NaN, infinite or above 1 TB a second: unknown",
    Rule.COUNTER_RESET: "counters that began anew: the rate is made of the new value alone",
    Rule.FALLEN_OFFSET: "log end offsets below an earlier one of the same log: unknown, no rate is made of them",
    Rule.GAP: "time buckets of partitions without a sample: coverage falls, averages leave them out",
    Rule.FILLED_BY_HOUR: "time buckets in which a rate is estimated by the partition's hour of the week",
    Rule.FILLED_BY_P95: "time buckets in which a rate is estimated by the partition's 95th percentile",
    Rule.FILLED_BY_TOPIC: "time buckets in which a rate is estimated by the others of the topic",
    Rule.NOT_FILLED: "time buckets in which a rate is missing and not estimated: too little was seen of the partition",
    Rule.MISSING_PARTITION: "partitions without a sample: not in the result",
    Rule.ESTIMATED: "samples with a rate that was not measured, but made from growth or a topic's rate",
    Rule.NOT_SPLIT: "rates of topics none of whose partitions is known at that moment: left out",
    Rule.UNUSED_SERIES: "series of Prometheus that tell nothing of a partition's log or a topic's rate: left out",
}


FILLED = (Rule.FILLED_BY_HOUR, Rule.FILLED_BY_P95, Rule.FILLED_BY_TOPIC, Rule.NOT_FILLED)
"""How a time bucket without a rate was filled, the most certain way first."""
ABSENT = frozenset((Rule.GAP, Rule.MISSING_PARTITION, *FILLED))
"""The rules about samples that are not there, which no sample can break."""


@dataclass(frozen=True, slots=True)
class ClusterSamples:
    """What was seen of one cluster. Times are ISO 8601 in UTC."""

    cluster: Annotated[str | None, "The cluster; null for samples of none."]
    partitions: Annotated[int, REQUIRED, "Partitions with a load."] = 0
    samples: Annotated[int, REQUIRED, "Samples that count."] = 0
    first_bucket: Annotated[str | None, REQUIRED, "The first time bucket."] = None
    last_bucket: Annotated[str | None, REQUIRED, "The last one."] = None
    step_seconds: Annotated[
        int | None, REQUIRED, "Usual time from one bucket to the next, which coverage is measured against."
    ] = None
    busiest_bucket: Annotated[
        str | None,
        REQUIRED,
        "The bucket with the most bytes in and out over all partitions, in which `peak` is taken; null: no rate known.",
    ] = None
    coverage: Annotated[float | None, REQUIRED, "Share of the buckets that have samples, 0 to 1."] = None
    defects: Annotated[Mapping[Rule, int], HIDDEN] = field(default_factory=dict)

    @property
    def all_defects(
        self,
    ) -> Annotated[Mapping[str, int], Key("defects"), "Samples that each rule found, by rule, zeros included."]:
        """The defects of every rule."""
        return {rule.value: self.defects.get(rule, 0) for rule in Rule}


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What the samples were, and what was wrong with them, rule by rule. Null is unknown."""

    format_version: ClassVar[
        Annotated[str, Pattern(r"^1\.[0-9]+$"), "Version of this form; another major one would be another form."]
    ] = "1.0"
    bucket_seconds: Annotated[int, "Length of a time bucket."]
    clusters: Annotated[tuple[ClusterSamples, ...], REQUIRED, "The clusters, by name."] = ()
    notes: Annotated[tuple[str, ...], REQUIRED, "Files that were left out, and why."] = ()

    @property
    def partitions(self) -> Annotated[int, "Partitions with a load."]:
        """The partitions in the result."""
        return sum(cluster.partitions for cluster in self.clusters)

    @property
    def samples(self) -> Annotated[int, "Samples that count."]:
        """The samples that counted."""
        return sum(cluster.samples for cluster in self.clusters)
