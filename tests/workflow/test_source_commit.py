import os
import subprocess
from pathlib import Path

import pytest
from helpers.program.git import git

from reconciler.workflow import sources as source_commit_module
from reconciler.workflow.sources import source_commit


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a desired-state folder, committed."""
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "cluster.yaml").write_text("a: 1\n")
    (folder / "snapshot.json").write_text("{}\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "state")
    return folder


def test_committed_files_have_their_commit(root: Path) -> None:
    assert source_commit(root) == git(root, "rev-parse", "HEAD")


def test_a_changed_or_new_yaml_file_has_no_commit(root: Path) -> None:
    (root / "cluster.yaml").write_text("a: 2\n")
    assert source_commit(root) is None
    git(root, "checkout", "-q", "--", "cluster.yaml")
    (root / "new.yaml").write_text("a: 1\n")
    assert source_commit(root) is None


def test_a_yaml_file_that_git_ignores_has_no_commit(root: Path) -> None:
    (root.parent / ".gitignore").write_text("tour/\n")
    tour = root.parent / "tour" / "demo"
    tour.mkdir(parents=True)
    (tour / "cluster.yaml").write_text("a: 1\n")
    assert source_commit(tour.parent) is None
    assert source_commit(root) is not None
    tour.parent.rename(root / "tour")
    assert source_commit(root) is None


def test_hidden_folders_are_not_read_and_do_not_matter(root: Path) -> None:
    (root / ".venv").mkdir()
    (root / ".venv" / "other.yaml").write_text("a: 1\n")
    assert source_commit(root) is not None
    (root / ".gitignore").write_text(".venv/\n")
    assert source_commit(root) is not None


def test_other_files_do_not_matter(root: Path) -> None:
    (root / "snapshot.json").write_text("{ }\n")
    assert source_commit(root) is not None


def test_outside_a_repository_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert source_commit(tmp_path) is None
    assert source_commit(tmp_path / "missing") is None


def test_without_git_there_is_none(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(root))
    assert source_commit(root) is None


@pytest.mark.parametrize("is_old", [False, True])
def test_files_of_the_root_that_make_up_a_repository_run_no_program(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_old: bool
) -> None:
    """Git reads the settings of any folder with HEAD, objects and refs, and `desired-state/**` can hold these."""
    (root / "objects").mkdir()
    (root / "refs").mkdir()
    (root / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".gitattributes").write_text("*.yaml filter=x\n")
    canary = tmp_path / "canary"
    (root / "config").write_text(
        f"[core]\nrepositoryformatversion = 0\nbare = false\nworktree = {root}\nfsmonitor = touch {canary}\n"
        f'[filter "x"]\nclean = "touch {canary}; cat"\n'
    )
    own = ("--git-dir", str(root), "--work-tree", str(root))
    subprocess.run(["git", *own, "-c", "core.fsmonitor=false", "add", "cluster.yaml"], cwd=root, check=True)
    canary.unlink(missing_ok=True)
    os.utime(root / "cluster.yaml", (1, 1))
    if is_old:  # Git before 2.38 does not know the setting, and it falls to our own look alone
        monkeypatch.setattr(source_commit_module, "_SETTINGS", source_commit_module._SETTINGS[:2])
    assert source_commit(root) is None
    assert not canary.exists()
