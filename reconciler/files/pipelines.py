"""Reads the pipelines that `init --ci` writes, and the record of what it wrote.

They are plain files, for whoever wants to read them: those for GitHub are this repository's own, in `.github`, the
others lie in `pipelines/` beside this module; once installed, all do. Each is for a root called `desired-state`.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from reconciler.files.json_text import parse_json, readable_json
from reconciler.files.paths import is_there
from reconciler.files.raw import invalid, read_bytes

GITHUB, GITLAB, KUBERNETES = "github", "gitlab", "kubernetes"
GITLAB_HOME = ".gitlab/reconciler"
"""The folder in which the pipelines for GitLab have a copy of two files of those for GitHub."""
BASE = "base"
RECORD = ".reconciler-ci.json"
"""Has the SHA-256 of each file as `init` wrote it, so that it knows which a person has edited since."""
BAD_RECORD = "KR031"
_FOLDER = Path(__file__).with_name("pipelines")
_OF_THIS_REPOSITORY = (
    "actions/apply/action.yml",
    "actions/install.sh",
    "actions/plan/action.yml",
    "actions/plan/clusters.py",
    "actions/plan/github_api.py",
    "actions/plan/id_token.py",
    "actions/plan/latest_artifact.py",
    "actions/plan/mirrors.py",
    "actions/plan/publish.py",
    "actions/plan/reviewers.py",
    "actions/plan/summary.py",
    "actions/plan/unfinished_plan.py",
    "actions/python.sh",
    "locks/aws.txt",
    "locks/base.txt",
    "locks/build.txt",
    "locks/loads.txt",
    "locks/spark.txt",
    "workflows/apply-cluster.yml",
    "workflows/apply.yml",
    "workflows/plan.yml",
    "workflows/snapshot.yml",
)
"""Below `.github`. pyproject.toml lists them, too: they go into the package."""


def pipeline_texts(system: str, lock: str = BASE) -> Mapping[str, str]:
    """Return the files of the pipelines for that system, by their paths from the repository's top.

    `lock`: the name of the lock that jobs on GitLab install; those on GitHub have every lock.
    """
    inside = _FOLDER / GITHUB / ".github"
    github = inside if inside.is_dir() else Path(__file__).parents[2] / ".github"
    if system == GITHUB:
        return {f".github/{name}": (github / name).read_text("utf-8") for name in _OF_THIS_REPOSITORY}
    folder = _FOLDER / system
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc")
    texts = {file.relative_to(folder).as_posix(): file.read_text("utf-8") for file in files}
    if system == GITLAB:
        shared = {"summary.py": "actions/plan/summary.py", "base.txt": f"locks/{lock}.txt"}
        texts |= {f"{GITLAB_HOME}/{name}": (github / source).read_text("utf-8") for name, source in shared.items()}
    return texts


def digest_of(content: bytes) -> str:
    """Return what the record has of a file."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def read_record(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """Return the digests of the files that were written, by system and path; nothing where there is no record yet."""
    file = folder / RECORD
    if not is_there(file):
        return {}
    what = "record of what init --ci wrote"
    found = parse_json(read_bytes(file, what, BAD_RECORD), str(file), what, BAD_RECORD)
    is_record = isinstance(found, dict) and all(
        isinstance(files, dict) and all(isinstance(digest, str) for digest in files.values())
        for files in found.values()
    )
    if not is_record:
        raise invalid(BAD_RECORD, f"{file} is no {what}: bring it back, or remove it and every file that it is to hold")
    return dict(found)


def record_text(record: Mapping[str, Mapping[str, str]]) -> bytes:
    """Return the file of a record."""
    return readable_json({system: dict(files) for system, files in record.items()}).encode()
