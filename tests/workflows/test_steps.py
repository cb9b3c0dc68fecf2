"""The steps of the workflows and of the composite actions, run on this machine as they are written."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from actions.fake_github import FakeGitHub
from helpers.program.call import captured
from helpers.program.receiver import SECRET, Receiver
from workflows.fake_artifacts import TOKEN, Artifacts, artifact, workflow_run, zipped
from workflows.steps import WorkflowSteps

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
DEMO = {"cluster": "demo"}
SNAPSHOT = "snapshot-demo"
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")


def on_a_snapshot(steps: WorkflowSteps) -> bytes:
    """Have the demo planned on a snapshot, as a real cluster is, and return the archive of one."""
    demo = steps.workspace / "desired-state" / "demo"
    cluster = demo / "cluster.yaml"
    cluster.write_text(cluster.read_text().replace("  simulation: snapshot.json", "  client: {bootstrap.servers: x:1}"))
    return zipped({"snapshot.json": (demo / "snapshot.json").read_bytes()})


def test_a_pull_request_gets_its_plan_as_an_artifact_and_in_the_summary_and_one_comment_and_labels(
    steps: WorkflowSteps, tmp_path: Path
) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    own = {"pull_request": {"head": {"repo": {"full_name": "acme/kafka"}}}}
    github = steps.event["github"]
    assert isinstance(github, Mapping)
    steps.event = {"github": {**github, "event": own}}
    with FakeGitHub(TOKEN).served() as fake:
        steps.environment = {**steps.environment, "GITHUB_API_URL": fake.address, "GITHUB_EVENT_PATH": str(event)}
        fake.labels[7] = ["team-payments", "plan: no changes"]
        job = steps.run("plan.yml", "plan", DEMO)
        assert job.result == "success", job.log
        plan = json.loads((steps.artifacts / "proposed-plan-demo" / "plan.json").read_text())
        assert plan["id"] in job.summary
        assert plan["summary"]["replicaMoves"] > 0
        assert TOKEN not in job.log + job.summary
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


def test_a_real_cluster_is_planned_on_the_newest_snapshot_of_the_default_branch_which_is_not_fetched_in_clear(
    steps: WorkflowSteps, github: Artifacts
) -> None:
    github.archive, github.failures = on_a_snapshot(steps), 1
    github.listed = (
        artifact(1, SNAPSHOT),
        artifact(3, SNAPSHOT),
        artifact(4, "plan-demo"),
        artifact(5, SNAPSHOT, repository=2),
        artifact(6, SNAPSHOT, branch="topic"),
        artifact(7, SNAPSHOT, expired=True),
        artifact(8, SNAPSHOT),  # of a tag named main
        artifact(9, SNAPSHOT),
    )
    snapshots = [workflow_run(number, "schedule", workflow="snapshot.yml") for number in (1, 3)]
    others = (
        workflow_run(4, "push"),
        workflow_run(5, "schedule", repository=2, workflow="snapshot.yml"),
        {**workflow_run(8, "workflow_dispatch", workflow="snapshot.yml"), "head_sha": "f" * 40},
        workflow_run(9, "push"),
    )
    github.runs = (*snapshots, *others)
    job = steps.run("plan.yml", "plan", DEMO)
    assert job.result == "success", job.log
    assert "snapshot-demo: made at 2026-11-04T00:00:00Z by run 73" in job.log
    assert github.shown == ("", "")  # its store failed once
    assert "demo" in job.summary
    github.store = "http://store.invalid"
    job = steps.run("plan.yml", "plan", DEMO)
    assert job.result == "failure"
    assert "::error::the artifact snapshot-demo was not fetched: GET actions/artifacts/3/zip" in job.log
    assert "leads to no https address" in job.log


def test_without_a_snapshot_the_job_says_what_to_run(steps: WorkflowSteps, github: Artifacts) -> None:
    on_a_snapshot(steps)
    github.listed = (artifact(5, SNAPSHOT, repository=2),)
    job = steps.run("plan.yml", "plan", DEMO)
    assert job.result == "failure"
    assert "::error::no artifact snapshot-demo of branch main" in job.log


@pytest.mark.deep
def test_a_cluster_that_is_new_is_validated_and_planned_after_the_merge(
    steps: WorkflowSteps, github: Artifacts
) -> None:
    on_a_snapshot(steps)
    github.is_unmerged = True
    job = steps.run("plan.yml", "plan", DEMO)
    assert (job.result, "::notice::desired-state/demo/cluster.yaml is new" in job.log) == ("success", True), job.log
    assert "no problems" in job.log
    assert github.asked == ("/repos/acme/kafka/contents/desired-state/demo/cluster.yaml?ref=refs%2Fheads%2Fmain",)
    assert list(steps.artifacts.glob("*/plan.json")) == []


def test_a_snapshot_is_kept_and_a_topic_made_by_hand_is_told_by_the_next_night_and_by_no_other_run(
    steps: WorkflowSteps, receiver: Receiver
) -> None:
    install = steps.workspace / ".github" / "actions" / "install.sh"
    assert "pip" in install.read_text()
    file = steps.workspace / "desired-state" / "demo" / "snapshot.json"
    state = json.loads(file.read_text())
    partition = {"partition": 0, "leader": 1, "replicas": [1], "isr": [1]}
    state["topics"].append({"name": "by-hand", "partitions": [partition]})
    file.write_text(json.dumps(state))
    github = steps.event["github"]
    assert isinstance(github, Mapping)
    steps.secrets = {**steps.secrets, "DRIFT_WEBHOOK": receiver.url}
    for cron in ("17 4-20/4 * * *", "17 0 * * *"):
        assert receiver.got == []
        steps.event = {"github": {**github, "event": {"schedule": cron}}}
        job = steps.run("snapshot.yml", "snapshot", DEMO)
        assert job.result == "success", job.log
        assert json.loads((steps.artifacts / "snapshot-demo" / "snapshot.json").read_text())["brokers"]
    ((_, told),) = receiver.got
    assert "by-hand: no file declares it, and it stays; 1 partition" in told["text"]
    assert SECRET not in job.log


@pytest.mark.parametrize(
    ("ended", "told", "state", "code"),
    [
        (0, "Done.", "done", 0),
        (
            5,
            "error: stopped before stage 3 of 5: the time given is over; run apply again to go on (KR711)",
            "unfinished",
            0,
        ),
        (
            5,
            "error: stopped before stage 3 of 5: the window is over (mon); run apply again inside one (KR712)",
            "unfinished",
            0,
        ),
        (
            5,
            "error: stopped before the end of stage 3 of 5: the time given is over; run apply again to go on (KR711)",
            "unfinished",
            0,
        ),
        (3, "error: 2026-11-21 12:00 UTC is outside the windows (mon); run apply inside one (KR423)", "unfinished", 0),
        (
            5,
            "error: stopped before the end of stage 2 of 5: `reconciler cancel` of eve on host asked for it (KR713)",
            "",
            5,
        ),
        (3, "error: the plan breaks what the desired state allows (KR411)", "", 3),
        (4, "error: the cluster changed since the plan was made (KR502)", "", 4),
        (1, "error: no answer (KR705)\nnot an error: (KR711)", "", 1),
    ],
)
def test_only_a_run_whose_time_was_over_is_unfinished(
    tmp_path: Path, ended: int, told: str, state: str, code: int
) -> None:
    program = tmp_path / "reconciler"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{told}\nleft to do: 3 of 5 stages\nEND\nexit {ended}\n")
    program.chmod(0o755)
    files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    more = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PLAN": str(tmp_path / "plan.json"),
        "RUNNER_TEMP": str(tmp_path),
    }
    done = captured([*BASH, apply_script()], env={**os.environ, **files, **more})
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr
    result = (tmp_path / "result").read_text().splitlines()
    assert result == (["5"] if state == "unfinished" else [str(ended), *([told.splitlines()[0]] if ended else [])])
    output = tmp_path / "GITHUB_OUTPUT"
    assert (output.read_text() if output.exists() else "") == (f"state={state}\n" if state else "")
    next_stage = tmp_path / "next-stage.txt"
    assert (next_stage.read_text() if next_stage.exists() else "") == ("3\n" if "stage 3 of" in told else "")


def apply_script() -> str:
    action = yaml.safe_load((ROOT / ".github" / "actions" / "apply" / "action.yml").read_text())
    (script,) = [step["run"] for step in action["runs"]["steps"] if step.get("id") == "apply"]
    return str(script)


def test_a_cancelled_job_waits_for_the_run_to_put_everything_back(tmp_path: Path) -> None:
    program = tmp_path / "reconciler"
    program.write_text(
        "#!/usr/bin/env python3\nimport signal, sys, time\n"
        "def back(*_):\n    time.sleep(0.5)\n    print('moves taken back', flush=True)\n    sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, back)\nprint('moving', flush=True)\ntime.sleep(60)\n"
    )
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PLAN": "plan.json", "RUNNER_TEMP": str(tmp_path)}
    with subprocess.Popen([*BASH, apply_script()], env=environment, stdout=subprocess.PIPE, text=True) as step:
        assert step.stdout is not None
        assert step.stdout.readline() == "moving\n"
        step.send_signal(signal.SIGINT)
        assert step.stdout.read() == "moves taken back\n"
    assert step.returncode == 143
