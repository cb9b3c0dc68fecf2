"""Users of Terraform, topicctl and Strimzi adopt a cluster of 200 topics: five commands at most, and an empty plan."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import Program
from journeys.installed import Installed

from reconciler.files.snapshot import write_snapshot

pytestmark = pytest.mark.long

TEAMS = {"billing": "604800000", "shop": "86400000", "web": None, "warehouse": "259200000"}
TOPICS = {f"{team}.events.{number}": kept for team, kept in TEAMS.items() for number in range(50)}
BY_HAND = {name for name in TOPICS if name.endswith("7")}
"""Topics that somebody made by hand: the tool knows nothing of them."""
KNOWN = {name: kept for name, kept in TOPICS.items() if name not in BY_HAND}
SPREAD = ((1, 2, 3), (4, 5, 6), (2, 3, 4), (5, 6, 1))
MOST = 5

Run = Callable[..., str]
"""Calls the program, fails where the exit code is not 0, and returns what it printed."""


def configs(kept: str | None) -> dict[str, str]:
    return {"min.insync.replicas": "2"} | ({"retention.ms": kept} if kept else {})


def write_cluster(file: Path) -> None:
    """Write what the cluster shows; every call takes it in place of --bootstrap-server."""
    lines = [
        f"{name}-{partition}: {','.join(map(str, replicas))}"
        for name in TOPICS
        for partition, replicas in enumerate(SPREAD)
    ]
    write_snapshot(small_cluster(*lines, configs={name: configs(kept) for name, kept in TOPICS.items()}), file)


def of_terraform(folder: Path) -> list[str]:
    instances = [
        {
            "index_key": name,
            "schema_version": 0,
            "attributes": {
                "id": name, "name": name, "partitions": len(SPREAD), "replication_factor": 3, "config": configs(kept),
            },
        }
        for name, kept in KNOWN.items()
    ]  # fmt: skip
    provider = 'provider["registry.terraform.io/mongey/kafka"]'
    topics = {
        "mode": "managed", "type": "kafka_topic", "name": "all", "provider": provider, "each": "map",
        "instances": instances,
    }  # fmt: skip
    state = {
        "version": 4,
        "terraform_version": "1.9.0",
        "serial": 1,
        "lineage": "l",
        "outputs": {},
        "resources": [topics],
    }
    (folder / "terraform.tfstate").write_text(json.dumps(state, indent=2))
    return ["--from", "terraform", "terraform.tfstate"]


def of_topicctl(folder: Path) -> list[str]:
    (folder / "topics").mkdir()
    for name, kept in KNOWN.items():
        spec = {
            "partitions": len(SPREAD),
            "replicationFactor": 3,
            "placement": {"strategy": "any"},
            "settings": configs(kept),
        }
        document = {"meta": {"name": name, "cluster": "prod", "region": "eu", "environment": "prod"}, "spec": spec}
        (folder / "topics" / f"{name}.yaml").write_text(yaml.safe_dump(document))
    return ["topics"]


def of_strimzi(folder: Path) -> list[str]:
    items = [
        {
            "apiVersion": "kafka.strimzi.io/v1beta2",
            "kind": "KafkaTopic",
            "metadata": {"name": name.replace(".", "-"), "labels": {"strimzi.io/cluster": "prod"}},
            "spec": {"topicName": name, "partitions": len(SPREAD), "replicas": 3, "config": configs(kept)},
        }
        for name, kept in KNOWN.items()
    ]
    (folder / "topics.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    return ["--from", "strimzi", "topics.yaml"]


WRITERS: Mapping[str, Callable[[Path], list[str]]] = {
    "terraform": of_terraform, "topicctl": of_topicctl, "strimzi": of_strimzi,
}  # fmt: skip


def adopt(run: Run, folder: Path, tool: str) -> None:
    """Go the whole way, counting commands, and look at the files as somebody who knows YAML alone."""
    write_cluster(folder / "cluster.json")
    cluster = ("--cluster", "prod", "--state", "cluster.json")
    way = [
        ("import", "--cluster", "prod", *WRITERS[tool](folder)),
        ("import", *cluster),
        ("schemas",),
        ("validate",),
        ("plan", *cluster, "--detailed-exitcode"),
    ]
    printed = [run(*command) for command in way]
    assert len(way) <= MOST
    assert "No changes. 200 topics, 800 partitions match." in printed[-1]
    declared = documents(folder / "desired-state" / "prod")
    topics = {each["metadata"]["name"]: each["spec"] for each in declared if each["kind"] == "Topic"}
    classes = {each["metadata"]["name"]: each["spec"] for each in declared if each["kind"] == "TopicClass"}
    assert topics.keys() == TOPICS.keys()
    for name, spec in topics.items():
        whole = {**classes.get(spec.get("class", ""), {}), **spec}
        assert (whole["partitions"], whole["replicationFactor"]) == (len(SPREAD), 3), name
    own_configs = sum("config" in spec for spec in topics.values())
    assert own_configs == 0, "each retention is a class of its own, or the standard"
    assert len(classes) == len(TEAMS)
    before = files(folder)
    assert "Nothing to add" in run("import", *cluster)
    assert files(folder) == before


def documents(folder: Path) -> list[dict[str, Any]]:
    return [each for file in sorted(folder.rglob("*.yaml")) for each in yaml.safe_load_all(file.read_text("utf-8"))]


def files(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_user_of_terraform_adopts_a_cluster(reconciler: Program, tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        ended = reconciler(*arguments)
        assert ended.code == 0, (arguments, ended)
        return ended.out + ended.err

    adopt(run, tmp_path, "terraform")


@pytest.mark.deep
@pytest.mark.parametrize("tool", WRITERS)
def test_each_user_adopts_a_cluster_with_the_installed_program(tool: str, installed: Installed, tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        ended = installed.run(*arguments, cwd=tmp_path)
        return ended.out + ended.err

    adopt(run, tmp_path, tool)
