"""Plans that a seed draws, killed somewhere, rolled back, killed there too: all ends where it began."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import TYPE_CHECKING

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts
from helpers.figures import Tell
from helpers.plans.deaths import put_back_what_the_record_names
from helpers.plans.small_runs import MB, RATE, admin_of, plan_of
from helpers.plans.undone import differences

from reconciler.apply.crash import Killed, planted
from reconciler.apply.run import run_plan
from reconciler.files.plan_file import with_id
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, DesiredCluster, MovePolicy
from reconciler.model.move import Election, Move, Reason
from reconciler.model.plan import Plan
from reconciler.model.run import RunFailed
from reconciler.model.stage import ElectStage, ReassignStage, Stage
from reconciler.workflow import cancel as verb
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.runs import keep_plan, run_journal

pytestmark = pytest.mark.long

if TYPE_CHECKING:
    from reconciler.admin.simulated import SimulatedAdmin

INPUTS = Inputs(cluster="small")
PARTITIONS, BROKERS = 6, range(1, 7)


def drawn_cluster(random: Random) -> Cluster:
    lines = []
    for number in range(PARTITIONS):
        replicas = random.sample(BROKERS, random.randint(1, 4))
        lines.append(f"t{number % 2}-{number // 2}: {','.join(map(str, replicas))} size {random.randint(1, 200) * MB}")
    return small_cluster(*lines)


def drawn_plan(random: Random, before: Cluster) -> Plan:
    """Return a plan of stages that each move some partitions anywhere, and elect who is first then."""
    at = {key: partition.replicas for key, partition in before.partitions()}
    stages: list[Stage] = []
    for _ in range(random.randint(1, 3)):
        moves = []
        for key in sorted(random.sample(sorted(at), random.randint(1, PARTITIONS))):
            to = tuple(random.sample(BROKERS, random.randint(1, 4)))
            partition = before.partition(key)
            assert partition is not None
            if to != at[key]:
                size = (partition.bytes_to_copy or 0) * len(set(to) - set(at[key]))
                moves.append(Move(key, at[key], to, size, Reason.BALANCE))
                at[key] = to
        if moves:
            stages.append(ReassignStage(0, tuple(moves), random.choice([None, RATE])))
            stages.append(ElectStage(0, tuple(Election(move.topic_partition, move.to_replicas[0]) for move in moves)))
    numbered = [replace(stage, number=number) for number, stage in enumerate(stages, start=1)]
    return with_id(plan_of(numbered, before))


def desired_of(random: Random) -> Desired:
    policy = MovePolicy(random.choice([None, RATE]), random.randint(1, 4), random.randint(1, 2), random.randint(1, 4))
    return Desired(DesiredCluster("small", moves=policy))


class Chance:
    """Kills the process at a boundary that a seed draws."""

    def __init__(self, random: Random, most: int) -> None:
        self.left = random.randint(1, most)

    def __call__(self, name: str) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed(name)


def undo_until_it_ends(admin: "SimulatedAdmin", plan: Plan, random: Random) -> int:
    """Roll back, killed once or twice, now and then without what this machine knew; return how often it was begun."""
    kills = random.randint(0, 2)
    for begun in range(1, 12):
        try:
            with planted(Chance(random, 60) if begun <= kills else lambda _name: None):
                verb.roll_back(INPUTS, plan)
        except Killed:
            if random.random() < 0.4:
                rmtree("runs", ignore_errors=True)
        except RunFailed as error:
            assert error.code == "KR719", str(error)  # noqa: PT017 - any other is wrong
            admin.clock.sleep(200)
        else:
            return begun
    pytest.fail("it never ended")


def played(seed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    random = Random(seed)
    before = drawn_cluster(random)
    admin, plan, desired = admin_of(before), drawn_plan(random, before), desired_of(random)
    monkeypatch.setattr(verb, "cluster_admin", lambda *_: nullcontext(admin))
    monkeypatch.setattr(verb, "declared_as_far", lambda *_arguments: (desired, None))
    keep_plan(INPUTS, plan)
    try:
        with planted(Chance(random, 90)):
            run_plan(plan, admin, run_journal(INPUTS, plan))
    except Killed:
        if random.random() < 0.3:
            rmtree("runs", ignore_errors=True)
    begun = undo_until_it_ends(admin, plan, random)
    put_back_what_the_record_names(admin)
    assert differences(before, admin.cluster) == [], f"seed {seed}"
    writes = admin.writes
    verb.roll_back(INPUTS, plan)
    assert admin.writes == writes, f"seed {seed}: the second rollback wrote"
    rmtree("runs", ignore_errors=True)
    return begun


@pytest.mark.parametrize("seed", range(5))
def test_a_seeds_plan_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.chdir(tmp_path)
    played(seed, monkeypatch)


@parts("seeds", range(5, 12), deep=range(5, 155))
def test_the_plans_of_many_seeds_go_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Tell, seeds: range
) -> None:
    monkeypatch.chdir(tmp_path)
    begun = [played(seed, monkeypatch) for seed in seeds]
    figures("seeds of rollbacks", f"{len(begun)} plans undone, begun {sum(begun)} times: 0 wrong")
