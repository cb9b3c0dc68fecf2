"""Names a partition: the key of everything that moves."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

from reconciler.model.codec import OBJECT


class TopicPartition(NamedTuple):
    """One partition of one topic; sorts by topic, then partition."""

    topic: Annotated[str, "The topic."]
    partition: Annotated[int, "The partition's number."]

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def named(names: Sequence[str], topics: Iterable[int], numbers: Iterable[int]) -> Iterator[TopicPartition]:
    """Yield partitions by columns: the positions of their topics in `names`, and their numbers."""
    return (TopicPartition(names[topic], number) for topic, number in zip(topics, numbers, strict=True))


PartitionObject = Annotated[TopicPartition, OBJECT]
"""A partition in a list of a format: `{"topic": "orders", "partition": 3}`."""
