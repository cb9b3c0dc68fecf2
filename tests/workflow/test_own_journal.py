"""A journal or a kept plan that others could write, by a commit or a link, is neither believed nor written."""

import os
import subprocess
from pathlib import Path

import pytest
from helpers.plans.end_state import throttles
from helpers.plans.small_runs import RATE, admin_of, cluster, move, plan_of

from reconciler.apply.run import run_plan
from reconciler.files.journal import RunJournal
from reconciler.files.plan_file import with_id
from reconciler.model.plan import Plan
from reconciler.model.run import Outcome, RunEvent
from reconciler.model.stage import ReassignStage
from reconciler.workflow import runs
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.runs import keep_plan, known_here, latest_plan, restore_leftovers, run_journal
from reconciler.workflow.sources import tracked_names

INPUTS = Inputs(cluster="small")
PLACE = Path("runs/small")


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runs, "_WARNED", set())
    git("init", "-q")
    return tmp_path


def git(*arguments: str) -> None:
    who = ("-c", "user.name=eve", "-c", "user.email=eve@example.org")
    subprocess.run(["git", *who, *arguments], check=True, capture_output=True)


def planned(name: str, after: str) -> Plan:
    return with_id(plan_of([ReassignStage(1, (move(name, "1,2,3", after),), RATE)], cluster()))


FORGED, FOLLOWING = planned("clicks-0", "1,2,5"), planned("orders-0", "1,2,4")


def forge(plan: Plan) -> None:
    """Write a journal as an attacker commits it: a run that set throttles, with other values from before."""
    keep_plan(INPUTS, plan)
    tracked_names.cache_clear()
    journal = RunJournal(PLACE / f"{plan.id}.jsonl", plan.id)
    now = admin_of(cluster()).clock.now()
    rates = [[broker, "leader.replication.throttled.rate", "1"] for broker in (1, 2, 3)]
    journal.append(RunEvent(now, 0, "run", Outcome.STARTED))
    journal.append(RunEvent(now, 1, "throttle", Outcome.STARTED, {"rates": rates, "lists": []}))
    (PLACE.parent / ".gitignore").unlink(missing_ok=True)


def committed() -> None:
    forge(FORGED)
    git("add", "-A")
    git("commit", "-qm", "runs")


def committed_though_ignored() -> None:
    forge(FORGED)
    Path(".gitignore").write_text("runs/\n")
    git("add", "-fA", ".")
    git("commit", "-qm", "runs")


def in_a_repository_of_its_own() -> None:
    forge(FORGED)
    git("init", "-q", "runs")
    git("-C", "runs", "add", "-fA")
    git("-C", "runs", "commit", "-qm", "runs")


def behind_a_link_of_the_folder() -> None:
    forge(FORGED)
    Path("runs").rename("elsewhere")
    Path("runs").symlink_to("elsewhere")


def behind_a_link_of_the_file() -> None:
    forge(FORGED)
    for file in list(PLACE.iterdir()):
        there = Path(f"{file.name}.there").absolute()
        file.rename(there)
        file.symlink_to(there)


def of_another_user() -> None:
    forge(FORGED)
    for file in PLACE.iterdir():
        os.chown(file, 4711, 4711)


def in_a_folder_that_git_takes_for_a_repository() -> None:
    forge(FORGED)
    for name in ("objects", "refs"):
        (PLACE / name).mkdir()
    (PLACE / "HEAD").write_text("ref: refs/heads/main\n")


WAYS = [
    committed, committed_though_ignored, in_a_repository_of_its_own, behind_a_link_of_the_folder,
    behind_a_link_of_the_file, in_a_folder_that_git_takes_for_a_repository,
    pytest.param(of_another_user, marks=pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_what_others_could_write_is_neither_believed_nor_written(
    way: object, checkout: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(way)
    way()
    before = {file: file.read_bytes() for file in checkout.rglob("*.json*") if file.is_file()}
    admin = admin_of(cluster())
    assert restore_leftovers(INPUTS, admin, FOLLOWING) == ()
    assert latest_plan(INPUTS, "small") is None
    assert known_here(INPUTS, "small") == ()
    assert run_journal(INPUTS, FORGED).events == ()
    run_plan(FORGED, admin, run_journal(INPUTS, FORGED))
    keep_plan(INPUTS, FORGED)
    assert throttles(admin.cluster) == throttles(cluster())
    assert {file: file.read_bytes() for file in checkout.rglob("*.json*") if file.is_file()} == before
    assert "neither read from it nor written to it" in caplog.text


def test_this_users_own_journal_is_believed_and_git_ignores_it() -> None:
    forge(FORGED)
    keep_plan(INPUTS, FOLLOWING)
    assert (PLACE.parent / ".gitignore").read_text() == "*\n"
    found = subprocess.run(["git", "status", "--porcelain"], check=True, capture_output=True, text=True)
    assert found.stdout == ""
    assert [run.plan.id for run in known_here(INPUTS, "small") if run.throttles.rates] == [FORGED.id]
