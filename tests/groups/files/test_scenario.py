"""Scenario files: read in three forms, every slip named by its path, schema and reader of one mind."""

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from reconciler.files.schema_check import schema_folder
from reconciler.groups.files.scenario import read_scenarios
from reconciler.model.problem import InvalidInput

CASES = Path(__file__).parents[1] / "assignors.json"
GOOD: dict[str, Any] = {
    "id": "one",
    "topics": [{"name": "t", "partitions": 2, "id": "PPcPWInQuIF2V8AgmfnzbA", "racks": [["a"], ["b", "c"]]}],
    "steps": [
        {"members": [{"id": "m1", "topics": ["t"], "rack": "a"}, {"id": "m2", "topics": ["t", "gone"]}]},
        {
            "change": ["m2 leaves"],
            "topics": [{"name": "t", "partitions": 3}],
            "members": [{"id": "m1", "topics": ["t"], "instance": "i", "owned": {"t": [1, 0]}, "generation": 4}],
        },
    ],
}


def written(tmp_path: Path, value: object) -> Path:
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps(value))
    return path


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the good scenario with the value put at that path, or taken away where it is `...`."""
    document = deepcopy(GOOD)
    *steps, last = [int(part) if part.isdigit() else part for part in path.split("/")[1:]]
    place: Any = document
    for step in steps:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return document


def validator() -> Draft7Validator:
    return Draft7Validator(json.loads((schema_folder() / "scenario.json").read_text()))


def test_a_scenario_says_who_is_there_and_what_they_bring(tmp_path: Path) -> None:
    read = read_scenarios(written(tmp_path, GOOD))
    (scenario,) = read.scenarios
    assert not read.is_list
    assert scenario.scenario_id == "one"
    assert scenario.topics["t"].racks == (frozenset("a"), frozenset("bc"))
    first, second = scenario.steps
    assert [member.member_id for member in first.members] == ["m1", "m2"]
    assert (first.members[0].owned, first.members[0].generation) == (None, None)
    assert (second.members[0].owned, second.members[0].generation) == ({"t": (0, 1)}, 4)
    assert (scenario.topics_at(0)["t"].partitions, scenario.topics_at(1)["t"].partitions) == (2, 3)
    assert second.changes == ("m2 leaves",)


def test_one_scenario_a_list_and_a_file_of_cases_are_read_alike(tmp_path: Path) -> None:
    cases = json.loads(CASES.read_text())
    wrapped = read_scenarios(CASES)
    listed = read_scenarios(written(tmp_path, cases["scenarios"]))
    assert wrapped.scenarios == listed.scenarios
    assert (wrapped.is_list, wrapped.is_wrapped, listed.is_list, listed.is_wrapped) == (True, True, True, False)
    alone = read_scenarios(written(tmp_path, cases["scenarios"][3]))
    assert alone.scenarios == (listed.scenarios[3],)


def test_scenarios_of_a_list_without_id_go_by_their_place(tmp_path: Path) -> None:
    nameless = changed("/id", ...)
    read = read_scenarios(written(tmp_path, [nameless, GOOD, nameless]))
    assert [scenario.scenario_id for scenario in read.scenarios] == ["1", "one", "3"]


WRONG = [
    ("/steps", [], "/steps must hold 1 to 1000 steps, not 0"),
    ("/topics", ..., '/ needs the field "topics"'),
    ("/steps", "none", '/steps must be a list, not "none"'),
    ("/step", [], "/step is no field of this object; did you mean steps?"),
    ("/steps/0/member", [], "/steps/0/member is no field of this object; did you mean members?"),
    ("/steps/0/members", ..., '/steps/0 needs the field "members"'),
    ("/steps/0/members/1/id", "m1", '/steps/0/members/1/id repeats "m1" of /steps/0/members/0'),
    ("/steps/0/members/1/userData", "w=3", '/steps/0/members/1/userData must be bytes in base64, not "w=3"'),
    ("/steps/0/members/1/id", "", "/steps/0/members/1/id must not be empty"),
    ("/steps/0/members/1/topics", "t", '/steps/0/members/1/topics must be a list, not "t"'),
    ("/steps/0/members/1/topics", ["t", "t"], '/steps/0/members/1/topics names "t" twice'),
    ("/steps/0/members/1/topics", ..., '/steps/0/members/1 needs the field "topics"'),
    ("/steps/0/members/0", 7, "/steps/0/members/0 must be an object, not 7"),
    ("/steps/1/members/0/owned", {"t": [0, 0]}, "/steps/1/members/0/owned/t must be a list of whole numbers"),
    ("/steps/1/members/0/owned", {"t": [-1]}, "/steps/1/members/0/owned/t must be a list of whole numbers"),
    ("/steps/1/members/0/generation", -2, "/steps/1/members/0/generation must be a whole number of at least -1"),
    ("/steps/1/members/0/generation", 1.5, "/steps/1/members/0/generation must be a whole number of at least -1"),
    ("/steps/1/change", [3], "/steps/1/change must be a list of texts"),
    ("/topics/0/id", "short", "/topics/0/id must be a topic id as Kafka writes it, 22 characters of base64"),
    ("/topics/0/partitions", "2", '/topics/0/partitions must be a whole number of at least 0, not "2"'),
    ("/topics/0/partitions", 3, "/topics/0/racks must hold the racks of each of the 3 partitions, not of 2"),
    ("/topics/0/partitions", 1_000_001, "/topics/0/racks must hold"),
    ("/topics/0/racks", ["a", "b"], '/topics/0/racks/0 must be a list of racks, not "a"'),
    ("/topics/0/name", ..., '/topics/0 needs the field "name"'),
]


@pytest.mark.parametrize(("path", "value", "message"), WRONG)
def test_a_slip_is_named_by_its_path(tmp_path: Path, path: str, value: object, message: str) -> None:
    file = written(tmp_path, changed(path, value))
    with pytest.raises(InvalidInput) as refused:
        read_scenarios(file)
    (problem,) = refused.value.problems
    assert problem.code == "KR172"
    place, _, told = problem.message.removeprefix(f"{file}:").partition(": ")
    assert re.fullmatch(r"\d+:\d+", place)
    assert told.startswith(message)


def test_topics_have_an_end(tmp_path: Path) -> None:
    many = changed("/topics", [{"name": "a", "partitions": 600_000}, {"name": "b", "partitions": 400_001}])
    with pytest.raises(InvalidInput, match="/topics must have at most 1000000 partitions in all, not 1000001"):
        read_scenarios(written(tmp_path, many))


def test_every_scenario_of_a_list_tells_its_own_slip(tmp_path: Path) -> None:
    document = {"scenarios": [changed("/steps", []), GOOD, changed("/topics", ...), GOOD]}
    with pytest.raises(InvalidInput) as refused:
        read_scenarios(written(tmp_path, document))
    places = [problem.message.partition(": ")[2].partition(" ")[0] for problem in refused.value.problems]
    assert places == ["/scenarios/0/steps", "/scenarios/2", "/scenarios/3/id"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not valid JSON"),
        ("[]", "must hold 1 to 10000 scenarios, not 0"),
        ("7", "must be one scenario, a list of them"),
        ('{"topics": [], "topics": []}', "stands twice"),
        ('{"scenarios": [], "extra": 1}', "/extra is no field of this object"),
        ('{"formatVersion": "1.0", "clusterId": "x"}', "this is a snapshot, not a scenario"),
        ("[" * 100_000, "nested too deeply"),
        ('[{"topics": [], "steps": [{"members": []}], "id": "\\ud800"}]', "half a surrogate pair"),
    ],
)
def test_what_is_no_scenario_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "scenario.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=message):
        read_scenarios(path)


def test_the_schema_takes_what_the_reader_takes() -> None:
    assert list(validator().iter_errors(json.loads(CASES.read_text()))) == []
    assert list(validator().iter_errors(GOOD)) == []
    assert list(validator().iter_errors([GOOD, GOOD])) == []


# What a schema cannot say: repeats among objects, and counts that must agree.
ONLY_READ = ("repeats", "must hold the racks")


@pytest.mark.parametrize(
    ("path", "value", "message"), [row for row in WRONG if not any(w in row[2] for w in ONLY_READ)]
)
def test_the_schema_refuses_what_the_reader_refuses(path: str, value: object, message: str) -> None:
    assert message
    assert list(validator().iter_errors(changed(path, value))) != []
