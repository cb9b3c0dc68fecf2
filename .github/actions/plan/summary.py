#!/usr/bin/env python3
"""summary.py FOLDER CLUSTERS: one table of what became of each cluster; exits with the worst exit code in it.

CLUSTERS is the JSON that clusters.py wrote. The folder holds `result-plan-CLUSTER/result` and
`result-apply-CLUSTER/result` of the jobs that ended: a line with the exit code, and one with the first error. The table
goes to stdout and, as Markdown, to GITHUB_STEP_SUMMARY. A cluster that has left nothing is not passed over. 2 and 5 are
no failures here.
"""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

WORST_FIRST = (64, 1, 3, 4, 5, 2, 0)
"""As for `--cluster '*'`; any other exit code is worse than these."""
NO_FAILURES = (0, 2, 5)
MOST_LETTERS = 300
DONE: Mapping[str, Mapping[int, str]] = {
    "plan": {0: "nothing to do"},
    "apply": {0: "applied", 5: "unfinished: the nights go on with it"},
}
TOLD = {3: "refused", 4: "stale: make a new plan"}
_BEFORE_ERRORS = re.compile(r"^(?:error: |violation: |::error [^:]*::)")
Row = tuple[str, str, int]


def main(folder: Path, names: Sequence[str], variables: Mapping[str, str]) -> int:
    """Print and write the table, and return the exit code."""
    rows = [row(folder, name) for name in names]
    width = max((len(name) for name in names), default=0)
    print(f"{len(rows)} cluster{'s' * (len(rows) != 1)}:")
    for name, told, code in rows:
        print(f"  {name:{width}}  {code:>3}  {told}")
    if variables.get("GITHUB_STEP_SUMMARY"):
        lines = [f"| {_inert(name)} | {_inert(told)} | {code} |\n" for name, told, code in rows]
        with Path(variables["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as file:
            file.writelines(["| cluster | result | exit |\n", "|---|---|---|\n", *lines])
    worst = min((code for _, _, code in rows), key=_rank, default=0)
    return 0 if worst in NO_FAILURES else worst


def row(folder: Path, name: str) -> Row:
    """Return what the table says of a cluster: what its last job left."""
    applied, planned = (result(folder / f"result-{verb}-{name}" / "result") for verb in ("apply", "plan"))
    if applied is not None:
        return name, _told("apply", *applied), applied[0]
    if planned is None:
        return name, "no plan: its job was stopped, or never began", 1
    if planned[0] == NO_FAILURES[1]:
        if planned[1]:
            return name, _one_line(planned[1]), planned[0]
        return name, "planned, not applied: it was not approved, or its job was stopped", 1
    return name, _told("plan", *planned), planned[0]


def result(file: Path) -> tuple[int, str] | None:
    """Return a job's exit code and first error; None where it has left none that can be read."""
    try:
        code, _, told = file.read_text("utf-8").partition("\n")
        return int(code), told.strip()
    except (OSError, ValueError):
        return None


def _told(verb: str, code: int, error: str) -> str:
    known = DONE[verb].get(code)
    if known is not None:
        return known
    return _one_line(": ".join(filter(None, (TOLD.get(code, f"{verb} failed"), _BEFORE_ERRORS.sub("", error)))))


def _one_line(text: str) -> str:
    line = "".join(each if each.isprintable() else " " for each in text)
    return line if len(line) <= MOST_LETTERS else f"{line[: MOST_LETTERS - 1]}…"


def _inert(text: str) -> str:
    """Return the text with nothing in it that Markdown would take as its own."""
    return re.sub(r"([\\`*_{}\[\]<>|&~#!@])", r"\\\1", text)


def _rank(code: int) -> int:
    return WORST_FIRST.index(code) if code in WORST_FIRST else -1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), json.loads(sys.argv[2] or "[]"), os.environ))
