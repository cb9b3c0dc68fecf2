"""The workflows are linted and pinned, and their rights are the least."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from helpers.figures import Tell

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = sorted((ROOT / ".github" / "actions").glob("*/action.yml"))
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40}")


def jobs() -> Iterator[tuple[str, Mapping[str, object], Mapping[str, object]]]:
    """Yield the name of each workflow's file, the workflow and each of its jobs."""
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text())
        yield from ((path.name, workflow, job) for job in workflow["jobs"].values())


def test_zizmor_finds_nothing(figures: Tell) -> None:
    zizmor = Path(sys.executable).with_name("zizmor")
    done = subprocess.run(
        [zizmor, "--offline", "--no-progress", ".github"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures("workflows", f"{len(WORKFLOWS)} workflows and {len(ACTIONS)} actions, zizmor: 0 findings")


@pytest.mark.deep
def test_actionlint_finds_nothing(figures: Tell) -> None:
    actionlint, go = shutil.which("actionlint"), shutil.which("go")
    if actionlint is None and go is None:
        pytest.skip("actionlint is a Go program: neither it nor Go is here; ci.yml runs it in a step of its own")
    command = [actionlint] if actionlint else [str(go), "run", ACTIONLINT]
    done = subprocess.run([*command, *map(str, WORKFLOWS)], cwd=ROOT, capture_output=True, text=True, check=False)
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
    for name, workflow, job in jobs():
        assert workflow["permissions"] == {}, name
        assert isinstance(job["permissions"], Mapping), name
        written = {right for right, level in job["permissions"].items() if level == "write"}
        is_comment = name == "plan.yml" and "needs" in job
        assert written == ({"issues", "pull-requests"} if is_comment else set()), name


def test_what_a_pull_request_starts_has_no_secret() -> None:
    for path in WORKFLOWS:
        text = path.read_text()
        events = yaml.safe_load(text)[True]
        assert "pull_request_target" not in text
        assert "workflow_run" not in text
        if "pull_request" in events:
            assert "secrets." not in text
            assert "environment:" not in text


def test_what_applies_waits_for_an_approval_and_applies_the_plan_of_its_own_run() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "apply.yml").read_text())
    job = workflow["jobs"]["apply"]
    assert (job["environment"], job["needs"], job.get("if")) == ("kafka-apply", "plan", None)
    assert job["permissions"] == {"contents": "read"}
    (fetched,) = [step["with"] for step in job["steps"] if "download-artifact@" in step.get("uses", "")]
    assert fetched == {"name": "plan-${{ matrix.cluster }}", "path": "${{ runner.temp }}/plan"}
    assert not [step for step in job["steps"] if "run" in step]


def test_nights_need_no_approval_and_throw_out_nothing_that_waits_for_one() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "apply.yml").read_text())
    assert "schedule" in workflow[True]
    after_merge, night = (workflow["jobs"][name] for name in ("apply", "continue"))
    assert (night["environment"], night["if"]) == ("kafka-continue", "github.event_name == 'schedule'")
    groups = [job["concurrency"].pop("group") for job in (after_merge, night)]
    assert groups == ["apply-${{ matrix.cluster }}", "continue-${{ matrix.cluster }}"]
    for job in (after_merge, night):
        assert job["concurrency"] == {"cancel-in-progress": False}
        (step,) = [step for step in job["steps"] if step.get("uses") == "./.github/actions/apply"]
        assert int(step["with"]["max-duration"].removesuffix("h")) * 60 < job["timeout-minutes"]
        (left,) = [step for step in job["steps"] if step.get("if") == "steps.apply.outputs.state == 'unfinished'"]
        assert left["with"]["name"] == "unfinished-plan-${{ matrix.cluster }}"
