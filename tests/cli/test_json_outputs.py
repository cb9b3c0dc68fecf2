"""`-o json` of every verb: what is printed is what its schema in `schemas/` says, and the schema leaves nothing out."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from helpers.program.call import Program
from helpers.program.written_commands import verbs
from jsonschema import Draft7Validator

from reconciler.balance.model.load_report import ClusterSamples, LoadReport, Rule
from reconciler.files.schema_check import schema_folder
from reconciler.groups.files.scenario import outcomes_text
from reconciler.groups.workflow.simulate import run_scenarios
from reconciler.model.run import AskedThrottle
from reconciler.render import as_json

STEP: dict[str, Any] = {"assignment": {"m": {"t": [0]}}, "stats": {"max": 1, "min": 1, "pair_score": 0}}
DEMO = ("--cluster", "demo")
ADVISE = ("--topic", "orders.events", "--target", "100MiB/s", "--producer", "10MiB/s", "--consumer", "20MiB/s")
RESET = ("groups", "reset-offsets", "billing", "--topic", "orders.events", "--to-earliest")
SCENARIOS = Path(__file__).parents[1] / "groups" / "assignors.json"
CASES: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("validate", ("validate",), 0),
    ("snapshot", ("snapshot",), 0),
    ("diff", ("diff",), 0),
    ("plan", ("plan",), 0),
    ("plan", ("plan", "--what-if", "add=9@c"), 0),
    ("plan", ("show", "plan.json"), 0),
    ("explanation", ("show", "plan.json", "--explain", "clicks-3"), 0),
    ("explanation", ("show", "plan.json", "--explain", "sessions-0"), 0),
    ("explanation", ("show", "plan.json", "--explain", "pageviews-13"), 0),
    ("verdict", ("show", "plan.json", "--prove"), 0),
    ("run", ("apply", "plan.json", "--dry-run"), 0),
    ("status", ("status",), 0),
    ("groups-list", ("groups", "list"), 0),
    ("groups-describe", ("groups", "describe"), 0),
    ("groups-lag", ("groups", "lag"), 0),
    ("groups-simulate", ("groups", "simulate", "--group", "web-analytics", "--partitions", "pageviews=18"), 0),
    ("groups-simulate-scenario", ("groups", "simulate", "--scenario", str(SCENARIOS), "--assignor", "sticky"), 0),
    ("groups-advise", ("groups", "advise", *ADVISE, "--headroom", "30%"), 0),
    ("groups-advise", ("groups", "advise", *ADVISE[2:]), 0),
    ("groups-reset-offsets", (*RESET,), 3),
    ("groups-delete", ("groups", "delete", "billing"), 3),
    ("topics-list", ("topics", "list"), 0),
    ("topics-list", ("topics", "list", "--since", "before.json"), 0),
    ("topics-describe", ("topics", "describe"), 0),
    ("topics-key", ("topics", "key", "clicks", "k"), 0),
    ("topics-key", ("topics", "key", "clicks", "k", "--partitions", "18"), 0),
    ("topics-key", ("topics", "key", "no", "k"), 1),
    ("schemas", ("schemas", "--out", "schemas"), 0),
    ("doctor", ("doctor",), 0),
    ("collect", ("collect", "--out", "samples"), 0),
    ("run", ("cancel", "plan.json"), 0),
    ("run", ("apply", "plan.json", "--yes"), 0),
    ("status", ("status",), 0),
    ("diff", ("diff",), 0),
    ("verdict", ("show", "plan.json", "--prove"), 4),
    ("plan", ("cancel", "--rollback", "plan.json", "--dry-run"), 0),
    ("rollback", ("cancel", "--rollback", "plan.json", "--yes"), 0),
)
"""Schema, command and exit code, in the order in which they are run on one folder."""
REFUSED = Path(__file__).parents[1] / "scenarios" / "lost_rack"
GROUPS = {"groups", "topics"}
"""What has verbs of its own."""
ELSEWHERE = {
    "init": "writes the folder",
    "import": "tests/cli/test_import.py",
    "throttle": "needs a run that is on; its words are checked below",
    "loads": "starts Spark; its report is checked below",
    "balance": "starts Spark; tests/cli/test_balance.py",
}


@pytest.fixture(scope="module")
def folder(planned_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the demo and its plan."""
    made = tmp_path_factory.mktemp("demo")
    shutil.copytree(planned_demo, made, dirs_exist_ok=True)
    snapshot = json.loads((made / "desired-state" / "demo" / "snapshot.json").read_text())
    (made / "before.json").write_text(json.dumps(snapshot | {"observedAt": "2026-10-01T00:00:00Z"}))
    return made


def check(name: str, text: str) -> None:
    """Fail where the text is not what that schema says, or the schema does not say all of it."""
    schema = json.loads((schema_folder() / f"{name}.json").read_text("utf-8"))
    errors = [
        f"{list(each.absolute_path)}: {each.message}" for each in Draft7Validator(schema).iter_errors(json.loads(text))
    ]
    assert errors == [], name


def test_what_became_of_a_rate_is_what_its_schema_says() -> None:
    check("throttle", as_json.document(AskedThrottle("9b21e07c", "apply of plan 9b21e07c", 20 << 20, is_taken_up=True)))


@pytest.mark.long
@pytest.mark.parametrize(
    ("schema", "verb"),
    [("plans", "plan"), ("diffs", "diff"), ("statuses", "status"), ("doctors", "doctor"), ("validate", "validate")],
)
def test_what_is_told_of_several_clusters_is_what_its_schema_says(
    schema: str, verb: str, folder: Path, reconciler: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    check(schema, reconciler(verb, "--cluster", "*", "-o", "json").out)
    ended = reconciler(verb, "--cluster", "demo,nowhere", "-o", "json")
    check(schema, ended.out)
    if verb != "validate":
        check("error", ended.err)


@pytest.mark.long
def test_what_is_printed_is_what_its_schema_says(
    folder: Path, reconciler: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    check("init", reconciler("init", "--demo", "-o", "json").out)
    monkeypatch.chdir(folder)
    for name, arguments, code in CASES:
        ended = reconciler(*arguments, *DEMO, "-o", "json")
        assert ended.code == code, (arguments, ended)
        if ended.out:
            check(name, ended.out)
        if ended.err.startswith("{"):
            check("error", ended.err)
        assert ended.out or ended.err.startswith("{")


@pytest.mark.long
def test_a_supposed_plan_that_is_refused_with_what_would_make_it_fit_is_what_its_schema_says(
    reconciler: Program, tmp_path: Path
) -> None:
    shutil.copytree(REFUSED / "desired-state", tmp_path / "desired-state")
    file = tmp_path / "desired-state" / "shop" / "cluster.yaml"
    file.write_text(file.read_text("utf-8").replace("movedBytes: 30GiB", "movedBytes: 1GiB"), "utf-8")
    asked = ("--what-if", "drain=5", "--state", str(REFUSED / "snapshot.json"))
    ended = reconciler("plan", *asked, "-o", "json")
    assert ended.code == 3
    check("plan", ended.out)
    assert json.loads(ended.out)["remedies"]


@pytest.mark.long
def test_problems_and_errors_are_what_their_schemas_say(folder: Path, reconciler: Program, tmp_path: Path) -> None:
    shutil.copytree(folder / "desired-state", tmp_path / "desired-state")
    (tmp_path / "desired-state" / "demo" / "bad.yaml").write_text("kind: Topic\nspec: 1\n")
    check("validate", reconciler("validate", "-o", "json").out)
    check("error", reconciler("plan", "-o", "json").err)


def test_a_report_of_loads_is_what_its_schema_says() -> None:
    full = ClusterSamples(
        "c", 3, 4, "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", 60, None, 0.5, {Rule.UNREADABLE: 1}
    )
    report = LoadReport(60, (ClusterSamples(None), full), ("a file was left out",))
    check("loads", as_json.document(report))


def test_what_scenarios_come_to_is_what_its_schema_says(tmp_path: Path) -> None:
    """One scenario, a list, and a list under one key, with all that the visible cases expect of Kafka's own classes."""
    cases = json.loads(SCENARIOS.read_text("utf-8"))["scenarios"][:2]
    expected = [{"id": case["id"]} | case["expected"] for case in cases]
    printed = []
    for number, form in enumerate((cases[0], cases, {"scenarios": cases})):
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(form))
        read, simulated = run_scenarios(str(file))
        printed.append(outcomes_text(read, [each.outcomes for each in simulated]))
        check("groups-simulate-scenario", printed[-1])
    assert [json.loads(text) for text in printed] == [cases[0]["expected"], expected, {"scenarios": expected}]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        [],
        {"range": []},
        [{"range": [STEP]}],
        {"range": [STEP | {"rounds": []}]},
        {"range": [{"stats": STEP["stats"]}]},
        {"range": [STEP | {"assignment": {"m": {"t": ["0"]}}}]},
        {"range": [STEP | {"stats": {"max": 1}}]},
        {"range": [STEP | {"more": 1}]},
        {"scenarios": []},
    ],
)
def test_no_other_form_passes_for_what_scenarios_come_to(wrong: object) -> None:
    schema = json.loads((schema_folder() / "groups-simulate-scenario.json").read_text("utf-8"))
    assert Draft7Validator(schema).is_valid({"range": [STEP]})
    assert not Draft7Validator(schema).is_valid(wrong)


def test_every_verb_with_json_is_checked_here_or_elsewhere() -> None:
    known = {" ".join(arguments[:2] if arguments[0] in GROUPS else arguments[:1]) for _, arguments, _ in CASES}
    wanted = {" ".join(words) for words, command in verbs() if "json" in outputs_of(command)} - GROUPS
    assert wanted == known | set(ELSEWHERE)


def outputs_of(command: click.Command) -> Iterator[str]:
    """Yield the forms of output that a verb has."""
    for option in command.params:
        if option.name == "output" and isinstance(option.type, click.Choice):
            yield from option.type.choices


@pytest.mark.parametrize("name", sorted(path.name for path in schema_folder().glob("*.json")))
def test_a_schema_of_an_output_knows_all_that_may_stand_there(name: str) -> None:
    schema = json.loads((schema_folder() / name).read_text("utf-8"))
    if schema["title"].startswith("What `reconciler "):
        assert list(open_objects(schema, "")) == []


def open_objects(part: Any, at: str) -> Iterator[str]:  # noqa: ANN401 - a schema is anything that JSON can hold
    """Yield each place where an object's keys are not all named."""
    if isinstance(part, dict):
        if "properties" in part and part.get("additionalProperties") is not False:
            yield at
        for key, value in part.items():
            yield from open_objects(value, f"{at}/{key}")
    elif isinstance(part, list):
        for index, value in enumerate(part):
            yield from open_objects(value, f"{at}/{index}")
