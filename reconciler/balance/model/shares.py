"""Splits what the partitions of a topic carry together over those partitions, by what each of them grew."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from reconciler.balance.model.exported import TopicRate
from reconciler.model.topic_partition import TopicPartition

RATES = ("bytes_in", "bytes_out", "messages_in")
Shares = Mapping[TopicPartition, Mapping[str, float]]
"""The rates that each partition got, by the names of their columns."""


def split(
    rates: Iterable[TopicRate], leaders: Mapping[TopicPartition, int | None], grown: Mapping[TopicPartition, float]
) -> dict[TopicPartition, dict[str, float]]:
    """Return the rates of each partition: its broker's of its topic, by growth among those that broker leads.

    Evenly where none grew; unknown where the growth of one of them is.
    """
    led: dict[tuple[int, str], list[TopicPartition]] = defaultdict(list)
    for key, leader in leaders.items():
        if leader is not None:
            led[leader, key.topic].append(key)
    found: dict[TopicPartition, dict[str, float]] = {}
    for rate in rates:
        keys = led.get((rate.broker, rate.topic), [])
        if not keys or any(key not in grown for key in keys):
            continue
        total = sum(max(grown[key], 0.0) for key in keys)
        rates_of_topic = {"bytes_in": rate.bytes_in, "bytes_out": rate.bytes_out}
        for key in keys:
            share = max(grown[key], 0.0) / total if total else 1 / len(keys)
            found[key] = {name: value * share for name, value in rates_of_topic.items() if value is not None}
    return found
