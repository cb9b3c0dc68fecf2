"""A mirror on GitHub has the state of its source without its password, and a copy grows before its topic."""

import io
import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from helpers.program.call import captured
from helpers.program.documents import edit
from workflows.fake_artifacts import TOKEN, Artifacts, artifact, workflow_run
from workflows.steps import Job, WorkflowSteps

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "desired-state" / "demo"
PASSWORDS = {"us": "canary-us-71", "eu": "canary-eu-72"}
MIRROR = """\
# kind: Mirror
apiVersion: reconciler/v1
kind: Mirror
metadata: {name: from-us}
spec:
  # source: nowhere
  source: us
  topics: ["orders.events"]
  class: standard
"""
PUSH = {"token": TOKEN, "event_name": "push", "event": {"repository": {"default_branch": "main"}}}


@pytest.fixture
def mirrored(steps: WorkflowSteps) -> WorkflowSteps:
    """Return a repository of us, and of eu which copies from it; both are simulated."""
    root = steps.workspace / "desired-state"
    shutil.rmtree(root)
    for name in PASSWORDS:
        shutil.copytree(DEMO, root / name, ignore=shutil.ignore_patterns("*.example"))
        edit(root / name / "cluster.yaml", "name: demo", f"name: {name}")
        edit(root / name / "cluster.yaml", "  clusterId: ", "  # clusterId: ")
    (root / "eu" / "mirrors.yaml").write_text(MIRROR)
    steps.event = {"github": PUSH}
    return steps


def with_a_client(steps: WorkflowSteps, tmp_path: Path) -> Path:
    """Have us be no simulation, and the program answer for it where the password is that of us; return what it noted.

    The note has a line for each start: the verb, and the password that the job has.
    """
    us = steps.workspace / "desired-state" / "us"
    shutil.copy(us / "snapshot.json", tmp_path / "us.json")
    (us / "snapshot.json").unlink()
    edit(us / "cluster.yaml", "simulation: snapshot.json", "client: {bootstrap.servers: '127.0.0.1:1'}")
    note = tmp_path / "note"
    program = tmp_path / "temp" / "reconciler" / "bin" / "reconciler"
    program.write_text(
        f'#!/bin/sh\necho "$1 $KAFKA_PASSWORD" >>"{note}"\n'
        f'if [ "$1 $RECONCILER_CLUSTER" = "snapshot us" ]; then\n'
        f'  [ "$KAFKA_PASSWORD" = "{PASSWORDS["us"]}" ] && exec cp "{tmp_path}/us.json" "$3"\n  exit 1\nfi\n'
        f'exec "{sys.executable}" -m reconciler "$@"\n'
    )
    return note


def run(steps: WorkflowSteps, workflow: str, job: str, cluster: str, needs: dict[str, Job] | None = None) -> Job:
    """Run a job of one cluster, with the password of its environment."""
    steps.secrets = {"KAFKA_PASSWORD": PASSWORDS[cluster]}
    return steps.run(workflow, job, {"cluster": cluster}, needs, {"cluster": cluster})


def plan_of(steps: WorkflowSteps, cluster: str) -> Job:
    return run(steps, "apply-cluster.yml", "plan", cluster)


def test_the_plan_of_a_mirror_has_the_state_of_its_source_and_not_its_password(
    mirrored: WorkflowSteps, tmp_path: Path
) -> None:
    note = with_a_client(mirrored, tmp_path)
    clusters = mirrored.run("apply.yml", "clusters", {})
    assert json.loads(clusters.outputs["names"]) == ["eu", "us"]
    assert json.loads(clusters.outputs["sources"]) == ["us"]
    state = run(mirrored, "apply.yml", "state", "us", {"clusters": clusters})
    assert state.result == "success", state.log
    planned = plan_of(mirrored, "eu")
    assert planned.result == "success", planned.log
    plan = json.loads((mirrored.artifacts / "plan-eu" / "plan.json").read_text())
    assert "us.orders.events" in {one["topic"] for one in plan["topicChanges"] if one["kind"] == "createTopic"}
    seen = {tuple(line.split()) for line in note.read_text().splitlines()}
    assert {(verb, password) for verb, password in seen if verb == "snapshot"} == {("snapshot", PASSWORDS["us"])}
    assert {password for verb, password in seen if verb != "snapshot"} == {PASSWORDS["eu"]}
    assert not [path for path in mirrored.artifacts.rglob("*") if path.is_file() and "canary-" in path.read_text()]


def test_a_source_that_is_down_fails_the_plan_of_its_mirror_alone(mirrored: WorkflowSteps, tmp_path: Path) -> None:
    note = with_a_client(mirrored, tmp_path)
    (tmp_path / "us.json").unlink()
    clusters = mirrored.run("apply.yml", "clusters", {})
    state = run(mirrored, "apply.yml", "state", "us", {"clusters": clusters})
    assert state.result == "failure"
    planned = plan_of(mirrored, "eu")
    words = "error: mirrors copy from us, and there is no state of it: see its own job"
    assert (planned.result, words in planned.log) == ("failure", True), planned.log
    assert (mirrored.artifacts / "result-plan-eu" / "result").read_text() == f"1\n{words}\n"
    assert "plan" not in {line.split()[0] for line in note.read_text().splitlines()}, "it would log in to us"
    shutil.rmtree(mirrored.workspace / "desired-state" / "us")
    (mirrored.workspace / "desired-state" / "eu" / "mirrors.yaml").unlink()
    assert plan_of(mirrored, "eu").result == "success"


@pytest.mark.parametrize("is_new", [False, pytest.param(True, marks=pytest.mark.deep)])
def test_a_pull_request_takes_the_newest_snapshot_of_a_source(
    mirrored: WorkflowSteps, github: Artifacts, tmp_path: Path, *, is_new: bool
) -> None:
    with_a_client(mirrored, tmp_path)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("snapshot.json", (tmp_path / "us.json").read_bytes())
    github.archive, github.is_unmerged = archive.getvalue(), is_new
    github.listed = (artifact(3, "snapshot-us"),)
    github.runs = (workflow_run(3, "schedule", workflow="snapshot.yml"),)
    mirrored.secrets = {}
    mirrored.event = {"github": {**PUSH, "event_name": "merge_group"}}
    job = mirrored.run("plan.yml", "plan", {"cluster": "eu"})
    assert job.result == "success", job.log
    assert (mirrored.artifacts / "proposed-plan-eu" / "plan.json").exists() is not is_new
    assert ("us.orders.events" in job.summary) is not is_new
    assert ("::notice::desired-state/us/cluster.yaml is new" in job.log) is is_new


def test_a_source_waits_for_its_copies_if_its_plan_grows_what_they_copy(mirrored: WorkflowSteps) -> None:
    """Both plans are approved at once: the source ends with a sentence, and goes on once the copy is applied."""
    root = mirrored.workspace / "desired-state"
    edit(root / "us" / "shop.yaml", "  partitions: 24\n", "  partitions: 30\n")
    planned = {name: plan_of(mirrored, name) for name in PASSWORDS}
    assert {name: job.result for name, job in planned.items()} == {"us": "success", "eu": "success"}

    def apply(name: str) -> Job:
        return run(mirrored, "apply-cluster.yml", "apply", name, {"plan": planned[name]})

    source = apply("us")
    words = (
        "error: the plan grows topics that eu copies, and a copy has to grow first: apply that plan, then run this job"
    )
    assert (source.result, words in source.log) == ("failure", True), source.log
    assert (mirrored.artifacts / "result-apply-us" / "result").read_text().startswith("3\nerror: the plan grows topics")
    for name in ("eu", "us"):
        applied = apply(name)
        assert applied.result == "success", applied.log


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ({}, 3),
        ({"plan": "2\n"}, 3),
        ({"plan": "1\nerror: no (KR601)\n"}, 3),
        ({"plan": "0\n"}, 0),
        ({"plan": "2\ndiffers, but no plan can mend it\n"}, 0),
        ({"plan": "2\n", "apply": "0\n"}, 0),
        ({"plan": "2\n", "apply": "5\n"}, 3),
        ({"plan": "0\n", "apply": "1\n"}, 3),
        ({"plan": "x"}, 3),
    ],
)
@pytest.mark.parametrize("warned", [True, False])
def test_what_counts_as_applied(
    mirrored: WorkflowSteps, tmp_path: Path, results: dict[str, str], code: int, *, warned: bool
) -> None:
    plan = tmp_path / "plan.json"
    warnings = [{"code": "KR838" if warned else "KR839", "message": "x"}]
    plan.write_text(json.dumps({"cluster": {"name": "us"}, "warnings": warnings}))
    for verb, text in results.items():
        file = tmp_path / "results" / f"result-{verb}-eu" / "result"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    script = mirrored.workspace / ".github" / "actions" / "python.sh"
    done = captured([script, "mirrors", "applied", mirrored.workspace / "desired-state", plan, tmp_path / "results"])
    assert done.returncode == (code if warned else 0), done.stderr


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        (MIRROR, ["us"]),
        ("kind: 'Mirror'\nspec: {topics: [a], source: \"us\"}\n", ["us"]),
        ("kind: Topic\nspec: {source: us}\n---\nkind: Mirror\nspec: {source: eu}\n", []),
        ("kind: Mirror\nspec: {source: ../us}\n---\nkind: Mirror\nspec: {source: ..}\n", []),
        ("kind: Mirror\nspec: {source: gone}\n", []),
        ("kind: Mirror\n# spec: {source: us}\n", []),
        ("\0\x1b[31m: [", []),
    ],
)
def test_sources_are_other_clusters_of_the_root(
    mirrored: WorkflowSteps, tmp_path: Path, text: str, sources: list[str]
) -> None:
    with_a_client(mirrored, tmp_path)
    eu = mirrored.workspace / "desired-state" / "eu"
    (eu / "mirrors.yaml").unlink()
    (eu / "more").mkdir()
    (eu / "more" / "mirrors.yml").write_text(text)
    clusters = mirrored.run("apply.yml", "clusters", {})
    assert json.loads(clusters.outputs["sources"]) == sources
