"""The steps of the workflows and of the composite actions, run on this machine as they are written."""

import http.server
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from helpers.fake_github import FakeGitHub
from helpers.workflow_steps import WorkflowSteps

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
DEMO = {"cluster": "demo"}
TOKEN = "canary-5f1d"  # noqa: S105 - of no account
EVENT: Mapping[str, object] = {
    "github": {
        "token": TOKEN,
        "event_name": "pull_request",
        "repository": "acme/kafka",
        "event": {"repository": {"default_branch": "main"}, "pull_request": {"head": {"repo": {"full_name": "fork"}}}},
    }
}


class Artifacts(http.server.BaseHTTPRequestHandler):
    """GitHub's list of artifacts, and the store that it redirects to; the store must not be shown the token."""

    listed: tuple[dict[str, object], ...] = ()
    archive = b""
    store = ""
    failures = 0
    shown: tuple[str, ...] = ()
    port = 0

    def do_GET(self) -> None:
        authorization = self.headers.get("Authorization", "")
        if self.path.startswith("/store/"):
            type(self).shown += (authorization,)
            is_failing = len(self.shown) <= self.failures
            self._answer(503 if is_failing else 200, b"" if is_failing else self.archive)
        elif authorization != f"Bearer {TOKEN}":
            self._answer(401, b"{}")
        elif self.path.endswith("/zip"):
            self._answer(302, b"", location=f"{self.store or 'http://' + self.headers['Host']}/store{self.path}")
        else:
            self._answer(200, json.dumps({"artifacts": self.listed}).encode())

    def _answer(self, code: int, body: bytes, location: str | None = None) -> None:
        self.send_response(code)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def artifact(number: int, *, repository: int = 1, branch: str = "main", expired: bool = False) -> dict[str, object]:
    run = {"id": 70 + number, "repository_id": 1, "head_repository_id": repository, "head_branch": branch}
    return {"id": number, "created_at": f"2026-11-{number:02}T00:00:00Z", "expired": expired, "workflow_run": run}


def zipped(name: str, content: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr(name, content)
    return held.getvalue()


@pytest.fixture
def github() -> Iterator[type[Artifacts]]:
    """GitHub's API on loopback; `environment_of` says where."""

    class Served(Artifacts):
        """Those of one test."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Served)
    Served.port = server.server_port
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Served
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def steps(tmp_path: Path, github: type[Artifacts]) -> WorkflowSteps:
    """Return the workflows over a copy of the demo, with the reconciler installed as an earlier step would have."""
    workspace = tmp_path / "kafka"
    shutil.copytree(ROOT / ".github", workspace / ".github")
    shutil.copytree(ROOT / "desired-state" / "demo", workspace / "desired-state" / "demo")
    program = tmp_path / "temp" / "reconciler" / "bin" / "reconciler"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m reconciler "$@"\n')
    program.chmod(0o755)
    environment = {
        "PYTHONPATH": str(ROOT),
        "GITHUB_API_URL": f"http://127.0.0.1:{github.port}",
        "GITHUB_REPOSITORY": "acme/kafka",
        "GITHUB_EVENT_NAME": "pull_request",
    }
    return WorkflowSteps(workspace, tmp_path, EVENT, environment=environment)


def test_a_forks_pull_request_gets_its_plan_in_the_summary_and_as_an_artifact(steps: WorkflowSteps) -> None:
    job = steps.run("plan.yml", "plan", DEMO)
    assert job.result == "success", job.log
    plan = json.loads((steps.artifacts / "proposed-plan-demo" / "plan.json").read_text())
    assert plan["id"] in job.summary
    assert plan["summary"]["replicaMoves"] > 0
    assert TOKEN not in job.log + job.summary


def test_a_pull_request_of_the_repository_gets_one_comment_and_labels(steps: WorkflowSteps, tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    own = {"pull_request": {"head": {"repo": {"full_name": "acme/kafka"}}}}
    github = EVENT["github"]
    assert isinstance(github, Mapping)
    steps.event = {"github": {**github, "event": own}}
    with FakeGitHub(TOKEN) as fake:
        steps.environment = {**steps.environment, "GITHUB_API_URL": fake.address, "GITHUB_EVENT_PATH": str(event)}
        fake.labels[7] = ["team-payments", "plan: no changes"]
        assert steps.run("plan.yml", "plan", DEMO).result == "success"
        assert fake.requests == []
        for _ in range(2):
            job = steps.run("plan.yml", "comment", {}, needs={"plan": "success"})
            assert job.result == "success", job.log
        (body,) = fake.bodies(7)
        assert body == (steps.artifacts / "proposed-plan-demo" / "plan.md").read_text()
        assert sorted(fake.labels[7]) == ["plan: irreversible", "plan: moves data", "team-payments"]


def test_a_forks_pull_request_gets_no_comment(steps: WorkflowSteps) -> None:
    assert steps.run("plan.yml", "comment", {}, needs={"plan": "success"}).result == "skipped"


def test_a_wrong_file_stops_the_pull_requests_job_with_an_error(steps: WorkflowSteps) -> None:
    (steps.workspace / "desired-state" / "demo" / "wrong.yaml").write_text("kind: Topik\n")
    job = steps.run("plan.yml", "plan", DEMO)
    assert job.result == "failure"
    assert "wrong.yaml:1" in job.log
    assert job.summary == ""


def test_a_plan_over_a_limit_is_shown_and_fails(steps: WorkflowSteps) -> None:
    cluster = steps.workspace / "desired-state" / "demo" / "cluster.yaml"
    cluster.write_text(cluster.read_text().replace("movedBytes: 250GiB", "movedBytes: 1GiB"))
    job = steps.run("plan.yml", "plan", DEMO)
    assert job.result == "failure"
    assert "::error::The plan is refused" in job.log
    assert "movedBytes" in job.summary


def test_a_real_cluster_is_planned_on_the_newest_snapshot_that_the_default_branch_made(
    steps: WorkflowSteps, github: type[Artifacts]
) -> None:
    demo = steps.workspace / "desired-state" / "demo"
    cluster = demo / "cluster.yaml"
    cluster.write_text(cluster.read_text().replace("  simulation: snapshot.json", "  client: {bootstrap.servers: x:1}"))
    github.archive = zipped("snapshot.json", (demo / "snapshot.json").read_bytes())
    github.listed = (
        artifact(1),
        artifact(3),
        artifact(5, repository=2),
        artifact(6, branch="topic"),
        artifact(7, expired=True),
    )
    job = steps.run("plan.yml", "plan", DEMO)
    assert job.result == "success", job.log
    assert "snapshot-demo: made at 2026-11-03T00:00:00Z by run 73" in job.log
    assert github.shown == ("",)
    assert "demo" in job.summary


def test_without_a_snapshot_the_job_says_what_to_run(steps: WorkflowSteps, github: type[Artifacts]) -> None:
    cluster = steps.workspace / "desired-state" / "demo" / "cluster.yaml"
    cluster.write_text(cluster.read_text().replace("  simulation: snapshot.json", "  client: {bootstrap.servers: x:1}"))
    github.listed = (artifact(5, repository=2),)
    job = steps.run("plan.yml", "plan", DEMO)
    assert job.result == "failure"
    assert "::error::no artifact snapshot-demo of branch main" in job.log


def test_an_artifact_is_asked_for_again_where_its_store_fails_and_never_fetched_in_clear(
    steps: WorkflowSteps, github: type[Artifacts]
) -> None:
    made = steps.run("apply.yml", "plan", DEMO)
    assert made.result == "success", made.log
    github.listed = (artifact(1),)
    github.archive = zipped("plan.json", (steps.artifacts / "plan-demo" / "plan.json").read_bytes())
    github.failures = 1
    assert steps.run("apply.yml", "apply", DEMO, needs={"plan": "success"}).result == "success"
    assert github.shown == ("", "")
    github.store = "http://store.invalid"
    job = steps.run("apply.yml", "apply", DEMO, needs={"plan": "success"})
    assert job.result == "failure"
    assert "::error::the artifact plan-demo was not fetched: GET actions/artifacts/1/zip" in job.log
    assert "leads to no https address" in job.log


def test_what_is_no_archive_is_told_as_an_error(steps: WorkflowSteps, github: type[Artifacts]) -> None:
    github.listed, github.archive = (artifact(1),), b"<html>"
    job = steps.run("apply.yml", "apply", DEMO, needs={"plan": "success"})
    assert job.result == "failure"
    assert "::error::the artifact plan-demo was not fetched: File is not a zip file" in job.log


def test_the_plan_of_record_is_made_once_applied_in_time_boxes_and_applied_again_without_a_change(
    steps: WorkflowSteps, github: type[Artifacts]
) -> None:
    cluster = steps.workspace / "desired-state" / "demo" / "cluster.yaml"
    cluster.write_text(cluster.read_text().replace("perBroker: 10 ", "perBroker: 1 "))
    made = steps.run("apply.yml", "plan", DEMO)
    assert made.result == "success", made.log
    plan = (steps.artifacts / "plan-demo" / "plan.json").read_bytes()
    github.listed, github.archive = (artifact(1),), zipped("plan.json", plan)
    workflow = steps.workspace / ".github" / "workflows" / "apply.yml"
    boxed = workflow.read_text()
    workflow.write_text(boxed.replace("max-duration: 5h", "max-duration: 1s"))
    first = steps.run("apply.yml", "apply", DEMO, needs={"plan": "success"})
    assert first.result == "success", first.log
    assert "the next run goes on with it" in first.log
    assert "Plan applied: unfinished." in first.summary
    workflow.write_text(boxed)
    for _ in range(2):
        night = steps.run("apply.yml", "apply", DEMO, needs={"plan": "skipped"})
        assert night.result == "success", night.log
        assert "Plan applied: done." in night.summary
    assert (steps.artifacts / "journal-demo").is_dir()
    after = steps.run("plan.yml", "plan", DEMO)
    assert "no changes" in after.summary.lower()


def test_a_plan_that_failed_is_not_applied(steps: WorkflowSteps) -> None:
    assert steps.run("apply.yml", "apply", DEMO, needs={"plan": "failure"}).result == "skipped"


def test_a_snapshot_is_kept_for_later_plans(steps: WorkflowSteps) -> None:
    install = steps.workspace / ".github" / "actions" / "install.sh"
    assert "pip" in install.read_text()
    job = steps.run("snapshot.yml", "snapshot", DEMO)
    assert job.result == "success", job.log
    assert json.loads((steps.artifacts / "snapshot-demo" / "snapshot.json").read_text())["brokers"]


def test_a_cancelled_job_waits_for_the_run_to_put_everything_back(tmp_path: Path) -> None:
    action = yaml.safe_load((ROOT / ".github" / "actions" / "apply" / "action.yml").read_text())
    (script,) = [step["run"] for step in action["runs"]["steps"] if step.get("id") == "apply"]
    program = tmp_path / "reconciler"
    program.write_text(
        "#!/usr/bin/env python3\nimport signal, sys, time\n"
        "def back(*_):\n    time.sleep(0.5)\n    print('moves taken back', flush=True)\n    sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, back)\nprint('moving', flush=True)\ntime.sleep(60)\n"
    )
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PLAN": "plan.json"}
    with subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as step:
        assert step.stdout is not None
        assert step.stdout.readline() == "moving\n"
        step.send_signal(signal.SIGINT)
        assert step.stdout.read() == "moves taken back\n"
    assert step.returncode == 143
