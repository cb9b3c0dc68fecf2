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
        monkeypatch.setattr(source_commit_module, "_SETTINGS", source_commit_module._SETTINGS[:4])
    assert source_commit(root) is None
    assert not canary.exists()


def config_of_programs(program: str) -> str:
    """Return settings of a repository that name a program wherever Git takes one."""
    return f"""
[core]
    fsmonitor = {program}
    hooksPath = {Path(program).parent}/hooks
    pager = {program}
    editor = {program}
    sshCommand = {program}
    gitProxy = {program}
    askPass = {program}
    alternateRefsCommand = {program}
[pager]
    status = {program}
    ls-tree = {program}
    rev-parse = {program}
[diff]
    external = {program}
[diff "x"]
    command = {program}
    textconv = {program}
[filter "x"]
    clean = {program}
    smudge = {program}
    process = {program}
    required = true
[credential]
    helper = !{program}
[gpg]
    program = {program}
[alias]
    status = !{program}
    ls-tree = !{program}
    rev-parse = !{program}
[remote "origin"]
    url = ext::{program}
    promisor = true
    uploadpack = {program}
    vcs = {program}
[extensions]
    partialClone = origin
"""


@pytest.mark.parametrize("is_object_missing", [False, True], ids=["whole", "an object is to be fetched"])
def test_a_repository_whose_settings_name_programs_runs_none_of_them(
    root: Path, tmp_path: Path, *, is_object_missing: bool
) -> None:
    canary = tmp_path / "canary"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nenv >> {canary}\ncat\n")
    program.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman", "pre-auto-gc"):
        (hooks / hook).symlink_to(program)
    if is_object_missing:
        tree = git(root, "rev-parse", "HEAD:state")
        (tmp_path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    commit = git(root, "rev-parse", "HEAD")
    (root / ".gitattributes").write_text("* filter=x diff=x\n")
    with (tmp_path / ".git" / "config").open("a") as config:
        config.write(config_of_programs(str(program)))
    subprocess.run(["touch", "-d", "2001-01-01", str(root / "cluster.yaml")], check=True)
    assert source_commit(root) == (None if is_object_missing else commit)
    assert not canary.exists()
    if not is_object_missing:  # the programs are such that Git does run
        subprocess.run(["git", "-C", str(root), "status", "--porcelain"], input=b"", capture_output=True, check=False)
        assert canary.exists()


def test_git_gets_no_variable_that_may_hold_a_secret(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\nenv > {tmp_path}/seen\nexit 1\n")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    for name in ("KAFKA_PASSWORD", "RECONCILER_LOADS_CONF", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_DIR"):
        monkeypatch.setenv(name, "c4n4ry")
    assert source_commit(root) is None
    seen = (tmp_path / "seen").read_text()
    assert "PATH=" in seen
    assert "c4n4ry" not in seen


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_files_are_compared_as_git_compares_them(tmp_path: Path, form: str) -> None:
    """The oracle is `git status` itself."""
    git(tmp_path, "init", "-q", f"--object-format={form}")
    names = ["a/cluster.yaml", "a/b/ümläut \tx.yaml", "top.yml", "a/empty.yaml", ".hidden/x.yaml", "a/readme.md"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("" if "empty" in name else f"name: {name}\n")
    (tmp_path / "a" / "link.yaml").symlink_to("cluster.yaml")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "x")
    commit = git(tmp_path, "rev-parse", "HEAD")
    for root in (tmp_path, tmp_path / "a", tmp_path / "a" / "b"):
        assert source_commit(root) == commit
    for name in names:
        for is_removed in (False, True):
            (tmp_path / name).unlink()
            if not is_removed:
                (tmp_path / name).write_text("b: 2\n")
            status = git(tmp_path, "status", "--porcelain", "--", "*.yaml", "*.yml", ":(exclude,glob)**/.*/**")
            assert source_commit(tmp_path) == (None if status else commit), name
            git(tmp_path, "checkout", "-q", "--", ".")
    (tmp_path / "a" / "link.yaml").unlink()
    (tmp_path / "a" / "link.yaml").symlink_to("b")
    assert source_commit(tmp_path) is None


def test_ends_of_lines_that_git_converts_do_not_matter(root: Path) -> None:
    (root / "cluster.yaml").write_bytes(b"a: 1\r\n")
    assert source_commit(root) == git(root, "rev-parse", "HEAD")
