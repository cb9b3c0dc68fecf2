"""Writes numbers, sizes, rates, times and lists of names as people read them.

It is the only place that does, so that one plan never spells one amount in two ways. What reads `50MiB/s` back from a
file is `reconciler.files.units`.
"""

from collections.abc import Iterable
from fractions import Fraction

FEW, MANY = 3, 10  # how many names a short, a long sentence takes; `named_some` takes 5 by itself
_BINARY = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_STEP = 1024
_LARGE = 1000  # percent, from where `g` would begin to write powers of ten
_MINUTE, _HOUR, _DAY = 60, 3600, 86400  # seconds


def size(count: int) -> str:
    """Return bytes in the largest binary unit that leaves at least one, with one decimal: `48.0 GiB`."""
    if abs(count) < _STEP:
        return f"{count} B"
    power = 1
    # Rounded first: one byte below a GiB is `1.0 GiB`, not `1024.0 MiB`.
    while power < len(_BINARY) and round(abs(count) / _STEP**power, 1) >= _STEP:
        power += 1
    return f"{count / _STEP**power:.1f} {_BINARY[power - 1]}"


def written_bytes(count: int) -> str:
    """Return bytes as an option or a file takes them, exactly: `2TiB`, `1536MiB`, `5B`."""
    power = 0
    while power < len(_BINARY) and count and count % _STEP ** (power + 1) == 0:
        power += 1
    return f"{count // _STEP**power}{_BINARY[power - 1] if power else 'B'}"


def rate(bytes_per_second: float) -> str:
    """Return bytes per second, whole where they are: `50 MiB/s`, `1.5 KiB/s`. The YAML takes them so, too."""
    return size(round(bytes_per_second)).replace(".0 ", " ") + "/s"


def duration(seconds: float) -> str:
    """Return a length of time with at most two units: `45 s`, `3 min`, `1h10m`, `2d4h`."""
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{round(whole / _MINUTE)} min"
    if whole < _DAY:
        return _pair(round(whole / _MINUTE), 60, "h", "m")
    return _pair(round(whole / _HOUR), 24, "d", "h")


def number(count: int) -> str:
    """Return a number with its thousands set apart: `1,440`."""
    return f"{count:,}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number and its noun: `1 move`, `1,200 moves`."""
    return f"{number(count)} {noun if count == 1 else plural or noun + 's'}"


def percent(share: float | Fraction, digits: int = 3) -> str:
    """Return a share of 1 as a percentage: `12.5%`; `0.004%` is not `0%`. More digits for what somebody wrote."""
    value = float(share * 100)
    return f"{value:.{digits}g}%" if abs(value) < _LARGE else f"{value:,.0f}%"


def named_some(names: Iterable[object], most: int = 5, between: str = ", ") -> str:
    """Return the first few names, and how many more there are: `a, b and 3 more`."""
    listed = [str(name) for name in names]
    left = len(listed) - most
    separator = " " if between == ", " else between
    return between.join(listed[:most]) + (f"{separator}and {number(left)} more" if left > 0 else "")


def few(names: Iterable[object]) -> str:
    """Return the first three names, and how many more there are."""
    return named_some(names, FEW)


def listed(names: Iterable[object]) -> str:
    """Return all names as a sentence does: `1, 2 and 3`; nothing for none."""
    *first, last = [str(name) for name in names] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def owner_name(owner: int | str) -> str:
    """Return the owner of a dynamic config: `broker 4` for an id, `topic orders` for a name."""
    return f"broker {owner}" if isinstance(owner, int) else f"topic {owner}"


def labelled(noun: str, names: Iterable[object], most: int = 0) -> str:
    """Return a noun and the names of its things: `broker 4`, `brokers 4, 5`; at most `most` of them, 0 for all."""
    listed = [str(name) for name in names]
    return f"{noun}{'' if len(listed) == 1 else 's'} {named_some(listed, most or len(listed))}"


def in_brackets(place: object) -> str:
    """Return a place as it stands behind what is written there; nothing for none: ` (topics/orders.yaml:18)`."""
    return f" ({place})" if place else ""


def _pair(count: int, per_unit: int, unit: str, rest: str) -> str:
    whole, left = divmod(count, per_unit)
    return f"{whole}{unit}{left}{rest}" if left else f"{whole}{unit}"
