"""Writes the schemas that follow from types: `.venv/bin/python tests/helpers/schemas.py` after a change of a format."""

import json
from pathlib import Path
from typing import NamedTuple

from reconciler.balance.model.balance_report import BalanceReport
from reconciler.balance.model.load_report import LoadReport
from reconciler.balance.workflow.collect import Collected
from reconciler.groups.model.advice import Advice
from reconciler.groups.model.simulation import Scenario, ScenarioList, Simulated
from reconciler.groups.model.state import GroupDescriptions, GroupLags, GroupList
from reconciler.groups.workflow.delete import DeleteOutcome
from reconciler.groups.workflow.reset_offsets import ResetOutcome
from reconciler.model.against import Comparison
from reconciler.model.budget import CurveReport
from reconciler.model.change import DiffReport, DiffsReport
from reconciler.model.cluster import Cluster
from reconciler.model.codec import Schema, schema_of
from reconciler.model.diagnosis import DiagnosesReport, Diagnosis
from reconciler.model.explanation import Explanation
from reconciler.model.imported import ImportReport
from reconciler.model.notice import Notice
from reconciler.model.plan import Plan, PlansReport, Verdict
from reconciler.model.problem import Reported, ReportedError
from reconciler.model.run import AskedThrottle, RolledBack, RunResult
from reconciler.model.status import Status, StatusesReport
from reconciler.model.topic_report import KeyReport, TopicDescriptions, TopicList
from reconciler.workflow.init import Written
from reconciler.workflow.pipelines import Pipelines
from reconciler.workflow.schemas import WrittenSchemas

FOLDER = Path(__file__).resolve().parents[2] / "schemas"


class Format(NamedTuple):
    """A document kind: its type, its name and title in the schema; strict where only we write it.

    `several`: the type of a list of them under one key; a list alone may stand there then, too.
    """

    kind: type
    name: str
    title: str
    is_strict: bool = True
    several: type | None = None


FORMATS = {
    "plan": Format(Plan, "Plan", "A plan: what was reviewed, and exactly what runs"),
    "plans": Format(PlansReport, "Plans", "What `reconciler plan --cluster A,B -o json` prints"),
    "curve": Format(CurveReport, "Curve", "What `reconciler plan --curve -o json` prints"),
    "snapshot": Format(Cluster, "Snapshot", "A cluster as observed", is_strict=False),
    "run": Format(RunResult, "Run", "What `reconciler apply -o json` and `cancel -o json` print"),
    "rollback": Format(RolledBack, "Rollback", "What `reconciler cancel --rollback -o json` prints"),
    "status": Format(Status, "Status", "What `reconciler status -o json` prints; with --watch one such object a line"),
    "statuses": Format(StatusesReport, "Statuses", "What `reconciler status --cluster A,B -o json` prints"),
    "verdict": Format(Verdict, "Verdict", "What `reconciler show --prove -o json` prints"),
    "doctor": Format(Diagnosis, "Doctor", "What `reconciler doctor -o json` prints"),
    "doctors": Format(DiagnosesReport, "Doctors", "What `reconciler doctor --cluster A,B -o json` prints"),
    "diff": Format(DiffReport, "Diff", "What `reconciler diff -o json` prints"),
    "against": Format(Comparison, "Against", "What `reconciler diff --against -o json` prints"),
    "diffs": Format(DiffsReport, "Diffs", "What `reconciler diff --cluster A,B -o json` prints"),
    "notice": Format(Notice, "Notice", "What `reconciler diff --notify` sends"),
    "validate": Format(Reported, "Validate", "What `reconciler validate -o json` prints"),
    "error": Format(ReportedError, "Error", "What a verb with `-o json` prints to stderr when it fails"),
    "init": Format(Written, "Init", "What `reconciler init -o json` prints"),
    "pipelines": Format(Pipelines, "Pipelines", "What `reconciler init --ci -o json` prints"),
    "explanation": Format(Explanation, "Explanation", "What `reconciler show --explain -o json` prints"),
    "balance": Format(BalanceReport, "Balance", "What `reconciler balance -o json` prints"),
    "loads": Format(LoadReport, "Loads", "What `reconciler loads -o json` prints, and `_report.json` holds"),
    "collect": Format(Collected, "Collect", "What `reconciler collect -o json` prints, one object a line and round"),
    "groups-list": Format(GroupList, "GroupsList", "What `reconciler groups list -o json` prints"),
    "groups-lag": Format(GroupLags, "GroupsLag", "What `reconciler groups lag -o json` prints"),
    "groups-describe": Format(GroupDescriptions, "GroupsDescribe", "What `reconciler groups describe -o json` prints"),
    "groups-delete": Format(DeleteOutcome, "GroupsDelete", "What `reconciler groups delete -o json` prints"),
    "groups-reset-offsets": Format(
        ResetOutcome, "GroupsResetOffsets", "What `reconciler groups reset-offsets -o json` prints"
    ),
    "scenario": Format(
        Scenario,
        "Scenario",
        "Scenarios of consumer groups, for groups simulate --scenario",
        is_strict=False,
        several=ScenarioList,
    ),
    "groups-simulate": Format(Simulated, "GroupsSimulate", "What `reconciler groups simulate -o json` prints"),
    "groups-advise": Format(Advice, "GroupsAdvise", "What `reconciler groups advise -o json` prints"),
    "topics-list": Format(TopicList, "TopicsList", "What `reconciler topics list -o json` prints"),
    "topics-describe": Format(TopicDescriptions, "TopicsDescribe", "What `reconciler topics describe -o json` prints"),
    "topics-key": Format(KeyReport, "TopicsKey", "What `reconciler topics key -o json` prints"),
    "import": Format(ImportReport, "Import", "What `reconciler import -o json` prints"),
    "schemas": Format(WrittenSchemas, "Schemas", "What `reconciler schemas -o json` prints"),
    "throttle": Format(AskedThrottle, "Throttle", "What `reconciler throttle -o json` prints"),
}
"""By file. The others are written by hand: people write what they describe, or no type is there yet."""


def schema_text(form: Format) -> str:
    """Return a schema's file."""
    schema = schema_of(form.kind, is_strict=form.is_strict)
    if form.several is not None:
        schema = _one_or_several(schema, schema_of(form.several, is_strict=form.is_strict))
    schema.pop("description", None)
    head = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": f"https://reconciler.invalid/schemas/v1/{form.name}",
        "title": form.title,
        "version": "1.0",
    }
    return json.dumps(head | schema, indent=2, ensure_ascii=False) + "\n"


def _one_or_several(one: Schema, several: Schema) -> Schema:
    (key,) = several["required"]
    listed = {**several["properties"][key], "items": {"$ref": "#/definitions/one"}}
    wrapped = {**several, "properties": {**several["properties"], key: listed}}
    return {"definitions": {"one": one}, "anyOf": [listed["items"], listed, wrapped]}


if __name__ == "__main__":
    for file, form in FORMATS.items():
        (FOLDER / f"{file}.json").write_text(schema_text(form), "utf-8")
