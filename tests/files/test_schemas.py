"""The schemas are draft-07, explain every field, and say what the code reads and writes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.sample_plan import sample_plan
from helpers.schemas import FORMATS, schema_text
from jsonschema import Draft7Validator

from reconciler.files.plan_file import plan_text
from reconciler.files.schema_check import schema_folder
from reconciler.files.snapshot import snapshot_text
from reconciler.model.move import Reason

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.name for path in schema_folder().glob("*.json"))


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((schema_folder() / name).read_text("utf-8"))
    return found


def unexplained(part: object, at: str) -> Iterator[str]:
    """Yield each named property without a description."""
    if isinstance(part, dict):
        for key, value in part.get("properties", {}).items():
            if not value.get("description"):
                yield f"{at}/{key}"
        for key, value in part.items():
            yield from unexplained(value, f"{at}/{key}")
    elif isinstance(part, list):
        for index, value in enumerate(part):
            yield from unexplained(value, f"{at}/{index}")


def test_each_kind_of_file_has_its_schema() -> None:
    assert {"cluster.json", "topic-class.json", "topic.json", "snapshot.json", "plan.json"} <= set(NAMES)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_versioned_and_explained(name: str) -> None:
    found = schema(name)
    Draft7Validator.check_schema(found)
    assert found["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert found["version"] == "1.0"
    assert list(unexplained(found, "")) == []


@pytest.mark.parametrize("name", FORMATS)
def test_a_schema_that_follows_from_a_type_is_as_written(name: str) -> None:
    text = (schema_folder() / f"{name}.json").read_text("utf-8")
    assert text == schema_text(FORMATS[name]), "run .venv/bin/python tests/helpers/schemas.py"


@pytest.mark.parametrize(
    "text",
    [
        (ROOT / "desired-state" / "demo" / "snapshot.json").read_text("utf-8"),
        snapshot_text(small_cluster("a-0: 1,2,3 size 5", "a-1: 2,3 isr 3", fenced=[4], rates={1: {"x": "1"}})),
        '{"formatVersion": "1.0", "clusterId": "x", "topics": [{"name": "t", "future": 1}]}',
    ],
)
def test_a_snapshot_is_what_its_schema_says(text: str) -> None:
    assert list(Draft7Validator(schema("snapshot.json")).iter_errors(json.loads(text))) == []


def test_a_plan_is_what_its_schema_says() -> None:
    assert list(Draft7Validator(schema("plan.json")).iter_errors(json.loads(plan_text(sample_plan())))) == []


def test_the_plans_schema_knows_every_reason() -> None:
    text = json.dumps(schema("plan.json"))
    assert [reason for reason in Reason if f'"{reason.value}"' not in text] == []


@pytest.mark.parametrize("path", sorted((ROOT / "desired-state").rglob("*.yaml")), ids=lambda path: path.name)
def test_shipped_yaml_points_at_its_schema(path: Path) -> None:
    first = path.read_text("utf-8").split("\n")[0]
    assert first.startswith("# yaml-language-server: $schema=")
    assert (path.parent / first.partition("=")[2]).resolve().parent == ROOT / "schemas"
