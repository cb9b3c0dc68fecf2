"""Holds what `diff` tells others of drift: a message to a webhook, and figures of each cluster for Prometheus."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

from reconciler.model.codec import REQUIRED, Pattern
from reconciler.model.diagnosis import FindingCounts
from reconciler.model.problem import Location

JSON, SLACK = FORMS = ("json", "slack")
"""The forms of a message."""


class Whose(NamedTuple):
    """Who owns a topic, and whom to ask, where that is told."""

    owner: str
    contact: str | None = None


@dataclass(frozen=True, slots=True)
class ToldDifference:
    """One thing that differs."""

    subject: Annotated[str, "The topic, its partition or the broker; empty: the cluster as a whole."]
    what: Annotated[str, "What differs, old -> new, which the next plan would do; or why it stays as it is."]
    owner: Annotated[str | None, REQUIRED, "Who owns the topic, as files tell; null: they do not."] = None
    contact: Annotated[str | None, REQUIRED, "Whom to ask, as the Owner says; null: it does not."] = None
    at: Annotated[Location | None, "File and line that ask for it."] = None


@dataclass(frozen=True, slots=True)
class NoticeOfCluster:
    """What a message tells of one cluster."""

    cluster: Annotated[str, "The cluster's name."]
    result: Annotated[str, "What came of it, in a few words."]
    exit_code: Annotated[int, "The exit code of `diff` for this cluster alone."]
    differences: Annotated[int | None, REQUIRED, "How many differences; null: it could not be looked at."] = None
    undeclared_topics: Annotated[
        int | None, REQUIRED, "How many topics no file declares, without internal and ignored ones; null: unknown."
    ] = None
    told: Annotated[tuple[ToldDifference, ...], REQUIRED, "The first of them, the gravest first."] = ()
    untold: Annotated[int, REQUIRED, "How many more there are."] = 0
    reason: Annotated[str | None, REQUIRED, "Why it could not be looked at."] = None

    @property
    def is_different(self) -> bool:
        """Whether it differs from its files, or could not be looked at."""
        return bool(self.differences) or self.reason is not None

    @property
    def is_drift(self) -> bool:
        """The same, topics that no file declares included."""
        return self.is_different or bool(self.undeclared_topics)


@dataclass(frozen=True, slots=True)
class Notice:
    """One message about all clusters of a call."""

    format_version: ClassVar[
        Annotated[str, Pattern(r"^1\.[0-9]+$"), "Version of this form; another major one would be another form."]
    ] = "1.0"
    text: Annotated[str, "All of it in words, for people."]
    clusters: Annotated[tuple[NoticeOfCluster, ...], "Each cluster that was asked for, in this order."]

    @property
    def is_drift(self) -> Annotated[bool, "Whether any cluster differs, has undeclared topics, or failed."]:
        """Whether there is anything to tell."""
        return any(one.is_drift for one in self.clusters)

    @property
    def is_different(self) -> bool:
        """The same without topics that no file declares."""
        return any(one.is_different for one in self.clusters)


@dataclass(frozen=True, slots=True)
class DriftFigures:
    """Figures of one cluster for Prometheus. None is not known, and no series.

    `findings`: what doctor found. `last_success_at`: when the cluster was last compared, in seconds since 1970.
    """

    cluster: str
    is_failed: bool
    differences: int | None = None
    undeclared_topics: int | None = None
    findings: FindingCounts | None = None
    last_success_at: float | None = None
