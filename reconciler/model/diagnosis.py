"""What a doctor found: findings with what to do next, rights, whose each throttle is, which broker may stop."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.model.starting import Start
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import Features, Quorum


class Gravity(StrEnum):
    """How much a finding weighs: an error ends `doctor` with exit code 1; a warning and a note do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its stable code, what it is, what to do next, and what it is about.

    `bytes_behind`, `records_behind`: by how much followers lag, in all; `bytes_on_disk`: what strays hold. None where
    log dirs do not tell.
    """

    code: str
    gravity: Gravity
    message: str
    next: str = ""
    brokers: tuple[int, ...] = ()
    topics: tuple[str, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()
    bytes_behind: int | None = None
    records_behind: int | None = None
    bytes_on_disk: int | None = None


@dataclass(frozen=True, slots=True)
class NeededRight:
    """An operation on a kind of resource, what it is for, and where this user lacks it.

    `verbs`: the verbs that need it. `lacking`: the topics or groups without it; for the cluster `is_granted` says all.
    """

    operation: str
    resource: str
    verbs: tuple[str, ...]
    purpose: str
    is_granted: bool
    lacking: tuple[str, ...] = ()


class Whose(StrEnum):
    """Whose a throttle is: of a run under way, left by an earlier run, or set by somebody else."""

    RUN = "run"
    LEFTOVER = "leftover"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class FoundThrottle:
    """One throttle key as it is set. `owner`: a broker id or a topic; `plan_id`: whose run it is of, None for others.

    `restored`: the value that it goes back to once the run's own part is taken off, None for no override.
    """

    owner: int | str
    key: str
    value: str
    whose: Whose
    plan_id: str | None = None
    restored: str | None = None


@dataclass(frozen=True, slots=True)
class KnownRun:
    """What is known here of a plan's run, from its journal and its plan.

    `is_open`: it began and its end is not recorded. `by`: who started it, in words, where the cluster's record tells.
    `targets`: the ordered lists that its moves go to. `throttles`: what it has on the cluster now, as (broker id or
    topic, key) -> the value once its own part is taken off. `unrestored`: brokers that keep a rate of it and cannot be
    asked.
    """

    plan_id: str
    is_open: bool = False
    by: str | None = None
    began: str | None = None
    targets: Mapping[TopicPartition, frozenset[tuple[int, ...]]] = field(default_factory=dict)
    throttles: Mapping[tuple[int | str, str], str | None] = field(default_factory=dict)
    unrestored: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that was found. `findings` are sorted, the gravest first.

    `rights` and `features` are None where a snapshot was read. `blocking`: for each broker that is not safe to stop,
    the partitions that would go under min ISR, or offline, without it. `start`: dead brokers, in the order in which to
    start them. `quorum`: None where a snapshot was read. `holder`: who holds the
    cluster's lock. `unexamined`: what could not be looked at.
    """

    cluster_id: str
    is_snapshot: bool
    observed_at: str | None
    release: str | None
    brokers: int
    topics: int
    partitions: int
    findings: tuple[Finding, ...] = ()
    features: Features | None = None
    rights: tuple[NeededRight, ...] | None = None
    throttles: tuple[FoundThrottle, ...] = ()
    safe_to_stop: tuple[int, ...] = ()
    blocking: Mapping[int, tuple[TopicPartition, ...]] = field(default_factory=dict)
    start: tuple[Start, ...] = ()
    quorum: Quorum | None = None
    holder: str | None = None
    unexamined: tuple[str, ...] = ()

    def count(self, gravity: Gravity) -> int:
        """Return how many findings weigh that much."""
        return sum(finding.gravity is gravity for finding in self.findings)

    @property
    def is_healthy(self) -> bool:
        """Whether there is no error among the findings."""
        return self.count(Gravity.ERROR) == 0
