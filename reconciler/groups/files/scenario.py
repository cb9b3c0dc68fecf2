"""Reads scenarios of consumer groups (JSON: one, a list, `{"scenarios": [...]}`), and writes what each comes to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reconciler.files.json_text import collector_paused, malformed, parse_json, readable_json
from reconciler.files.raw import display_name, invalid, read_bytes
from reconciler.files.snapshot import refuse_other_kind
from reconciler.groups.model.simulation import Outcome, Scenario, ScenarioList
from reconciler.model.assignment import Assignment
from reconciler.model.codec import Malformed, from_json, to_json
from reconciler.model.problem import InvalidInput

UNREADABLE = "KR171"
WRONG_CONTENT = "KR172"
MAX_BYTES = 256 << 20
SCENARIOS = "scenarios"


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
    if isinstance(document, list):
        ScenarioList.SIZE.check(document)
        return Scenarios(_each_scenario(document), is_list=True)
    if not isinstance(document, dict):
        raise Malformed("", 'must be one scenario, a list of them, or {"scenarios": [...]}, not {}', document)
    if SCENARIOS not in document:
        return Scenarios((from_json(Scenario, document),))
    items = from_json(ScenarioList, document).scenarios
    return Scenarios(_each_scenario(items, is_wrapped=True), is_list=True, is_wrapped=True)


def _each_scenario(items: Sequence[object], *, is_wrapped: bool = False) -> tuple[Scenario, ...]:
    found: list[Scenario] = []
    wrong: list[Malformed] = []
    ids: dict[str, int] = {}
    for index, item in enumerate(items):
        try:
            scenario = from_json(Scenario, item)
        except Malformed as malformed:
            wrong.append(malformed.inside(index))
            continue
        name = scenario.scenario_id or str(index + 1)
        found.append(replace(scenario, scenario_id=name))
        first = ids.setdefault(name, index)
        if first != index:
            wrong.append(Malformed(f"/{index}/id", "repeats {} of", name, f"/{first}"))
    if wrong:
        raise _Wrong([each.inside(SCENARIOS) for each in wrong] if is_wrapped else wrong)
    return tuple(found)


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
