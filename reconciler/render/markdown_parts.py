"""Writes the pieces of a comment: tables, folds, and as much of them as fits into the characters that are left."""

from collections.abc import Iterable, Sequence

from reconciler.model.words import counted

LONGEST_TEXT = 400
FOLD_END = "\n</details>"


def units(text: str) -> int:
    """Return a text's length as the strictest reader counts it: in UTF-16 code units, two for most pictures."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def clipped(text: str) -> str:
    """Return a text that others wrote, cut where it is longer than a comment can bear."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def fitting(blocks: Sequence[str], room: int) -> list[str]:
    """Return the first of these blocks that fit into that many code units, an empty line between each two."""
    for count, block in enumerate(blocks):
        room -= units(block) + len("\n\n")
        if room < 0:
            return list(blocks[:count])
    return list(blocks)


def lines_fitting(lines: Sequence[str], room: int) -> tuple[list[str], int]:
    """Return the first lines that fit, and how many do not."""
    shown = fitting(lines, room)
    return shown, len(lines) - len(shown)


def bounded(block: str, room: int) -> str:
    """Return a block cut at a line, and how many lines it lacks."""
    shown, left = lines_fitting(block.split("\n"), room)
    return "\n".join([*shown, *([f"- and {counted(left, 'more line')}"] if left else [])])


def table(heads: Sequence[str], rows: Iterable[str], *, right: Sequence[int] = ()) -> str:
    """Return a table; the columns `right` hold numbers."""
    rule = "|".join("--:" if column in right else ":--" for column in range(len(heads)))
    return "\n".join([f"| {' | '.join(heads)} |", f"|{rule}|", *rows])


def row(cells: Iterable[str]) -> str:
    """Return a table's row."""
    return f"| {' | '.join(cells)} |"


def figure(text: str) -> str:
    """Return a figure that no narrow column breaks before its unit."""
    return text.replace(" ", "\u00a0")


def fold(summary: str, blocks: Iterable[str]) -> str:
    """Return blocks that a click unfolds."""
    return "\n\n".join([f"<details><summary>{summary}</summary>", *blocks]) + "\n" + FOLD_END
