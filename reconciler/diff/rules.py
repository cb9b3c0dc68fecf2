"""The hard rules of each topic, resolved against the brokers of one cluster: who may hold, keep and lead what."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.desired import DesiredTopic, Spread


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What holds for every partition of one topic.

    `receivable`: brokers that may get a new replica; `keepable`: those and the ones that may only keep one (cordoned).
    `leadable`: brokers that may be the preferred leader while another replica can be. `racks`: those that count for
    the rack rule, whether their brokers live or not. `replication_factor` None: each partition keeps its own.
    `is_frozen`: no replica of it may move, for any reason. `declared` is None for a topic that nobody declared.
    """

    topic: str
    replication_factor: int | None
    receivable: frozenset[int]
    keepable: frozenset[int]
    leadable: frozenset[int]
    spread: Spread | None
    racks: tuple[str, ...]
    rack_of: Mapping[int, str]
    assignment: tuple[tuple[int, ...], ...] | None = None
    is_frozen: bool = False
    is_managed: bool = True
    declared: DesiredTopic | None = None

    def rack_bounds(self, replication_factor: int) -> tuple[int, int]:
        """Return the fewest and the most replicas of a partition that the rack rule wants in each rack."""
        racks = max(1, len(self.racks))
        return replication_factor // racks, -(-replication_factor // racks)

    def rack_excess(self, replicas: Sequence[int]) -> int:
        """Return by how many replicas these break the rack rule (0: kept), whatever the spread's strength."""
        low, high = self.rack_bounds(len(replicas))
        count = Counter(self.rack_of.get(replica, "") for replica in replicas)
        over = sum(max(0, held - high) for held in count.values())
        under = sum(max(0, low - count[rack]) for rack in self.racks)
        return max(over, under)


def misplaced(rules: TopicRules, replicas: Iterable[int]) -> tuple[int, ...]:
    """Return the replicas that may not stay where they are, in order."""
    return tuple(replica for replica in replicas if replica not in rules.keepable)
