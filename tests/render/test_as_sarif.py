"""SARIF as its own schema and GitHub's documentation want it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator

from reconciler.files.codes import code_pages
from reconciler.model.problem import PlacedProblem, Problem, Severity
from reconciler.render import as_sarif

SCHEMA = json.loads((Path(__file__).parent / "sarif" / "sarif-schema-2.1.0.json").read_text("utf-8"))
PAGES = code_pages()
ONE = PlacedProblem(Problem("KR103", "unknown key"), "desired-state/prod/t.yaml", 4, 3, 20, "a1:1")


def run_of(found: Sequence[PlacedProblem]) -> dict[str, Any]:
    """Return the one run, once the whole file is found to be what the schema says."""
    told = json.loads(as_sarif.problems(found, PAGES, "1.2.3"))
    Draft4Validator(SCHEMA).validate(told)
    assert (told["version"], told["$schema"]) == ("2.1.0", "https://json.schemastore.org/sarif-2.1.0.json")
    run: dict[str, Any] = told["runs"][0]
    return run


def test_the_schema_would_notice_a_fault() -> None:
    told = json.loads(as_sarif.problems([ONE], PAGES, "1.2.3"))
    told["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    assert not Draft4Validator(SCHEMA).is_valid(told)


def test_nothing_found_is_a_run_without_results() -> None:
    run = run_of([])
    assert run["results"] == []
    assert run["tool"]["driver"]["rules"] == []
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 0}]


def test_a_result_has_all_that_code_scanning_needs() -> None:
    run = run_of([ONE])
    assert run["tool"]["driver"]["semanticVersion"] == "1.2.3"
    assert run["invocations"][0]["exitCode"] == 1
    assert run["results"] == [
        {
            "ruleId": "KR103",
            "ruleIndex": 0,
            "level": "error",
            "message": {"text": "unknown key"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": "desired-state/prod/t.yaml", "uriBaseId": "%SRCROOT%"},
                        "region": {"startLine": 4, "startColumn": 3, "endLine": 4, "endColumn": 20},
                    }
                }
            ],
            "partialFingerprints": {"primaryLocationLineHash": "a1:1"},
        }
    ]


@pytest.mark.long
def test_a_rule_has_all_that_code_scanning_shows_within_its_limits() -> None:
    found = [replace(ONE, problem=Problem(code, "x")) for code in PAGES]
    run = run_of(found)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted(PAGES)
    for rule in rules:
        assert 0 < len(rule["name"]) <= 255
        assert 0 < len(rule["shortDescription"]["text"]) <= 1024
        assert 0 < len(rule["fullDescription"]["text"]) <= 1024
        assert "What to do" in rule["help"]["text"]
        assert "**What to do.**" in rule["help"]["markdown"]
        assert rule["defaultConfiguration"]["level"] in {"error", "warning", "note"}
        assert 0 < len(rule["properties"]["tags"]) <= 10
        assert rule["properties"]["problem.severity"] in {"error", "warning", "recommendation"}
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == list(PAGES)


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b/ü#?%.yaml", "a%20b/%C3%BC%23%3F%25.yaml"),
        ("x/c:d.yaml", "x/c%3Ad.yaml"),
        ("/elsewhere/t.yaml", "file:///elsewhere/t.yaml"),
    ],
)
def test_a_path_is_a_uri(path: str, uri: str) -> None:
    location = run_of([replace(ONE, path=path)])["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location["uri"] == uri
    assert ("uriBaseId" in location) is (not path.startswith("/"))


def test_what_others_wrote_is_no_link_and_steers_nothing() -> None:
    hostile = replace(ONE, problem=Problem("KR103", "key [x](https://example.org)\x1b[31m\n"))
    assert run_of([hostile])["results"][0]["message"]["text"] == r"key \[x\](https://example.org)\u001b\[31m\u000a"


@pytest.mark.long
def test_as_many_results_as_code_scanning_takes_errors_first_and_the_others_counted() -> None:
    warning = replace(ONE, problem=Problem("KR241", "a warning", severity=Severity.WARNING))
    told = json.loads(as_sarif.problems([warning, *[ONE] * as_sarif.MOST_RESULTS, warning], PAGES, "1.2.3"))
    run = told["runs"][0]
    assert len(run["results"]) == 25_000
    assert {result["level"] for result in run["results"]} == {"error"}
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"].startswith("2 more problems")
