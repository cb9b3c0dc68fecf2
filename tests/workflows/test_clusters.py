"""What becomes of several clusters on GitHub: each by itself, with one summary, and no workflow that names one."""

import json
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from actions.fake_github import FakeGitHub
from helpers.program.call import captured
from helpers.program.command_line import reconciler
from helpers.program.documents import edit
from workflows.fake_artifacts import TOKEN, Artifacts
from workflows.steps import Job, WorkflowSteps

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / ".github" / "actions" / "plan"
DEMO = ROOT / "desired-state" / "demo"
DEFAULT_BRANCH = {"repository": {"default_branch": "main"}}


def told_of(folder: Path, names: list[str], summary: Path | None = None) -> tuple[int, list[list[str]]]:
    """Return the exit code of the summary, and the rows of what it prints."""
    command: list[str | Path] = [sys.executable, PROGRAMS / "summary.py", folder, json.dumps(names)]
    done = captured(command, env={"GITHUB_STEP_SUMMARY": str(summary or "")})
    assert done.stderr == ""
    head, *rows = done.stdout.splitlines()
    assert head == f"{len(names)} cluster{'' if len(names) == 1 else 's'}:"
    return done.returncode, [row.split(maxsplit=2) for row in rows]


def leave(folder: Path, job: str, text: str) -> None:
    """Put a result where the artifact of that job is unpacked."""
    file = folder / f"result-{job}" / "result"
    file.parent.mkdir(parents=True)
    file.write_text(text)


@pytest.mark.long
@pytest.mark.parametrize(
    ("planned", "applied", "code", "told"),
    [
        ("0\n", None, 0, "nothing to do"),
        ("2\n", "0\n", 0, "applied"),
        ("2\n", "5\n", 5, "unfinished: the nights go on with it"),
        ("2\n", "4\nerror: the cluster changed (KR502)\n", 4, "stale: make a new plan: the cluster changed (KR502)"),
        ("2\n", "3\nerror: no (KR411)\n", 3, "refused: no (KR411)"),
        ("2\n", "143\n", 143, "apply failed"),
        ("2\ndiffers, but no plan can mend it\n", None, 2, "differs, but no plan can mend it"),
        ("2\n", None, 1, "planned, not applied: it was not approved, or its job was stopped"),
        ("3\n", None, 3, "refused"),
        ("3\nviolation: too much (KR412)\n", None, 3, "refused: too much (KR412)"),
        ("1\nerror: no answer (KR601)\n", None, 1, "plan failed: no answer (KR601)"),
        ("1\n::error file=a.yaml,line=3,title=KR101 x::what: no (KR101)\n", None, 1, "plan failed: what: no (KR101)"),
        (None, None, 1, "no plan: its job was stopped, or never began"),
        ("", None, 1, "no plan: its job was stopped, or never began"),
        ("x\n", None, 1, "no plan: its job was stopped, or never began"),
    ],
)
def test_the_summary_tells_of_a_cluster_what_its_last_job_left(
    tmp_path: Path, planned: str | None, applied: str | None, code: int, told: str
) -> None:
    for verb, text in (("plan", planned), ("apply", applied)):
        if text is not None:
            leave(tmp_path, f"{verb}-prod-eu", text)
    assert told_of(tmp_path, ["prod-eu"]) == (0 if code in {2, 5} else code, [["prod-eu", str(code), told]])


def test_the_summary_ends_with_the_worst_exit_code_and_writes_a_table(tmp_path: Path) -> None:
    for name, text in {"a": "0\n", "b": "3\nerror: x|y `z`\n::error::\n", "c": "1\n", "d": "4\n"}.items():
        leave(tmp_path, f"plan-{name}", text)
    page = tmp_path / "page.md"
    assert told_of(tmp_path, ["a", "b", "c", "d"], page)[0] == 1
    assert told_of(tmp_path, ["a", "b", "d"])[0] == 3
    assert told_of(tmp_path, [])[0] == 0
    head, _, *rows = page.read_text().splitlines()
    assert (head, len(rows)) == ("| cluster | result | exit |", 4)
    assert rows[1] == r"| b | refused: x\|y \`z\` ::error:: | 3 |"


def test_clusters_are_the_folders_with_a_cluster_document(tmp_path: Path) -> None:
    for name in ("prod-eu", "Test_2", "no good; $(id)", "x" * 21):
        (tmp_path / "state" / name).mkdir(parents=True)
        (tmp_path / "state" / name / "cluster.yaml").touch()
    (tmp_path / "state" / "policies").mkdir()
    output = tmp_path / "output"
    command: list[str | Path] = [sys.executable, PROGRAMS / "clusters.py", tmp_path / "state"]
    done = captured(command, env={"GITHUB_OUTPUT": str(output)}, check=True)
    assert output.read_text() == f'names=["Test_2", "prod-eu", "{"x" * 21}"]\nsources=[]\n'
    assert [line.partition(" ")[0] for line in done.stdout.splitlines()[:2]] == [
        "::error::'no",
        f"::warning::{'x' * 21}",
    ]


APPLY, CONTINUE = "kafka-apply-demo", "kafka-continue-demo"
ONLY_MAIN = "choose `Selected branches and tags`, and name main there and nothing else"


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, ""),
        ({"deployers": {APPLY: (("main", None),), CONTINUE: (("main", None),)}}, ""),  # an older server
        ({"unreviewed": frozenset({CONTINUE})}, ""),
        ({"unmade": frozenset({APPLY})}, f"{APPLY} is not there"),
        ({"unmade": frozenset({CONTINUE})}, f"{CONTINUE} is not there"),
        ({"unreviewed": frozenset({APPLY})}, f"{APPLY} has no required reviewers"),
        ({"branch_policies": {APPLY: None}}, f"{APPLY} lets every branch deploy, and so have its password"),
        ({"branch_policies": {CONTINUE: None}}, f"{CONTINUE} lets every branch deploy, and so have its password"),
        ({"branch_policies": {CONTINUE: {"protected_branches": True}}}, f"{CONTINUE} lets the rule that a branch is"),
        *(
            ({"deployers": {name: deployers}}, f"{name} lets {words} deploy, and so have its password")
            for name in (APPLY, CONTINUE)
            for deployers, words in (
                ((("main", "tag"),), "the tag main"),
                ((("main*", "branch"),), "the branch main*"),
                ((("*", "branch"),), "the branch *"),
                ((("master", "branch"),), "the branch master"),
                ((("main", "branch"), ("main", "tag")), "the branch main, the tag main"),
                ((("main", "branch"), ("release/*", "branch")), "the branch main, the branch release/*"),
                ((), "the branch of no name"),
            )
        ),
    ],
)
def test_an_environment_that_asks_nobody_or_takes_other_branches_is_refused(
    github: Artifacts, tmp_path: Path, change: Mapping[str, object], message: str
) -> None:
    for name, value in change.items():
        setattr(github, name, value)
    variables = {
        "GITHUB_API_URL": github.address,
        "GITHUB_REPOSITORY": "acme/kafka",
        "GITHUB_TOKEN": TOKEN,
        "DEFAULT_BRANCH": "main",
        "RUNNER_TEMP": str(tmp_path),
    }
    done = captured([sys.executable, PROGRAMS / "reviewers.py", "demo"], env=variables)
    assert (done.returncode, done.stderr) == (1 if message else 0, "")
    assert done.stdout.startswith(f"::error::the environment {message}" if message else "")
    assert (ONLY_MAIN in done.stdout) is (" lets " in message)
    assert (tmp_path / "result").exists() == bool(message)
    asked = {path.partition("?")[0].removeprefix("/repos/acme/kafka/environments/") for path in github.asked}
    assert {APPLY, CONTINUE} <= asked


@pytest.mark.deep
def test_a_cluster_whose_plan_nobody_would_be_asked_about_is_not_applied(
    github: Artifacts, steps: WorkflowSteps
) -> None:
    github.unmade = frozenset({"kafka-apply-demo"})
    steps.event = {"github": {"token": TOKEN, "event_name": "push", "event": DEFAULT_BRANCH}}
    job = steps.run("apply-cluster.yml", "plan", {}, inputs={"cluster": "demo"})
    assert (job.result, "::error::the environment kafka-apply-demo is not there" in job.log) == ("failure", True), (
        job.log
    )
    assert steps.run("apply-cluster.yml", "apply", {}, {"plan": job}, inputs={"cluster": "demo"}).result == "skipped"
    code, ((_, _, row),) = told_of(steps.artifacts, ["demo"])
    assert (code, "the environment kafka-apply-demo is not there" in row) == (1, True)


# Eight clusters, in a repository that `init --ci github` wrote.


@pytest.fixture
def repository(steps: WorkflowSteps) -> WorkflowSteps:
    """Return a repository of eight clusters: one down, one over a limit, one that drifted, five as new."""
    workspace = steps.workspace
    shutil.rmtree(workspace)
    root = workspace / "desired-state"
    for name in ("c1", "c2", "c3", "c4", "c5", "down", "drifted", "refused"):
        add_cluster(root, name)
    edit(root / "refused" / "cluster.yaml", "movedBytes: 250GiB", "movedBytes: 1GiB")
    nobody(root / "down" / "cluster.yaml")
    reconciler("plan", "--cluster", "drifted", "--out", "plan.json", cwd=workspace)
    reconciler("apply", "plan.json", "--yes", cwd=workspace)
    drift(root / "drifted" / "snapshot.json")
    reconciler("init", "--ci", "github", "--index", "https://packages.invalid/simple", cwd=workspace)
    steps.event = {"github": {"token": TOKEN, "event_name": "push", "event": DEFAULT_BRANCH}}
    return steps


def add_cluster(root: Path, name: str) -> None:
    """Add a cluster like the demo."""
    shutil.copytree(DEMO, root / name, ignore=shutil.ignore_patterns("*.example"))
    edit(root / name / "cluster.yaml", "name: demo", f"name: {name}")
    edit(root / name / "cluster.yaml", "  clusterId: ", "  # clusterId: ")


def nobody(cluster: Path) -> None:
    """Have a cluster be where nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        client = f"client: {{bootstrap.servers: '127.0.0.1:{closed.getsockname()[1]}'}}"
    edit(cluster, "simulation: snapshot.json", client)


def drift(snapshot: Path) -> None:
    """Change a config of a simulated cluster by hand."""
    document = json.loads(snapshot.read_text())
    (topic,) = [one for one in document["topics"] if one["name"] == "orders.events"]
    topic["configs"]["retention.ms"] = "1000"
    snapshot.write_text(json.dumps(document))


def merged(steps: WorkflowSteps) -> tuple[dict[str, tuple[str, str]], Job]:
    """Run apply.yml as after a merge, everybody approving; return how each cluster's jobs ended, and the summary."""
    shutil.rmtree(steps.artifacts, ignore_errors=True)
    found = steps.run("apply.yml", "clusters", {})
    names = json.loads(found.outputs["names"])
    ended = {}
    for name in names:
        planned = steps.run("apply-cluster.yml", "plan", {}, inputs={"cluster": name})
        applied = steps.run("apply-cluster.yml", "apply", {}, {"plan": planned}, inputs={"cluster": name})
        ended[name] = (planned.result, applied.result)
    one = "failure" if any("failure" in results for results in ended.values()) else "success"
    return ended, steps.run("apply.yml", "summary", {}, {"clusters": found, "cluster": Job(one)})


@pytest.mark.deep
def test_of_eight_clusters_six_are_applied_and_a_ninth_needs_no_edit(repository: WorkflowSteps) -> None:
    well = ("c1", "c2", "c3", "c4", "c5", "drifted")
    ended, summary = merged(repository)
    failed = ("failure", "skipped")
    wanted = {"down": failed, "refused": failed, **dict.fromkeys(well, ("success", "success"))}
    assert ended == wanted, summary.log
    assert summary.result == "failure"
    rows = {row[0]: row[1:] for line in summary.log.splitlines()[1:9] if (row := line.split(maxsplit=2))}
    assert {name: row for name, row in rows.items() if name in well} == {name: ["0", "applied"] for name in well}
    assert (rows["down"][0], "(KR" in rows["down"][1]) == ("1", True), rows
    assert (rows["refused"][0], "movedBytes" in rows["refused"][1]) == ("3", True), rows
    assert summary.summary.count("\n| ") == 8
    for name in well:
        reached = reconciler("plan", "--cluster", name, "--detailed-exitcode", cwd=repository.workspace)
        assert "No changes." in reached.out

    before = {file: file.read_bytes() for file in (repository.workspace / ".github").rglob("*") if file.is_file()}
    add_cluster(repository.workspace / "desired-state", "ninth")
    ended, summary = merged(repository)
    reconciler("init", "--ci", "github", "--index", "https://packages.invalid/simple", cwd=repository.workspace)
    assert {file: file.read_bytes() for file in before} == before
    assert ended["ninth"] == ("success", "success")
    assert {ended[name] for name in well} == {("success", "skipped")}  # nothing to do, so nobody is asked
    assert ["ninth", "0", "applied"] in [line.split() for line in summary.log.splitlines()]
    assert summary.log.count("nothing to do") == len(well)


@pytest.mark.deep
def test_a_pull_request_gets_a_comment_for_each_cluster_that_would_change(
    repository: WorkflowSteps, tmp_path: Path
) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    own = {"pull_request": {"head": {"repo": {"full_name": "acme/kafka"}}}, "repository": {"default_branch": "main"}}
    repository.event = {"github": {"token": TOKEN, "repository": "acme/kafka", "event": own}}
    reconciler("plan", "--cluster", "c1", "--out", "plan.json", cwd=repository.workspace)
    reconciler("apply", "plan.json", "--yes", cwd=repository.workspace)
    results = {}
    for name in json.loads(repository.run("plan.yml", "clusters", {}).outputs["names"]):
        results[name] = repository.run("plan.yml", "plan", {"cluster": name}).result
    assert [name for name, result in results.items() if result != "success"] == ["down", "refused"]
    with FakeGitHub(TOKEN).served() as fake:
        more = {"GITHUB_API_URL": fake.address, "GITHUB_EVENT_PATH": str(event)}
        repository.environment = {**repository.environment, **more}
        for _ in range(2):
            job = repository.run("plan.yml", "comment", {}, needs={"plan": "failure"})
            assert job.result == "success", job.log
        told = sorted(body.partition("\n")[0].split()[3] for body in fake.bodies(7))
        assert told == ["c2", "c3", "c4", "c5", "drifted", "refused"]
        assert "plan: moves data" in fake.labels[7]
