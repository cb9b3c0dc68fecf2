"""Simulated clusters of one root of which some mirror others, as files; snapshots are plain dicts."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from helpers.program.documents import document

ROOT = Path("desired-state")
STANDARD = document("TopicClass", "standard", "{replicationFactor: 2}")


def topic(name: str, partitions: int, configs: Mapping[str, str] | None = None, brokers: int = 3) -> dict[str, Any]:
    """Return a topic of two replicas a partition."""
    numbers = [(number, 1 + number % brokers, 1 + (number + 1) % brokers) for number in range(partitions)]
    listed = [
        {"partition": number, "leader": one, "replicas": [one, two], "isr": [one, two], "sizes": [5, 5]}
        for number, one, two in numbers
    ]
    return {"name": name, "configs": dict(configs or {}), "partitions": listed}


def snapshot(name: str, topics: Sequence[dict[str, Any]], brokers: int = 3) -> dict[str, Any]:
    return {
        "formatVersion": "1.0",
        "clusterId": f"id-of-{name}",
        "observedAt": "2026-01-01T00:00:00Z",
        "brokers": [{"id": number} for number in range(1, brokers + 1)],
        "topics": sorted(topics, key=lambda one: str(one["name"])),
    }


def write(name: str, topics: Sequence[dict[str, Any]], *documents: str, spec: str = "", brokers: int = 3) -> Path:
    """Write a simulated cluster and these documents, in `topics.yaml`; return its folder."""
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    cluster = document("Cluster", name, f"{{simulation: state.json{spec and ', '}{spec}}}")
    (folder / "cluster.yaml").write_text(cluster, "utf-8")
    (folder / "topics.yaml").write_text("---\n".join(documents) or "# nothing\n", "utf-8")
    (folder / "state.json").write_text(json.dumps(snapshot(name, topics, brokers)), "utf-8")
    return folder


def state(name: str) -> dict[str, dict[str, Any]]:
    """Return the topics of a simulated cluster as they are now."""
    found = json.loads((ROOT / name / "state.json").read_text("utf-8"))["topics"]
    return {one["name"]: one for one in found}


def counts(name: str) -> dict[str, int]:
    return {topic: len(one["partitions"]) for topic, one in state(name).items() if not topic.startswith("__")}
