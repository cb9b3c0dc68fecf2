"""Writes reports as text and as Markdown: one value of sections, and one writer a form, which makes names harmless.

A page (HTML) shows other columns, bars and charts: its sections are in `html_pages`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reconciler.render.escape import bullets, sentence, visible

_WIDEST = 100  # characters of a cell in a terminal: one longer name would push every other column off the screen


@dataclass(frozen=True, slots=True)
class Table:
    """A head and its rows; the first `left` columns stand to the left, numbers to the right."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    empty: str = ""
    """What is said in place of a table without rows; by default its head stands alone."""


@dataclass(frozen=True, slots=True)
class Points:
    """A list in Markdown; in text a line each, where notes are called so."""

    texts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report: its first line, then sentences, lists and tables below it."""

    title: str = ""
    parts: tuple[str | Points | Table, ...] = ()
    markdown: tuple[str, ...] | None = None
    """What Markdown has in place of the title, such as a heading; the only words that no writer makes harmless."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is shown of one thing, in its order."""

    sections: tuple[Section, ...]
    is_dense: bool = False
    """Whether sections of text follow one another without an empty line."""

    def text(self) -> str:
        """Return the sections as lines, everything below a title indented; names in them do nothing in a terminal."""
        blocks = ("\n".join(_text_lines(each)) for each in self.sections)
        return ("\n" if self.is_dense else "\n\n").join(filter(None, blocks)) + "\n"

    def markdown(self) -> str:
        """Return the sections as blocks of Markdown; names in them are code spans, or plain words."""
        return "\n\n".join(filter(None, (block for each in self.sections for block in _blocks(each)))) + "\n"


def _text_lines(section: Section) -> Iterator[str]:
    if section.title:
        yield visible(section.title)
    for part in section.parts:
        match part:
            case Table(rows=(), empty=str(words)) if words:
                yield f"  {visible(words)}"
            case Table():
                yield from _text_table(part)
            case Points(texts, notes):
                yield from (f"  {visible(text)}" for text in texts)
                yield from (f"  note: {visible(note)}" for note in notes)
            case str():
                yield f"  {visible(part)}"


def _blocks(section: Section) -> Iterator[str]:
    yield from (sentence(section.title),) if section.markdown is None else section.markdown
    for part in section.parts:
        match part:
            case Table(rows=(), empty=str(words)) if words:
                yield sentence(words)
            case Table():
                yield _markdown_table(part)
            case Points(texts, notes):
                yield bullets((*texts, *notes))
            case str():
                yield sentence(part)


def _text_table(shown: Table) -> list[str]:
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


def _markdown_table(shown: Table) -> str:
    """Return the table; every cell that names something is a code span."""
    marks = ["---" if column < shown.left else "---:" for column in range(len(shown.head))]
    rows = [_row(sentence(cell) for cell in row) for row in shown.rows]
    return "\n".join([_row(sentence(cell) for cell in shown.head), _row(marks), *rows])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= _WIDEST else f"{shown[: _WIDEST - 1]}…"
