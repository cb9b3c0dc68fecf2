"""The tables of a page: each figure as its exact value and as people read it, before and after side by side."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from reconciler.model.balance_report import Load, LoadRow, Rate, RateStatistic
from reconciler.render.balance_tables import KAFKA_IMBALANCE
from reconciler.render.escape import visible
from reconciler.render.units import number, percent, rate, size

UNKNOWN, NOT_THERE = "unknown", "none"
SOON_DAYS, _DAYS_SHOWN = 14, 3650

Figure = int | float | None


@dataclass(frozen=True, slots=True)
class Datum:
    """A figure: its exact value, None for unknown, and its text. `is_alarming` is told in words too."""

    value: Figure
    text: str
    is_alarming: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A place in a table: a name, or figures: one, or before and after where they differ.

    `share`: how long its bar is, None for no bar, and `offset` where it begins; both of the whole.
    """

    name: str = ""
    data: tuple[Datum, ...] = ()
    is_name: bool = False
    share: float | None = None
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its caption; the first `shown` rows stand open, the rest unfolds."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    shown: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure of a load, its title, how it is written, and from where on it alarms."""

    title: str
    of: Callable[[Load], Figure]
    shown: Callable[[float], str]
    is_alarming: Callable[[float], bool] = lambda _value: False


def bytes_text(value: float) -> str:
    """Return bytes as people read them, also fewer than none: growth can shrink."""
    return f"-{size(round(-value))}" if round(value) < 0 else size(round(value))


def rate_text(value: float) -> str:
    """Return bytes a second."""
    return rate(value)


def count_text(value: float) -> str:
    """Return a count."""
    return number(round(value))


def share_text(value: float) -> str:
    """Return a ratio as a percentage."""
    return percent(value * 100)


def days_text(value: float) -> str:
    """Return days, `0.4 days` not being none; beyond ten years nobody knows."""
    if value > _DAYS_SHOWN:
        return "over 10 years"
    return f"{value:,.0f} days" if value >= 10 else f"{value:.1f} days"  # noqa: PLR2004 - as many digits as mean something


def plain_text(value: float) -> str:
    """Return a measure of evenness."""
    return f"{value:.3f}"


def rate_of(rate: Callable[[Load], Rate], statistic: RateStatistic) -> Callable[[Load], Figure]:
    """Return what reads that figure of a rate."""
    return lambda load: rate(load).of(statistic)


def measures(statistic: RateStatistic) -> tuple[Measured, ...]:
    """Return what is told of every load, with that figure of its rates."""
    return (
        Measured("Replicas", lambda load: load.replicas, count_text),
        Measured("Leaders", lambda load: load.leaders, count_text),
        Measured("Size", lambda load: load.size_bytes, bytes_text),
        Measured("In", rate_of(lambda load: load.bytes_in, statistic), rate_text),
        Measured("Out", rate_of(lambda load: load.bytes_out, statistic), rate_text),
        Measured("Growth a day", lambda load: load.growth_bytes_per_day, bytes_text),
    )


IMBALANCE = Measured(
    "Leader imbalance", lambda load: load.leader_imbalance, share_text, lambda value: value > KAFKA_IMBALANCE
)
DAYS = Measured("Until full", lambda load: load.days_until_full, days_text, lambda value: value < SOON_DAYS)
CAPACITY = Measured("Capacity", lambda load: load.total_bytes, bytes_text)
FREE = Measured("Free", lambda load: load.free_bytes, bytes_text)


def figures(row: LoadRow, measured: Measured, *, has_plan: bool) -> Cell:
    """Return a figure of a row: one datum, or two where there is a plan and they read differently."""
    return _pair(_datum(row.before, measured), _datum(row.after, measured), has_plan=has_plan)


def figure_cell(value: Figure, shown: Callable[[float], str]) -> Cell:
    """Return a cell of one figure."""
    return Cell(data=(datum(value, shown),))


def pair_cell(before: Figure, after: Figure, shown: Callable[[float], str], *, has_plan: bool) -> Cell:
    """Return a cell of a figure before and after."""
    return _pair(datum(before, shown), datum(after, shown), has_plan=has_plan)


def datum(value: Figure, shown: Callable[[float], str]) -> Datum:
    """Return a figure with its text."""
    return Datum(value, UNKNOWN if value is None else shown(value))


def name_cell(text: str) -> Cell:
    """Return a cell that names its row; whatever the text holds, it is only text."""
    return Cell(name=visible(text), is_name=True)


def text_cell(text: str) -> Cell:
    """Return a cell of other words."""
    return Cell(name=visible(text))


def load_table(
    caption: str,
    names: Sequence[str],
    rows: Iterable[tuple[Sequence[str], LoadRow]],
    measured: Sequence[Measured],
    *,
    has_plan: bool,
    shown: int = 0,
    note: str = "",
) -> Table:
    """Return a table of loads: the columns that name a row, then its figures."""
    made = tuple(
        (
            name_cell(first[0]),
            *(text_cell(other) for other in first[1:]),
            *(figures(row, each, has_plan=has_plan) for each in measured),
        )
        for first, row in rows
    )
    return Table(caption, (*names, *(each.title for each in measured)), made, shown or len(made), note)


def _pair(before: Datum, after: Datum, *, has_plan: bool) -> Cell:
    is_one = not has_plan or (before.text, before.is_alarming) == (after.text, after.is_alarming)
    return Cell(data=(before,) if is_one else (before, after))


def _datum(load: Load | None, measured: Measured) -> Datum:
    if load is None:
        return Datum(None, NOT_THERE)
    value = measured.of(load)
    if value is None:
        return Datum(None, UNKNOWN)
    return Datum(value, measured.shown(value), is_alarming=measured.is_alarming(value))
