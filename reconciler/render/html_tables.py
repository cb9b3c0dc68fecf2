"""Makes the tables of a page: each figure as its exact value and as people read it, before and after side by side."""

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.model.words import number, size
from reconciler.render.escape import visible

UNKNOWN = "unknown"

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


def bytes_text(value: float) -> str:
    """Return bytes as people read them, also fewer than none: growth can shrink."""
    return f"-{size(round(-value))}" if round(value) < 0 else size(round(value))


def count_text(value: float) -> str:
    """Return a count."""
    return number(round(value))


def figure_cell(value: Figure, shown: Callable[[float], str]) -> Cell:
    """Return a cell of one figure."""
    return Cell(data=(datum(value, shown),))


def pair_cell(before: Figure, after: Figure, shown: Callable[[float], str], *, has_plan: bool) -> Cell:
    """Return a cell of a figure before and after."""
    return data_cell(datum(before, shown), datum(after, shown), has_plan=has_plan)


def datum(value: Figure, shown: Callable[[float], str]) -> Datum:
    """Return a figure with its text."""
    return Datum(value, UNKNOWN if value is None else shown(value))


def name_cell(text: str) -> Cell:
    """Return a cell that names its row; whatever the text holds, it is only text."""
    return Cell(name=visible(text), is_name=True)


def text_cell(text: str) -> Cell:
    """Return a cell of other words."""
    return Cell(name=visible(text))


def data_cell(before: Datum, after: Datum, *, has_plan: bool) -> Cell:
    """Return a cell of two figures, or of one where there is no plan or both read alike."""
    is_one = not has_plan or (before.text, before.is_alarming) == (after.text, after.is_alarming)
    return Cell(data=(before,) if is_one else (before, after))
