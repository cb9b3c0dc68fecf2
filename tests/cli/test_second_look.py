"""What a plan was made for is looked at again by `apply`, as its users see it: disks, limits, owners."""

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import Program
from helpers.program.documents import document, edit, write_simulated

from reconciler.files.snapshot import read_snapshot, write_snapshot
from reconciler.model.cluster import Cluster, LogDir

pytestmark = pytest.mark.long

MB = 1_000_000


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def with_disks(cluster: Cluster, free: int) -> Cluster:
    """Return the cluster with one log dir of 100 MB on broker 3, and so much of it free."""
    lines = {**cluster.brokers, 3: replace(cluster.brokers[3], log_dirs=(LogDir("/d1", 100 * MB, free),))}
    return replace(cluster, brokers=lines)


def topic(name: str, brokers: str) -> str:
    return document("Topic", name, f"{{placement: {{assignment: [{brokers}]}}}}")


def world(*, size: int = 40 * MB, spec: str = "", more: str = "") -> Path:
    """Write a cluster in which each of two topics may move to broker 3, and both may not."""
    cluster = small_cluster(f"a-0: 1,2 size {size}", f"b-0: 1,2 size {size}")
    documents = [topic("a", "[1, 2]"), topic("b", "[1, 2]"), *([more] if more else [])]
    return write_simulated(with_disks(cluster, 65 * MB), *documents, spec=spec)


FILE = Path("desired-state", "small", "cluster.yaml")


def moved_plan(reconciler: Program, name: str, out: str) -> None:
    """Declare the topic's partition on broker 3 in place of 2, and plan it."""
    place = f"name: {name}}}\nspec: {{placement: {{assignment: [[1, "
    edit(FILE, f"{place}2]", f"{place}3]")
    assert reconciler("plan", "--out", out, "--only", name).code == 0


@pytest.mark.parametrize(
    ("size", "spec", "code"), [(40 * MB, "", "KR456"), (25 * MB, "limits: {diskUse: 75%}", "KR413")]
)
def test_of_two_plans_made_on_one_state_the_second_is_refused(
    reconciler: Program, size: int, spec: str, code: str
) -> None:
    snapshot = world(size=size, spec=spec)
    moved_plan(reconciler, "a", "a.json")
    moved_plan(reconciler, "b", "b.json")
    assert reconciler("apply", "a.json", "--yes").code == 0
    before = snapshot.read_bytes()
    for options in (["--dry-run"], ["--yes"]):
        ended = reconciler("apply", "b.json", *options)
        assert ended.code == 3, ended
        assert f"({code})" in ended.err
        assert f"stage 1 copies {size / 2**20:.1f} MiB to broker 3" in ended.err
    assert snapshot.read_bytes() == before


def test_a_disk_that_others_have_filled_since_is_not_filled_further(reconciler: Program) -> None:
    snapshot = world()
    moved_plan(reconciler, "a", "a.json")
    write_snapshot(with_disks(read_snapshot(snapshot), 30 * MB), snapshot)
    ended = reconciler("apply", "a.json", "--dry-run")
    assert (ended.code, "which has 28.6 MiB left" in ended.err) == (3, True), ended


def test_owners_limits_are_those_of_the_files_as_far_as_these_can_be_read(reconciler: Program) -> None:
    owner = document("Owner", "team", "{topics: ['*'], limits: {topics: 3}}")
    snapshot = world(more=owner)
    text = FILE.read_text("utf-8")
    FILE.write_text(f"{text}---\n{document('Topic', 'new', '{partitions: 1, replicationFactor: 1}')}", "utf-8")
    assert reconciler("plan", "--out", "new.json").code == 0
    edit(FILE, "topics: 3", "topics: 2")
    ended = reconciler("apply", "new.json", "--dry-run")
    assert (ended.code, "KR472" in ended.err) == (3, True), ended
    assert "team would have 3 topics" in ended.err
    broken = FILE.with_name("broken.yaml")
    broken.write_text("apiVersion: [", "utf-8")
    ended = reconciler("apply", "new.json", "--yes")
    assert ended.code == 0, ended
    assert "limits of owners are not looked at, because not all files can be read: " in ended.err
    assert "broken.yaml" in ended.err
    assert "new" in read_snapshot(snapshot).topics
