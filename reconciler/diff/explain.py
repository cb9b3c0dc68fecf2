"""Tells changed topics field by field, old -> new. DeepDiff compares the objects that changed, never the cluster."""

from collections.abc import Iterator, Mapping

from deepdiff import DeepDiff

from reconciler.model.change import (
    AlterConfigs,
    Changes,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Difference,
    TopicChange,
)
from reconciler.model.cluster import Cluster

Fields = Mapping[str, str]


def differences(changes: Changes, observed: Cluster) -> tuple[Difference, ...]:
    """Return what changes in each topic, sorted by topic and field."""
    found = [difference for change in changes.topic_changes for difference in _changed_fields(change, observed)]
    return tuple(sorted(found, key=lambda difference: (difference.topic, difference.field)))


def _changed_fields(change: TopicChange, observed: Cluster) -> Iterator[Difference]:
    old, new = _views(change, observed)
    tree = DeepDiff(old, new, view="tree", threshold_to_diff_deeper=0)
    for level in (item for kind in tree.values() for item in kind):
        (field,) = level.path(output_format="list")
        yield Difference(change.topic, field, old.get(field), new.get(field), change.at)


def _views(change: TopicChange, observed: Cluster) -> tuple[Fields, Fields]:
    """Return the fields that the change speaks of, before and after, as text."""
    match change:
        case CreateTopic():
            shape = {"partitions": str(change.partitions), "replicationFactor": str(change.replication_factor)}
            return {}, shape | {f"config.{key}": value for key, value in change.configs.items()}
        case CreatePartitions():
            return {"partitions": str(change.from_count)}, {"partitions": str(change.to_count)}
        case AlterConfigs():
            before = {f"config.{key}": value for key, value in change.before.items() if value is not None}
            return before, {f"config.{key}": value for key, value in change.set.items()}
        case DeleteTopic():
            topic = observed.topics[change.topic]
            return {"partitions": str(len(topic.partitions))}, {}
