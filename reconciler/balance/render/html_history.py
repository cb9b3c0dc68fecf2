"""Draws a history on a page: heat maps of the week, and lines over time; all that SVG shows is in words beside it.

A heat map's cells are one small picture, each cell a pixel that the SVG stretches: as elements of their own, the cells
of a hundred clusters would be a hundred times as many bytes.
"""

import base64
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from reconciler.balance.model.history import (
    DAYS,
    HOURS_A_WEEK,
    Carried,
    Changed,
    Contribution,
    History,
    Placement,
    SkewAt,
    Slowness,
    hour_text,
)
from reconciler.balance.render.as_history import (
    CRUISE_CONTROL_MS,
    busiest_first,
    cause_name,
    even_text,
    flush_text,
    rate_shift,
    scope_name,
    size_shift,
    slow_words,
    times_of,
    when,
)
from reconciler.model.evenness import Evenness
from reconciler.model.words import counted, percent, rate
from reconciler.render.html_charts import BINARY, DECIMAL, Mark, axis_top
from reconciler.render.html_tables import Cell, Datum, Table, figure_cell, name_cell, text_cell

T = TypeVar("T")
WIDTH, LEFT, RIGHT = 520, 74, 6
_ROW, _TOP = 11, 18
_LINES_HEIGHT, _LINES_BOTTOM = 150, 20
_SMALL_WIDTH, _SMALL_HEIGHT = 160, 36
_LEVELS = 9
_BLUE = (31, 102, 193)
BROKERS_DRAWN, PERIODS_DRAWN = 60, 92
"""How many brokers, the busiest, and how many periods, the newest, are drawn at most."""
MOST_CLUSTERS = 10
SOME_BROKERS, SOME_PERIODS, SOME_CAUSES = 4, 31, 3
"""How many brokers have lines, and how many periods and causes are shown, on a page of more clusters."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Who carries how much in each hour of the week: a picture of one pixel a cell, and what stands around it."""

    title: str
    summary: str
    picture: str
    """A PNG, as base64."""
    rows: tuple[Mark, ...]
    days: tuple[Mark, ...]
    height: int
    width: int = WIDTH
    left: int = LEFT
    top: int = _TOP

    @property
    def cells(self) -> tuple[int, int]:
        """How wide and how high the picture stands."""
        return WIDTH - LEFT - RIGHT, self.height - _TOP

    @property
    def grid(self) -> str:
        """Lines between the days."""
        return "".join(f"M{day.x - 3} 4v{self.height - 4}" for day in self.days)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart: its kind, which is its colour, its name, and its path."""

    kind: str
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Lines:
    """Values over time."""

    title: str
    summary: str
    lines: tuple[Line, ...]
    ticks: tuple[Mark, ...]
    labels: tuple[Mark, ...]
    width: int = WIDTH
    height: int = _LINES_HEIGHT
    left: int = LEFT


@dataclass(frozen=True, slots=True)
class Small:
    """One broker's lines, small, on a scale that all of them share."""

    name: str
    words: str
    lines: tuple[Line, ...]
    width: int = _SMALL_WIDTH
    height: int = _SMALL_HEIGHT


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """The history of one cluster on the page; its properties are what the template reads."""

    history: History
    is_one_of_many: bool = False
    """Whether only what matters most is drawn, as there are many clusters."""

    @property
    def heat_maps(self) -> Iterator[HeatMap]:
        """The week, in and out, where known."""
        every = 10 if self.is_one_of_many else 1
        drawn = (_heat_map(title, self.history.hours_of_week, of, every=every) for title, of in _WAYS)
        yield from (each for each in drawn if each is not None)

    @property
    def totals(self) -> Iterator[Lines]:
        """What the cluster carries over time, and how uneven its brokers are."""
        whole = next((one for one in self.history.series if one.broker is None), Carried())
        lines = [(kind, name, self._last(of(whole))) for kind, name, of in _KINDS]
        drawn = (
            _lines(f"In and out by {self.history.step.value}", lines, self._periods, rate, BINARY),
            _lines("Maximum over mean of the brokers", self._skews(), self._periods, "{:.2f}".format, DECIMAL),
        )
        yield from (each for each in drawn if each is not None)

    @property
    def multiples(self) -> Iterator[Small]:
        """Each broker's lines, the busiest first."""
        brokers = busiest_first(self.history.series)[: self._most_brokers]
        known = [value for one in brokers for _, _, of in _KINDS for value in self._last(of(one)) if value is not None]
        most = max(known, default=0)
        for one in brokers if most else ():
            lines = tuple(
                Line(kind, name, path)
                for kind, name, of in _KINDS
                if (path := _path(self._last(of(one)), most, (0, _SMALL_WIDTH), (2, _SMALL_HEIGHT - 2)))
            )
            drawn = ((name, _known(self._last(of(one)))) for _, name, of in _KINDS)
            words = ", ".join(f"{name} up to {rate(max(told))}" for name, told in drawn if told)
            yield Small(scope_name(one), words, lines)

    @property
    def multiples_note(self) -> str:
        """What is said of the lines of brokers."""
        count = sum(one.broker is not None for one in self.history.series)
        shown = min(count, self._most_brokers)
        which = "Each broker" if shown == count else f"The {shown} busiest of {counted(count, 'broker')}"
        return f"{which}, in and out by {self.history.step.value}, on one scale; -o json has all figures."

    @property
    def changes(self) -> Iterator[Table]:
        """What changed, of the cluster and of the brokers that carry most."""
        told = self.history.changes
        if told is None:
            return
        scopes = [scope for scope in told.of if scope.causes][: 1 if self.is_one_of_many else None]
        for scope in scopes:
            causes = scope.causes[: SOME_CAUSES if self.is_one_of_many else None]
            caption = f"What changed on {scope_name(scope)}: {times_of(told)}."
            whole = (name_cell("altogether"), *_shift_cells(scope), text_cell(""))
            yield self._causes(caption, (whole, *map(self._cause, causes)))
        if told.brokers and not self.is_one_of_many:
            yield self._causes(
                "What changed, broker by broker, by today's placement.", tuple(map(self._cause, told.brokers))
            )

    def _cause(self, cause: Contribution) -> tuple[Cell, ...]:
        share = _share_cell(cause, has_bar=not self.is_one_of_many)
        return name_cell(cause_name(cause)), *_shift_cells(cause), share

    def _causes(self, caption: str, rows: tuple[tuple[Cell, ...], ...]) -> Table:
        return Table(caption, ("Cause", "In", "Out", "Size", "Of what moved"), rows, len(rows))

    @property
    def slow(self) -> Table | None:
        """The brokers that were slow."""
        told = self.history.slow_brokers
        rows = tuple(
            (
                name_cell(str(one.broker)),
                text_cell(one.since),
                text_cell(one.until or "it lasts"),
                text_cell(f"{one.score}{' (persistent)' if one.slowness is Slowness.PERSISTENT else ''}"),
                Cell(data=(Datum(one.flush_ms, flush_text(one.flush_ms), one.flush_ms >= CRUISE_CONTROL_MS),)),
                figure_cell(one.peers_ms, flush_text),
                figure_cell(one.bytes_in, rate),
            )
            for one in told
        )
        heads = ("Slow broker", "Since", "Until", "Points", "Flush, 99.9th", "Median of brokers", "In")
        caption = "Brokers whose log flushes took long, for each byte too, against their last day or the other brokers."
        return Table(caption, heads, rows, len(rows)) if rows else None

    @property
    def slow_words(self) -> str:
        """What is said where no broker is slow."""
        return f"Slow brokers: {slow_words(self.history)}."

    @property
    def skews(self) -> Table | None:
        """How even each measure was, period by period, the newest first; not where there are many clusters."""
        told = [] if self.is_one_of_many else sorted(self.history.skews, key=lambda one: -one.period)
        rows = tuple(
            (
                name_cell(when(self.history.periods[one.period])),
                text_cell("today's" if one.placement is Placement.TODAY else "of then"),
                *map(_even_cell, (one.bytes_in, one.bytes_out, one.size_bytes, one.replicas)),
            )
            for one in told
        )
        heads = (self.history.step.value.capitalize(), "Placement", "In", "Out", "Size", "Replicas")
        caption = "Maximum over mean, coefficient of variation and Gini over the brokers, by period."
        return Table(caption, heads, rows, 7) if rows else None

    @property
    def _most_brokers(self) -> int:
        return SOME_BROKERS if self.is_one_of_many else BROKERS_DRAWN

    @property
    def _periods(self) -> tuple[str, ...]:
        return self._last(self.history.periods)

    def _last(self, values: Sequence[T]) -> tuple[T, ...]:
        return tuple(values[-(SOME_PERIODS if self.is_one_of_many else PERIODS_DRAWN) :])

    def _skews(self) -> list[tuple[str, str, Sequence[float | None]]]:
        found = {(one.period, one.placement): one for one in self.history.skews}
        drawn = (
            ("before", "in", Placement.TODAY, lambda one: one.bytes_in),
            ("after", "out", Placement.TODAY, lambda one: one.bytes_out),
            ("over", "in, by the placement of then", Placement.THEN, lambda one: one.bytes_in),
        )

        def value(at: int, placement: Placement, of: Callable[[SkewAt], Evenness | None]) -> float | None:
            one = found.get((at, placement))
            even = of(one) if one is not None else None
            return even.max_over_mean if even is not None else None

        count = len(self.history.periods)
        return [
            (kind, name, self._last([value(at, placement, of) for at in range(count)]))
            for kind, name, placement, of in drawn
        ]


def _bytes_in(one: Carried) -> Sequence[int | None]:
    return one.bytes_in


def _bytes_out(one: Carried) -> Sequence[int | None]:
    return one.bytes_out


_WAYS = (("In by hour of the week", _bytes_in), ("Out by hour of the week", _bytes_out))
_KINDS = (("before", "in", _bytes_in), ("after", "out", _bytes_out))


def _heat_map(
    title: str, carried: Sequence[Carried], of: Callable[[Carried], Sequence[int | None]], *, every: int
) -> HeatMap | None:
    """Return the cluster on a scale of its own, below it its brokers on one; None where nothing is known."""
    whole = [one for one in carried if one.broker is None and _known(of(one))]
    brokers = busiest_first(one for one in carried if _known(of(one)))[:BROKERS_DRAWN]
    if not brokers:
        return None
    by_id = sorted(brokers, key=lambda one: one.broker or 0)
    most, hour, busiest = max(
        (value, -hour, -(one.broker or 0)) for one in by_id for hour, value in enumerate(of(one)) if value is not None
    )
    rows = [(max(_known(of(one))), of(one)) for one in whole] + [(most, of(one)) for one in by_id]
    names = ["cluster" for _ in whole] + [f"{one.broker}" for one in by_id]
    return HeatMap(
        title,
        f"Most on broker {-busiest}, {hour_text(-hour)} UTC: {rate(most)}.",
        _picture([[_level(value, top) for value in values] for top, values in rows]),
        rows=tuple(
            Mark(LEFT - 6, _TOP + _ROW * at + _ROW - 2, name) for at, name in enumerate(names) if at % every == 0
        ),
        days=tuple(
            Mark(_place(at, len(DAYS) + 1, (LEFT, WIDTH - RIGHT)) + 3, _TOP - 6, day) for at, day in enumerate(DAYS)
        ),
        height=_TOP + _ROW * len(names),
    )


def _known(values: Sequence[int | None]) -> list[int]:
    return [value for value in values if value is not None]


def _level(value: int | None, most: int) -> int:
    """Return 0 for unknown, else 1 to _LEVELS."""
    if value is None:
        return 0
    return 1 + min(value * _LEVELS // most, _LEVELS - 1) if most else 1


def _picture(rows: Sequence[Sequence[int]]) -> str:
    """Return a PNG of one colour, the denser the higher the level; unknown is clear."""
    lines = b"".join(b"\0" + _nibbles(row) for row in rows)
    colours = bytes(_BLUE) * (_LEVELS + 1)
    density = bytes([0, *(18 + 237 * level // (_LEVELS - 1) for level in range(_LEVELS))])
    head = struct.pack(">IIBBBBB", HOURS_A_WEEK, len(rows), 4, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", head),
        (b"PLTE", colours),
        (b"tRNS", density),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    made = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return base64.b64encode(made).decode()


def _nibbles(row: Sequence[int]) -> bytes:
    return bytes(row[at] << 4 | row[at + 1] for at in range(0, len(row), 2))


def _lines(
    title: str,
    lines: Sequence[tuple[str, str, Sequence[float | None]]],
    periods: Sequence[str],
    shown: Callable[[float], str],
    step_of: float,
) -> Lines | None:
    known = [value for _, _, values in lines for value in values if value is not None]
    if not known:
        return None
    top = axis_top(max(known), step_of)
    floor = _LINES_HEIGHT - _LINES_BOTTOM
    drawn = tuple(
        Line(kind, name, path)
        for kind, name, values in lines
        if (path := _path(values, top, (LEFT, WIDTH - RIGHT), (8, floor)))
    )
    ticks = tuple(Mark(LEFT - 6, round(floor - (floor - 8) * part / 2, 1), shown(top * part / 2)) for part in range(3))
    marked = sorted({0, (len(periods) - 1) // 2, len(periods) - 1})
    labels = tuple(
        Mark(_place(at, len(periods), (LEFT + 30, WIDTH - RIGHT - 30)), _LINES_HEIGHT - 5, when(periods[at]))
        for at in (marked if len(marked) > 2 else marked[:1])  # noqa: PLR2004 - three labels, else one
    )
    return Lines(title, f"From {shown(min(known))} to {shown(max(known))}.", drawn, ticks, labels)


def _path(values: Sequence[float | None], top: float, across: tuple[int, int], between: tuple[int, int]) -> str:
    """Return a path through the values in whole units, broken where nothing is known."""
    high, low = between
    runs: list[list[tuple[int, int]]] = [[]]
    for at, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((_place(at, len(values), across), round(low - (low - high) * value / top)))
    return "".join(_run(run) for run in runs if run)


def _run(points: Sequence[tuple[int, int]]) -> str:
    """Return the path of points without a gap: from the first one on, each by its distance; a point alone is a dash."""
    (x, y), *_ = points
    steps = (f"{next_x - x} {next_y - y}" for (x, y), (next_x, next_y) in pairwise(points))
    return f"M{x} {y}{'l' + ' '.join(steps).replace(' -', '-') if len(points) > 1 else 'h1'}"


def _place(at: int, count: int, across: tuple[int, int]) -> int:
    begins, ends = across
    return round(begins + (ends - begins) * at / (count - 1)) if count > 1 else begins


def _shift_cells(one: Changed | Contribution) -> tuple[Cell, ...]:
    shifts = ((one.bytes_in, rate_shift), (one.bytes_out, rate_shift), (one.size_bytes, size_shift))
    return tuple(Cell(data=(Datum(None if each is None else each.change, text(each)),)) for each, text in shifts)


def _share_cell(cause: Contribution, *, has_bar: bool) -> Cell:
    return Cell(data=(Datum(cause.share, percent(cause.share, 2)),), share=cause.share if has_bar else None)


def _even_cell(even: Evenness | None) -> Cell:
    return Cell(data=(Datum(None if even is None else even.max_over_mean, even_text(even)),))
