"""What apply.yml applies: after a merge the plan of that very run, at night what was left unfinished, or nothing."""

import io
import json
import shutil
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from helpers.plans.resealed import resealed
from helpers.program.call import captured
from helpers.program.documents import edit
from workflows.fake_artifacts import TOKEN, Artifacts, artifact, ended_job, workflow_run, zipped
from workflows.steps import Job, WorkflowSteps

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / ".github" / "actions" / "plan" / "unfinished_plan.py"
DEMO = {"cluster": "demo"}
NOTHING = "::notice::demo: nothing to go on with"


def of_event(name: str) -> Mapping[str, object]:
    """Return what GitHub says of an event: a schedule's names no repository."""
    return {} if name == "schedule" else {"repository": {"default_branch": "main"}}


@dataclass(slots=True)
class Workflow:
    """apply.yml, run after run; what a run left is found by the next one."""

    steps: WorkflowSteps
    github: Artifacts
    number: int = 0
    planned: Job = field(default_factory=Job)

    def run(self, job: str, needs: Mapping[str, Job] | None = None) -> Job:
        """Run a job of the demo, as apply.yml calls it; GitHub lists it under its name from then on."""
        ended = self.steps.run("apply-cluster.yml", job, {}, needs, inputs=DEMO)
        run = 70 + self.number
        listed = (*self.github.jobs.get(run, ()), ended_job(f"demo / {ended.name}", ended.result))
        self.github.jobs = {**self.github.jobs, run: listed}
        return ended

    @property
    def plan(self) -> Path:
        """The plan that this run is to apply."""
        return self.steps.artifacts / "plan-demo" / "plan.json"

    def begins(self, event: str) -> None:
        """Keep what the run before left, and begin one for that event, which names no repository, as a schedule's."""
        folders = sorted(self.steps.artifacts.iterdir()) if self.steps.artifacts.exists() else []
        for folder in folders:
            one = artifact(len(self.github.listed) + 1, folder.name, run=70 + self.number)
            files = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
            self.github.archives = {**self.github.archives, len(self.github.listed) + 1: zipped(files)}
            self.github.listed += (one,)
            shutil.rmtree(folder)
        self.number += 1
        self.github.runs = (workflow_run(self.number, event), *self.github.runs)
        self.steps.environment = {**self.steps.environment, "GITHUB_RUN_ID": str(70 + self.number)}
        self.steps.event = {
            "github": {"token": TOKEN, "event_name": event, "ref_name": "main", "event": of_event(event)}
        }

    def merged(self) -> Job:
        """Return the first half of a run for a merge."""
        self.begins("push")
        self.planned = self.run("plan")
        return self.planned

    def approved(self, planned: Job | None = None) -> Job:
        """Return its second half."""
        return self.run("apply", {"plan": planned or self.planned})

    def night(self) -> Job:
        """Return a scheduled run."""
        self.begins("schedule")
        planned = self.run("plan")
        assert (planned.result, self.approved(planned).result) == ("skipped", "skipped")
        found = self.run("find")
        ended = self.run("continue", {"find": found})
        if ended.result == "skipped":
            return found
        ended.log = found.log + ended.log
        return ended

    def boxed(self, time: str, before: str) -> None:
        """Give each run that much time."""
        edit(
            self.steps.workspace / ".github/workflows/apply-cluster.yml",
            f"max-duration: {before}",
            f"max-duration: {time}",
        )

    def reconciler(self, *arguments: str) -> None:
        """Run a verb as an operator does on a machine of their own, with its own journals."""
        done = captured([sys.executable, "-m", "reconciler", *arguments], self.steps.workspace)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def workflow(steps: WorkflowSteps, github: Artifacts) -> Workflow:
    """Return the workflow over a demo that takes several stages."""
    made = Workflow(steps, github)
    edit(made.steps.workspace / "desired-state/demo/cluster.yaml", "perBroker: 10 ", "perBroker: 1 ")
    return made


def id_of(plan: Path) -> str:
    return str(json.loads(plan.read_text())["id"])


def applied(workflow: Workflow) -> set[str]:
    """Return the plans that a run has a journal of."""
    return {path.name.split(".")[2] for path in (workflow.steps.artifacts / "journal-demo").glob("*.plan.json")}


@pytest.mark.deep
def test_what_was_approved_is_applied_though_a_newer_plan_was_made(workflow: Workflow) -> None:
    first = workflow.merged()
    assert first.result == "success"
    approved = workflow.steps.folder / "approved"
    shutil.copytree(workflow.steps.artifacts, approved)
    edit(workflow.steps.workspace / "desired-state/demo/cluster.yaml", "throttle: 50MiB", "throttle: 60MiB")
    assert workflow.merged().result == "success"
    newer = id_of(workflow.plan)
    workflow.begins("push")  # GitHub lists the newer one now; the approval is the first run's
    shutil.copytree(approved, workflow.steps.artifacts, dirs_exist_ok=True)
    read = id_of(workflow.plan)
    job = workflow.approved(first)
    assert job.result == "success", job.log
    assert read != newer
    assert applied(workflow) == {read}
    assert [path for path in workflow.github.asked if "/environments/" not in path] == []


def swapped(workflow: Workflow, folder: str) -> None:
    """Put an edited plan into an artifact, its digest and id made to fit, as whoever can write artifacts could."""
    path = workflow.steps.artifacts / folder / "plan.json"
    path.write_text(json.dumps(resealed(json.loads(path.read_text()) | {"warnings": []})))


@pytest.mark.parametrize("result", ["failure", "skipped", "cancelled"])
def test_a_run_without_a_plan_applies_nothing(workflow: Workflow, result: str) -> None:
    assert workflow.approved(Job(result)).result == "skipped"
    assert workflow.approved(Job()).result == "failure"
    assert applied(workflow) == set()


def test_an_unfinished_plan_is_gone_on_with_at_night_and_one_that_was_swapped_is_not_applied(
    workflow: Workflow,
) -> None:
    workflow.boxed("1s", before="5h")
    planned = workflow.merged()
    assert planned.outputs["digest"] in planned.summary
    plan, made = id_of(workflow.plan), workflow.plan.read_bytes()
    swapped(workflow, "plan-demo")
    job = workflow.approved()
    assert job.name == f"apply {planned.outputs['digest']}"
    assert (job.result, "(KR425)" in job.log) == ("failure", True), job.log
    without = workflow.approved(Job(outputs={"digest": ""}))
    assert (without.result, "write all of it" in without.log) == ("failure", True), without.log
    assert applied(workflow) == set()
    workflow.plan.write_bytes(made)
    workflow.github.jobs = {}
    first = workflow.approved()
    assert (first.result, "Plan applied: unfinished." in first.summary) == ("success", True), first.log
    night = workflow.night()
    assert (night.result, "Plan applied: unfinished." in night.summary) == ("success", True), night.log
    assert applied(workflow) == {plan}
    swapped(workflow, "unfinished-plan-demo")
    night = workflow.night()
    assert (night.result, "::error::the unfinished plan of demo was not fetched" in night.log) == ("failure", True)
    assert f"and {planned.outputs['digest']} was approved" in night.log
    assert applied(workflow) == set()


def test_a_plan_that_destroys_is_withdrawn_by_a_merge_before_its_approval(workflow: Workflow) -> None:
    shop = workflow.steps.workspace / "desired-state/demo/shop.yaml"
    edit(shop, "retention.ms: 7d}", "retention.ms: 1h}")
    planned = workflow.merged()
    assert planned.result == "success", planned.log
    edit(shop, "retention.ms: 1h}", "retention.ms: 7d}")
    reverted = workflow.approved()
    assert (reverted.result, "(KR463)" in reverted.log) == ("failure", True), reverted.log
    assert applied(workflow) == set()
    assert (workflow.steps.artifacts / "result-apply-demo" / "result").read_text().startswith("3\nerror: the plan dest")
    edit(shop, "retention.ms: 7d}", "retention.ms: 1h}")
    asked = workflow.approved()
    assert (asked.result, "Plan applied: done." in asked.summary) == ("success", True), asked.log


@pytest.mark.deep
def test_a_newer_merge_ends_it_even_where_its_own_plan_is_refused(workflow: Workflow) -> None:
    workflow.boxed("1s", before="5h")
    workflow.merged()
    workflow.approved()
    edit(workflow.steps.workspace / "desired-state/demo/cluster.yaml", "movedBytes: 250GiB", "movedBytes: 1GiB")
    refused = workflow.merged()
    assert (refused.result, "::error::The plan is refused" in refused.log) == ("failure", True)
    assert workflow.approved().result == "skipped"
    night = workflow.night()
    assert (night.result, f"{NOTHING}; run 2 (push), the newest" in night.log) == ("success", True)
    assert applied(workflow) == set()


@pytest.mark.deep
def test_what_was_rolled_back_is_not_done_again(workflow: Workflow) -> None:
    workflow.boxed("1s", before="5h")
    workflow.merged()
    plan = workflow.steps.folder / "plan.json"
    shutil.copy(workflow.plan, plan)
    workflow.approved()
    workflow.reconciler("cancel", "--rollback", str(plan), "--yes")
    night = workflow.night()
    assert (night.result, "::error::Somebody has taken back" in night.log) == ("failure", True), night.log
    assert "stage 1: configs of topic orders.events" in night.log
    assert applied(workflow) == set()
    assert NOTHING in workflow.night().log


@pytest.mark.deep
def test_a_plan_that_was_approved_outside_the_windows_is_begun_at_night(workflow: Workflow) -> None:
    window = "  windows: [{days: [mon], from: '00:00', to: '00:01', timezone: UTC}]\n"
    edit(workflow.steps.workspace / "desired-state/demo/cluster.yaml", "  simulation:", f"{window}  simulation:")
    workflow.merged()
    late = workflow.approved()
    assert (late.result, "(KR423)" in late.log) == ("success", True), late.log
    assert "Plan applied: unfinished." in late.summary
    edit(workflow.steps.workspace / "desired-state/demo/cluster.yaml", window, "")
    night = workflow.night()
    assert (night.result, "Plan applied: done." in night.summary) == ("success", True), night.log


@pytest.mark.parametrize(
    ("runs", "found"),
    [
        ([], None),
        (["push"], None),
        (["push plan"], None),
        (["push plan left"], 1),
        (["push plan left", "schedule"], 1),  # that night had nothing to do: the run before was still on
        (["push plan left", "schedule plan"], None),  # that night finished it, failed, or was cancelled
        (["push plan left", "schedule plan left"], 2),
        (["push plan left", "schedule plan left", "schedule"], 2),
        (["push plan left", "push"], None),  # the newer one is refused, or failed
        (["push plan left", "workflow_dispatch plan"], None),  # the newer one waits, was rejected, or is done
        (["push plan left", "push plan left"], 2),
        (["push plan left", "schedule plan left", "push"], None),  # a merge during the night
    ],
)
def test_only_the_newest_plan_is_gone_on_with(
    github: Artifacts, tmp_path: Path, runs: Sequence[str], found: int | None
) -> None:
    kept = {number: run.split() for number, run in enumerate(runs, 1)}
    listed = [workflow_run(number, words[0]) for number, words in kept.items()]
    github.runs = (*listed, workflow_run(8, "schedule"), workflow_run(9, "push", branch="topic"))
    left = [number for number, words in kept.items() if "left" in words]
    github.listed = (
        *(artifact(number, "plan-demo") for number, words in kept.items() if "plan" in words),
        *(artifact(10 + number, "unfinished-plan-demo", run=70 + number) for number in left),
        artifact(20, "unfinished-plan-demo", run=78),  # its own, of an attempt before
        artifact(21, "unfinished-plan-other", run=71),
    )
    merges = {number: max(n for n in kept if n <= number and kept[n][0] != "schedule") for number in left}
    github.archives = {10 + number: archive_of(merges[number], number) for number in left}
    words = {number: "night" if kept[number][0] == "schedule" else "apply" for number in left}
    github.jobs = {70 + n: (ended_job(f"demo / {words[n]} {digest_of(merges[n])}"),) for n in left}
    assert outcome(github, tmp_path) == (found, 0)


def test_a_fork_and_another_branch_leave_nothing(github: Artifacts, tmp_path: Path) -> None:
    github.runs = (workflow_run(1, "push"), workflow_run(2, "push", repository=2))
    github.listed = (
        artifact(1, "unfinished-plan-demo", repository=2),
        artifact(2, "unfinished-plan-demo", run=71, branch="topic"),
        artifact(3, "unfinished-plan-demo", run=71, expired=True),
        artifact(4, "unfinished-plan-demo", run=72),
    )
    assert outcome(github, tmp_path) == (None, 0)


def test_an_unfinished_plan_that_cannot_be_fetched_is_an_error(github: Artifacts, tmp_path: Path) -> None:
    github.runs, github.listed = (workflow_run(1, "push"),), (artifact(1, "unfinished-plan-demo"),)
    github.archive = b"<html>"
    assert outcome(github, tmp_path) == (None, 1)


def test_no_archive_writes_beside_its_folder_or_fills_the_disk(github: Artifacts, tmp_path: Path) -> None:
    one_that_is_left(github, ended_job(f"demo / apply {digest_of(1)}"))
    ups = (f"{'../' * depth}canary" for depth in (1, 3, 9))
    out = (*ups, "/canary", f"{tmp_path}/canary", "..\\canary", "a/../../canary")
    plan = json.dumps(resealed({"number": 1})).encode()
    more = {"plan.json": plan, "next-stage.txt": b"1", "reconciler": b"x", "bin/python3": b"x"}
    github.archive = zipped({**dict.fromkeys(out, b"x"), **more})
    assert outcome(github, tmp_path) == (1, 0)
    assert {path.name for path in tmp_path.iterdir()} == {"plan", "output"}
    assert {path.name for path in (tmp_path / "plan").iterdir()} == {"plan.json", "next-stage.txt"}
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w") as archive:
        archive.writestr("plan.json", b"1")
        archive.getinfo("plan.json").file_size = 2 << 30
    github.archive = bomb.getvalue()
    (tmp_path / "new").mkdir()
    assert outcome(github, tmp_path / "new") == (None, 1)


def outcome(github: Artifacts, folder: Path) -> tuple[int | None, int]:
    """Return which run's plan the program put there, None for none, and its exit code."""
    variables: Mapping[str, str] = {
        "GITHUB_API_URL": github.address,
        "GITHUB_REPOSITORY": "acme/kafka",
        "GITHUB_RUN_ID": "78",
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_OUTPUT": str(folder / "output"),
        "DEFAULT_BRANCH": "main",
    }
    ended = captured([sys.executable, PROGRAM, "apply.yml", "demo", "desired-state", folder / "plan"], env=variables)
    assert TOKEN not in ended.stdout + ended.stderr
    plan = folder / "plan" / "plan.json"
    if ended.returncode:
        assert ended.stdout.startswith("::error::")
        assert not (folder / "output").exists()
        assert not plan.exists()
        return (None, ended.returncode)
    digest = json.loads(plan.read_text())["digest"] if plan.exists() else ""
    assert (folder / "output").read_text() == f"found={str(bool(digest)).lower()}\ndigest={digest}\n"
    return (int((folder / "plan" / "next-stage.txt").read_text()) if digest else None, 0)


def digest_of(number: int) -> str:
    return str(resealed({"number": number})["digest"])


def archive_of(number: int, run: int = 1) -> bytes:
    """Return what that run leaves of the plan with that number; it stopped before the stage of its own number."""
    plan = json.dumps(resealed({"number": number})).encode()
    return zipped({"plan.json": plan, "next-stage.txt": str(run).encode()})


def one_that_is_left(github: Artifacts, *jobs: dict[str, object]) -> None:
    """Have run 1 leave an unfinished plan, these being its jobs."""
    github.runs, github.jobs = (workflow_run(1, "push"),), {71: jobs}
    github.listed = (artifact(1, "unfinished-plan-demo"),)
    github.archive = archive_of(1)


@pytest.mark.parametrize("name", ["demo / apply {}", "cluster (demo) / apply {}"])
def test_which_plan_was_approved_stands_in_the_name_of_the_job_that_applied_it(
    github: Artifacts, tmp_path: Path, name: str
) -> None:
    others = [ended_job(f"c{number} / apply {digest_of(9)}") for number in range(250)]
    one_that_is_left(github, *others, ended_job("demo / plan"), ended_job(name.format(digest_of(1))))
    assert outcome(github, tmp_path) == (1, 0)


@pytest.mark.parametrize(
    "jobs",
    [
        [],
        [ended_job("demo / plan")],
        [ended_job(f"demo / apply {digest_of(1)}", "failure")],  # nobody approved it, or it failed
        [ended_job(f"demo / apply {digest_of(1)}"[:76] + "...")],  # GitHub cuts names
        [ended_job(f"other / apply {digest_of(1)}")],
        [ended_job(f"other-demo / apply {digest_of(1)}")],
        [ended_job(f"demo / plan {digest_of(1)}")],
        [ended_job(f"demo / night {digest_of(1)}")],
        [ended_job(f"demo / apply {digest_of(1)}"), ended_job(f"demo / apply {digest_of(2)}")],
    ],
)
def test_a_plan_that_nobody_can_tell_was_approved_is_an_error(
    github: Artifacts, tmp_path: Path, jobs: list[dict[str, object]]
) -> None:
    one_that_is_left(github, *jobs)
    assert outcome(github, tmp_path) == (None, 1)
