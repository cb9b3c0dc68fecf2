"""Reads scenarios of consumer groups (JSON: one, a list, `{"scenarios": [...]}`), and writes what each comes to."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from reconciler.files.checked import Fields, malformed, shown
from reconciler.files.json_text import collector_paused, parse_json, readable_json
from reconciler.files.raw import display_name, invalid, read_bytes
from reconciler.files.snapshot import refuse_other_kind
from reconciler.groups.model.simulation import Member, Outcome, Scenario, Step
from reconciler.model.assignment import Assignment, SubscribedTopic
from reconciler.model.codec import Malformed, pointer, to_json
from reconciler.model.problem import InvalidInput

UNREADABLE = "KR171"
WRONG_CONTENT = "KR172"
MAX_BYTES = 256 << 20
MAX_SCENARIOS = 10_000
MAX_STEPS = 1_000
MAX_MEMBERS = 100_000
MAX_PARTITIONS = 1_000_000
SCENARIOS = "scenarios"
# What a file of cases says beside the scenario itself; it is not read.
_ABOUT = frozenset({"$schema", "class", "expected", "insertion_order_sensitive_from_step"})
_SCENARIO = frozenset({"id", "topics", "steps"})
_STEP = frozenset({"members", "topics", "change"})
_MEMBER = frozenset({"id", "topics", "instance", "rack", "owned", "generation"})
_TOPIC = frozenset({"name", "id", "partitions", "racks"})
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")


@dataclass(frozen=True, slots=True)
class Scenarios:
    """The scenarios of one file, in its order, and the form in which they stood there."""

    scenarios: tuple[Scenario, ...]
    is_list: bool = False
    is_wrapped: bool = False


def read_scenarios(source: str | Path) -> Scenarios:
    """Return the scenarios of that file, `-` being stdin; InvalidInput names what is wrong in each by its path."""
    name = display_name(source)
    content = read_bytes(source, "scenario", UNREADABLE, MAX_BYTES)
    document = parse_json(content, name, "scenario", UNREADABLE)
    if isinstance(document, dict):
        refuse_other_kind(document, name, "scenario", WRONG_CONTENT)
    try:
        with collector_paused():
            return _scenarios(document)
    except _Wrong as wrong:
        found = wrong.found
    except Malformed as wrong:
        found = [wrong]
    except RecursionError:
        raise invalid(UNREADABLE, f"{name}: the scenario is nested too deeply") from None
    raise InvalidInput(problem for each in found for problem in malformed(WRONG_CONTENT, name, content, each).problems)


def outcomes_text(read: Scenarios, outcomes: Sequence[Mapping[str, Sequence[Outcome]]]) -> str:
    """Return what each scenario comes to: assignor -> one entry a step; for a list, one such object each, with its id.

    The form is that of the file: one object for one scenario, a list for a list.
    """
    with collector_paused():
        if not read.is_list:
            return readable_json(_outcomes(outcomes[0]))
        results = [
            {"id": scenario.scenario_id} | _outcomes(each)
            for scenario, each in zip(read.scenarios, outcomes, strict=True)
        ]
        return readable_json({SCENARIOS: results} if read.is_wrapped else results)


class _Wrong(Exception):
    """What is wrong in several scenarios."""

    def __init__(self, found: list[Malformed]) -> None:
        super().__init__()
        self.found = found


def _scenarios(document: Any) -> Scenarios:
    if isinstance(document, dict) and SCENARIOS not in document:
        return Scenarios((_scenario(Fields(document, "")),))
    is_wrapped = isinstance(document, dict)
    if isinstance(document, dict):
        _refuse_unknown(Fields(document, ""), frozenset({SCENARIOS, "meta", "$schema"}))
        items, at = Fields(document, "").items(SCENARIOS), f"/{SCENARIOS}"
    elif isinstance(document, list):
        items, at = document, ""
    else:
        raise Malformed("", f'must be one scenario, a list of them, or {{"scenarios": [...]}}, not {shown(document)}')
    if not 0 < len(items) <= MAX_SCENARIOS:
        raise Malformed(at, f"must hold 1 to {MAX_SCENARIOS} scenarios, not {len(items)}")
    return Scenarios(_each_scenario(items, at), is_list=True, is_wrapped=is_wrapped)


def _each_scenario(items: Sequence[Any], at: str) -> tuple[Scenario, ...]:
    found: list[Scenario] = []
    wrong: list[Malformed] = []
    ids: dict[str, int] = {}
    for index, item in enumerate(items):
        try:
            scenario = _scenario(Fields(item, f"{at}/{index}"), default_id=str(index + 1))
        except Malformed as malformed:
            wrong.append(malformed)
            continue
        found.append(scenario)
        first = ids.setdefault(scenario.scenario_id or "", index)
        if first != index:
            wrong.append(Malformed(f"{at}/{index}/id", f"repeats {shown(scenario.scenario_id)} of {at}/{first}"))
    if wrong:
        raise _Wrong(wrong)
    return tuple(found)


def _scenario(fields: Fields, default_id: str | None = None) -> Scenario:
    _refuse_unknown(fields, _SCENARIO | _ABOUT)
    for key in ("topics", "steps"):
        _required_list(fields, key)
    steps = fields.each("steps", _step)
    if not 0 < len(steps) <= MAX_STEPS:
        raise Malformed(fields.where("steps"), f"must hold 1 to {MAX_STEPS} steps, not {len(steps)}")
    return Scenario(_topics(fields), steps, fields.optional_text("id") or default_id)


def _step(fields: Fields) -> Step:
    _refuse_unknown(fields, _STEP)
    _required_list(fields, "members")
    if len(fields.items("members")) > MAX_MEMBERS:
        raise Malformed(fields.where("members"), f"must hold at most {MAX_MEMBERS} members")
    members = fields.each("members", _member)
    _refuse_repeats(fields, "members", "id")
    _refuse_repeats(fields, "members", "instance")
    topics = _topics(fields) if "topics" in fields.value else None
    return Step(members, topics, _changes(fields))


def _changes(fields: Fields) -> tuple[str, ...]:
    told = fields.value.get("change", [])
    return (told,) if isinstance(told, str) else fields.text_list("change")


def _member(fields: Fields) -> Member:
    _refuse_unknown(fields, _MEMBER)
    _required_list(fields, "topics")
    subscription = fields.text_list("topics")
    _refuse_twice(fields.where("topics"), subscription)
    return Member(
        member_id=_name(fields, "id"),
        subscription=subscription,
        instance_id=fields.optional_text("instance"),
        rack=fields.optional_text("rack"),
        owned=_owned(fields.member("owned")) if fields.value.get("owned") is not None else None,
        generation=fields.optional_integer("generation", -1),
        is_claim=True,
    )


def _owned(fields: Fields) -> dict[str, tuple[int, ...]]:
    return {topic: tuple(sorted(fields.integers(topic))) for topic in sorted(fields.value)}


def _topics(fields: Fields) -> dict[str, SubscribedTopic]:
    topics = sorted(fields.each("topics", _topic), key=lambda topic: topic.name)
    _refuse_repeats(fields, "topics", "name")
    total = sum(topic.partitions for topic in topics)
    if total > MAX_PARTITIONS:
        raise Malformed(fields.where("topics"), f"must have at most {MAX_PARTITIONS} partitions in all, not {total}")
    return {topic.name: topic for topic in topics}


def _topic(fields: Fields) -> SubscribedTopic:
    _refuse_unknown(fields, _TOPIC)
    topic_id = fields.optional_text("id")
    if topic_id is not None and not _TOPIC_ID.fullmatch(topic_id):
        message = f"must be a topic id as Kafka writes it, 22 characters of base64, not {shown(topic_id)}"
        raise Malformed(fields.where("id"), message)
    partitions = fields.integer("partitions")
    racks = fields.items("racks") if fields.value.get("racks") is not None else []
    if racks and len(racks) != partitions:
        message = f"must hold the racks of each of the {partitions} partitions, not of {len(racks)}"
        raise Malformed(fields.where("racks"), message)
    at = fields.where("racks")
    return SubscribedTopic(
        _name(fields, "name"), partitions, topic_id, tuple(_racks(each, f"{at}/{n}") for n, each in enumerate(racks))
    )


def _racks(value: Any, at: str) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(rack, str) for rack in value):
        raise Malformed(at, f"must be a list of racks, not {shown(value)}")
    return frozenset(value)


def _name(fields: Fields, key: str) -> str:
    text = fields.text(key)
    if not text:
        raise Malformed(fields.where(key), "must not be empty")
    return text


def _required_list(fields: Fields, key: str) -> None:
    if key not in fields.value:
        raise Malformed(fields.at, f'needs the field "{key}"')
    fields.items(key)


def _refuse_unknown(fields: Fields, known: frozenset[str]) -> None:
    for key in sorted(fields.value.keys() - known):
        near = get_close_matches(key, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(sorted(known - _ABOUT))}"
        raise Malformed(pointer(fields.at, key), f"is no field of this object{hint}")


def _refuse_repeats(fields: Fields, key: str, name: str) -> None:
    first: dict[str, int] = {}
    for index, item in enumerate(fields.items(key)):
        value = item.get(name)
        if value is not None and first.setdefault(value, index) != index:
            at = f"{fields.where(key)}/{index}/{name}"
            raise Malformed(at, f"repeats {shown(value)} of {fields.where(key)}/{first[value]}")


def _refuse_twice(at: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise Malformed(at, f"names {shown(name)} twice")
        seen.add(name)


def _outcomes(outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, Any]:
    return {name: [_outcome(each) for each in steps] for name, steps in outcomes.items()}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    told: dict[str, Any] = {"stats": to_json(outcome.stats)}
    if outcome.is_cooperative:
        return told | {"rounds": [_assignment(each) for each in outcome.rounds]}
    return told | {"assignment": _assignment(outcome.assignment)}


def _assignment(assignment: Assignment) -> dict[str, dict[str, list[int]]]:
    return {
        member_id: {topic: list(partitions) for topic, partitions in topics.items()}
        for member_id, topics in assignment.items()
    }
