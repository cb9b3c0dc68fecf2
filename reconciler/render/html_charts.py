"""Computes the geometry of a page's charts: columns over a line of zero, which the template draws as SVG."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

NARROW, WIDE, HEIGHT = 960, 1920, 240
LEFT, TOP, BOTTOM = 112, 12, 28
MOST_IN_NARROW = 40
_PLOT_HEIGHT = HEIGHT - TOP - BOTTOM
_LABEL_WIDTH = 44
_HALF_A_LETTER = 6
_MOST_COLUMN = 48.0
_STEPS = 4
DECIMAL, BINARY = 10.0, 1024.0
"""What the steps of an axis are powers of."""


@dataclass(frozen=True, slots=True)
class Member:
    """One column: its label, its values before and after (None: unknown), and the words that a pointer shows."""

    label: str
    words: str
    before: float | None = None
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle, in the chart's own units; `kind` is `before`, `after` or `only`, `is_over` beyond the limit."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """What one member shows."""

    words: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A text at a place: a value on the axis or, with `is_line`, one that a line goes through."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as the template draws it."""

    title: str
    summary: str
    columns: tuple[Column, ...]
    labels: tuple[Mark, ...]
    ticks: tuple[Mark, ...]
    line: Mark | None = None
    has_after: bool = False
    width: int = NARROW
    height: int = HEIGHT
    left: int = LEFT

    @property
    def is_wide(self) -> bool:
        """Whether it takes two places beside each other."""
        return self.width > NARROW


@dataclass(frozen=True, slots=True)
class _Axis:
    """The value at the top of a chart, and the one above which a bar stands out."""

    top: float
    limit: float | None = None


def chart(
    title: str,
    summary: str,
    members: Sequence[Member],
    shown: Callable[[float], str],
    *,
    line: tuple[str, float] | None = None,
    is_limit: bool = False,
    step_of: float = DECIMAL,
) -> Chart | None:
    """Return the chart of these members in their order; None where nothing is known of any.

    `line`: a level to compare with, and its name; with `is_limit` what is above it stands out. `shown` writes a value
    on the axis, whose steps are round numbers in powers of `step_of` (1024 for bytes).
    """
    values = [value for each in members for value in (each.before, each.after) if value is not None]
    if not values:
        return None
    top = axis_top(max([*values, line[1] if line else 0.0]), step_of)
    has_after = any(each.after is not None for each in members)
    width = WIDE if len(members) > MOST_IN_NARROW else NARROW
    slot = (width - LEFT) / len(members)
    axis = _Axis(top, line[1] if line is not None and is_limit else None)

    def column(index: int, each: Member) -> Column:
        middle = LEFT + slot * (index + 0.5)
        sides = (
            (("before", each.before, 0.8), ("after", each.after, 0.45)) if has_after else (("only", each.before, 0.7),)
        )
        bars = tuple(
            _bar(kind, middle, min(slot, _MOST_COLUMN) * share, value, axis)
            for kind, value, share in sides
            if value is not None
        )
        return Column(each.words, bars)

    every = max(1, -(-_LABEL_WIDTH * len(members) // (width - LEFT)))
    return Chart(
        title,
        summary,
        columns=tuple(column(index, each) for index, each in enumerate(members)),
        labels=tuple(
            Mark(
                _rounded(min(LEFT + slot * (index + 0.5), width - _HALF_A_LETTER * len(each.label))),
                HEIGHT - 6,
                each.label,
            )
            for index, each in enumerate(members)
            if index % every == 0
        ),
        ticks=tuple(
            Mark(LEFT - 8, _height(top * step / _STEPS, top), shown(top * step / _STEPS)) for step in range(_STEPS + 1)
        ),
        line=Mark(LEFT, _height(line[1], top), line[0]) if line is not None else None,
        has_after=has_after,
        width=width,
    )


def axis_top(greatest: float, step_of: float = DECIMAL) -> float:
    """Return the least top, four round steps, that is not below it; 512 GiB is round where steps are of 1024."""
    if greatest <= 0:
        return float(_STEPS)
    power = 1.0
    while power * step_of <= greatest:
        power *= step_of
    while power > greatest:
        power /= step_of
    halves = (
        (1 / 16, 1 / 8, 1 / 4, 1 / 2)
        if step_of > DECIMAL and power > 1
        else (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75)
    )
    ladder: tuple[float, ...] = (
        *halves,
        *(digit * ten for ten in (1, 10, 100, 1000) for digit in (1, 1.5, 2, 2.5, 3, 4, 5, 7.5)),
    )
    tops = (power * step * _STEPS for step in ladder)
    return next((top for top in tops if top >= greatest), greatest)


def _bar(kind: str, middle: float, width: float, value: float, axis: "_Axis") -> Bar:
    y = _height(max(value, 0.0), axis.top)
    return Bar(
        x=_rounded(middle - width / 2),
        y=y,
        width=_rounded(max(width, 1.0)),
        height=_rounded(TOP + _PLOT_HEIGHT - y),
        kind=kind,
        is_over=axis.limit is not None and value > axis.limit,
    )


def _height(value: float, top: float) -> float:
    return _rounded(TOP + _PLOT_HEIGHT * (1 - value / top))


def _rounded(place: float) -> float:
    return round(place, 2)
