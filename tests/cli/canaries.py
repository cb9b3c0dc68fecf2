"""A cluster with client properties as files, in a folder of its own, and all that the program writes about it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import Program
from helpers.program.documents import document

from reconciler.files.snapshot import write_snapshot

GIVEN = frozenset({"cluster.yaml", "p.properties", "secret.txt", "token.txt"})
"""The files that tests write themselves."""


def write_snapshot_of_one() -> None:
    """Write a snapshot of one broker with one topic, which the plan gives a second partition."""
    write_snapshot(small_cluster("orders-0: 1", brokers=[1]), "s.json")


def write_properties(properties: Mapping[str, object], **more: object) -> Path:
    """Write a cluster with these properties, and a file of properties alone; return the cluster's document."""
    lines = [f"{key}={json.dumps(value, ensure_ascii=False)[1:-1]}\n" for key, value in properties.items()]
    Path("p.properties").write_text("".join(lines), "utf-8")
    path = Path("desired-state", "c", "cluster.yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    spec = json.dumps({**more, "client": dict(properties)}, ensure_ascii=False)
    topic = document("Topic", "orders", "{partitions: 2}")
    path.write_text(f"{document('Cluster', 'c', spec)}---\n{topic}", "utf-8")
    return path


def written_by(program: Program, calls: Sequence[Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield each output with its name: streams of every call, and each file that is no input."""
    for call in calls:
        ended = program(*call)
        yield " ".join(call), ended.out + ended.err
    for file in sorted(Path().rglob("*")):
        if file.is_file() and file.name not in GIVEN and file.suffix != ".pem":
            yield f"file {file.name}", file.read_text("utf-8")
