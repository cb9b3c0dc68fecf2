"""A locked cluster as the command line tells of it."""

import shutil
from pathlib import Path

import pytest
from helpers.program import ROOT, Program

from reconciler.files.lock_file import LockFile
from reconciler.model.lock import Holder

HOLDER = Holder("apply of plan 5ca1ab1e", "kim", "build-7", 4711, "2026-11-21T09:00:00Z")


@pytest.fixture
def planned(tmp_path: Path, reconciler: Program) -> Path:
    """Return the demo's snapshot in a folder with a plan for it."""
    shutil.copytree(ROOT / "desired-state" / "demo", tmp_path / "desired-state" / "demo")
    assert reconciler("plan", "--out", "plan.json").code == 0
    return tmp_path / "desired-state" / "demo" / "snapshot.json"


@pytest.mark.parametrize("verb", ["apply", "cancel"])
def test_a_locked_cluster_is_refused_with_exit_3_and_the_name_of_its_holder(
    reconciler: Program, planned: Path, verb: str
) -> None:
    before = planned.read_bytes()
    held = LockFile(planned).take(HOLDER)
    ended = reconciler(verb, "plan.json", *(["--yes"] if verb == "apply" else []))
    held.release()
    assert ended.code == 3
    assert ended.err.startswith(
        "error: The cluster is locked by apply of plan 5ca1ab1e (started by kim on build-7, process 4711, "
        "at 2026-11-21T09:00:00Z): one run at a time."
    )
    assert "(KR450)" in ended.err
    assert planned.read_bytes() == before


def test_a_holders_name_cannot_write_to_the_terminal(reconciler: Program, planned: Path) -> None:
    held = LockFile(planned).take(Holder("apply\x1b[2J", "k\x07im", "h\u202eost", 1, "now"))
    ended = reconciler("apply", "plan.json", "--yes")
    held.release()
    assert ended.code == 3
    assert not {"\x1b", "\x07", "\u202e"} & set(ended.err)


def test_looking_needs_no_lock(reconciler: Program, planned: Path) -> None:
    held = LockFile(planned).take(HOLDER)
    assert reconciler("apply", "plan.json", "--dry-run").code == 0
    assert reconciler("plan").code == 0
    assert reconciler("status").code == 0
    held.release()
