"""What only some plans hold reads back as it was written, and fits the schema."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.plans.resealed import resealed
from helpers.plans.sample_plan import sample_plan
from jsonschema import Draft7Validator

from reconciler.files.plan_file import plan_text, read_plan, with_id, write_plan
from reconciler.files.schema_check import schema_folder
from reconciler.model.desired import BrokerState, Spread
from reconciler.model.grounds import BrokerGround, Grounds, OtherMove, PlacementGround, Swap, TopicGround
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
GROUNDS = Grounds(
    brokers={
        1: BrokerGround("a"),
        2: BrokerGround("", BrokerState.DRAINING, 3, is_alive=False),
        10: BrokerGround("b", BrokerState.MAINTENANCE),
    },
    placements=(
        PlacementGround(),
        PlacementGround(Spread.STRICT, ("a", "b"), ("a",), (1, 2), (10,), is_assigned=True),
        PlacementGround(Spread.PREFER, brokers_only=()),
    ),
    topics={"a": TopicGround("a", 3, 0), "b": TopicGround("b", 0), "c": TopicGround("c", 1, 2)},
    instead={Swap(1, 2): OtherMove(1, 2, "a", 2, 7), Swap(1, 10): OtherMove(1, 10, "c", 0, 0)},
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
        _bare(grounds=GROUNDS),
        _bare(source=Source("sha256:0", rolls_back="0badcafe")),
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


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("topics", ["a", 1]),
        ("topics", ["a", -1, 0]),
        ("topics", ["a", True, 0]),
        ("topics", [1, 1, 0]),
        ("topics", ["a", 1, 3]),
        ("topics", ["a", 1, -2]),
        ("topics", {"a": 1}),
        ("instead", [1, 2, "a", 0]),
        ("instead", [1, 2, "a", 0, -1]),
        ("instead", [1, "2", "a", 0, 1]),
    ],
)
def test_a_table_row_that_means_nothing_is_told_with_its_place(tmp_path: Path, table: str, row: object) -> None:
    document = json.loads(plan_text(_bare(grounds=GROUNDS)))
    document["grounds"][table] = [row]
    (tmp_path / "plan.json").write_text(json.dumps(resealed(document)), "utf-8")
    with pytest.raises(InvalidInput, match=f"/grounds/{table}/0 must be"):
        read_plan(tmp_path / "plan.json")
