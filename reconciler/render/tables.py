"""Writes tables as text and as Markdown, so that every report lays them out alike."""

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.render.escape import sentence, visible

_WIDEST = 100  # characters of a cell in a terminal: one longer name would push every other column off the screen


@dataclass(frozen=True, slots=True)
class Table:
    """A head and its rows; the first `left` columns stand to the left, numbers to the right."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1


def text_table(shown: Table) -> list[str]:
    """Return the table's lines, aligned, two blanks between columns; an over-long cell is cut."""
    rows = [tuple(_cell(cell) for cell in row) for row in (shown.head, *shown.rows)]
    # The line that says what was left out is no measure of its column.
    measured = [row for row in rows if not row[0].startswith("…")]
    widths = [max(len(row[column]) for row in measured) for column in range(len(shown.head))]
    return [
        "  "
        + "  ".join(
            f"{cell:<{width}}" if column < shown.left else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def markdown_table(shown: Table) -> str:
    """Return the table; every cell that names something is a code span."""
    marks = ["---" if column < shown.left else "---:" for column in range(len(shown.head))]
    rows = [_row(sentence(cell) for cell in row) for row in shown.rows]
    return "\n".join([_row(sentence(cell) for cell in shown.head), _row(marks), *rows])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= _WIDEST else f"{shown[: _WIDEST - 1]}…"
