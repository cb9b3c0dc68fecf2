"""Reads a Mirror document, its form already checked, as a value; and finds what files alone show to be wrong in it."""

import re
from collections.abc import Iterator, Mapping

from reconciler.files.semantics import MIN_ISR, config_problems
from reconciler.files.strict_yaml import YamlMap
from reconciler.model.desired import MIRROR_MAKERS_RENAME, SOURCE, TOPIC, DesiredMirror, DesiredTopic
from reconciler.model.problem import Location, Problem

_NAME = re.compile("[a-zA-Z0-9._-]*")
_TIMES = "a copy keeps the times of its records, which the target must take as they are"
MUST_NOT_FOLLOW: Mapping[str, str] = {
    MIN_ISR: "it goes with the replication factor, which is the target's own",
    "unclean.leader.election.enable": "what may be lost is for each cluster to say",
    "message.timestamp.type": _TIMES,
    "message.timestamp.difference.max.ms": _TIMES,
    "message.timestamp.before.max.ms": _TIMES,
    "message.timestamp.after.max.ms": _TIMES,
}
"""The configs that MirrorMaker 2 does not copy either, but for throttles, and why."""


def mirror_from(document: YamlMap) -> DesiredMirror:
    """Return what the document declares, without its class."""
    metadata, spec = document["metadata"], document["spec"]
    return DesiredMirror(
        metadata.get("name", ""),
        spec["source"],
        tuple(spec["topics"]),
        spec.get("rename", MIRROR_MAKERS_RENAME),
        tuple(spec.get("config", ())),
        DesiredTopic("", labels=dict(metadata.get("labels", {})), at={"": document.at}),
        {"": document.at, **spec.key_at, **_items(spec, "topics"), **_items(spec, "config")},
    )


def _items(spec: YamlMap, key: str) -> dict[str, Location]:
    items = spec.get(key)
    return {} if items is None else {f"{key}.{item}": at for item, at in zip(items, items.item_at, strict=True)}


def mirror_problems(mirror: DesiredMirror) -> Iterator[Problem]:
    """Yield what cannot be meant: names that no topic can have, and configs that are each cluster's own."""
    before, topic, behind = mirror.rename.partition(TOPIC)
    if not topic or not _NAME.fullmatch((before + behind).replace(SOURCE, "")):
        message = f"rename is {mirror.rename!r}: write {TOPIC} once, and around it {SOURCE} or a-z A-Z 0-9 . _ -"
        yield Problem("KR116", message, mirror.at["rename"])
    for pattern in mirror.topics:
        if pattern.startswith("__"):
            message = f"topics names {pattern}: internal topics are each cluster's own, and never copied"
            yield Problem("KR116", message, mirror.at[f"topics.{pattern}"])
    for key in mirror.config:
        if key in MUST_NOT_FOLLOW:
            message = f"{key} does not follow the source: {MUST_NOT_FOLLOW[key]}; leave it out"
            yield Problem("KR116", message, mirror.at[f"config.{key}"])
    # Of keys it is told as of any topic's; values come from the source.
    custom = mirror.like.custom_configs
    yield from config_problems(
        DesiredTopic("", config=dict.fromkeys(mirror.config), custom_configs=custom, at=mirror.at)
    )
