"""Groups topics into the classes that describe most of them in few words, named after what sets each apart."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from re import sub

from reconciler.model.desired import DesiredTopic, Placement, Spread
from reconciler.model.imported import Adopted, FoundClass
from reconciler.model.words import written_bytes

STANDARD = "standard"
FEWEST = 3
"""So many topics with the very same configs are a class of their own."""
SHARE = 50
"""And no fewer than one in so many of all that share their rules: thousands of topics make no hundreds of classes."""
_LONGEST_PART = 32
_MOST_PARTS = 3
_DAY, _HOUR, _MINUTE, _SECOND = 86_400_000, 3_600_000, 60_000, 1000

Rules = tuple[int | None, Placement]
Configs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """A class without its name yet: its rules, its configs, its topics."""

    rules: Rules
    configs: Configs
    names: tuple[str, ...]


_SILENT = _Group((None, Placement()), (), ())
"""Says nothing: what a class is called by where no other is there to differ from."""


def with_classes(adopted: Adopted, declared: Mapping[str, DesiredTopic] | None = None) -> Adopted:
    """Return the same with the classes found, those of most topics first; a topic that is alone has none.

    The rules of a class are the very ones of its topics, its configs a part of theirs: a topic only adds. `declared`:
    classes that there are; their names are taken, topics that have joined one stay, and no class is made for a few.
    """
    declared = declared or {}
    free = {name: topic for name, topic in adopted.topics.items() if name not in adopted.class_of}
    groups = [group for rules, topics in _by_rules(free) for group in _groups(rules, topics)]
    groups = [group for group in groups if len(group.names) >= FEWEST or not declared]
    groups.sort(key=lambda group: (-len(group.names), group.configs, group.names))
    named = [*zip(_named(groups, declared), groups, strict=True)]
    classes = (FoundClass(name, *group.rules, dict(group.configs), len(group.names)) for name, group in named)
    class_of = {topic: name for name, group in named for topic in group.names}
    return replace(adopted, classes=tuple(classes), class_of={**adopted.class_of, **class_of})


def _by_rules(topics: Mapping[str, DesiredTopic]) -> Iterable[tuple[Rules, Sequence[DesiredTopic]]]:
    found: dict[Rules, list[DesiredTopic]] = defaultdict(list)
    for topic in topics.values():
        if not topic.is_absent:
            found[topic.replication_factor, replace(topic.placement, assignment=None)].append(topic)
    return found.items()


def _groups(rules: Rules, topics: Sequence[DesiredTopic]) -> Iterable[_Group]:
    """Return classes of topics with the same rules: equal configs first, then whatever all the others share."""
    configs_of = {topic.name: _configs(topic) for topic in topics}
    fewest = max(FEWEST, -(-len(topics) // SHARE))
    frequent = [configs for configs, many in Counter(configs_of.values()).items() if many >= fewest]
    frequent.sort(key=lambda each: (-len(each), each))
    members: dict[Configs, list[str]] = defaultdict(list)
    rest = []
    for name, configs in sorted(configs_of.items()):
        held = set(configs)
        best = next((each for each in frequent if held.issuperset(each)), None)
        if best is None:
            rest.append(name)
        else:
            members[best].append(name)
    shared = set[tuple[str, str]].intersection(*(set(configs_of[name]) for name in rest)) if rest else set()
    if rest:
        members[tuple(sorted(shared))] += rest
    for configs, names in members.items():
        is_empty = not configs and rules == (None, Placement())
        if len(names) > 1 and not is_empty:
            yield _Group(rules, configs, tuple(sorted(names)))


def _configs(topic: DesiredTopic) -> Configs:
    return tuple(sorted((key, value) for key, value in topic.config.items() if value is not None))


def _named(groups: Sequence[_Group], declared: Mapping[str, DesiredTopic]) -> Sequence[str]:
    """Return a name for each: the largest is the standard, the others are called by what they differ in.

    Where classes are declared, the standard is among them, if any is called so.
    """
    there = declared.get(STANDARD)
    usual = _Group((there.replication_factor, there.placement), _configs(there), ()) if there else None
    names: list[str] = []
    for group in groups:
        is_standard = not declared and not names
        parts = [] if is_standard else _parts(group, usual or groups[0]) or _parts(group, _SILENT)
        lengths = range(min(_MOST_PARTS, len(parts)), len(parts) + 1)
        tried = ["-".join(parts[:length]) or STANDARD for length in lengths]
        unique = chain(tried, (f"{tried[0]}-{number}" for number in count(2)))
        names.append(next(each for each in unique if each not in names and each not in declared))
    return names


def _parts(group: _Group, standard: _Group) -> list[str]:
    """Return what sets a class apart from the standard one, in words, what matters most first."""
    (factor, placement), (usual_factor, usual_placement) = group.rules, standard.rules
    parts = []
    if factor != usual_factor:
        parts.append("mixed-rf" if factor is None else f"rf{factor}")
    if placement != usual_placement:
        parts += _placement_parts(placement, usual_placement)
    usual = dict(standard.configs)
    differing = [(key, value) for key, value in group.configs if usual.get(key) != value]
    parts += [_config_part(key, value) for key, value in sorted(differing, key=_by_weight)]
    missing = [key for key in usual if key not in dict(group.configs)]
    return parts or [f"no-{_slug(key)}" for key in missing[:1]]


def _placement_parts(placement: Placement, usual: Placement) -> list[str]:
    parts = []
    if placement.racks_spread != usual.racks_spread:
        words = {Spread.STRICT: "spread", Spread.PREFER: "loosely-spread", Spread.IGNORE: "unspread", None: "unspread"}
        parts.append(words[placement.racks_spread])
    if placement.racks_only and placement.racks_only != usual.racks_only:
        parts.append(f"in-{_slug('-'.join(sorted(placement.racks_only)))}")
    if placement.racks_leader and placement.racks_leader != usual.racks_leader:
        parts.append(f"led-from-{_slug('-'.join(sorted(placement.racks_leader)))}")
    return parts


def _by_weight(config: tuple[str, str]) -> tuple[bool, bool, str]:
    return config[0] != "cleanup.policy", not config[0].startswith("retention"), config[0]


def _config_part(key: str, value: str) -> str:
    """Return a config in few words: `keep-7d`, `segment-1gib`, `compression-zstd`; never a part of a number."""
    if key == "cleanup.policy":
        policies = sorted(value.split(","))
        return {"compact": "compacted", "delete": "deleted"}.get(value, "-and-".join(map(_slug, policies)))
    if key == "min.insync.replicas":
        return f"min-isr-{_slug(value)}"
    stem, _, last = key.rpartition(".")
    short = _slug("keep" if stem == "retention" else stem if stem and last in {*_UNITS, "type"} else key)
    words = f"{short}-{_UNITS.get(last, _slug)(value)}"
    return words if len(words) <= _LONGEST_PART else short[:_LONGEST_PART].strip("-")


def _duration(value: str) -> str:
    if not (value.isascii() and value.isdigit()):
        return "forever" if value == "-1" else _slug(value)
    for unit, letter in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m"), (_SECOND, "s")):
        if int(value) >= unit and int(value) % unit == 0:
            return f"{int(value) // unit}{letter}"
    return f"{value}ms"


def _amount(value: str) -> str:
    if not (value.isascii() and value.isdigit()):
        return "without-end" if value == "-1" else _slug(value)
    return written_bytes(int(value)).lower()


def _slug(text: str) -> str:
    """Return the text in lower case with nothing but letters, digits and single dashes."""
    return sub("[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST_PART] or "other"


_UNITS: Mapping[str, Callable[[str], str]] = {"ms": _duration, "bytes": _amount}
"""Last words of configs that are units, with what writes a value with a better one."""
