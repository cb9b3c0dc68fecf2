"""What only some plans hold reads back as it was written, and fits the schema."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.sample_plan import sample_plan
from jsonschema import Draft7Validator

from reconciler.files.plan_file import plan_text, read_plan, with_id, write_plan
from reconciler.files.schema_check import schema_folder
from reconciler.model.plan import Plan, Rollback, Source
from reconciler.model.problem import Edit, InvalidInput, Location, Remedy
from reconciler.model.what_if import Affected, Health, WhatIf

SUPPOSED = WhatIf(
    ("drain=5", "fail-rack=a"),
    ("rack a is down: brokers 1, 4",),
    at_once=Health(Affected(3, ("t-0", "t-1", "t-2")), offline=Affected(1, ("t-0",))),
)
REMEDIES = (
    Remedy((Edit("racks.spread: prefer for t", Location("c.yaml", 7)), Edit("a third broker"))),
    Remedy((Edit("limits.diskUse: 83%", Location("c.yaml", 9)),), is_planned=False),
)


def _bare(**fields: object) -> Plan:
    return with_id(replace(Plan("demo", "id", Source("sha256:0"), rollback=Rollback()), **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "plan",
    [
        _bare(what_if=SUPPOSED),
        _bare(what_if=replace(SUPPOSED, after=Health())),
        _bare(remedies=REMEDIES),
        _bare(what_if=SUPPOSED, remedies=REMEDIES),
    ],
)
def test_it_reads_back_exactly_and_fits_the_schema(tmp_path: Path, plan: Plan) -> None:
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan
    schema = json.loads((schema_folder() / "plan.json").read_text("utf-8"))
    Draft7Validator(schema).validate(json.loads(plan_text(plan)))


def test_a_plan_without_it_says_nothing_of_it() -> None:
    assert not {"whatIf", "remedies"} & json.loads(plan_text(sample_plan())).keys()


def test_a_supposition_cannot_be_taken_out_of_a_plan(tmp_path: Path) -> None:
    document = json.loads(plan_text(_bare(what_if=SUPPOSED)))
    del document["whatIf"]
    (tmp_path / "plan.json").write_text(json.dumps(document), "utf-8")
    with pytest.raises(InvalidInput, match="was changed after it was made"):
        read_plan(tmp_path / "plan.json")
