"""A plan is written with what its own proof shows, and not at all if it is not what the proof says."""

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.files.plan_file import read_plan
from reconciler.files.snapshot import read_snapshot
from reconciler.model.budget import Budget
from reconciler.model.desired import Balance, Desired, DesiredCluster, DesiredTopic, Even, Limits, Placement
from reconciler.model.move import Election, Move, Reason
from reconciler.model.plan import Plan, Source
from reconciler.model.problem import Location
from reconciler.model.stage import ElectStage, ReassignStage, Stage
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.own_proof import UnsafePlan, refuse_unsafe_return, with_own_proof
from reconciler.workflow.plan import Planner, plan_of

OBSERVED = small_cluster(*(f"t-{number}: 1 size {number + 1}" for number in range(6)), brokers=(1, 2, 3))
EVEN = Desired(DesiredCluster("c", balance=Balance(replicas=Even())), {"t": DesiredTopic("t")})


def test_a_state_above_a_limit_is_a_violation_that_names_its_stage_and_broker() -> None:
    """Two brokers that are full and have to swap."""
    at = Location("cluster.yaml", 7)
    limits = Limits(replicas_per_broker=1, at={"replicasPerBroker": at})
    topic = DesiredTopic("t", placement=Placement(assignment=((2,), (1,))))
    desired, observed = Desired(DesiredCluster("c", limits=limits), {"t": topic}), small_cluster("t-0: 1", "t-1: 2")
    plan = plan_of(desired, observed)
    (declared,) = plan.violations
    assert (declared.code, declared.at) == ("KR419", at)
    (violation,) = with_own_proof(replace(plan, violations=()), desired, observed, None).violations
    assert (violation.code, violation.at) == ("KR419", at)
    assert violation.message.startswith("stage 1: broker 2 would hold 2 replicas, and limits.replicasPerBroker is 1")


def test_what_is_not_proved_is_a_warning_that_names_it() -> None:
    whole = Planner().plan_or_remedies(EVEN, OBSERVED)
    assert [each for each in whole.warnings if each.code == "KR847"] == []
    budget = Budget(bytes=whole.proof.value - 1)
    (warning,) = [
        each for each in Planner(budget=budget).plan_or_remedies(EVEN, OBSERVED).warnings if each.code == "KR847"
    ]
    assert "replicas balance" in warning.message


def test_a_plan_that_is_not_what_its_proof_says_is_no_plan_and_its_case_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    plan = plan_of(EVEN, OBSERVED)
    level = replace(plan.proof.levels[0], value=0, lower_bound=0)
    wrong = replace(plan, proof=replace(plan.proof, levels=(level, *plan.proof.levels[1:])))
    with pytest.raises(UnsafePlan, match="the plan made is not proved: replicas balance: the proof says 0") as raised:
        with_own_proof(wrong, EVEN, OBSERVED, None)
    folder = Path(next(word for word in str(raised.value).split() if "reconciler-" in word).rstrip(":"))
    assert read_snapshot(folder / "snapshot.json") == OBSERVED
    assert read_plan(folder / "plan.json").stages == plan.stages


def _moved(partition: int, before: tuple[int, ...], after: tuple[int, ...]) -> ReassignStage:
    return ReassignStage(1, (Move(TopicPartition("t", partition), before, after, 0, Reason.ASSIGNMENT),))


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        (_moved(0, (1, 2), (2, 1)), "t-0 is moved from brokers [1, 2], but it is on [1, 2, 3]"),
        (_moved(1, (1, 2), (2,)), "stage 1: t-1 moves from brokers [1, 2] to [2]: no replica that is in sync remains"),
        (_moved(7, (1,), (2,)), "t-7 is moved, but it does not exist"),
        (ElectStage(1, (Election(TopicPartition("t", 1), 2),)), "stage 1: broker 2 is elected to lead t-1, and is not"),
    ],
)
def test_a_rollback_that_does_not_fit_or_loses_a_leader_is_refused(stage: Stage, words: str) -> None:
    observed = small_cluster("t-0: 1,2,3", "t-1: 1,2 isr 1")
    plan = Plan("c", observed.cluster_id, Source(""), stages=(stage,))
    with pytest.raises(UnsafePlan, match=re.escape(words)):
        refuse_unsafe_return(plan, observed, Desired(DesiredCluster("c")))
