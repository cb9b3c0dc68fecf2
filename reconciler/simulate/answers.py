"""What a simulated request returns: the cluster after it, and what it answered for each item."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from reconciler.model.cluster import Cluster

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Denied:
    """Kafka's refusal of one item: the protocol's name of the error, and its text where there is more to say."""

    error: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[K]):
    """The cluster after a request; `answers` maps each item to its refusal, None where it was accepted."""

    cluster: Cluster
    answers: Mapping[K, Denied | None]
