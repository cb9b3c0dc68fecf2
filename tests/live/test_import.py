"""A cluster of real brokers is imported: a plan after it is empty, an edit is planned, applied, and then done."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from helpers.brokers.by_hand import create, delete
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.declared import client_file
from helpers.brokers.observer import Observer
from helpers.program.warm import reconciler

pytestmark = pytest.mark.brokers

COMPACT = {"cleanup.policy": "compact", "min.insync.replicas": "2"}
# Brokers 1 to 6 stand in racks a, b, c, a, b, c.
Topics = Mapping[str, tuple[list[list[int]], Mapping[str, str]]]
TOPICS: Topics = {
    "import-orders": ([[1, 2, 3], [5, 6, 4], [3, 1, 2]], {"min.insync.replicas": "2", "retention.ms": "86400000"}),
    "import-prices": ([[4, 5, 6], [2, 3, 1]], COMPACT),
    "import-stock": ([[6, 1, 5]], COMPACT),
    "import-two": ([[1, 2], [5, 6]], {}),
    "import-odd": ([[1, 4, 2], [2, 3, 4]], {"compression.type": "zstd"}),
}
LATER = "import-later"


@pytest.fixture
def live(kafka: KafkaCluster) -> Iterator[KafkaCluster]:
    for name, (lists, configs) in TOPICS.items():
        create(kafka, {name: lists}, configs)
    yield kafka
    delete(kafka, *TOPICS, LATER)


def test_an_imported_cluster_plans_to_nothing_and_an_edit_is_applied(live: KafkaCluster, tmp_path: Path) -> None:
    root = tmp_path / "desired-state"
    root.mkdir()
    made = reconciler("import", "--cluster", "live", *client_file(root, live), cwd=tmp_path)
    assert "import-odd: racks: 1 of 2 partitions (0) is not spread over the racks" in made.err
    reconciler("validate", cwd=tmp_path)
    planned = reconciler("plan", "--detailed-exitcode", cwd=tmp_path)
    assert planned.out.startswith("No changes. ")
    create(live, {LATER: [[2, 3, 4], [3, 4, 5]]}, COMPACT)
    assert "topics.yaml: import-later" in reconciler("import", cwd=tmp_path).err
    reconciler("diff", "--detailed-exitcode", cwd=tmp_path)
    (file,) = (path for path in root.rglob("topics*.yaml") if "import-two" in path.read_text("utf-8"))
    before, text = file.read_text("utf-8").split("name: import-two")
    spec = text.partition("\n")[2].partition("\n")[0]
    changed = "spec: {partitions: 2, replicationFactor: 3, placement: {racks: {spread: strict}}}"
    file.write_text(f"{before}name: import-two{text.replace(spec, changed, 1)}", "utf-8")
    ours = ("plan", "--only", "import-*", "--detailed-exitcode")
    edited = reconciler(*ours, "--out", "plan.json", cwd=tmp_path, expect=2)
    assert "replicationFactor 2 -> 3 (2 partitions)" in edited.out
    reconciler("apply", "plan.json", "--yes", cwd=tmp_path)
    reached = Observer(live.bootstrap).topic("import-two")
    assert [len(partition.replicas) for _, partition in sorted(reached.items())] == [3, 3]
    reconciler(*ours, cwd=tmp_path)
