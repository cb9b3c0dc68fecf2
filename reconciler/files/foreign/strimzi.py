"""Strimzi's KafkaTopic: `kafka.strimzi.io/v1`, `v1beta2` and older; the Topic Operator's rules for its fields."""

from reconciler.files.foreign.topics import MAX_FACTOR, SKIPPED, Part, keep
from reconciler.model.desired import DesiredTopic

API = "kafka.strimzi.io/"
CLUSTER_LABEL = "strimzi.io/cluster"
MANAGED = "strimzi.io/managed"
_SPEC = frozenset({"topicName", "partitions", "replicas", "config"})


def read_strimzi(document: Part) -> None:
    """Add the topic of one KafkaTopic. `spec.topicName` wins over `metadata.name`; other kinds are left out."""
    if document.text("kind") != "KafkaTopic":
        document.warn("kind", f"{document.text('kind')} is no KafkaTopic and is left out", SKIPPED)
        return
    metadata, spec = document.part("metadata"), document.part("spec")
    name = spec.text("topicName") or metadata.text("name")
    if name is None:
        metadata.wrong("name", "is missing, and so is spec.topicName")
        return
    if metadata.part("annotations").flag(MANAGED) is False:
        document.warn("", f"topic {name} is annotated {MANAGED}: false and is left out", SKIPPED)
        return
    spec.refuse_unknown(_SPEC)
    labels = dict(metadata.labels("labels"))
    cluster = labels.pop(CLUSTER_LABEL, None)
    topic = DesiredTopic(
        name,
        partitions=spec.count("partitions"),
        replication_factor=spec.count("replicas", MAX_FACTOR),
        config=spec.configs("config"),
        labels=labels,
    )
    keep(document.reading, topic, document, cluster)
