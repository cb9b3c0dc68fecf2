from pathlib import Path

import pytest
from helpers.small_cluster import small_cluster

from reconciler.files.snapshot import read_snapshot, snapshot_text, write_snapshot


@pytest.mark.parametrize("name", ["cluster.json", "cluster.json.gz"])
def test_a_written_snapshot_reads_back_as_the_same_cluster(tmp_path: Path, name: str) -> None:
    cluster = small_cluster("orders-0: 1,2,3 size 100", "orders-1: 2,3,4 isr 2,3", fenced=[6])
    write_snapshot(cluster, tmp_path / name)
    assert read_snapshot(tmp_path / name) == cluster


def test_the_same_cluster_gives_the_same_bytes(tmp_path: Path) -> None:
    cluster = small_cluster("orders-0: 1,2,3", "audit-0: 2,3,4")
    write_snapshot(cluster, tmp_path / "one.json.gz")
    write_snapshot(read_snapshot(tmp_path / "one.json.gz"), tmp_path / "two.json.gz")
    assert (tmp_path / "one.json.gz").read_bytes() == (tmp_path / "two.json.gz").read_bytes()
    assert snapshot_text(cluster).endswith("}\n")
