"""Holds one look at what a cluster holds: each replica on disk, each partition's leader, end and start offset."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.model.cluster import Topic, leaders_of
from reconciler.model.topic_partition import TopicPartition


class ReplicaOnDisk(NamedTuple):
    """A replica in a log dir; what the broker did not tell is None.

    `offset_lag`: how far its end is behind the high watermark. `is_future`: the copy that a move between log dirs of
    one broker is filling.
    """

    topic_partition: TopicPartition
    broker_id: int
    log_dir: str
    size_bytes: int | None = None
    offset_lag: int | None = None
    is_future: bool = False


@dataclass(frozen=True, slots=True)
class ClusterSample:
    """What the cluster told, sorted; what it did not tell is left out, and `untold` says so in sentences.

    `topics` are as metadata shows them, `replicas` what log dirs hold, also of topics that metadata hides.
    """

    cluster_id: str
    topics: Mapping[str, Topic] = field(default_factory=dict)
    replicas: tuple[ReplicaOnDisk, ...] = ()
    end_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    untold: tuple[str, ...] = ()
    start_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The first offset of each partition's log, as its leader tells it; the remote tier included."""

    def sizes(self) -> dict[TopicPartition, int]:
        """Return the bytes of each partition's log: of its leader, else of the largest replica that is told."""
        largest: dict[TopicPartition, int] = {}
        of_leader: dict[TopicPartition, int] = {}
        leaders = self.leaders()
        for key, broker_id, _, size, _, is_future in self.replicas:
            if size is None or is_future:
                continue
            largest[key] = max(size, largest.get(key, 0))
            if leaders.get(key) == broker_id:
                of_leader[key] = size
        return largest | of_leader

    def partitions(self) -> list[TopicPartition]:
        """Return every partition that metadata or a log dir shows, sorted."""
        return sorted({*self.leaders(), *(replica.topic_partition for replica in self.replicas)})

    def leaders(self) -> dict[TopicPartition, int | None]:
        """Return the leader of each partition that metadata shows, None where it has none."""
        return leaders_of(self.topics.values())
