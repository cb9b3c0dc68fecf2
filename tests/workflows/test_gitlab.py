"""The pipelines that `init --ci gitlab` writes, run against a GitLab on loopback."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.mirrored import ROOT, STANDARD, snapshot, topic, write
from helpers.program.call import Program, captured
from helpers.program.documents import document, edit
from helpers.program.git import git
from workflows.fake_gitlab import JOB_TOKEN, NOTE_TOKEN, OTHER, OWN, FakeGitLab
from workflows.gitlab_jobs import Jobs, Pipelines, bash, included, jobs_of
from workflows.test_clusters import add_cluster, drift
from workflows.test_clusters import nobody as nobody_answers

HOME = Path(".gitlab", "reconciler")
SCHEMAS = "check-jsonschema==0.39.0"


@pytest.fixture
def gitlab() -> Iterator[FakeGitLab]:
    with FakeGitLab().served() as served:
        yield served


@pytest.fixture
def pipelines(reconciler: Program, tmp_path: Path, gitlab: FakeGitLab, monkeypatch: pytest.MonkeyPatch) -> Pipelines:
    """Return the pipelines of a repository of three clusters."""
    top = tmp_path / "top"
    for name in ("prod-eu", "refused", "down"):
        add_cluster(top / "desired-state", name)
    edit(top / "desired-state" / "refused" / "cluster.yaml", "movedBytes: 250GiB", "movedBytes: 1GiB")
    nobody_answers(top / "desired-state" / "down" / "cluster.yaml")
    monkeypatch.chdir(top)
    assert reconciler("init", "--ci", "gitlab", "--index", "https://packages.invalid/simple").code == 0
    program = tmp_path / "bin" / "reconciler"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{PROJECT}" exec "{sys.executable}" -m reconciler "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return Pipelines(top, tmp_path / "runner", {**gitlab.variables, "PATH": path})


PROJECT = Path(__file__).resolve().parents[2]


def of_repository(top: Path) -> Jobs:
    return jobs_of((top / HOME / "pipeline.yml").read_text(), top)


# The program that talks to GitLab.


def told(gitlab: FakeGitLab, *words: str | Path, **more: str) -> tuple[int, str]:
    command = [sys.executable, HOME / "gitlab.py", *words]
    done = captured(command, env={**gitlab.variables, **more})
    assert done.stderr == ""
    assert not any(token in done.stdout for token in (JOB_TOKEN, NOTE_TOKEN))
    assert gitlab.strangers == []
    return done.returncode, done.stdout


@pytest.mark.long
def test_there_is_one_note_a_cluster_and_no_other_is_touched(pipelines: Pipelines, gitlab: FakeGitLab) -> None:
    del pipelines
    theirs = gitlab.add(7, "<!-- reconciler plan demo -->\nmine", OTHER)
    for number in range(150):
        gitlab.add(7, f"{number}", OTHER)
    Path("plan.md").write_text("<!-- reconciler plan demo -->\nfirst")
    assert told(gitlab, "note", "7", "plan.md") == (0, "no note: " + WITHOUT)
    for text in ("first", "second", "second"):
        Path("plan.md").write_text(f"<!-- reconciler plan demo -->\n{text}")
        gitlab.failures = 1
        assert told(gitlab, "note", "7", "plan.md", RECONCILER_GITLAB_TOKEN=NOTE_TOKEN) == (0, "")
    own = [note["body"] for note in gitlab.notes[7] if note["author"] == OWN]
    assert own == ["<!-- reconciler plan demo -->\nsecond"]
    assert theirs["body"].endswith("mine")
    assert [method for method, _ in gitlab.requests if method in {"POST", "PUT"}] == ["POST", "PUT"]


WITHOUT = "without RECONCILER_GITLAB_TOKEN the plan is in this job's log and artifacts alone\n"


@pytest.mark.long
def test_what_a_pipeline_keeps_is_found_by_another_and_no_store_is_shown_a_token(
    pipelines: Pipelines, gitlab: FakeGitLab
) -> None:
    del pipelines
    Path("file").write_bytes(b"content")
    gitlab.failures = 1
    assert told(gitlab, "put", "results", "prod-eu", "file") == (0, "")
    assert gitlab.packages == {"results/prod-eu": b"content"}
    gitlab.snapshots = {"prod-eu": b"state"}
    assert told(gitlab, "snapshot", "prod-eu", "back") == (0, "")
    assert Path("back").read_bytes() == b"state"
    code, text = told(gitlab, "snapshot", "other", "back")
    assert (code, text.startswith("error: snapshot other back: GET "), "not there" in text) == (2, True, True)
    gitlab.failures = 9
    assert told(gitlab, "put", "results", "prod-eu", "file")[0] == 1
    clear = {"CI_API_V4_URL": "http://gitlab.invalid/api/v4"}
    assert "no https address" in told(gitlab, "put", "results", "prod-eu", "file", **clear)[1]


@pytest.mark.long
def test_a_plan_that_destroys_is_withdrawn_by_another_commit_of_the_default_branch(
    pipelines: Pipelines, gitlab: FakeGitLab
) -> None:
    top = gitlab.repository = pipelines.workspace
    git(top, "init", "--quiet", "--initial-branch=main")
    git(top, "commit", "--quiet", "--allow-empty", "--message", "first")
    planned = git(top, "rev-parse", "HEAD").strip()
    gitlab.packages = {"newest/prod-eu": b"what a Developer's job has written"}

    def asked(*changes: object) -> tuple[int, str]:
        Path("plan.json").write_text(json.dumps({"topicChanges": changes}))
        return told(gitlab, "asked", "plan.json", CI_COMMIT_SHA=planned)

    harmless = {"kind": "alterConfigs", "effects": [{"class": "clients"}]}
    destroying = ({"kind": "alterConfigs", "effects": [{"class": "destroys"}]}, {"kind": "deleteTopic"})
    git(top, "tag", "other")
    for change in (harmless, *destroying):
        assert asked(change) == (0, "")
    git(top, "commit", "--quiet", "--allow-empty", "--message", "second")
    git(top, "tag", "main", planned)  # a tag of the branch's name is another thing
    git(top, "branch", "a/main", planned)
    assert asked(harmless) == (0, "")
    for change in destroying:
        code, text = asked(change)
        assert (code, text.startswith("error: the plan destroys records"), "(KR463)" in text) == (3, True, True)
    git(top, "branch", "--move", "main", "trunk")
    assert asked(*destroying)[0] == 1


# What the files say.


def test_no_file_names_a_cluster_and_each_has_variables_of_its_own(pipelines: Pipelines) -> None:
    top = pipelines.workspace
    assert not any("prod-eu" in file.read_text() for file in (top / HOME).iterdir())
    inputs = {"cluster": "prod-eu", "run": "1"}
    more: dict[str, str | list[str]] = {"merge-request": "", "sources": "", "needs": []}
    jobs = included((top / HOME / "cluster.yml").read_text(), {**inputs, **more}, top)
    digest = f"sha256:{'0' * 64}"
    last = {"digest": digest, "pipeline": "2", "targets": ""}
    jobs |= included((top / HOME / "apply.yml").read_text(), {**inputs, **last}, top)
    assert jobs["plan prod-eu"]["environment"] == {"name": "kafka/prod-eu/read", "action": "access"}
    applies = jobs["apply prod-eu"]
    assert applies["environment"] == {"name": "kafka/prod-eu/apply"}
    assert (applies["when"], applies["allow_failure"]) == ("manual", False)
    reviews = included((top / HOME / "review.yml").read_text(), {**inputs, "merge-request": "7", "sources": ""}, top)
    assert all("environment" not in job for job in reviews.values())


@pytest.mark.deep
def test_gitlabs_own_schema_takes_the_files(pipelines: Pipelines, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin" / "pip", "install", "-q", SCHEMAS], check=True)
    check: list[str | Path] = [venv / "bin" / "check-jsonschema", "--builtin-schema", "vendor.gitlab-ci"]
    files = sorted((pipelines.workspace / HOME).glob("*.yml"))
    assert len(files) == 5
    for file in files:
        for number, text in enumerate(file.read_text().split("\n---\n")):
            part = tmp_path / f"{number}-{file.name}"
            part.write_text(text.replace("$[[ inputs.needs ]]", "[]"))  # of an input that is an array
            done = captured([*check, part])
            assert done.returncode == 0, f"{file.name}: {done.stdout}"
    part.write_text("job: {script: [x], whne: manual, when: sometimes}")
    assert captured([*check, part]).returncode != 0


@pytest.mark.long
def test_a_command_that_is_killed_leaves_no_result_of_the_one_before_it(pipelines: Pipelines) -> None:
    lines = [f". {HOME}/install.sh", "told true", "cat reconciler-job/result", "told test ! -e reconciler-job/result"]
    done = bash(lines, pipelines.workspace, pipelines.variables)
    assert (done.returncode, done.stdout) == (0, "0\n"), done


# The chain.


@pytest.mark.deep
def test_each_cluster_is_planned_started_by_somebody_and_applied_by_itself(
    pipelines: Pipelines, gitlab: FakeGitLab
) -> None:
    pipelines.is_started = False
    assert not pipelines.run(of_repository(pipelines.workspace))
    assert pipelines.ended["apply prod-eu"].result == "failed"  # its pipeline waits for somebody
    rows = table(pipelines)
    assert rows["prod-eu"] == ["1", "planned, not applied: it was not approved, or its job was stopped"]

    pipelines.is_started = True
    assert not pipelines.run(of_repository(pipelines.workspace))
    rows = table(pipelines)
    assert rows["prod-eu"] == ["0", "applied"]
    assert (rows["refused"][0], "movedBytes" in rows["refused"][1]) == ("3", True)
    assert (rows["down"][0], "(KR" in rows["down"][1]) == ("1", True)
    assert pipelines.ended["reconciler: summary"].result == "failed"
    assert pipelines.ended["apply refused"].result == pipelines.ended["apply down"].result == "skipped"

    root = pipelines.workspace / "desired-state"
    shutil.rmtree(root / "refused")
    shutil.rmtree(root / "down")
    add_cluster(root, "ninth")
    drift(root / "prod-eu" / "snapshot.json")
    assert pipelines.run(of_repository(pipelines.workspace))
    assert table(pipelines) == {"ninth": ["0", "applied"], "prod-eu": ["0", "applied"]}
    pipelines.is_started = False
    assert pipelines.run(of_repository(pipelines.workspace))  # nothing to do: nobody is asked
    assert table(pipelines) == {"ninth": ["0", "nothing to do"], "prod-eu": ["0", "nothing to do"]}
    logs = "".join(one.log for one in pipelines.ended.values())
    assert "canary" not in logs
    assert gitlab.strangers == []


def table(pipelines: Pipelines) -> dict[str, list[str]]:
    """Return the rows of the summary."""
    lines = pipelines.ended["reconciler: summary"].log.splitlines()
    return {name: rest for line in lines if line.startswith("  ") for name, *rest in [line.split(maxsplit=2)]}


@pytest.mark.deep
def test_a_merge_request_gets_a_note_for_each_cluster_without_its_variables(
    pipelines: Pipelines, gitlab: FakeGitLab
) -> None:
    gitlab.snapshots["down"] = (pipelines.workspace / "desired-state" / "down" / "snapshot.json").read_bytes()
    more = {"CI_MERGE_REQUEST_IID": "7", "RECONCILER_GITLAB_TOKEN": NOTE_TOKEN}
    pipelines.variables = {**pipelines.variables, **more}
    for _ in range(2):
        jobs: Any = of_repository(pipelines.workspace)
        del jobs["reconciler: summary"]
        assert not pipelines.run(jobs)
        results = {name: one.result for name, one in pipelines.ended.items() if name.startswith("plan ")}
        assert results == {"plan down": "success", "plan prod-eu": "success", "plan refused": "failed"}
    told = [note["body"].partition("\n")[0] for note in gitlab.notes[7]]
    assert told == [f"<!-- reconciler plan {name} -->" for name in ("down", "prod-eu", "refused")]
    assert all(one.environment == "" for one in pipelines.ended.values())


# Mirrors.

FROM_US = document("Mirror", "from-us", '{source: us, topics: ["orders*"]}')
SHIM = """#!/bin/sh
echo "$1,$RECONCILER_CLUSTER,$KAFKA_PASSWORD" >>"{folder}/calls"
if [ -f "{folder}/$RECONCILER_CLUSTER.json" ] && [ "$KAFKA_PASSWORD" = "canary kafka/$RECONCILER_CLUSTER/read" ]; then
    case $1 in
        snapshot) exec cp "{folder}/$RECONCILER_CLUSTER.json" "$3" ;;
        plan) export RECONCILER_STATE="{folder}/$RECONCILER_CLUSTER.json" ;;
    esac
fi
exec "{program}" "$@"
"""


@pytest.fixture
def live(pipelines: Pipelines, tmp_path: Path) -> Path:
    """Return the folder of live clusters: `us`, its mirror `eu`, and `ap`. Each answers a job that has its password."""
    shutil.rmtree(ROOT)
    folder = tmp_path / "live"
    folder.mkdir()
    topics = {"us": [topic("orders", 3)], "eu": [topic("own", 1)], "ap": [topic("own", 1)]}
    for name, documents in {"us": (), "eu": (STANDARD, FROM_US), "ap": ()}.items():
        (write(name, topics[name], *documents) / "state.json").rename(folder / f"{name}.json")
        edit(ROOT / name / "cluster.yaml", "simulation: state.json", "simulation: snapshot.json")
        nobody_answers(ROOT / name / "cluster.yaml")
        edit(ROOT / name / "cluster.yaml", "client: {", "client: {sasl.password: '${env:KAFKA_PASSWORD}', ")
    shim = tmp_path / "shim" / "reconciler"
    shim.parent.mkdir()
    shim.write_text(SHIM.format(folder=folder, program=tmp_path / "bin" / "reconciler"))
    shim.chmod(0o755)
    pipelines.variables = {**pipelines.variables, "PATH": f"{shim.parent}{os.pathsep}{pipelines.variables['PATH']}"}
    pipelines.is_started = False
    return folder


def results_of(pipelines: Pipelines) -> dict[str, str]:
    """Return how the jobs of the clusters ended: those that take a state, and those that plan."""
    return {name: one.result for name, one in pipelines.ended.items() if name.startswith(("state ", "plan "))}


@pytest.mark.deep
def test_a_sources_state_is_handed_to_the_plan_and_no_job_has_two_passwords(pipelines: Pipelines, live: Path) -> None:
    pipelines.run(of_repository(pipelines.workspace))
    plans = dict.fromkeys(("plan ap", "plan eu", "plan us"), "success")
    assert results_of(pipelines) == {"state us": "success"} | plans, pipelines.ended["plan eu"].log
    assert "+ us.orders  create with 3 partitions" in pipelines.ended["plan eu"].log
    calls = {tuple(line.split(",")) for line in (live / "calls").read_text().splitlines()}
    assert {name: secret for verb, name, secret in calls if verb == "plan"} == {
        name: f"canary kafka/{name}/read" for name in ("ap", "eu", "us")
    }
    assert all(secret == f"canary kafka/{name}/read" for _, name, secret in calls if name)
    assert "canary" not in "".join(one.log for one in pipelines.ended.values())

    # A state that somebody has committed is not believed, wherever an earlier pipeline had it.
    (earlier,) = (path.name for path in pipelines.artifacts["state us"].iterdir())
    (live / "us.json").rename(live / "down.json")
    for folder in (earlier, "reconciler-state", "reconciler-job"):
        shutil.copytree(pipelines.artifacts["state us"] / earlier, pipelines.workspace / folder)
    pipelines.run(of_repository(pipelines.workspace))
    ended = {"state us": "warning", "plan ap": "success", "plan eu": "failed", "plan us": "failed"}
    assert results_of(pipelines) == ended
    assert (
        "error: mirrors copy from us, and there is no state of it: see the job state us"
        in pipelines.ended["plan eu"].log
    )
    lines = (live / "calls").read_text().splitlines()
    assert lines.count("plan,eu,canary kafka/eu/read") == 1, "a plan without the state would log in to us"
    assert {name: row[0] for name, row in table(pipelines).items()} == {"ap": "0", "eu": "1", "us": "1"}


@pytest.mark.deep
def test_a_merge_request_plans_on_the_snapshots_of_the_sources(
    pipelines: Pipelines, gitlab: FakeGitLab, live: Path
) -> None:
    more = {"CI_MERGE_REQUEST_IID": "7", "RECONCILER_GITLAB_TOKEN": NOTE_TOKEN}
    pipelines.variables = {**pipelines.variables, **more}
    gitlab.snapshots = {name: (live / f"{name}.json").read_bytes() for name in ("ap", "eu")}
    jobs: Any = of_repository(pipelines.workspace)
    del jobs["reconciler: summary"]
    assert pipelines.run(jobs)
    assert "us has no snapshot yet, so the plan of eu is made after the merge." in pipelines.ended["plan eu"].log
    gitlab.snapshots["us"] = (live / "us.json").read_bytes()
    assert pipelines.run(jobs)
    (note,) = [each["body"] for each in gitlab.notes[7] if each["body"].startswith("<!-- reconciler plan eu -->")]
    assert "us.orders" in note
    assert results_of(pipelines) == dict.fromkeys(("plan ap", "plan eu", "plan us"), "success")
    assert all(line.endswith(",") for line in (live / "calls").read_text().splitlines())


@pytest.mark.long
def test_mirrors_are_found_in_the_files_of_a_cluster(pipelines: Pipelines, live: Path) -> None:
    del live
    (ROOT / "ap" / "more").mkdir()
    (ROOT / "ap" / "more" / "mirrors.yml").write_text(
        "# kind: Mirror\nkind: Topic\nspec: {source: us}\n---  # a second\n"
        "kind: 'Mirror'\nspec:\n  # source: ap\n  source: \"eu\"\n"
        "---\nkind: Mirror\nspec: {source: ap}\n---\nkind: Mirror\nspec: {source: unknown}\n"
    )
    command: list[str | Path] = [sys.executable, "-I", HOME / "clusters.py", ROOT, "clusters.yml"]
    captured(command, env={**pipelines.variables, "CI_PIPELINE_ID": "41"}, check=True)
    jobs = jobs_of(Path("clusters.yml").read_text(), pipelines.workspace)
    needs = {name: job["needs"] for name, job in jobs.items() if name.startswith("plan ")}
    assert needs == {"plan ap": ["state eu"], "plan eu": ["state us"], "plan us": []}
    assert {name for name, job in jobs.items() if job["stage"] == ".pre"} == {"state eu", "state us"}
    edit(ROOT / "us" / "cluster.yaml", "spec: {", "spec:\n  simulation: state.json\n  limits: {")
    captured(command, env={**pipelines.variables, "CI_PIPELINE_ID": "41"}, check=True)
    assert "state us" not in Path("clusters.yml").read_text()


# Which goes first.


def simulated(name: str, orders: str, partitions: int, *documents: str) -> None:
    """Write a cluster in the form that the jobs keep, with one topic."""
    (write(name, [], *documents) / "state.json").unlink()
    edit(ROOT / name / "cluster.yaml", "{simulation: state.json}", "\n  simulation: snapshot.json")
    (ROOT / name / "snapshot.json").write_text(json.dumps(snapshot(name, [topic(orders, partitions)])))


@pytest.mark.deep
def test_a_topic_grows_in_its_copies_first(pipelines: Pipelines, gitlab: FakeGitLab) -> None:
    shutil.rmtree(ROOT)
    mirror = document("Mirror", "from-ap", '{source: ap, topics: ["orders*"]}')
    simulated("ap", "orders", 3, document("Topic", "orders", "{partitions: 6}"))
    simulated("eu", "ap.orders", 3, STANDARD, mirror)
    pipelines.run(of_repository(pipelines.workspace))  # each apply job is started at once, ap's first
    assert "state ap" not in pipelines.ended
    sentence = (
        "ap's plan grows topics that eu copies, and eu is not applied yet: start its apply job, then retry this one"
    )
    assert pipelines.ended["apply ap"].result == "failed"
    assert table(pipelines) == {"ap": ["3", f"refused: {sentence}"], "eu": ["0", "applied"]}
    (run,) = {name.partition("/")[0] for name in gitlab.packages}
    assert gitlab.packages[f"{run}/result-apply-ap"].decode() == f"3\nerror: {sentence}\n"
    retried = (pipelines.artifacts["plan ap"] / "reconciler-job" / "apply.yml").read_text()
    assert pipelines.run(jobs_of(retried, pipelines.workspace)), pipelines.ended["apply ap"].log

    edit(ROOT / "ap" / "topics.yaml", "{partitions: 6}", "{partitions: 6, config: {retention.ms: 900000000}}")
    edit(ROOT / "eu" / "topics.yaml", 'topics: ["orders*"]', 'topics: ["orders*"], config: [retention.ms]')
    assert pipelines.run(of_repository(pipelines.workspace)), table(pipelines)  # no topic grows, so ap's does not wait
    assert table(pipelines) == {"ap": ["0", "applied"], "eu": ["0", "applied"]}


@pytest.mark.long
@pytest.mark.parametrize(
    ("results", "code"),
    [
        ({}, 3),
        ({"plan-eu": "2\n"}, 3),
        ({"plan-eu": "1\nerror: no (KR232)\n"}, 3),
        ({"plan-eu": "2\n", "apply-eu": "5\n"}, 3),
        ({"plan-eu": "2\n", "apply-eu": "0\n"}, 0),
        ({"plan-eu": "0\n"}, 0),
        ({"plan-eu": "2\ndiffers, but no plan can mend it\n"}, 0),
    ],
)
def test_a_plan_waits_until_its_copies_are_applied_or_have_nothing_to_do(
    pipelines: Pipelines, gitlab: FakeGitLab, results: dict[str, str], code: int
) -> None:
    gitlab.packages = {f"results-41/result-{name}": text.encode() for name, text in results.items()}
    gitlab.packages["results-41/result-apply-us"] = b"0\n"
    command: list[str | Path] = [sys.executable, "-I", HOME / "gitlab.py", "order", "41", "ap"]
    done = captured([*command, "us", "eu"], env=pipelines.variables)
    assert (done.returncode, done.stdout, done.stderr.count("error: ap's plan grows topics that eu copies")) == (
        code,
        "",
        int(bool(code)),
    )
    assert captured(command, env=pipelines.variables).returncode == 0
