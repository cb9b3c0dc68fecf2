"""Attacks on the plan that a night goes on with, by somebody who may push, run workflows, and write artifacts.

GitHub's fake lists an honest merge, whose plan 1 was approved and left unfinished, and what the attack adds. The forged
plan, or one that is to be begun again, has the number 666. No attack may put it into the folder of the night.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from workflows.fake_artifacts import (
    Artifacts,
    Listed,
    artifact,
    commit,
    ended_job,
    review,
    workflow_run,
    zipped,
)
from workflows.test_nights import archive_of, digest_of, outcome

pytestmark = pytest.mark.long

FORGED = 666
FORGERY = 5
"""The number of the run that an attack adds; it is newer than the honest one."""
STRANGE = "f" * 40
"""A commit that nobody has merged."""
Attack = Callable[[Artifacts], None]


def honest(github: Artifacts) -> None:
    """List one merge, whose plan was approved and left unfinished."""
    github.runs = (workflow_run(1, "push"),)
    github.jobs = {71: (ended_job("demo / plan"), ended_job(f"demo / apply {digest_of(1)}"))}
    github.listed = (artifact(1, "plan-demo"), artifact(11, "unfinished-plan-demo", run=71))
    github.archives = {11: archive_of(1)}


def forge(github: Artifacts, event: str = "push", word: str = "apply", **changes: object) -> None:
    """Add a run with an unfinished plan of its own; the fake says of every run that it was approved."""
    run = 70 + FORGERY
    github.runs = ({**workflow_run(FORGERY, event), **changes}, *github.runs)
    github.jobs = {**github.jobs, run: (ended_job(f"demo / {word} {digest_of(FORGED)}"),)}
    github.listed += (artifact(65, "plan-demo", run=run), artifact(66, "unfinished-plan-demo", run=run))
    github.archives = {**github.archives, 66: archive_of(FORGED)}


def forged(event: str = "push", word: str = "apply", **changes: object) -> Attack:
    """Return an attack that adds one run."""
    return lambda github: forge(github, event, word, **changes)


def called(ref: str) -> Listed:
    """Return what GitHub lists of the workflow that is called."""
    path = f"acme/kafka/.github/workflows/apply-cluster.yml@{ref}"
    return ({"path": path, "sha": commit(FORGERY), "ref": ref},)


def reviewed(*reviews: dict[str, object]) -> Attack:
    """Return an attack by a merge with these reviews."""

    def attack(github: Artifacts) -> None:
        forge(github)
        github.reviews = {70 + FORGERY: reviews}

    return attack


def with_tag(attack: Attack) -> Attack:
    """Return the attack, its tag being still there."""

    def tagged(github: Artifacts) -> None:
        attack(github)
        github.tags = frozenset({"main"})

    return tagged


def named(*jobs: dict[str, object]) -> Attack:
    """Return an attack by a merge with these jobs."""

    def attack(github: Artifacts) -> None:
        forge(github)
        github.jobs = {**github.jobs, 70 + FORGERY: jobs}

    return attack


def swapped(github: Artifacts) -> None:
    github.archives = {11: archive_of(FORGED)}


def swapped_with_the_approved_digest_in_it(github: Artifacts) -> None:
    plan = json.dumps({"number": FORGED, "digest": digest_of(1), "id": digest_of(1)[7:15]})
    github.archives = {11: zipped({"plan.json": plan.encode(), "next-stage.txt": b"1"})}


def beside_the_honest_one(github: Artifacts) -> None:
    github.listed += (artifact(67, "unfinished-plan-demo", run=71),)
    github.archives = {**github.archives, 67: archive_of(FORGED)}


def of_a_run_that_is_not_listed(github: Artifacts) -> None:
    forge(github)
    github.runs = github.runs[1:]
    github.listed = tuple(one for one in github.listed if one["id"] != 11)


def made_by_a_fork_for_a_run_of_ours(github: Artifacts) -> None:
    forge(github, head_repository={"id": 2, "full_name": "eve/kafka"})
    github.listed = tuple(one for one in github.listed if one["id"] != 11)


def older(github: Artifacts, *newer: dict[str, object], listed: Listed = ()) -> None:
    """Have run 1 hold the plan that is to be begun again, though these runs came after it."""
    github.jobs = {71: (ended_job(f"demo / apply {digest_of(FORGED)}"),)}
    github.archives = {11: archive_of(FORGED)}
    github.runs = (*newer, *github.runs)
    github.listed += listed


def behind_many_artifacts(github: Artifacts) -> None:
    # Run 2, a night, took the plan on and finished it. Its artifact is on the last of four pages.
    flood = tuple(artifact(1000 + number, "plan-demo", run=9000 + number) for number in range(350))
    older(github, workflow_run(2, "schedule"))
    github.listed = (*flood, *github.listed, artifact(3, "plan-demo", run=72))


def behind_many_runs(github: Artifacts) -> None:
    flood = tuple({**workflow_run(100 + number, "push"), "head_sha": STRANGE} for number in range(250))
    older(github, *flood, workflow_run(2, "push"))


def after_a_merge_whose_run_was_deleted(github: Artifacts) -> None:
    older(github)
    github.changed = {commit(1): ("README.md", "desired-state/demo/cluster.yaml")}


def after_a_merge_of_too_many_files_to_list(github: Artifacts) -> None:
    older(github)
    github.changed = {commit(1): (*(f"docs/{number}" for number in range(300)), "desired-state/demo/cluster.yaml")}


def after_a_finished_night(github: Artifacts) -> None:
    older(github, workflow_run(2, "schedule"), listed=(artifact(3, "plan-demo", run=72),))


def after_a_refused_merge(github: Artifacts) -> None:
    older(github, workflow_run(2, "push"))


def after_a_run_listed_out_of_order(github: Artifacts) -> None:
    older(github)
    github.runs = (*github.runs, workflow_run(2, "workflow_dispatch"))


def a_night_of_a_merge_that_nobody_approved(github: Artifacts) -> None:
    forge(github, "schedule", "night")
    github.jobs = {**github.jobs, 71: (ended_job(f"demo / apply {digest_of(FORGED)}"),)}
    github.reviews = {71: ()}


def a_night_with_a_swapped_plan(github: Artifacts) -> None:
    forge(github, "schedule", "night", run_attempt=2)
    github.jobs = {**github.jobs, 70 + FORGERY: (ended_job(f"demo / night {digest_of(1)}"),)}


DEMO = "kafka-apply-demo"
ATTACKS: Mapping[str, Attack] = {
    "a tag named main": with_tag(forged(head_sha=STRANGE)),
    "a tag named main, deleted since": forged(head_sha=STRANGE),
    "a tag named main on a merged commit": with_tag(forged()),
    "a tag on a merged commit, deleted since": forged(
        "workflow_dispatch", referenced_workflows=called("refs/tags/main")
    ),
    "a tag, told by the workflow's path": forged(path=".github/workflows/apply.yml@refs/tags/main"),
    "another branch's workflow": forged(path=".github/workflows/apply.yml@refs/heads/evil"),
    "a dispatch on an unmerged commit": forged("workflow_dispatch", head_sha=STRANGE),
    "a commit that is no commit": forged(head_sha="refs/heads/main"),
    "a short commit": forged(head_sha="0000005"),
    "no commit": forged(head_sha=None),
    "a path into the API as the commit": forged(head_sha="../../compare/x"),
    "a fork's branch main": forged("pull_request", head_repository={"id": 2, "full_name": "eve/kafka"}),
    "a fork's push, as if it were ours": forged(head_repository={"id": 2, "full_name": "eve/kafka"}),
    "a fork that was deleted": forged("pull_request", head_repository=None),
    "a pull request from main": forged("pull_request"),
    "pull_request_target": forged("pull_request_target"),
    "workflow_run": forged("workflow_run"),
    "another workflow of the same file name": forged(path="dynamic/apply.yml"),
    "a merge that nobody approved": reviewed(),
    "a merge that was rejected": reviewed(review(DEMO, "rejected")),
    "approved and rejected": reviewed(review(DEMO), review(DEMO, "rejected")),
    "an approval that is pending": reviewed(review(DEMO, "pending")),
    "an approval of another cluster": reviewed(review("kafka-apply-other"), review("kafka-apply-demo-2")),
    "an approval to read and to go on": reviewed(review("kafka-read-demo"), review("kafka-continue-demo")),
    "an approval in other letters": reviewed(review("KAFKA-APPLY-DEMO")),
    "an approval by a program": reviewed(review(DEMO, user="Bot")),
    "a rerun": forged(run_attempt=2),
    "a run without attempts": forged(run_attempt=None),
    "a job that failed": named(ended_job(f"demo / apply {digest_of(FORGED)}", "failure")),
    "a job of another cluster": named(ended_job(f"x demo / apply {digest_of(FORGED)}")),
    "two digests": named(*(ended_job(f"demo / apply {digest_of(number)}") for number in (1, FORGED))),
    "a swapped artifact": swapped,
    "a swapped artifact with the approved digest in it": swapped_with_the_approved_digest_in_it,
    "a second artifact in the honest run": beside_the_honest_one,
    "an artifact of a run that is not listed": of_a_run_that_is_not_listed,
    "an artifact of a fork": made_by_a_fork_for_a_run_of_ours,
    "a night on a tag": forged("schedule", "night", head_sha=STRANGE),
    "a night with another plan": forged("schedule", "night"),
    "a night of a merge that nobody approved": a_night_of_a_merge_that_nobody_approved,
    "a night with a swapped plan": a_night_with_a_swapped_plan,
    "a replay behind many artifacts": behind_many_artifacts,
    "a replay behind many runs": behind_many_runs,
    "a replay after a merge whose run was deleted": after_a_merge_whose_run_was_deleted,
    "a replay after a merge of very many files": after_a_merge_of_too_many_files_to_list,
    "a replay after a night that finished it": after_a_finished_night,
    "a replay after a merge that was refused": after_a_refused_merge,
    "a replay after a run listed out of order": after_a_run_listed_out_of_order,
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_has_a_night_go_on_with_its_plan(github: Artifacts, tmp_path: Path, name: str) -> None:
    honest(github)
    ATTACKS[name](github)
    outcome(github, tmp_path)
    held = {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert not [path for path, text in held.items() if digest_of(FORGED) in text or str(FORGED) in text], held


@pytest.mark.parametrize("more", [{}, {"path": ".github/workflows/apply.yml@refs/heads/main"}])
def test_an_honest_merge_is_gone_on_with(github: Artifacts, tmp_path: Path, more: Mapping[str, Any]) -> None:
    honest(github)
    forge(github, head_sha=STRANGE)  # beside an attack, too
    github.runs = (github.runs[0], {**github.runs[1], **more})
    github.changed = {commit(1): ("README.md", "desired-states/x.yaml")}
    github.reviews = {71: (review("kafka-apply-other", "rejected"), review(DEMO))}
    assert outcome(github, tmp_path) == (1, 0)


def test_an_honest_night_is_gone_on_with(github: Artifacts, tmp_path: Path) -> None:
    honest(github)
    github.runs = (workflow_run(2, "schedule"), *github.runs)
    github.jobs = {**github.jobs, 72: (ended_job(f"demo / night {digest_of(1)}"),)}
    github.listed += (artifact(21, "plan-demo", run=72), artifact(22, "unfinished-plan-demo", run=72))
    github.archives = {**github.archives, 22: archive_of(1, run=2)}
    assert outcome(github, tmp_path) == (2, 0)
