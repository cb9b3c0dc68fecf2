"""Reads Topic and TopicClass documents, their form already checked, as values; and lays one over the other."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.files.schema_check import LONGEST_SHOWN, is_secret
from reconciler.files.strict_yaml import Steps, YamlList, YamlMap
from reconciler.files.units import config_text
from reconciler.model.desired import DesiredTopic, Placement, Protection, Spread
from reconciler.model.problem import Location, Problem

PATTERN_KEYS = frozenset({"class", "config", "customConfigs", "placement"})


def topic_class_from(document: YamlMap, name: str, problems: list[Problem]) -> DesiredTopic:
    """Return the class that the document declares: what its topics have in common, under its own name."""
    return replace(_declared(document, name, problems), name=document["metadata"]["name"])


def topics_from(document: YamlMap, name: str, problems: list[Problem]) -> Iterator[DesiredTopic]:
    """Yield the topic that the document names, or one for each of its patterns."""
    metadata, spec = document["metadata"], document["spec"]
    if ("name" in metadata) == ("names" in metadata):
        message = (
            "metadata has both name and names: keep one" if "name" in metadata else "metadata lacks name, or names"
        )
        problems.append(Problem("KR113", message, Location(name, *document.value_at["metadata"])))
        return
    if "names" in metadata:
        for key in spec:
            if key not in PATTERN_KEYS or (key == "placement" and "assignment" in spec[key]):
                is_inside = key == "placement"
                at = Location(name, *(spec[key].key_at["assignment"] if is_inside else spec.key_at[key]))
                field = "placement.assignment" if is_inside else key
                message = f"{field} cannot be written for patterns of names: name each topic"
                problems.append(Problem("KR113", message, at))
    shared = _declared(document, name, problems)
    for wanted in metadata.get("names", [metadata.get("name")]):
        yield replace(shared, name=wanted)


def _declared(document: YamlMap, name: str, problems: list[Problem]) -> DesiredTopic:
    spec = document["spec"]
    return DesiredTopic(
        "",
        is_absent=spec.get("state") == "absent",
        partitions=spec.get("partitions"),
        replication_factor=spec.get("replicationFactor"),
        config=_config(spec, name, problems),
        placement=_placement(spec),
        protect=frozenset(Protection(word) for word in spec.get("protect", ())),
        custom_configs=_set(spec, "customConfigs") or frozenset(),
        labels=dict(document["metadata"].get("labels", {})),
        at=_places(document, name),
    )


def merged(below: DesiredTopic, topic: DesiredTopic) -> DesiredTopic:
    """Return the topic with the class's fields where it writes none of its own."""
    under, over = below.placement, topic.placement
    at = {path: place for path, place in below.at.items() if path and path not in topic.at}
    return replace(
        topic,
        replication_factor=topic.replication_factor or below.replication_factor,
        config=dict(sorted({**below.config, **topic.config}.items())),
        placement=Placement(
            racks_spread=_spread_over(below, topic),
            racks_only=over.racks_only if over.racks_only is not None else under.racks_only,
            racks_leader=over.racks_leader if over.racks_leader is not None else under.racks_leader,
            brokers_only=over.brokers_only if over.brokers_only is not None else under.brokers_only,
            brokers_except=over.brokers_except or under.brokers_except,
            assignment=over.assignment,
        ),
        protect=topic.protect if "protect" in topic.at else below.protect,
        custom_configs=below.custom_configs | topic.custom_configs,
        at={**topic.at, **at},
    )


def without_class_of(taken: Collection[Steps], topic: DesiredTopic, over_class: DesiredTopic) -> DesiredTopic:
    """Return the topic over its class, but with nothing of the class where the topic wrote something that is wrong.

    `taken`: the paths of what was taken out of the topic's document. An unknown key may be any field misspelt.
    """
    fields = {path[1:] for path in taken if path[:1] == ("spec",)}
    if ("",) in fields:
        return topic
    wrong = {field[0] for field in fields if field}
    if "replicationFactor" in wrong:
        over_class = replace(over_class, replication_factor=None)
    if "protect" in wrong:
        over_class = replace(over_class, protect=frozenset())
    if "placement" in wrong:
        over_class = replace(over_class, placement=topic.placement)
    if "config" in wrong:
        over_class = replace(over_class, config=topic.config)
    return over_class


def _spread_over(below: DesiredTopic, topic: DesiredTopic) -> Spread | None:
    """Return the topic's own spread; its mere `racks:` does not undo what the class says."""
    if "placement.racks.spread" in topic.at or below.placement.racks_spread is None:
        return topic.placement.racks_spread
    return below.placement.racks_spread


def unit_problems(document: YamlMap, name: str) -> list[Problem]:
    """Return what is wrong with the units of a document's config, whatever else is wrong with the document."""
    problems: list[Problem] = []
    spec = document.get("spec")
    if isinstance(spec, YamlMap) and isinstance(spec.get("config"), YamlMap):
        _config(spec, name, problems)
    return problems


def _config(spec: YamlMap, name: str, problems: list[Problem]) -> Mapping[str, str | None]:
    found: dict[str, str | None] = {}
    written = spec.get("config") or YamlMap((1, 1))
    for key, value in written.items():
        try:
            found[key] = None if value is None else config_text(key, value)
        except ValueError:
            shown = "set to something" if is_secret(key) else ascii(str(value)[:LONGEST_SHOWN])
            message = f"{key} is {shown}: the unit does not fit; write Kafka's own value, or a fitting unit"
            problems.append(Problem("KR104", message, Location(name, *written.value_at[key])))
    return dict(sorted(found.items()))


def _placement(spec: Mapping[str, Any]) -> Placement:
    written = spec.get("placement") or {}
    racks, brokers = written.get("racks"), written.get("brokers") or {}
    assignment = written.get("assignment")
    return Placement(
        racks_spread=None if racks is None else Spread(racks.get("spread", "prefer")),
        racks_only=_set(racks or {}, "only"),
        racks_leader=_set(racks or {}, "leader"),
        brokers_only=_set(brokers, "only"),
        brokers_except=frozenset(brokers.get("except", ())),
        assignment=None if assignment is None else tuple(tuple(replicas) for replicas in assignment),
    )


def _set(written: Mapping[str, Any], key: str) -> frozenset[Any] | None:
    return frozenset(written[key]) if key in written else None


def _places(document: YamlMap, name: str) -> Mapping[str, Location]:
    """Return the place of each field of the spec by its path, and of the document by the empty path."""
    places = {"": Location(name, *document.at)}
    waiting: list[tuple[str, Any]] = [("", document["spec"])]
    while waiting:
        prefix, holder = waiting.pop()
        if not isinstance(holder, YamlMap) or isinstance(holder, YamlList):
            continue
        for key, place in holder.key_at.items():
            path = f"{prefix}.{key}" if prefix else key
            places[path] = Location(name, *place)
            waiting.append((path, holder[key]))
    return places
