"""Bytes and shares as people read them in a plan's problems."""

from fractions import Fraction

STEPS = ("KiB", "MiB", "GiB", "TiB", "PiB")


def size_text(size: int) -> str:
    """Return `1.5 GiB` and the like, rounded to one digit."""
    value, unit = Fraction(size), "B"
    for step in STEPS:
        if abs(value) < 1024:  # noqa: PLR2004 - the step between two binary units
            break
        value, unit = value / 1024, step
    return f"{size} B" if unit == "B" else f"{float(value):.1f} {unit}"


def percent_text(share: Fraction) -> str:
    """Return `12.5%` and the like, with no more digits than it needs."""
    return f"{float(share * 100):.4g}%"
