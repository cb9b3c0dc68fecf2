"""Holds how one cluster's loads went over the time of its samples: its week, skew, what changed, slow brokers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from reconciler.model.codec import REQUIRED, Integer
from reconciler.model.evenness import Evenness

HOURS_A_DAY, HOURS_A_WEEK = 24, 168
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Step(StrEnum):
    """How long one period is."""

    HOUR = "hour"
    DAY = "day"


class Placement(StrEnum):
    """Where replicas stand for a figure."""

    TODAY = "today"
    THEN = "then"


class Cause(StrEnum):
    """What made a load change."""

    TOPIC = "topic"
    BROKER = "broker"
    LEADERSHIP = "leadership"
    REPLICAS = "replicas"


class Slowness(StrEnum):
    """How long a slow broker has been slow: Cruise Control demotes a recent one, and removes a persistent one."""

    RECENT = "recent"
    PERSISTENT = "persistent"


Rates = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Carried:
    """What one broker, or the whole cluster, takes in and sends, a figure an hour of the week or a period."""

    broker: Annotated[int | None, REQUIRED, "The broker's id; null: the whole cluster."] = None
    bytes_in: Annotated[Rates, REQUIRED, "Mean bytes a second in; null where nothing is known."] = ()
    bytes_out: Annotated[Rates, REQUIRED, "Mean bytes a second out; null where nothing is known."] = ()


@dataclass(frozen=True, slots=True)
class SkewAt:
    """How even the brokers were in one period, by capacity; null where not every broker's figure is known."""

    period: Annotated[int, "Which period, from 0 on."]
    placement: Annotated[Placement, "The placement that counts: today's, or that of then, which replica samples tell."]
    replicas: Annotated[
        Evenness | None, REQUIRED, "Of the count of replicas at the end of the period; by the placement of then alone."
    ] = None
    size_bytes: Annotated[Evenness | None, REQUIRED, "Of the bytes on disk at the end of the period."] = None
    bytes_in: Annotated[Evenness | None, REQUIRED, "Of the mean bytes in."] = None
    bytes_out: Annotated[Evenness | None, REQUIRED, "Of the mean bytes out; by the placement of today alone."] = None


@dataclass(frozen=True, slots=True)
class Shift:
    """A figure in the earlier time and in the later one."""

    before: Annotated[int, "Then."]
    after: Annotated[int, "Now."]

    @property
    def change(self) -> Annotated[Integer, "After less before."]:
        """By how much it changed."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one cause adds to a change, or takes from it."""

    cause: Annotated[Cause, "A topic; a broker; or leaders, or replicas, that another broker has now."]
    topic: Annotated[str | None, "The topic, where it is one."] = None
    is_new: Annotated[bool, "Whether the topic had no sample before the later time began."] = False
    broker: Annotated[int | None, "The broker, where it is one."] = None
    from_broker: Annotated[int | None, "The broker that had them, of leaders and replicas."] = None
    to_broker: Annotated[int | None, "The broker that has them now."] = None
    bytes_in: Annotated[Shift | None, REQUIRED, "Bytes a second in; of leaders what producers send."] = None
    bytes_out: Annotated[Shift | None, REQUIRED, "Bytes a second out; of leaders what consumers take."] = None
    size_bytes: Annotated[Shift | None, REQUIRED, "Bytes on disk at the end."] = None
    share: Annotated[float, REQUIRED, "The share of this cause in the bytes in and out that all causes move."] = 0.0


@dataclass(frozen=True, slots=True)
class Changed:
    """How the load of one broker, or of the whole cluster, changed, and what explains most of it."""

    broker: Annotated[int | None, REQUIRED, "The broker's id; null: the whole cluster."] = None
    bytes_in: Annotated[Shift | None, REQUIRED, "Mean bytes a second in, with the placement of today."] = None
    bytes_out: Annotated[Shift | None, REQUIRED, "Mean bytes a second out, with the placement of today."] = None
    size_bytes: Annotated[Shift | None, REQUIRED, "Bytes on disk at the end, with the placement of today."] = None
    causes: Annotated[
        tuple[Contribution, ...], REQUIRED, "Ten causes at most, those first that explain most of in and out."
    ] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed between two times of one length: the last seven days and the seven before, where samples allow it.

    Hours that only one of the two has are left out of both.
    """

    start: Annotated[str, "When the earlier time begins, ISO 8601."]
    middle: Annotated[str, "When the later time begins."]
    end: Annotated[str, "When it ends."]
    is_by_week: Annotated[bool, REQUIRED, "False: samples fill less than two weeks, so halves are compared."] = True
    of: Annotated[
        tuple[Changed, ...], REQUIRED, "The whole cluster, then the brokers that carry most now, the busiest first."
    ] = ()
    brokers: Annotated[
        tuple[Contribution, ...],
        REQUIRED,
        "Ten brokers at most, those first that changed most, with the placement of today.",
    ] = ()


@dataclass(frozen=True, slots=True)
class SlowBroker:
    """A broker whose log flushes took long for what it took in, against itself and its peers, and went on so."""

    broker: Annotated[int, "Its id."]
    slowness: Annotated[Slowness, "How long it went on."]
    since: Annotated[str, "When that was first seen, ISO 8601."]
    until: Annotated[str | None, REQUIRED, "When it was over; null: it lasts."]
    score: Annotated[
        int, "Its most points, 50 at most: each slow window of five minutes adds one, any other takes one away."
    ]
    flush_ms: Annotated[float, "The 99.9th percentile of its log flush times, the mean over the slow windows."]
    peers_ms: Annotated[float, "The median of that over the cluster's brokers in the same windows."]
    bytes_in: Annotated[int, "Bytes a second that it took in then, followers' traffic counted."]


@dataclass(frozen=True, slots=True)
class History:
    """How one cluster's loads went over time. Rates are bytes a second, followers' traffic counted."""

    step: Annotated[Step, "How long a period is: an hour where samples fill less than two days."]
    periods: Annotated[tuple[str, ...], REQUIRED, "When each period begins, ISO 8601 in UTC."] = ()
    hours_of_week: Annotated[
        tuple[Carried, ...],
        REQUIRED,
        "The cluster, then each broker: a figure for each hour of the week, 168 from Monday 00:00 UTC on.",
    ] = ()
    series: Annotated[tuple[Carried, ...], REQUIRED, "The cluster, then each broker: a figure for each period."] = ()
    skews: Annotated[tuple[SkewAt, ...], REQUIRED, "How even each measure was over the brokers, by period."] = ()
    changes: Annotated[Changes | None, REQUIRED, "What changed; null where samples fill less than two hours."] = None
    has_broker_samples: Annotated[
        bool, REQUIRED, "Whether samples of brokers tell log flush times; without them none is said to be slow."
    ] = False
    slow_brokers: Annotated[tuple[SlowBroker, ...], REQUIRED, "The brokers that were slow, by id."] = ()


def hour_text(hour: int) -> str:
    """Return an hour of the week, 0 to 167 from Monday on: `mon 14:00`."""
    day, of_day = divmod(hour, HOURS_A_DAY)
    return f"{DAYS[day]} {of_day:02}:00"
