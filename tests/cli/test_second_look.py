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


# A revert that was merged since.


def shrinking(configs: str = "{retention.ms: '604800000'}") -> Path:
    """Write a cluster with two topics that keep a week, and the files that say so."""
    cluster = small_cluster(
        "a-0: 1,2 size 40000000", "b-0: 1,2 size 1", configs={name: {"retention.ms": "604800000"} for name in "ab"}
    )
    topics = [document("Topic", name, f"{{config: {configs}}}") for name in "ab"]
    return write_simulated(cluster, *topics, spec="topics: {delete: allow}")


WEEK, HOUR = "retention.ms: '604800000'", "retention.ms: '3600000'"


def refused_as_withdrawn(reconciler: Program, snapshot: Path, *named: str) -> str:
    """Return what apply says, which refuses the plan, dry or not, and names these things; nothing has changed."""
    before = snapshot.read_bytes()
    for options in (["--dry-run"], ["--yes"]):
        ended = reconciler("apply", "plan.json", *options)
        assert (ended.code, "KR463" in ended.err) == (3, True), ended
        assert [one for one in named if one not in ended.err] == []
    assert snapshot.read_bytes() == before
    return ended.err


def digest_in(text: str) -> str:
    return text.split("--digest ")[1].split(maxsplit=1)[0].rstrip(")")


def test_a_plan_that_destroys_is_withdrawn_by_a_revert_until_it_is_asked_for_by_its_digest(reconciler: Program) -> None:
    snapshot = shrinking()
    text = FILE.read_text("utf-8")
    edit(FILE, WEEK, HOUR)
    assert reconciler("plan", "--out", "plan.json").code == 0
    FILE.write_text(text, "utf-8")
    told = refused_as_withdrawn(reconciler, snapshot, "topic a gets retention.ms=3600000", "topic b gets")
    ended = reconciler("apply", "plan.json", "--yes", "--digest", digest_in(told))
    assert ended.code == 0, ended
    assert "it is done because the plan is asked for by its digest" in ended.err
    assert "topic a gets retention.ms=3600000" in ended.err
    assert read_snapshot(snapshot).topics["a"].configs["retention.ms"] == "3600000"


def test_what_the_files_still_ask_for_is_no_matter_whatever_else_they_say_now(reconciler: Program) -> None:
    snapshot = shrinking()
    edit(FILE, WEEK, HOUR)
    assert reconciler("plan", "--out", "plan.json").code == 0
    FILE.with_name("more.yaml").write_text(document("Topic", "c", "{partitions: 1, replicationFactor: 1}"), "utf-8")
    ended = reconciler("apply", "plan.json", "--yes")
    assert ended.code == 0, ended
    assert read_snapshot(snapshot).topics["b"].configs["retention.ms"] == "3600000"


def test_one_change_that_is_withdrawn_is_named_alone_and_another_value_is_no_asking(reconciler: Program) -> None:
    snapshot = shrinking()
    edit(FILE, WEEK, HOUR)
    assert reconciler("plan", "--out", "plan.json").code == 0
    first, _, second = FILE.read_text("utf-8").rpartition(HOUR)
    FILE.write_text(f"{first}retention.ms: '7200000'{second}", "utf-8")
    assert "topic a" not in refused_as_withdrawn(reconciler, snapshot, "topic b gets retention.ms=3600000")


def test_what_was_done_before_the_revert_needs_no_asking(reconciler: Program) -> None:
    snapshot = shrinking()
    edit(FILE, WEEK, HOUR)
    assert reconciler("plan", "--out", "plan.json").code == 0
    observed = read_snapshot(snapshot)
    done = replace(observed.topics["b"], configs={"retention.ms": "3600000"})
    write_snapshot(replace(observed, topics={**observed.topics, "b": done}), snapshot)
    first, _, second = FILE.read_text("utf-8").rpartition(HOUR)
    FILE.write_text(f"{first}{WEEK}{second}", "utf-8")
    assert reconciler("apply", "plan.json", "--dry-run").code == 0


@pytest.mark.parametrize("state", ["present", "gone"])
def test_a_deletion_is_withdrawn_too(reconciler: Program, state: str) -> None:
    snapshot = shrinking()
    text = FILE.read_text("utf-8")
    edit(FILE, f"name: b}}\nspec: {{config: {{{WEEK}}}}}", "name: b}\nspec: {state: absent}")
    absent = FILE.read_text("utf-8")
    assert reconciler("plan", "--out", "plan.json").code == 0
    FILE.write_text(text if state == "present" else absent.rpartition("---")[0], "utf-8")
    refused_as_withdrawn(reconciler, snapshot, "topic b is deleted", "deletes every record")
    FILE.write_text(f"# as before\n{absent}", "utf-8")
    assert reconciler("apply", "plan.json", "--yes").code == 0
    assert "b" not in read_snapshot(snapshot).topics


def test_files_that_cannot_be_read_ask_for_nothing(reconciler: Program) -> None:
    snapshot = shrinking()
    edit(FILE, WEEK, HOUR)
    assert reconciler("plan", "--out", "plan.json").code == 0
    FILE.with_name("broken.yaml").write_text("apiVersion: [", "utf-8")
    told = refused_as_withdrawn(reconciler, snapshot, "cannot be read", "broken.yaml")
    assert reconciler("apply", "plan.json", "--yes", "--digest", digest_in(told)).code == 0


def test_a_plan_that_destroys_nothing_is_applied_whatever_the_files_say_by_now(reconciler: Program) -> None:
    snapshot = shrinking()
    text = FILE.read_text("utf-8")
    edit(FILE, WEEK, "retention.ms: '804800000'")
    assert reconciler("plan", "--out", "plan.json").code == 0
    FILE.write_text(text, "utf-8")
    assert reconciler("apply", "plan.json", "--yes").code == 0
    assert read_snapshot(snapshot).topics["a"].configs["retention.ms"] == "804800000"


def test_a_way_back_that_destroys_is_not_withdrawn(reconciler: Program) -> None:
    snapshot = shrinking()
    edit(FILE, WEEK, "retention.ms: '804800000'")
    assert reconciler("plan", "--out", "plan.json").code == 0
    assert reconciler("apply", "plan.json", "--yes").code == 0
    edit(FILE, "'804800000'", "'904800000'")
    assert reconciler("cancel", "plan.json", "--rollback", "--yes").code == 0
    assert read_snapshot(snapshot).topics["a"].configs["retention.ms"] == "604800000"
