"""Words that several parts use."""

from collections.abc import Iterable


def named_some(names: Iterable[str], most: int = 5) -> str:
    """Return the first few names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
