"""Files that are lost, emptied, renamed, moved or merged badly delete nothing: plan exits 3 or 1, and so does apply."""

import json
from pathlib import Path

import pytest
from cli.lost_files import MISHAPS, TOPICS, Mishap, topics_in, write_root
from helpers.program.call import Program

pytestmark = pytest.mark.long


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "desired-state"
    write_root(folder)
    return folder


def test_the_files_as_they_are_plan_to_nothing(reconciler: Program, root: Path) -> None:
    assert sorted(topics_in(root / "prod/state.json")) == list(TOPICS)
    ended = reconciler("plan", "--cluster", "prod", "--detailed-exitcode")
    assert (ended.code, ended.err) == (0, ""), ended.out


@pytest.mark.parametrize("mishap", MISHAPS, ids=[mishap.name.replace(" ", "-") for mishap in MISHAPS])
def test_nothing_is_deleted_when(mishap: Mishap, reconciler: Program, root: Path, tmp_path: Path) -> None:
    mishap.happens(root)
    before = topics_in(root / mishap.state) if mishap.state else None
    planned = reconciler("plan", *mishap.arguments, "--out", "plan.json")
    assert planned.code in {1, 3}, planned
    if (tmp_path / "plan.json").exists():
        applied = reconciler("apply", *mishap.arguments[:2], "plan.json", "--yes")
        assert applied.code == 3, applied
    if before is not None:
        assert topics_in(root / mishap.state) == before


def test_a_snapshot_without_groups_leaves_the_look_at_readers_to_apply(reconciler: Program, root: Path) -> None:
    """The plan says that nobody knows who reads; apply asks the cluster, and refuses."""
    state = json.loads((root / "prod/state.json").read_text("utf-8"))
    Path("seen.json").write_text(json.dumps({key: value for key, value in state.items() if key != "groups"}), "utf-8")
    (root / "prod/topics/users.yaml").unlink()
    planned = reconciler("plan", "--cluster", "prod", "--state", "seen.json", "--out", "plan.json")
    assert (planned.code, "KR834" in planned.out) == (0, True), planned
    for options in (["--dry-run"], ["--yes"]):
        applied = reconciler("apply", "--cluster", "prod", "plan.json", *options)
        assert (applied.code, "KR417" in applied.err, "users.signed-up" in applied.err) == (3, True, True), applied
    assert sorted(topics_in(root / "prod/state.json")) == list(TOPICS)


def test_a_topic_that_is_read_goes_by_its_own_document(reconciler: Program, root: Path) -> None:
    path = root / "prod/topics/users.yaml"
    path.write_text(path.read_text("utf-8").replace("  partitions: 2\n", "  state: absent\n"), "utf-8")
    assert reconciler("plan", "--cluster", "prod", "--out", "plan.json").code == 0
    assert reconciler("apply", "--cluster", "prod", "plan.json", "--yes").code == 0
    assert "users.signed-up" not in topics_in(root / "prod/state.json")


def test_one_topic_that_nobody_reads_is_what_the_default_limits_let_through(reconciler: Program, root: Path) -> None:
    """`deletedBytes` holds it back, and says how much would go: two partitions of three replicas of 1,000 bytes."""
    (root / "prod/topics/clicks.yaml").unlink()
    assert reconciler("plan", "--cluster", "prod").code == 0
    path = root / "prod/cluster.yaml"
    path.write_text(path.read_text("utf-8") + "    deletedBytes: 0B\n", "utf-8")
    planned = reconciler("plan", "--cluster", "prod", "--out", "plan.json")
    told = "the plan deletes 5.9 KiB (6000 bytes) of topic web.clicks and limits.deletedBytes is 0 B"
    assert (planned.code, told in planned.out, "cluster.yaml:9" in planned.out) == (3, True, True), planned
    assert reconciler("apply", "--cluster", "prod", "plan.json", "--yes").code == 3
    assert sorted(topics_in(root / "prod/state.json")) == list(TOPICS)
