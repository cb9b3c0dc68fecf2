"""Reads Topic and TopicClass documents, their form already checked, as values; and lays one over the other."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from reconciler.files.schema_check import LONGEST_SHOWN, is_secret
from reconciler.files.strict_yaml import Steps, YamlMap
from reconciler.files.units import config_text
from reconciler.model.config_value import displayed_value
from reconciler.model.desired import DesiredTopic, Placement, Protection, Spread
from reconciler.model.problem import Location, Problem

PATTERN_KEYS = frozenset({"class", "config", "customConfigs", "placement"})
_RULES = tuple(each.name for each in fields(Placement))


def topics_from(document: YamlMap, problems: list[Problem]) -> Iterator[DesiredTopic]:
    """Yield the topic that the document names, or one for each of its patterns."""
    metadata = document["metadata"]
    is_named = "name" in metadata
    if is_named == ("names" in metadata):
        message = "metadata has both name and names: keep one" if is_named else "metadata lacks name, or names"
        problems.append(Problem("KR113", message, document.value_at["metadata"]))
        return
    declared = declared_in(document, problems)
    if is_named:
        yield declared
        return
    for path, place in declared.at.items():
        if path == "placement.assignment" or (path and "." not in path and path not in PATTERN_KEYS):
            message = f"{path} cannot be written for patterns of names: name each topic"
            problems.append(Problem("KR113", message, place))
    for pattern in metadata["names"]:
        yield replace(declared, name=pattern)


def declared_in(document: YamlMap, problems: list[Problem]) -> DesiredTopic:
    """Return what the document of a topic or a class declares; the name is empty where it has none."""
    metadata, spec = document["metadata"], document["spec"]
    return DesiredTopic(
        metadata.get("name", ""),
        is_absent=spec.get("state") == "absent",
        partitions=spec.get("partitions"),
        replication_factor=spec.get("replicationFactor"),
        config=config_of(document, problems),
        placement=_placement(spec.part("placement"), problems),
        protect=frozenset(map(Protection, spec.get("protect", ()))),
        custom_configs=_set(spec, "customConfigs") or frozenset(),
        labels=dict(metadata.get("labels", {})),
        at={"": document.at, **dict(_places(spec))},
    )


def merged(below: DesiredTopic, topic: DesiredTopic) -> DesiredTopic:
    """Return the topic with the class's fields where it writes none of its own."""
    at = {path: place for path, place in below.at.items() if path and path not in topic.at}
    return replace(
        topic,
        replication_factor=topic.replication_factor or below.replication_factor,
        config=dict(sorted({**below.config, **topic.config}.items())),
        placement=_placement_over(below, topic),
        protect=topic.protect if "protect" in topic.at else below.protect,
        custom_configs=below.custom_configs | topic.custom_configs,
        at={**topic.at, **at},
    )


def without_class_of(taken: Collection[Steps], topic: DesiredTopic, over_class: DesiredTopic) -> DesiredTopic:
    """Return the topic over its class, but with nothing of the class where the topic wrote something that is wrong.

    `taken`: the paths of what was taken out of the topic's document. An unknown key may be any field misspelt.
    """
    wrong = {path[1] for path in taken if path[:1] == ("spec",) and path[1:]}
    if "" in wrong:
        return topic
    if "replicationFactor" in wrong:
        over_class = replace(over_class, replication_factor=None)
    if "protect" in wrong:
        over_class = replace(over_class, protect=frozenset())
    if "placement" in wrong:
        over_class = replace(over_class, placement=topic.placement)
    if "config" in wrong:
        over_class = replace(over_class, config=topic.config)
    return over_class


def _placement_over(below: DesiredTopic, topic: DesiredTopic) -> Placement:
    own = {name: rule for name in _RULES if (rule := getattr(topic.placement, name))}
    # A spread takes the place of replicas by rack, and they that of a spread. The topic's mere `racks:` undoes neither.
    is_below = below.placement.racks_spread is not None or below.placement.racks_replicas is not None
    if is_below and "placement.racks.spread" not in topic.at:
        own.pop("racks_spread", None)
    base = below.placement
    if "racks_replicas" in own or "racks_spread" in own:
        base = replace(base, racks_spread=None, racks_replicas=None)
    return replace(base, **own)


def with_factor(topic: DesiredTopic) -> DesiredTopic:
    """Return the topic with the replication factor that its replicas by rack add up to, where none is written."""
    by_rack = topic.placement.racks_replicas
    if by_rack is None or topic.replication_factor is not None:
        return topic
    at = {**topic.at, "replicationFactor": topic.at["placement.racks.replicas"]}
    return replace(topic, replication_factor=sum(count for _, count in by_rack), at=at)


def config_of(document: YamlMap, problems: list[Problem]) -> Mapping[str, str | None]:
    """Return the config of a topic or a class as Kafka will show it, whatever else is wrong with the document."""
    found: dict[str, str | None] = {}
    written = document.part("spec").part("config")
    for key, value in written.items():
        try:
            found[key] = None if value is None else displayed_value(key, config_text(key, value))
        except ValueError:
            shown = "set to something" if is_secret(key) else ascii(str(value)[:LONGEST_SHOWN])
            message = f"{key} is {shown}: the unit does not fit; write Kafka's own value, or a fitting unit"
            problems.append(Problem("KR104", message, written.value_at[key]))
    return dict(sorted(found.items()))


def _placement(written: YamlMap, problems: list[Problem]) -> Placement:
    racks, brokers, assignment = written.part("racks"), written.part("brokers"), written.get("assignment")
    by_rack = tuple(sorted(racks["replicas"].items())) if "replicas" in racks else None
    if by_rack is not None and "spread" in racks:
        message = "racks.replicas says how many replicas each rack holds, in place of racks.spread: keep one of the two"
        problems.append(Problem("KR127", message, racks.key_at["replicas"]))
    is_spread = "racks" in written and by_rack is None
    return Placement(
        racks_spread=Spread(racks.get("spread", Spread.PREFER)) if is_spread else None,
        racks_replicas=by_rack,
        racks_only=_set(racks, "only"),
        racks_leader=_set(racks, "leader"),
        brokers_only=_set(brokers, "only"),
        brokers_except=_set(brokers, "except") or frozenset(),
        assignment=None if assignment is None else tuple(map(tuple, assignment)),
    )


def _set(written: YamlMap, key: str) -> frozenset[Any] | None:
    return frozenset(written[key]) if key in written else None


def _places(holder: YamlMap, prefix: str = "") -> Iterator[tuple[str, Location]]:
    """Yield the path and the place of each field."""
    for key, place in holder.key_at.items():
        yield f"{prefix}{key}", place
        if isinstance(holder[key], YamlMap):
            yield from _places(holder[key], f"{prefix}{key}.")
