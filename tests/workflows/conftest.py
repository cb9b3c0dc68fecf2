"""The workflows over a copy of the demo, and the GitHub that they ask."""

import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from helpers.program.fixtures import with_small_logs
from workflows.fake_artifacts import TOKEN, Artifacts
from workflows.steps import WorkflowSteps

ROOT = Path(__file__).resolve().parents[2]
EVENT: Mapping[str, object] = {
    "github": {
        "token": TOKEN,
        "event_name": "pull_request",
        "repository": "acme/kafka",
        "event": {"repository": {"default_branch": "main"}, "pull_request": {"head": {"repo": {"full_name": "fork"}}}},
    }
}


@pytest.fixture
def github() -> Iterator[Artifacts]:
    """GitHub's API on loopback."""
    with Artifacts().served() as served:
        yield served


@pytest.fixture
def steps(tmp_path: Path, github: Artifacts) -> WorkflowSteps:
    """Return the workflows over a copy of the demo, with the reconciler installed as an earlier step would have."""
    workspace = tmp_path / "kafka"
    shutil.copytree(ROOT / ".github", workspace / ".github")
    shutil.copytree(ROOT / "desired-state" / "demo", workspace / "desired-state" / "demo")
    with_small_logs(workspace / "desired-state" / "demo" / "snapshot.json", times=10)
    program = tmp_path / "temp" / "reconciler" / "bin" / "reconciler"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m reconciler "$@"\n')
    program.chmod(0o755)
    environment = {
        "PYTHONPATH": str(ROOT),
        "GITHUB_API_URL": github.address,
        "GITHUB_REPOSITORY": "acme/kafka",
        "GITHUB_EVENT_NAME": "pull_request",
    }
    return WorkflowSteps(workspace, tmp_path, EVENT, environment=environment)
