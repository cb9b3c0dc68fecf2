"""Reads JSON that is no document by itself: Terraform's state as its topics, a reassignment as assignments."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from reconciler.files.foreign.topics import MAX_FACTOR, SKIPPED, WRONG, Part, Reading, is_replica_list, keep
from reconciler.files.json_place import places_of_pointers
from reconciler.files.json_text import parse_json
from reconciler.files.strict_yaml import YamlFloat, YamlList, YamlMap
from reconciler.model.codec import pointer as pointer_of
from reconciler.model.desired import DesiredTopic, Placement
from reconciler.model.problem import InvalidInput, Location, Problem

TERRAFORM, KAFKA_JSON = "terraform", "kafka-json"
HCL = (
    "the file is HCL, whose variables and loops only Terraform can resolve: give the output of "
    "`terraform show -json`, or the state file"
)
_STATE_VERSION = 4
_PLAN = "is a plan of Terraform, and not what there is: give the output of `terraform show -json` without a plan"
_OLD = "is a state of Terraform in an old form: give the output of `terraform show -json`"
_FIELDS: Mapping[str, tuple[str, str, str | None]] = {
    "kafka_topic": ("name", "partitions", "replication_factor"),
    "confluent_kafka_topic": ("topic_name", "partitions_count", None),
}
"""By resource type: the attributes that hold a topic's name, partitions and replication factor."""
_KNOWN = frozenset({"config", "credentials", "http_endpoint", "id", "kafka_cluster", "rest_endpoint"})
_TOPICS_OF_OTHERS = re.compile("(kafka|msk).*topic")
_HCL = re.compile(rb"^\s*(data|locals|module|output|provider|resource|terraform|variable)\b[^:\n]*\{", re.MULTILINE)
_ANY_DIR = "any"


def is_hcl(path: str, content: bytes) -> bool:
    """Whether that is a file of Terraform's language, by its name or by how a block begins."""
    return path.endswith(".tf") or (not content.lstrip().startswith(b"{") and _HCL.search(content) is not None)


def json_form(content: bytes, name: str, reading: Reading) -> tuple[str, Part] | None:
    """Return whose form that JSON is, and its content; None where it is none of these, and may be a document."""
    if not content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return None
    try:
        value = parse_json(content, name, "topic file", WRONG)
    except InvalidInput:
        return None
    if "apiVersion" in value or "meta" in value:
        return None
    is_state = "resources" in value and "version" in value
    if is_state or "format_version" in value or isinstance(value.get("resource"), dict):
        tool = TERRAFORM
    elif isinstance(value.get("partitions"), list):
        tool = KAFKA_JSON
    else:
        return None
    places = {pointer: Location(name, *at) for pointer, at in places_of_pointers(content).items()}
    return tool, Part(_placed(value, "", places, Location(name, 1)), "", reading)


def _placed(value: Any, pointer: str, places: Mapping[str, Location], around: Location) -> Any:
    """Return a JSON value with its places, as the YAML reader does."""
    here = places.get(pointer, around)
    if isinstance(value, dict):
        entries = YamlMap(here)
        for key, each in value.items():
            below = pointer_of(pointer, key)
            entries[key] = _placed(each, below, places, here)
            entries.key_at[key] = entries.value_at[key] = places.get(below, here)
        return entries
    if isinstance(value, list):
        items = YamlList(here)
        for number, each in enumerate(value):
            items.append(_placed(each, f"{pointer}/{number}", places, here))
            items.item_at.append(places.get(f"{pointer}/{number}", here))
        return items
    return YamlFloat(repr(value)) if isinstance(value, float) else value


def read_terraform(state: Part) -> None:
    """Add the topics of a state file (version 4), or of what `terraform show -json` prints of a state."""
    if "resource" in state.entries:
        state.reading.problems.append(Problem(WRONG, HCL, state.at("resource")))
    elif "planned_values" in state.entries:
        state.wrong("planned_values", _PLAN)
    elif "format_version" in state.entries:
        for resource in _shown(state.part("values").part("root_module")):
            _add(resource, None)
    elif state.entries["version"] != _STATE_VERSION:
        state.wrong("version", _OLD)
    else:
        found = [*_stored(state)]
        has_aliases = any(resource.alias for resource in found)
        for resource in found:
            # Each configuration of a provider is for one cluster; the one without an alias is the default.
            _add(resource, resource.alias or ("default" if has_aliases else None))


class _Resource(NamedTuple):
    """A topic's resource: its type, its address, its attributes, the alias of its provider where that is told."""

    kind: str
    address: str
    attributes: Part
    alias: str | None = None


def _shown(module: Part) -> Iterator[_Resource]:
    """Yield the topics of a module and of those below it, as `terraform show -json` has them."""
    for resource in module.parts("resources"):
        address = resource.text("address") or ""
        if _is_topic(resource, address) and "deposed_key" not in resource.entries:
            yield _Resource(resource.text("type") or "", address, resource.part("values"))
    for child in module.parts("child_modules"):
        yield from _shown(child)


def _stored(state: Part) -> Iterator[_Resource]:
    """Yield the topics of a state file."""
    for resource in state.parts("resources"):
        kind, module = resource.text("type") or "", resource.text("module")
        address = f"{f'{module}.' if module else ''}{kind}.{resource.text('name')}"
        if not _is_topic(resource, address):
            continue
        alias = (resource.text("provider") or "").rpartition("]")[2].lstrip(".") or None
        for instance in resource.parts("instances"):
            index = instance.entries.get("index_key")
            written = "" if index is None else f'["{index}"]' if isinstance(index, str) else f"[{index}]"
            if "deposed" not in instance.entries:
                yield _Resource(kind, address + written, instance.part("attributes"), alias)


def _is_topic(resource: Part, address: str) -> bool:
    kind = resource.text("type") or ""
    if resource.text("mode") != "managed":
        return False
    if kind not in _FIELDS and _TOPICS_OF_OTHERS.search(kind):
        resource.warn("", f"{address} is of a provider that is not known here, and is left out", SKIPPED)
    return kind in _FIELDS


def _add(resource: _Resource, cluster: str | None) -> None:
    name_key, partitions_key, factor_key = _FIELDS[resource.kind]
    part = replace(resource.attributes, path=resource.address)
    name = part.text(name_key)
    if name is None:
        part.wrong(name_key, "is missing")
        return
    part.refuse_unknown(_KNOWN | {name_key, partitions_key, factor_key or name_key})
    ids = [each.text("id") for each in part.parts("kafka_cluster")] if "kafka_cluster" in part.entries else []
    topic = DesiredTopic(
        name,
        partitions=part.count(partitions_key),
        replication_factor=part.count(factor_key, MAX_FACTOR) if factor_key else None,
        config=part.configs("config"),
    )
    keep(part.reading, topic, part, cluster or next(iter(ids), None))


def read_kafka_json(reassignment: Part) -> None:
    """Add the topics of a file of kafka-reassign-partitions, each with its explicit assignment."""
    lists: dict[str, dict[int, tuple[int, ...]]] = {}
    first: dict[str, Part] = {}
    for entry in reassignment.parts("partitions"):
        name, number, replicas = entry.text("topic"), entry.entries.get("partition"), entry.items("replicas")
        if name is None or type(number) is not int or number < 0:
            entry.wrong("partition", "must be a whole number, beside a topic")
        elif not is_replica_list(replicas):
            entry.wrong("replicas", "must be a list of different broker ids")
        elif number in lists.get(name, {}):
            entry.wrong("partition", f"{name}-{number} is there twice: keep one")
        else:
            lists.setdefault(name, {})[number] = tuple(replicas)
            first.setdefault(name, entry)
            if number == 0 and any(each != _ANY_DIR for each in entry.items("log_dirs")):
                entry.warn("log_dirs", "is not mapped: Kafka, or balance.logDirs in cluster.yaml, chooses among disks")
    for name, of_topic in lists.items():
        _assigned(name, of_topic, first[name])


def _assigned(name: str, lists: Mapping[int, tuple[int, ...]], part: Part) -> None:
    missing = [number for number in range(len(lists)) if number not in lists]
    if missing:
        part.wrong("partition", f"topic {name}: partition {missing[0]} is missing, and an assignment names all of them")
        return
    factors = {len(replicas) for replicas in lists.values()}
    topic = DesiredTopic(
        name,
        partitions=len(lists),
        replication_factor=factors.pop() if len(factors) == 1 else None,
        placement=Placement(assignment=tuple(lists[number] for number in sorted(lists))),
    )
    keep(part.reading, topic, part, None)
