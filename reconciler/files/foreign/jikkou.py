"""Jikkou's KafkaTopic and KafkaTopicList (`kafka.jikkou.io`), and the ConfigMaps that they refer to."""

from collections.abc import Mapping

from reconciler.files.foreign.topics import MAX_FACTOR, SKIPPED, Part, keep
from reconciler.model.desired import DesiredTopic

API, CORE_API = "kafka.jikkou.io/", "core.jikkou.io/"
DELETE, IGNORE = "jikkou.io/delete", "jikkou.io/ignore"
Maps = Mapping[str, Mapping[str, str | None]]
_SPEC = frozenset(
    {"partitions", "replicas", "replicationFactor", "replication_factor", "configs", "configMapRefs", "config_map_refs"}
)


def config_maps(documents: list[Part]) -> Maps:
    """Return the ConfigMaps among all documents, by name."""
    return {
        name: document.configs("data")
        for document in documents
        if document.text("kind") == "ConfigMap" and (name := document.part("metadata").text("name"))
    }


def read_jikkou(document: Part, maps: Maps) -> None:
    """Add the topics of one document: a KafkaTopic, or the `items` (formerly `spec.topics`) of a KafkaTopicList."""
    match document.text("kind"):
        case "ConfigMap":
            return
        case "KafkaTopic":
            _topic(document, {}, maps)
        case "KafkaTopicList":
            shared = document.part("metadata").labels("labels")
            for item in document.parts("items"):
                _topic(item, shared, maps)
            for item in document.part("spec").parts("topics"):
                _add(item, item, item.text("name"), shared, maps)
        case kind:
            document.warn("kind", f"{kind} is no KafkaTopic and is left out", SKIPPED)


def _topic(item: Part, shared: Mapping[str, str], maps: Maps) -> None:
    metadata = item.part("metadata")
    labels = {**shared, **metadata.labels("labels")}
    _add(item, item.part("spec"), metadata.text("name"), labels, maps)


def _add(item: Part, spec: Part, name: str | None, labels: Mapping[str, str], maps: Maps) -> None:
    if name is None:
        item.wrong("metadata", "lacks name")
        return
    annotations = item.part("metadata").part("annotations")
    if annotations.flag(IGNORE):
        item.warn("", f"topic {name} is annotated {IGNORE} and is left out", SKIPPED)
        return
    if spec is not item:
        spec.refuse_unknown(_SPEC)
    topic = DesiredTopic(
        name,
        is_absent=bool(annotations.flag(DELETE)),
        partitions=spec.count("partitions"),
        replication_factor=_factor(spec),
        config=_configs(spec, maps),
        labels=dict(labels),
    )
    keep(item.reading, topic, item, None)


def _factor(spec: Part) -> int | None:
    names = ("replicas", "replicationFactor", "replication_factor")
    return next((found for name in names if (found := spec.count(name, MAX_FACTOR)) is not None), None)


def _configs(spec: Part, maps: Maps) -> dict[str, str | None]:
    """Return the configs with those of the maps below them: the topic's own win, then the first map that is named."""
    found: dict[str, str | None] = {}
    for key in ("configMapRefs", "config_map_refs"):
        for reference in reversed(spec.items(key)):
            if isinstance(reference, str) and reference in maps:
                found |= maps[reference]
            else:
                spec.wrong(key, f"names {ascii(reference)[:60]}, but no file given holds such a ConfigMap")
    return dict(sorted((found | spec.configs("configs")).items()))
