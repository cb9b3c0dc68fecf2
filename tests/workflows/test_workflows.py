"""The workflows are linted and pinned, and their rights are the least."""

import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.figures import Tell
from helpers.program.call import captured

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = sorted((ROOT / ".github" / "actions").glob("*/action.yml"))
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"
MAY_WRITE = {
    ("plan.yml", "comment"): {"issues", "pull-requests"},
    ("release.yml", "attest"): {"attestations", "id-token"},
    ("release.yml", "image"): {"attestations", "id-token", "packages"},
    ("release.yml", "pypi"): {"id-token"},
    ("release.yml", "github"): {"contents"},
}
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40}")


def jobs() -> Iterator[tuple[str, str, Mapping[str, object], Mapping[str, object]]]:
    """Yield the name of each workflow's file, that of each of its jobs, the workflow and the job."""
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text())
        yield from ((path.name, job_name, workflow, job) for job_name, job in workflow["jobs"].items())


def test_zizmor_finds_nothing(figures: Tell) -> None:
    zizmor = Path(sys.executable).with_name("zizmor")
    done = captured([zizmor, "--offline", "--no-progress", "--persona", "auditor", ".github"], ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    figures("workflows", f"{len(WORKFLOWS)} workflows and {len(ACTIONS)} actions, zizmor (auditor): 0 findings")


@pytest.mark.deep
def test_actionlint_finds_nothing(figures: Tell) -> None:
    actionlint, go = shutil.which("actionlint"), shutil.which("go")
    if actionlint is None and go is None:
        pytest.skip("actionlint is a Go program: neither it nor Go is here; ci.yml runs it in a step of its own")
    command = [actionlint] if actionlint else [str(go), "run", ACTIONLINT]
    done = captured([*command, *WORKFLOWS], ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    figures("workflows, too", "actionlint: 0 findings")


def test_every_action_of_others_is_pinned_to_a_commit() -> None:
    used = [
        one
        for path in [*WORKFLOWS, *ACTIONS]
        for one in re.findall(r"uses: (\S+)", path.read_text())
        if not one.startswith("./")
    ]
    assert used
    assert [one for one in used if not PINNED.fullmatch(one)] == []


def test_rights_are_given_to_jobs_and_are_the_least() -> None:
    for name, job_name, workflow, job in jobs():
        assert workflow["permissions"] == {}, name
        assert isinstance(job["permissions"], Mapping), name
        written = {right for right, level in job["permissions"].items() if level == "write"}
        assert written == MAY_WRITE.get((name, job_name), set()), (name, job_name)


def test_what_a_pull_request_starts_has_no_secret() -> None:
    for path in WORKFLOWS:
        text = path.read_text()
        events = yaml.safe_load(text)[True]
        assert "pull_request_target" not in text
        assert "workflow_run" not in text
        if "pull_request" in events:
            assert "secrets." not in text
            assert "environment:" not in text


def cluster_jobs() -> Mapping[str, Any]:
    """Return the jobs of the workflow that apply.yml calls for each cluster."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "apply-cluster.yml").read_text())
    assert set(workflow[True]) == {"workflow_call"}
    jobs: Mapping[str, Any] = workflow["jobs"]
    return jobs


def test_each_cluster_is_called_by_its_name_with_no_more_secrets_than_are_declared() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "apply.yml").read_text())
    called = yaml.safe_load((ROOT / ".github" / "workflows" / "apply-cluster.yml").read_text())[True]["workflow_call"]
    job = workflow["jobs"]["cluster"]
    assert (job["uses"], job["name"]) == ("./.github/workflows/apply-cluster.yml", "${{ matrix.cluster }}")
    assert job["with"] == {"cluster": "${{ matrix.cluster }}"}
    assert set(job["with"]) == set(called["inputs"])
    assert job["secrets"] == {name: f"${{{{ secrets.{name} }}}}" for name in called["secrets"]}


@pytest.mark.parametrize("name", ["plan.yml", "apply.yml", "snapshot.yml"])
def test_no_workflow_names_a_cluster_and_one_that_fails_stops_no_other(name: str) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())
    clusters = workflow["jobs"]["clusters"]
    jobs = {name: job for name, job in workflow["jobs"].items() if "strategy" in job}
    state = jobs.pop("state", None)
    lists = ["names", "sources"] if state else ["names"]
    assert clusters["outputs"] == {one: f"${{{{ steps.clusters.outputs.{one} }}}}" for one in lists}
    (job,) = jobs.values()
    for each, names in ((job, "names"), (state, "sources")):
        if each is not None:
            matrix = {"cluster": f"${{{{ fromJSON(needs.clusters.outputs.{names}) }}}}"}
            assert each["strategy"] == {"fail-fast": False, "matrix": matrix}
            assert f"needs.clusters.outputs.{names} != '[]'" in each["if"]
    assert job["needs"] == (["clusters", "state"] if state else "clusters")
    assert not re.search(r"\bdemo\b", (ROOT / ".github" / "workflows" / name).read_text())


def test_each_cluster_has_credentials_of_its_own() -> None:
    for name, job_name, _, job in jobs():
        if name in {"snapshot.yml", "apply-cluster.yml"} and "secrets." in str(job.get("steps")):
            assert re.fullmatch(r"kafka-(read|apply|continue)-\$\{\{ \w+\.cluster \}\}", str(job["environment"])), (
                job_name
            )


def test_what_applies_waits_for_an_approval_and_applies_the_plan_of_its_own_run() -> None:
    jobs = cluster_jobs()
    job = jobs["apply"]
    assert (job["environment"], job["needs"]) == ("kafka-apply-${{ inputs.cluster }}", "plan")
    assert job["if"] == "needs.plan.outputs.empty != 'true'"
    assert job["permissions"] == {"contents": "read"}
    fetched, results = [step["with"] for step in job["steps"] if "download-artifact@" in step.get("uses", "")]
    assert results == {"pattern": "result-*", "path": "${{ runner.temp }}/results"}
    assert fetched == {"name": "plan-${{ inputs.cluster }}", "path": "${{ runner.temp }}/plan"}
    assert not [step for step in job["steps"] if "run" in step]
    # What the branch asks for by then withdraws a plan that destroys.
    (checkout,) = [step["with"] for step in job["steps"] if "actions/checkout@" in step.get("uses", "")]
    assert checkout["ref"] == "${{ github.ref }}"
    (asked,) = [step for step in jobs["plan"]["steps"] if "python.sh reviewers" in step.get("run", "")]
    assert asked["run"].endswith('reviewers "$CLUSTER"')
    assert asked["env"]["DEFAULT_BRANCH"] == "${{ github.event.repository.default_branch }}"


@pytest.mark.parametrize(("name", "before", "word"), [("apply", "plan", "apply"), ("continue", "find", "night")])
def test_what_applies_takes_the_digest_from_the_job_before_it_and_is_named_by_it(
    name: str, before: str, word: str
) -> None:
    jobs = cluster_jobs()
    digest = f"${{{{ needs.{before}.outputs.digest }}}}"
    assert "digest" in jobs[before]["outputs"]
    assert (jobs[name]["name"], jobs[name]["needs"]) == (f"{word} {digest}", before)
    (step,) = [step for step in jobs[name]["steps"] if step.get("uses") == "./.github/actions/apply"]
    assert step["with"]["digest"] == digest


def test_nights_need_no_approval_and_throw_out_nothing_that_waits_for_one() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "apply.yml").read_text())
    assert "schedule" in workflow[True]
    jobs = cluster_jobs()
    assert jobs["find"]["if"] == "github.event_name == 'schedule'"
    after_merge, night = (jobs[name] for name in ("apply", "continue"))
    assert (night["environment"], night["if"]) == (
        "kafka-continue-${{ inputs.cluster }}",
        "needs.find.outputs.found == 'true'",
    )
    groups = [job["concurrency"].pop("group") for job in (after_merge, night)]
    assert groups == ["apply-${{ inputs.cluster }}", "continue-${{ inputs.cluster }}"]
    for job in (after_merge, night):
        assert job["concurrency"] == {"cancel-in-progress": False}
        (step,) = [step for step in job["steps"] if step.get("uses") == "./.github/actions/apply"]
        assert int(step["with"]["max-duration"].removesuffix("h")) * 60 < job["timeout-minutes"]
        (left,) = [step for step in job["steps"] if step.get("if") == "steps.apply.outputs.state == 'unfinished'"]
        assert left["with"]["name"] == "unfinished-plan-${{ inputs.cluster }}"
