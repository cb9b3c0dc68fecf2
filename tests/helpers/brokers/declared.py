"""The desired state of real brokers, as an operator's files hold it."""

import json
from collections.abc import Mapping
from pathlib import Path

from helpers.brokers.cluster import KafkaCluster
from helpers.program.documents import document

LIVE = "live"


def declare(
    folder: Path,
    kafka: KafkaCluster,
    spec: str = "",
    topics: Mapping[str, str] | None = None,
    *,
    name: str = LIVE,
    client: str = "",
) -> Path:
    """Write a cluster and topics with these specs, each the inside of a YAML mapping; return the cluster's folder."""
    client = client or json.dumps(kafka.client)
    cluster = document("Cluster", name, f"{{client: {client}{', ' if spec else ''}{spec}}}")
    documents = [document("Topic", topic, f"{{{text}}}") for topic, text in (topics or {}).items()]
    root = folder / "desired-state" / name
    root.mkdir(parents=True, exist_ok=True)
    (root / "cluster.yaml").write_text("---\n".join([cluster, *documents]), "utf-8")
    return root


def client_file(folder: Path, kafka: KafkaCluster) -> tuple[str, str]:
    """Write how the program reaches the brokers, for a folder that declares no cluster; return the option for it."""
    file = folder / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in kafka.client.items()), "utf-8")
    return "--client", str(file)


def assigned(lists: Mapping[int, tuple[int, ...]]) -> str:
    """Return the spec of a topic with these replicas."""
    return f"placement: {{assignment: {[list(replicas) for _, replicas in sorted(lists.items())]}}}"
