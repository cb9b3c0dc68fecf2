"""Makes tables of a history: the week in signs, skew by period, what changed, slow brokers; the newest first."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from reconciler.balance.model.history import (
    DAYS,
    HOURS_A_DAY,
    HOURS_A_WEEK,
    Carried,
    Cause,
    Changed,
    Changes,
    Contribution,
    History,
    Placement,
    Shift,
    SkewAt,
    SlowBroker,
    Slowness,
    hour_text,
)
from reconciler.model.evenness import Evenness
from reconciler.model.words import counted, percent, rate, size
from reconciler.render.report import Points, Section, Table

UNKNOWN = "-"
BROKERS_SHOWN, PERIODS_SHOWN, CAUSES_OF_BROKERS = 8, 14, 3
_SIGNS = "▁▂▃▄▅▆▇█"
_HOURS_A_SIGN = 3
# Cruise Control calls no flush slow that takes less.
CRUISE_CONTROL_MS = 1000.0


def sections(history: History) -> Iterator[Section]:
    """Yield how a cluster's loads went over the time of its samples."""
    yield Section(parts=(_week(history.hours_of_week),), markdown=("**The week**",))
    yield Section(parts=(_skew(history),), markdown=("**Skew over time**",))
    if history.changes is not None:
        changes = history.changes
        title = f"What changed: {times_of(changes)}"
        scopes = tuple(_changed(scope) for scope in changes.of if scope.causes)
        brokers = (_brokers(changes.brokers),) if changes.brokers else ()
        yield Section(title, (*scopes[:1], *brokers, *scopes[1:]), (f"**{title}**",))
    yield Section("Slow brokers", (_slow(history),), ("**Slow brokers**",))


def times_of(changes: Changes) -> str:
    """Return which two times are compared."""
    how = "the last 7 days against the 7 before"
    if not changes.is_by_week:
        how = "samples fill less than two weeks, so their second half against the first"
    return f"{how}; {changes.start} to {changes.middle}, then to {changes.end}"


def busiest_first(carried: Iterable[Carried]) -> list[Carried]:
    """Return the brokers by the sum of their means, the greatest first."""
    brokers = (one for one in carried if one.broker is not None)

    def total(one: Carried) -> int:
        return sum(value or 0 for value in (*one.bytes_in, *one.bytes_out))

    return sorted(brokers, key=lambda one: (-total(one), one.broker or 0))


def scope_name(scope: Changed | Carried) -> str:
    """Return whose figures these are."""
    return "the cluster" if scope.broker is None else f"broker {scope.broker}"


def cause_name(cause: Contribution) -> str:
    """Return a cause in words."""
    match cause.cause:
        case Cause.TOPIC:
            return f"topic {cause.topic}{' (new)' if cause.is_new else ''}"
        case Cause.BROKER:
            return f"broker {cause.broker}"
        case Cause.LEADERSHIP:
            return f"leadership from broker {cause.from_broker} to broker {cause.to_broker}"
        case Cause.REPLICAS:
            return f"replicas from broker {cause.from_broker} to broker {cause.to_broker}"


def rate_shift(shift: Shift | None) -> str:
    """Return a change of a rate: `+3 MiB/s`."""
    return UNKNOWN if shift is None else _signed(shift.change, rate(abs(shift.change)))


def size_shift(shift: Shift | None) -> str:
    """Return a change of a size: `+3.0 GiB`."""
    return UNKNOWN if shift is None else _signed(shift.change, size(abs(shift.change)))


def _signed(change: int, text: str) -> str:
    return f"{'+' if change > 0 else '-' if change < 0 else ''}{text}"


def slow_words(history: History) -> str:
    """Return what is said where no broker is slow."""
    if not history.has_broker_samples:
        return "unknown: there are no samples of brokers, which tell log flush times"
    return "none, by log flush times and flush times for each byte in"


def even_text(even: Evenness | None) -> str:
    """Return maximum over mean, coefficient of variation and Gini: `1.24 / 0.15 / 0.08`."""
    if even is None:
        return UNKNOWN
    return f"{even.max_over_mean:.2f} / {even.coefficient_of_variation:.2f} / {even.gini:.2f}"


def _week(carried: Sequence[Carried]) -> Table:
    """Return a line of signs for the cluster and its busiest brokers: low to high on a scale of its own each."""
    head = (
        "hour of the week (UTC), mean",
        "",
        "      ".join(DAYS),
        "most",
        "at",
    )
    rows = [
        row
        for one in (*(one for one in carried if one.broker is None), *busiest_first(carried)[:BROKERS_SHOWN])
        for way, values in (("in", one.bytes_in), ("out", one.bytes_out))
        if (row := _week_row(one, way, values)) is not None
    ]
    return Table(head, tuple(rows), 3)


def _week_row(one: Carried, way: str, values: Sequence[int | None]) -> tuple[str, ...] | None:
    known = [(value, -hour) for hour, value in enumerate(values) if value is not None]
    if not known:
        return None
    most, hour = max(known)
    signs = [_sign(values[at : at + _HOURS_A_SIGN], most) for at in range(0, HOURS_A_WEEK, _HOURS_A_SIGN)]
    a_day = HOURS_A_DAY // _HOURS_A_SIGN
    days = ("".join(signs[at : at + a_day]) for at in range(0, len(signs), a_day))
    return scope_name(one), way, " ".join(days), rate(most), hour_text(-hour)


def _sign(values: Sequence[int | None], most: int) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "·"
    mean = sum(known) / len(known)
    return _SIGNS[min(int(mean / most * len(_SIGNS)), len(_SIGNS) - 1)] if most else _SIGNS[0]


def _skew(history: History) -> Table:
    """Return the last periods, the newest first: maximum over mean, coefficient of variation, Gini."""
    found = {(one.period, one.placement): one for one in history.skews}
    has_then = any(one.placement is Placement.THEN for one in history.skews)
    then = ("in then", "size then", "replicas then") if has_then else ()
    head = (f"{history.step.value}: max/mean / variation / Gini", "in", "out", "size", *then)
    periods = islice(reversed(range(len(history.periods))), PERIODS_SHOWN)
    rows = (
        (
            when(history.periods[at]),
            *_evens(found.get((at, Placement.TODAY)), "bytes_in", "bytes_out", "size_bytes"),
            *(_evens(found.get((at, Placement.THEN)), "bytes_in", "size_bytes", "replicas") if has_then else ()),
        )
        for at in periods
        if (at, Placement.TODAY) in found
    )
    return Table(head, tuple(rows))


def _evens(one: SkewAt | None, *names: str) -> Iterator[str]:
    for name in names:
        yield even_text(None if one is None else getattr(one, name))


def when(period: str) -> str:
    """Return when a period begins, as short as it goes."""
    return period.removesuffix("T00:00:00Z").replace("T", " ").removesuffix(":00Z")


def _changed(scope: Changed) -> Table:
    head = (scope_name(scope), "in", "out", "size", "of what moved")
    whole = ("altogether", *_shifts(scope), "")
    shown = scope.causes if scope.broker is None else scope.causes[:CAUSES_OF_BROKERS]
    rows = ((cause_name(cause), *_shifts(cause), percent(cause.share, 2)) for cause in shown)
    return Table(head, (whole, *rows))


def _brokers(causes: Sequence[Contribution]) -> Table:
    rows = ((cause_name(cause), *_shifts(cause), percent(cause.share, 2)) for cause in causes[:BROKERS_SHOWN])
    return Table(("brokers, by today's placement", "in", "out", "size", "of what changed"), tuple(rows))


def _shifts(one: Changed | Contribution) -> tuple[str, str, str]:
    return rate_shift(one.bytes_in), rate_shift(one.bytes_out), size_shift(one.size_bytes)


def _slow(history: History) -> Table | Points:
    if not history.slow_brokers:
        return Points((slow_words(history),))
    head = ("broker", "since", "until", "points", "flush, 99.9th", "median of brokers", "in")
    return Table(head, tuple(map(_slow_row, history.slow_brokers)))


def _slow_row(one: SlowBroker) -> tuple[str, ...]:
    points = f"{counted(one.score, 'point')}{', persistent' if one.slowness is Slowness.PERSISTENT else ''}"
    return (
        str(one.broker),
        one.since,
        one.until or "it lasts",
        points,
        flush_text(one.flush_ms),
        flush_text(one.peers_ms),
        rate(one.bytes_in),
    )


def flush_text(milliseconds: float) -> str:
    """Return a time of a flush."""
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= CRUISE_CONTROL_MS else f"{milliseconds:.0f} ms"
