"""Names a partition: the key of everything that moves."""

from typing import Annotated, NamedTuple

from reconciler.model.codec import OBJECT


class TopicPartition(NamedTuple):
    """One partition of one topic; sorts by topic, then partition."""

    topic: Annotated[str, "The topic."]
    partition: Annotated[int, "The partition's number."]

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


PartitionObject = Annotated[TopicPartition, OBJECT]
"""A partition in a list of a format: `{"topic": "orders", "partition": 3}`."""
