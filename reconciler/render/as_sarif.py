"""Writes SARIF 2.1.0, as GitHub's code scanning takes it: what `validate` found, and the page of each code it found.

Limits and needed properties: GitHub's documentation, "SARIF support for code scanning".
"""

from collections.abc import Collection, Mapping, Sequence
from urllib.parse import quote

from reconciler.model.problem import CodePage, PlacedProblem, Severity
from reconciler.render.as_json import document
from reconciler.render.escape import visible

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_RESULTS = 25_000
"""A file with more is refused whole; of those, GitHub shows the 5,000 that weigh most."""
LONGEST_DESCRIPTION = 1024
LONGEST_NAME = 255
_LEVELS = {Severity.ERROR: "error", Severity.VIOLATION: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
_SEVERITIES = {"error": "error", "warning": "warning", "note": "recommendation"}
_WEIGHTS = {Severity.ERROR: 0, Severity.VIOLATION: 1, Severity.WARNING: 2}


def problems(found: Sequence[PlacedProblem], pages: Mapping[str, CodePage], version: str) -> str:
    """Return one run with a result for each problem; what GitHub would refuse as too many is left out, and counted."""
    shown = _shown(found)
    codes = sorted({each.problem.code for each in shown})
    run = {
        "tool": {
            "driver": {
                "name": "reconciler",
                "semanticVersion": version,
                "rules": [_rule(pages[code]) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(len(found) - len(shown), {each.problem.severity for each in found})],
        "results": [_result(each, codes.index(each.problem.code)) for each in shown],
    }
    return document({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _shown(found: Sequence[PlacedProblem]) -> Sequence[PlacedProblem]:
    if len(found) <= MOST_RESULTS:
        return found
    return sorted(found, key=lambda each: _WEIGHTS[each.problem.severity])[:MOST_RESULTS]


def _rule(page: CodePage) -> dict[str, object]:
    level = _LEVELS[page.severity]
    fence = "yaml" if page.is_yaml else "text"
    return {
        "id": page.code,
        "name": page.title[:LONGEST_NAME],
        "shortDescription": {"text": f"{page.title}."[:LONGEST_DESCRIPTION]},
        "fullDescription": {"text": page.meaning[:LONGEST_DESCRIPTION]},
        "help": {
            "text": f"{page.meaning}\n\nExample:\n{page.example}\nWhat to do: {page.remedy}",
            "markdown": f"{page.meaning}\n\n```{fence}\n{page.example}```\n\n**What to do.** {page.remedy}",
        },
        "defaultConfiguration": {"level": level},
        "properties": {
            "tags": ["kafka", "configuration"],
            "precision": "very-high",
            "problem.severity": _SEVERITIES[level],
        },
    }


def _invocation(left_out: int, severities: Collection[Severity]) -> dict[str, object]:
    code = 0 if not severities else 3 if severities == {Severity.VIOLATION} else 1
    told: dict[str, object] = {"executionSuccessful": True, "exitCode": code}
    if left_out:
        text = f"{left_out} more problems are left out: code scanning takes {MOST_RESULTS} at most."
        told["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    return told


def _result(placed: PlacedProblem, rule: int) -> dict[str, object]:
    return {
        "ruleId": placed.problem.code,
        "ruleIndex": rule,
        "level": "warning" if placed.problem.severity is Severity.WARNING else "error",
        "message": {"text": _message(placed.problem.message)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": _artifact(placed.path),
                    "region": {
                        "startLine": placed.line,
                        "startColumn": placed.column,
                        "endLine": placed.line,
                        "endColumn": placed.end_column,
                    },
                }
            }
        ],
        "partialFingerprints": {"primaryLocationLineHash": placed.fingerprint},
    }


def _message(text: str) -> str:
    """Return the text with nothing in it that SARIF would take for a link (section 3.11.6)."""
    shown = visible(text)
    return shown.replace("[", r"\[").replace("]", r"\]") if "](" in shown else shown


def _artifact(path: str) -> dict[str, object]:
    uri = quote(path, errors="surrogateescape")
    return {"uri": f"file://{uri}"} if path.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}
