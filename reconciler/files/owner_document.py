"""Reads an Owner document, its form already checked, as a value."""

from collections.abc import Mapping

from reconciler.files.strict_yaml import YamlMap
from reconciler.files.units import config_text, parse_bytes
from reconciler.model.desired import ConfigBounds, DesiredOwner
from reconciler.model.problem import Location, Problem
from reconciler.model.topic_configs import TOPIC_CONFIGS


def owner_from(document: YamlMap, problems: list[Problem]) -> DesiredOwner:
    """Return what the document declares; what cannot be meant is added to `problems`."""
    spec = document["spec"]
    return DesiredOwner(
        document["metadata"].get("name", ""),
        spec.get("contact"),
        tuple(spec.get("topics", ())),
        _limits(spec.part("limits"), problems),
        tuple(spec.get("names", ())),
        {key: tuple(values) for key, values in spec.part("labels").items()},
        _config(spec.part("config"), problems) if "config" in spec else None,
        _places(document),
    )


def _places(document: YamlMap) -> Mapping[str, Location]:
    spec = document["spec"]
    below = {
        f"{key}.{each}": at for key in ("limits", "labels", "config") for each, at in spec.part(key).key_at.items()
    }
    return {"": document.at, **spec.key_at, **below}


def _limits(written: YamlMap, problems: list[Problem]) -> Mapping[str, int]:
    limits = {key: number for key, number in written.items() if key != "bytes"}
    if "bytes" in written:
        try:
            limits["bytes"] = parse_bytes(written["bytes"])
        except ValueError:
            message = f"bytes is {written['bytes'][:40]!r}: write a number that fits 64 bits, with its unit"
            problems.append(Problem("KR104", message, written.value_at["bytes"]))
    return limits


def _config(written: YamlMap, problems: list[Problem]) -> Mapping[str, ConfigBounds]:
    found: dict[str, ConfigBounds] = {}
    for key, bounds in written.items():
        try:
            least, most = (_number(key, bounds[each]) if each in bounds else None for each in ("min", "max"))
            found[key] = ConfigBounds(least, most, tuple(config_text(key, value) for value in bounds.get("oneOf", ())))
        except ValueError:
            message = f"a bound of {key} is none of its values: write Kafka's own value, or a unit that fits the key"
            problems.append(Problem("KR104", message, written.key_at[key]))
    return found


def _number(key: str, value: object) -> str:
    """Return the bound as Kafka takes it; ValueError where it is no number, of which alone there is more and less."""
    text = config_text(key, value)
    known = TOPIC_CONFIGS.get(key)
    if known is None or known.number(text) is None:
        float(text)
    return text
