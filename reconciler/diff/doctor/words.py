"""Numbers, names and lists as findings write them."""

from collections.abc import Iterable

from reconciler.model.topic_partition import TopicPartition

MOST_NAMED = 3


def counted(count: int, noun: str) -> str:
    """Return a number and its noun: `1 replica`, `1,200 replicas`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def some(names: Iterable[str | TopicPartition]) -> str:
    """Return the first names, and how many more there are."""
    listed = [str(name) for name in names]
    more = f" and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
    return ", ".join(listed[:MOST_NAMED]) + more


def brokers_named(brokers: Iterable[int]) -> str:
    """Return `broker 4`, or `brokers 4, 5`."""
    listed = list(brokers)
    return f"broker{'' if len(listed) == 1 else 's'} {', '.join(map(str, listed))}"
