"""Holds what a doctor found: findings with what to do next, rights, whose each throttle is, which broker may stop."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar

from reconciler.model.codec import HIDDEN, REQUIRED, Ids, Pattern
from reconciler.model.problem import Severity
from reconciler.model.several import Failed, Outcomes
from reconciler.model.starting import StartOrder
from reconciler.model.topic_partition import PartitionObject, TopicPartition
from reconciler.model.vitals import Features, Quorum
from reconciler.model.words import owner_name


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding."""

    code: Annotated[str, Pattern("^KR[0-9]{3}$"), "The stable code."]
    severity: Annotated[Severity, "An error makes the exit code 1; a warning or a note does not."]
    message: Annotated[str, "What it is."]
    next: Annotated[str, REQUIRED, "What to do next."] = ""
    brokers: Annotated[tuple[int, ...], REQUIRED, "The broker ids that it is about."] = ()
    topics: Annotated[tuple[str, ...], REQUIRED, "The topics that it is about."] = ()
    partitions: Annotated[tuple[PartitionObject, ...], REQUIRED, "The partitions that it is about."] = ()
    bytes_behind: Annotated[int | None, REQUIRED, "By how much followers lag, in all; null: log dirs do not tell."] = (
        None
    )
    records_behind: Annotated[int | None, REQUIRED, "By how much followers lag, in all."] = None
    bytes_on_disk: Annotated[int | None, REQUIRED, "What stray replicas hold."] = None


@dataclass(frozen=True, slots=True)
class NeededRight:
    """A right that some verb needs."""

    operation: Annotated[str, "Kafka's operation, such as AlterConfigs."]
    resource: Annotated[str, "The kind of resource that it is held on: cluster, topic or group."]
    verbs: Annotated[tuple[str, ...], "The verbs that need it."]
    purpose: Annotated[str, "What they need it for."]
    is_granted: Annotated[bool, "Whether this user has it everywhere."]
    lacking: Annotated[tuple[str, ...], REQUIRED, "The topics or groups without it; none for the cluster."] = ()


class Whose(StrEnum):
    """Whose a throttle is: of a run under way, left by an earlier run, undecided, or set by somebody else."""

    RUN = "run"
    LEFTOVER = "leftover"
    RECORDED = "recorded"
    """Left by an earlier run, as only its record in the cluster says, which others can write."""
    UNDECIDED = "undecided"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class FoundThrottle:
    """A throttle key that is set, or that a record in the cluster says was set."""

    owner: Annotated[int | str, HIDDEN]
    """A broker id or a topic."""
    key: Annotated[str, "The config key."]
    value: Annotated[str | None, "Its value; null: it is not set."]
    whose: Annotated[
        Whose,
        "Of a run under way, left by one, the same as only its record in the cluster says, of a run or somebody else "
        "(undecided), or of somebody else.",
    ]
    plan_id: Annotated[str | None, REQUIRED, "The plan of that run."] = None
    restored: Annotated[
        str | None, REQUIRED, "What it goes back to once the run's own part is off; null: no override."
    ] = None

    def __str__(self) -> str:
        value = " is not set" if self.value is None else f"={self.value}"
        return f"{owner_name(self.owner)}: {self.key}{value}"

    @property
    def broker(self) -> Annotated[int | None, "Of which broker; null for a topic's."]:
        """The broker that has it, None for a topic's."""
        return self.owner if isinstance(self.owner, int) else None

    @property
    def topic(self) -> Annotated[str | None, "Of which topic; null for a broker's."]:
        """The topic that has it, None for a broker's."""
        return self.owner if isinstance(self.owner, str) else None


@dataclass(frozen=True, slots=True)
class KnownRun:
    """What is known here of a plan's run, from its journal and its plan.

    `is_open`: it began and its end is not recorded. `by`: who started it, in words, where the cluster's record tells.
    `targets`: the ordered lists that its moves go to. `throttles`: what it has on the cluster now, as (broker id or
    topic, key) -> the value once its own part is taken off. `undecided`: the plan's own values that may be its, or
    somebody else's. `unrestored`: brokers that keep a rate of it and cannot be asked.
    """

    plan_id: str
    is_open: bool = False
    by: str | None = None
    began: str | None = None
    targets: Mapping[TopicPartition, frozenset[tuple[int, ...]]] = field(default_factory=dict)
    throttles: Mapping[tuple[int | str, str], str | None] = field(default_factory=dict)
    claims: Mapping[tuple[int | str, str], str | None] = field(default_factory=dict)
    """The same, by the record in the cluster alone, which others can write."""
    undecided: frozenset[tuple[int | str, str]] = frozenset()
    unrestored: tuple[int, ...] = ()
    is_record_bare: bool = False
    """Its record in the cluster was too large to name its throttles, and its plan is not here."""


@dataclass(frozen=True, slots=True)
class FindingCounts:
    """Findings by severity."""

    errors: Annotated[int, "How many."]
    warnings: Annotated[int, "How many."]
    notes: Annotated[int, "How many."]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that was found. Null is unknown, or not told by a snapshot."""

    format_version: ClassVar[
        Annotated[str, Pattern(r"^2\.[0-9]+$"), "Version of this form; another major one would be another form."]
    ] = "2.0"
    cluster_id: Annotated[str, "The cluster that answers, or that the snapshot is of."]
    is_snapshot: Annotated[bool, "A snapshot was read: rights, strays, lag, the lock and static settings are not told."]
    observed_at: Annotated[str | None, "When, ISO 8601 in UTC."]
    kafka_version: Annotated[str | None, "The release that metadata.version is named after."]
    brokers: Annotated[int, "How many."]
    topics: Annotated[int, "How many."]
    partitions: Annotated[int, "How many."]
    cluster: Annotated[str | None, REQUIRED, "The name that it is declared under; null where it is not."] = None
    findings: Annotated[tuple[Finding, ...], REQUIRED, "What was found, the gravest first."] = ()
    features: Annotated[Features | None, REQUIRED, "What the brokers can do, and what the cluster has switched on."] = (
        None
    )
    rights: Annotated[
        tuple[NeededRight, ...] | None, REQUIRED, "Each right that some verb needs, and whether this user has it."
    ] = None
    throttles: Annotated[tuple[FoundThrottle, ...], REQUIRED, "Every throttle key that is set."] = ()
    safe_to_stop: Annotated[Ids, REQUIRED, "Brokers that can stop, one at a time."] = ()
    blocking: Annotated[
        Mapping[int, Annotated[tuple[PartitionObject, ...], "Partitions."]],
        REQUIRED,
        "For each broker that is not safe to stop, the partitions that would go under min ISR, or offline.",
    ] = field(default_factory=dict)
    start: StartOrder = ()
    quorum: Annotated[Quorum | None, REQUIRED, "The metadata quorum; null of a snapshot, or where it is not told."] = (
        None
    )
    locked_by: Annotated[str | None, REQUIRED, "Who holds the cluster's lock."] = None
    unexamined: Annotated[tuple[str, ...], REQUIRED, "What could not be looked at, and why."] = ()
    restored: Annotated[tuple[str, ...], REQUIRED, "What --fix throttles brought back."] = ()

    def count(self, severity: Severity) -> int:
        """Return how many findings weigh that much."""
        return sum(finding.severity is severity for finding in self.findings)

    @property
    def summary(self) -> Annotated[FindingCounts, "How many findings of each severity."]:
        """How many findings of each severity."""
        return FindingCounts(*map(self.count, (Severity.ERROR, Severity.WARNING, Severity.NOTE)))

    @property
    def is_healthy(self) -> Annotated[bool, "No finding is an error; the exit code is 0."]:
        """Whether there is no error among the findings."""
        return self.count(Severity.ERROR) == 0


@dataclass(frozen=True, slots=True)
class DiagnosesReport:
    """What `doctor` tells of several clusters."""

    clusters: Annotated[tuple[Diagnosis, ...], "What was found in each."]
    failed: Failed
    summary: Outcomes
