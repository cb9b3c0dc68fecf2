"""Topics to create: as they are declared and, where that leaves something open, as the cluster's defaults have it."""

from collections.abc import Iterable, Iterator, Mapping

from reconciler.model.change import CreateTopic, TopicChange
from reconciler.model.cluster import DEFAULT_PARTITIONS, DEFAULT_REPLICATION_FACTOR, Cluster
from reconciler.model.desired import DesiredTopic
from reconciler.model.problem import Problem, Severity

DEFAULTS = {"partitions": DEFAULT_PARTITIONS, "replicationFactor": DEFAULT_REPLICATION_FACTOR}


def creation(declared: DesiredTopic, observed: Cluster) -> CreateTopic | Problem:
    """Return the topic to create, or why it cannot be: what is not written is taken from what all brokers agree on."""
    if declared.name.startswith("__"):
        message = f"topic {declared.name} is internal: Kafka creates it, a plan never does; remove it from the files"
        return Problem("KR243", message, declared.where(""))
    shape = {field: number or observed.number_in_force(DEFAULTS[field]) for field, number in _written(declared).items()}
    missing = " and ".join(field for field, number in shape.items() if number is None)
    if missing:
        return Problem("KR244", f"topic {declared.name} does not exist yet: write its {missing}", declared.where(""))
    configs = {key: value for key, value in sorted(declared.config.items()) if value is not None}
    partitions, factor = (number or 0 for number in shape.values())
    return CreateTopic(declared.name, partitions, factor, configs, at=declared.where(""))


def defaults_taken(changes: Iterable[TopicChange], declared: Mapping[str, DesiredTopic]) -> Iterator[Problem]:
    """Yield a warning for each new topic that is made as the cluster's defaults have it."""
    for change in changes:
        if not isinstance(change, CreateTopic):
            continue
        numbers = {"partitions": change.partitions, "replicationFactor": change.replication_factor}
        open_fields = [field for field, number in _written(declared[change.topic]).items() if number is None]
        taken = ", ".join(f"{field} {numbers[field]} ({DEFAULTS[field]})" for field in open_fields)
        if taken:
            message = f"topic {change.topic} is new, and takes what the brokers have by default: {taken}"
            yield Problem("KR835", message, change.at, Severity.WARNING)


def _written(declared: DesiredTopic) -> Mapping[str, int | None]:
    placed = declared.placement.assignment
    return {
        "partitions": declared.partitions or (len(placed) if placed else None),
        "replicationFactor": declared.replication_factor or (len(placed[0]) if placed else None),
    }
