"""An editor that knows nothing but a document's schema can complete and check it, and never offers what is refused."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.files.load import load_desired
from reconciler.files.schema_check import SCHEMA_FILES, schema_folder
from reconciler.model.cluster import TOPIC_THROTTLES
from reconciler.model.desired import Desired
from reconciler.model.topic_configs import TOPIC_CONFIGS

CLIENT = {"bootstrap.servers": "kafka:9092"}
DOCUMENTS: Mapping[str, dict[str, Any]] = {
    "Cluster": {"metadata": {"name": "prod"}, "spec": {"client": CLIENT}},
    "Topic": {"metadata": {"name": "orders"}, "spec": {}},
    "TopicClass": {"metadata": {"name": "standard"}, "spec": {}},
    "Mirror": {"metadata": {"name": "mine"}, "spec": {"source": "us", "topics": ["clicks"]}},
    "Owner": {"metadata": {"name": "team-a"}, "spec": {}},
}
# What stands beside a document so that it can be meant, and what an item of a list must have.
BESIDE: Mapping[str, list[str]] = {
    "Cluster": [],
    "Topic": ["Cluster", "TopicClass"],
    "TopicClass": ["Cluster"],
    "Mirror": ["Cluster", "TopicClass"],
    "Owner": ["Cluster"],
}
NEEDED: Mapping[str, dict[str, Any]] = {
    "brokers": {"id": 1},
    "logDirs": {"path": "/d9"},
    "windows": {"days": ["mon"], "from": "22:00", "to": "05:00"},
}
# The name and the kind make a document another one; a simulation excludes the client; a class's labels are for people;
# the only class that there is need not be named.
ELSEWHERE = {"apiVersion", "kind", "metadata.name", "metadata.names", "spec.simulation"}
FOR_PEOPLE = {"TopicClass.metadata.labels", "Owner.metadata.labels", "Mirror.spec.class"}


@dataclass(frozen=True)
class Property:
    """A property by its kind of document and its path, items of a list as `[]`; and its part of the schema."""

    kind: str
    path: tuple[str, ...]
    schema: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.kind}.{'.'.join(self.path)}"

    @property
    def values(self) -> list[Any]:
        """Every value that an editor offers for it."""
        offered = [self.schema["const"]] if "const" in self.schema else list(self.schema.get("enum", []))
        offered += [self.schema["default"]] if "default" in self.schema else []
        return offered + list(self.schema.get("examples", []))


def schema(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((schema_folder() / SCHEMA_FILES[kind]).read_text("utf-8"))
    return found


def properties(kind: str, part: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[Property]:
    for key, value in part.get("properties", {}).items():
        yield Property(kind, (*path, key), value)
        yield from properties(kind, value, (*path, key))
    for branch in part.get("oneOf", []):
        yield from properties(kind, branch, path)
    if isinstance(part.get("items"), dict):
        yield from properties(kind, part["items"], (*path, "[]"))


PROPERTIES = [each for kind in SCHEMA_FILES for each in properties(kind, schema(kind))]
LEAVES = [each for each in PROPERTIES if "properties" not in each.schema or "config" in each.path]


def test_every_property_says_what_it_is_and_what_could_stand_there() -> None:
    assert len(PROPERTIES) > 100
    assert [str(each) for each in PROPERTIES if not each.schema.get("description", "").endswith((".", "%."))] == []
    assert [str(each) for each in LEAVES if not each.values] == []


def test_a_mapping_with_keys_of_its_own_takes_no_others_but_where_users_name_them() -> None:
    open_ones = {
        str(each)
        for each in PROPERTIES
        if each.schema.get("type") == "object" and each.schema.get("additionalProperties") is not False
    }
    assert open_ones == {
        *(f"{kind}.metadata.labels" for kind in SCHEMA_FILES),
        "Cluster.spec.client",
        "Owner.spec.config",
        "Owner.spec.labels",
        "Topic.spec.config",
        "TopicClass.spec.config",
        "Topic.spec.placement.racks.replicas",
        "TopicClass.spec.placement.racks.replicas",
    }


def with_value(leaf: Property, value: object, *, is_written: bool) -> dict[str, Any]:
    """Return a document with that value at the property's path, or with all that leads to it and no more."""
    document = json.loads(json.dumps(DOCUMENTS[leaf.kind]))
    here: Any = document
    for place, (step, after) in enumerate(zip(leaf.path[:-1], leaf.path[1:], strict=True)):
        if step == "[]":
            here.append({**NEEDED[leaf.path[place - 1]]})
            here = here[0]
        elif after == "[]":
            here = here.setdefault(step, [])
        elif isinstance(here.setdefault(step, {}), dict):
            here = here[step]
    if is_written:
        here[leaf.path[-1]] = value
    return {"apiVersion": "reconciler/v1", "kind": leaf.kind, **document}


def loaded(folder: Path, document: dict[str, Any]) -> Desired:
    """Return what the loader makes of a document beside those that it needs; it raises every problem."""
    (folder / "prod").mkdir(exist_ok=True)
    beside = [{"apiVersion": "reconciler/v1", "kind": kind, **DOCUMENTS[kind]} for kind in BESIDE[document["kind"]]]
    beside = [{**each, "spec": {"protect": ["grow"]}} if each["kind"] == "TopicClass" else each for each in beside]
    reader = {
        "apiVersion": "reconciler/v1",
        "kind": "Topic",
        "metadata": {"name": "reader"},
        "spec": {"class": "standard"},
    }
    documents = [document, *beside, *([reader] if document["kind"] == "TopicClass" else [])]
    (folder / "prod" / "all.yaml").write_text(yaml.safe_dump_all(documents), "utf-8")
    return load_desired(folder, "prod")


def plain(value: object) -> object:
    """Return a value without the places that it was read from."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: plain(getattr(value, each.name)) for each in fields(value) if each.name not in {"at", "digest"}
        }
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


READ = [leaf for leaf in LEAVES if ".".join(leaf.path) not in ELSEWHERE and leaf.path[-1] != "within"]


@pytest.mark.long
@pytest.mark.parametrize("kind", SCHEMA_FILES)
def test_whatever_an_editor_offers_is_read_and_a_default_is_what_holds_without_it(kind: str, tmp_path: Path) -> None:
    deaf: list[str] = []
    for leaf in (each for each in READ if each.kind == kind):
        without = plain(loaded(tmp_path, with_value(leaf, None, is_written=False))) if is_optional(leaf) else None
        changed = False
        for value in leaf.values:
            reached = plain(loaded(tmp_path, with_value(leaf, value, is_written=True)))
            if "default" in leaf.schema and value == leaf.schema["default"]:
                assert reached == without, f"{leaf}: the default {value} is another one"
            changed |= reached != without
        if not changed:
            deaf.append(str(leaf))
    assert set(deaf) - FOR_PEOPLE == set(), "the loader does not read these"


def is_optional(leaf: Property) -> bool:
    return leaf.path[-1] not in NEEDED.get(leaf.path[-3] if len(leaf.path) > 2 else "", {})


@pytest.mark.parametrize("kind", ["Topic", "TopicClass"])
def test_an_editor_offers_every_topic_config_that_may_be_declared(kind: str) -> None:
    offered = schema(kind)["properties"]["spec"]["properties"]["config"]["properties"]
    assert offered.keys() == TOPIC_CONFIGS.keys() - {*TOPIC_THROTTLES, "internal.segment.bytes"}


def test_configs_that_the_schema_does_not_know_are_read_all_the_same(tmp_path: Path) -> None:
    document = {
        "apiVersion": "reconciler/v1",
        "kind": "Topic",
        **DOCUMENTS["Topic"],
        "spec": {"config": {"new.ms": "1h"}, "customConfigs": ["new.ms"]},
    }
    assert loaded(tmp_path, document).topics["orders"].config == {"new.ms": "3600000"}
