"""Folds text at a terminal's width: a change takes one line or two, a sentence as many as it needs."""

import re
import textwrap

_ROW = re.compile(r"  [-+~] ")
_GAP = re.compile(r" {2,}")
_BELOW = "      "
"""What stands before the second line of a change: it is no sign."""
_NARROWEST = 40
_MOST_LINES = 2


def folded(text: str, columns: int, *, is_whole: bool = False) -> str:
    """Return the text with no line wider than `columns`, or than 40 where that is more.

    What two lines cannot hold of a change is cut and marked with …, unless it `is_whole`: then it takes more lines.
    """
    columns = max(columns, _NARROWEST)
    lines: list[str] = []
    for line in text.split("\n"):
        if len(line) <= columns:
            lines.append(line)
        elif _ROW.match(line):
            lines += _change(line, columns, is_whole=is_whole)
        else:
            indent = line[: len(line) - len(line.lstrip())]
            lines += _wrapped(line.strip(), columns, indent, f"{indent}    ")
    return "\n".join(lines)


def _change(line: str, columns: int, *, is_whole: bool) -> list[str]:
    """Return a row `sign subject  what  place  effect` in two lines: what is to be done, then where it is asked for."""
    head, *cells = _GAP.split(line.strip())
    one = "  ".join((f"  {head}", *cells))
    if len(one) <= columns:
        return [one]
    aligned = line[: line.index(cells[0], len(head) + 2)] if cells else f"  {head}"
    for count in (1, 0, 2):
        first = f"{aligned}{'  '.join(cells[:count])}".rstrip()
        second = f"{_BELOW}{'  '.join(cells[count:])}"
        if count < len(cells) and len(first) <= columns and len(second) <= columns:
            return [first, second]
    what, tail = (cells[0], cells[1:]) if len(cells) > 1 else ("", cells)
    for form in (f"{aligned}{'  '.join(cells)}", one):
        lines = _wrapped(form.strip(), columns, "  ", _BELOW)
        if len(lines) == _MOST_LINES:
            return lines
    if is_whole:
        return lines
    # The effect says what is lost: it is cut last.
    effect = _middle(tail[-1], columns - len(_BELOW)) if tail else ""
    room = columns - len(_BELOW) - len(effect) - 2
    place = "  ".join(tail[:-1])
    second = f"{_BELOW}{_middle(place, room)}  {effect}" if place and room > 1 else f"{_BELOW}{effect}"
    name = _middle(head, columns // 2 if what else columns - 2)
    return [f"  {name}  {_cut(what, columns - len(name) - 4)}".rstrip(), second.rstrip()]


def _wrapped(text: str, columns: int, indent: str, below: str) -> list[str]:
    return textwrap.wrap(
        text, columns, initial_indent=indent, subsequent_indent=below, break_on_hyphens=False, replace_whitespace=False
    )


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(0, room - 1)]}…"


def _middle(text: str, room: int) -> str:
    """Return the text with its beginning and its end, which tell names apart."""
    if len(text) <= room:
        return text
    end = (room - 1) * 2 // 3
    return f"{text[: room - 1 - end]}…{text[len(text) - end :]}" if end > 0 else "…"
