"""Holds how much each partition carries: bytes in, bytes out and on disk, as measured; unknown is never zero."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from reconciler.model.topic_partition import TopicPartition


class Statistic(StrEnum):
    """Which figure of a rate counts.

    `peak` is the rate in the cluster's busiest time bucket, so that those of partitions add up to a broker's;
    `average` is the mean over all samples.
    """

    PEAK = "peak"
    AVERAGE = "average"


class PartitionLoad(NamedTuple):
    """What one partition's leader takes in and sends to consumers, in whole bytes a second, and its bytes on disk.

    None is unknown. Followers' fetches are not in `bytes_out`: they follow from the number of replicas.
    """

    bytes_in: int | None = None
    bytes_out: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Loads:
    """The loads of one cluster's partitions, and where they come from in words that a message can carry."""

    of: Mapping[TopicPartition, PartitionLoad] = field(default_factory=dict)
    statistic: Statistic = Statistic.PEAK
    source: str = ""
