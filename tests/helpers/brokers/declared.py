"""The desired state of real brokers, as an operator's files hold it."""

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
    client = client or f'{{bootstrap.servers: "{kafka.bootstrap}"}}'
    cluster = document("Cluster", name, f"{{client: {client}{', ' if spec else ''}{spec}}}")
    documents = [document("Topic", topic, f"{{{text}}}") for topic, text in (topics or {}).items()]
    root = folder / "desired-state" / name
    root.mkdir(parents=True, exist_ok=True)
    (root / "cluster.yaml").write_text("---\n".join([cluster, *documents]), "utf-8")
    return root


def assigned(lists: Mapping[int, tuple[int, ...]]) -> str:
    """Return the spec of a topic with these replicas."""
    return f"placement: {{assignment: {[list(replicas) for _, replicas in sorted(lists.items())]}}}"
