"""No job runs or believes what somebody has committed beside the pipelines' own files."""

import hashlib
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from actions.fake_github import FakeGitHub
from helpers.program.documents import edit
from workflows.fake_artifacts import TOKEN, Artifacts
from workflows.fake_gitlab import FakeGitLab
from workflows.gitlab_jobs import Pipelines, jobs_of
from workflows.planted import CANARY, plant, wheel
from workflows.steps import Job, WorkflowSteps

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(sys.executable).with_name("reconciler")
DEMO = {"cluster": "demo"}


def lock_with_a_wheel(locks: Path, *others: str) -> None:
    """Have the pipelines install a wheel that starts the program of this environment, and nothing else."""
    made = wheel(locks, PROGRAM)
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    for name in others:
        (locks / name).write_text("# nothing\n")
    (locks / "reconciler.txt").write_text(
        f"--no-index\n--find-links .\nkafka-reconciler==0.1.0 --hash=sha256:{digest}\n"
    )


def planted(top: Path, folder: Path) -> Path:
    """Plant everything, and return the file that what runs would make."""
    canary = folder / "canary"
    plant(top, str(canary))
    return canary


@pytest.mark.parametrize("is_valid", [True, pytest.param(False, marks=pytest.mark.deep)])
def test_github_runs_and_believes_nothing_that_is_planted(
    steps: WorkflowSteps, github: Artifacts, tmp_path: Path, *, is_valid: bool
) -> None:
    top, temp = steps.workspace, tmp_path / "temp"
    edit(top / "desired-state/demo/cluster.yaml", "perBroker: 10 ", "perBroker: 1 ")
    if not is_valid:
        edit(top / "desired-state/demo/cluster.yaml", "kind: Cluster", "kind: Custer")
    lock_with_a_wheel(top / ".github" / "locks", "base.txt", "build.txt")
    shutil.rmtree(top / ".github/actions/plan/__pycache__", ignore_errors=True)
    canary = planted(top, tmp_path)
    shutil.rmtree(temp)
    steps.event = {"github": {"token": TOKEN, "event_name": "push", "ref_name": "main", "event": OWN}}
    ended = []

    def run(workflow: str, job: str, needs: Mapping[str, Job] | None = None) -> Job:
        shutil.rmtree(temp / "reconciler", ignore_errors=True)  # a runner has a new folder for each job
        row = steps.run(workflow, job, DEMO, needs, inputs=DEMO)
        ended.append(row)
        return row

    assert json.loads(run("apply.yml", "clusters").outputs["names"]) == ["demo"]
    plan = run("apply-cluster.yml", "plan")
    assert (plan.result == "success") is is_valid, plan.log
    applied = run("apply-cluster.yml", "apply", {"plan": plan})
    assert applied.result == ("success" if is_valid else "skipped"), applied.log
    summary = run("apply.yml", "summary", {"clusters": Job(outputs={"names": '["demo"]'}), "cluster": Job()})
    assert ("applied" in summary.log) is is_valid, summary.log
    run("snapshot.yml", "snapshot")
    steps.event = {"github": {**EVENT, "event": OWN}}
    run("plan.yml", "plan")
    with FakeGitHub(TOKEN).served() as fake:
        event = tmp_path / "event.json"
        event.write_text(json.dumps({"pull_request": {"number": 7}}))
        more = {"GITHUB_API_URL": fake.address, "GITHUB_EVENT_PATH": str(event)}
        steps.environment = {**steps.environment, **more}
        comment = run("plan.yml", "comment", {"plan": Job("success" if is_valid else "failure")})
        assert comment.result == "success", comment.log
        bodies = "".join(fake.bodies(7))
    steps.environment = {**steps.environment, "GITHUB_API_URL": github.address, "GITHUB_RUN_ID": "1"}
    steps.event = {"github": {"token": TOKEN, "event_name": "schedule", "ref_name": "main", "event": {}}}
    assert run("apply-cluster.yml", "find").outputs["found"] == "false"
    assert not canary.exists(), canary.read_text()
    artifacts = [path.read_text() for path in steps.artifacts.rglob("*") if path.is_file()]
    shown = "".join([*(job.log + job.summary for job in ended), *artifacts, bodies])
    assert CANARY not in shown, shown[max(0, shown.index(CANARY) - 300) :][:600]


OWN = {"pull_request": {"head": {"repo": {"full_name": "acme/kafka"}}}, "repository": {"default_branch": "main"}}
EVENT = {"token": TOKEN, "event_name": "pull_request", "repository": "acme/kafka"}


@pytest.mark.parametrize("is_valid", [True, pytest.param(False, marks=pytest.mark.deep)])
@pytest.mark.parametrize("request_number", ["", "7"])
def test_gitlab_runs_and_believes_nothing_that_is_planted(
    tmp_path: Path, request_number: str, *, is_valid: bool
) -> None:
    top = tmp_path / "top"
    shutil.copytree(ROOT / "desired-state" / "demo", top / "desired-state" / "demo")
    if not is_valid:
        edit(top / "desired-state/demo/cluster.yaml", "kind: Cluster", "kind: Custer")
    home = top / ".gitlab" / "reconciler"
    source = ROOT / "reconciler" / "files" / "pipelines" / "gitlab" / ".gitlab" / "reconciler"
    shutil.copytree(source, home, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".github" / "actions" / "plan" / "summary.py", home)
    lock_with_a_wheel(home, "base.txt")
    canary = planted(top, tmp_path)
    with FakeGitLab().served() as gitlab:
        more = {"CI_MERGE_REQUEST_IID": request_number} if request_number else {}
        pipelines = Pipelines(top, tmp_path / "runner", {**gitlab.variables, **more})
        jobs = jobs_of((home / "pipeline.yml").read_text(), top)
        if request_number:
            del jobs["reconciler: summary"]
        assert pipelines.run(jobs) is is_valid, pipelines.ended
        kept = b"".join(gitlab.packages.values()).decode()
    assert not canary.exists(), canary.read_text()
    artifacts = [path.read_text() for path in (tmp_path / "runner" / "artifacts").rglob("*") if path.is_file()]
    shown = "".join([*(one.log for one in pipelines.ended.values()), *artifacts, kept])
    assert CANARY not in shown, shown[max(0, shown.index(CANARY) - 300) :][:600]
