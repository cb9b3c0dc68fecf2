"""Makes the Arrow table of what bounds each topic's partitions on a disk: retention, segments, compaction."""

from collections.abc import Iterable, Iterator
from math import inf, isfinite

from reconciler.balance.files.arrow_tables import LONG, TEXT, YES_NO, ArrowTable, arrow_table
from reconciler.balance.files.assignment_table import BEFORE, Side
from reconciler.diff.topic_values import CLEANUP, RETENTION_BYTES, RETENTION_MS, TopicValues, settings_in_force
from reconciler.model.cluster import Cluster, Topic

_SEGMENT_BYTES, _SEGMENT_MS = "segment.bytes", "segment.ms"
_RETENTION = {
    "cluster": TEXT,
    "topic": TEXT,
    "is_compacted": YES_NO,
    "kept_ms": LONG,
    "kept_bytes": LONG,
    "segment_ms": LONG,
    "segment_bytes": LONG,
}


def retention_table(sides: Iterable[Side]) -> ArrowTable:
    """Return one row for each topic of before.

    Columns: cluster, topic, is_compacted; kept_ms and kept_bytes, what a broker keeps of each partition on its own
    disks, null without a limit; segment_ms and segment_bytes, after which a segment is rolled. Where brokers differ in
    their settings, the most counts.
    """
    return arrow_table(_RETENTION, (row for side in sides if side.side == BEFORE for row in _rows(side)))


def _rows(side: Side) -> Iterator[tuple[object, ...]]:
    for name in sorted(side.cluster.topics):
        yield side.name, name, *_limits(side.cluster.topics[name], side.cluster)


def _limits(topic: Topic, cluster: Cluster) -> tuple[object, ...]:
    values = [TopicValues(topic.configs, settings, cluster.kafka_version) for settings in settings_in_force(cluster)]
    is_deleted = all("delete" in each.items(CLEANUP) for each in values)
    limits = [
        max(each.kept_on_disk(key) for each in values) if is_deleted else inf for key in (RETENTION_MS, RETENTION_BYTES)
    ]
    segments = (max(each.number(key) for each in values) for key in (_SEGMENT_MS, _SEGMENT_BYTES))
    is_compacted = any("compact" in each.items(CLEANUP) for each in values)
    return is_compacted, *(int(each) if isfinite(each) else None for each in (*limits, *segments))
