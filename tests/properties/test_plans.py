"""Laws of whole plans over random clusters: every stage legal, the end as desired, the next plan empty."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from helpers.clusters.random_clusters import SMALL, TINY, random_cluster
from helpers.depth import drawn
from helpers.plans.oracle import Problem, is_feasible, legal_sets, problem_of
from hypothesis import assume
from hypothesis import strategies as st
from properties.replay import Replay, reached_cluster, replayed

from reconciler.model.cluster import Broker, Cluster, LogDir, Partition
from reconciler.model.desired import BrokerState, Desired, DesiredBroker, Limits, MovePolicy, Off
from reconciler.model.move import Move
from reconciler.model.plan import Plan
from reconciler.model.stage import ElectStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.plan import plan_of

pytestmark = pytest.mark.long

DISK_USE = Fraction(4, 5)
DISK_VIOLATION = "KR413"
Case = tuple[Desired, Cluster, Problem]

seeds = st.integers(0, 10**9)
sizes = st.sampled_from([TINY, SMALL, SMALL])
PART, WHOLE = 6, 120


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a cluster that can be planned and in which every partition has a live leader."""
    seed = draw(seeds)
    desired, observed = random_cluster(seed, draw(sizes))
    assume(all(any(observed.is_alive(b) for b in partition.replicas) for _, partition in observed.partitions()))
    problem = problem_of(desired, observed)
    assume(is_feasible(problem))
    return desired, _lived_in(observed, Random(seed)), problem


def _lived_in(observed: Cluster, random: Random) -> Cluster:
    """Return the cluster with replicas that lag and leaders that are not the preferred ones."""
    topics = {
        name: replace(topic, partitions=tuple(_lagging(observed, p, random) for p in topic.partitions))
        for name, topic in observed.topics.items()
    }
    return replace(observed, topics=topics)


def _lagging(observed: Cluster, partition: Partition, random: Random) -> Partition:
    live = [replica for replica in partition.replicas if observed.is_alive(replica)]
    isr = tuple(replica for replica in live if random.random() < 0.9) or (live[0],)
    leader = random.choice(isr) if random.random() < 0.3 else isr[0]
    return replace(partition, isr=isr, leader=leader)


def _moves(plan: Plan) -> list[Move]:
    return [move for stage in plan.stages if isinstance(stage, ReassignStage) for move in stage.moves]


def _walked(case: Case) -> tuple[Plan, Replay]:
    desired, observed, problem = case
    plan = plan_of(desired, observed)
    return plan, replayed(desired, observed, problem, plan)


@drawn(cases(), part=PART, deep=WHOLE)
def test_every_stage_keeps_its_limits_and_the_rules_that_held_before_it(case: Case) -> None:
    _, replay = _walked(case)
    assert replay.faults == ()


@drawn(cases(), part=PART, deep=WHOLE)
def test_the_last_stage_ends_in_a_state_that_keeps_every_rule(case: Case) -> None:
    _, _, problem = case
    _, replay = _walked(case)
    reached = replay.states[-1]
    for demand in problem.demands:
        replicas = reached[demand.topic_partition].replicas
        assert tuple(sorted(replicas)) in legal_sets(demand, problem.rack_of)
        assert demand.settled is None or replicas == demand.settled


@drawn(cases(), part=PART, deep=WHOLE)
def test_planning_again_from_the_last_state_gives_the_empty_plan(case: Case) -> None:
    desired, observed, _ = case
    _, replay = _walked(case)
    assert plan_of(desired, reached_cluster(observed, replay.states[-1])).is_empty


@drawn(cases(), part=PART, deep=WHOLE)
def test_where_leaders_are_balanced_the_preferred_ones_lead_in_the_end(case: Case) -> None:
    desired, observed, problem = case
    assume(not isinstance(desired.cluster.balance.leaders, Off))
    _, replay = _walked(case)
    for demand in problem.demands:
        held = replay.states[-1][demand.topic_partition]
        if demand.is_declared and held.replicas[0] in held.isr:
            assert held.leader == held.replicas[0], (demand.topic_partition, observed.partition(demand.topic_partition))


@drawn(cases(), part=PART, deep=WHOLE)
def test_stages_copy_what_the_proof_says_and_nothing_twice(case: Case) -> None:
    plan, _ = _walked(case)
    moves = _moves(plan)
    in_bytes, copies = sum(move.bytes for move in moves), sum(len(move.added) for move in moves)
    assert plan.proof.value == (in_bytes if plan.proof.objective == "bytes" else copies)
    assert max(Counter((m.topic_partition, b) for m in moves for b in m.added).values(), default=1) == 1


@drawn(cases(), part=PART, deep=WHOLE)
def test_the_rollback_holds_what_was_there_before(case: Case) -> None:
    _, observed, _ = case
    plan, _ = _walked(case)
    touched = {move.topic_partition for move in _moves(plan)}
    touched |= {
        e.topic_partition for s in plan.stages if isinstance(s, ReassignStage | ElectStage) for e in s.elections
    }
    kept = {restore.topic_partition: (restore.replicas, restore.leader) for restore in plan.rollback.assignments}
    there = {key: (partition.replicas, partition.leader) for key, partition in observed.partitions()}
    assert kept == {key: there[key] for key in touched if key in there}


@drawn(cases(), part=PART, deep=WHOLE)
def test_an_empty_broker_that_drains_changes_nothing(case: Case) -> None:
    desired, observed, _ = case
    newcomer = 1000
    brokers = {**desired.cluster.brokers, newcomer: DesiredBroker(newcomer, BrokerState.DRAINING)}
    with_it = replace(desired, cluster=replace(desired.cluster, brokers=brokers))
    rack = next(iter(observed.brokers.values())).rack
    seen = replace(observed, brokers={**observed.brokers, newcomer: Broker(newcomer, rack)})
    assert _moves(plan_of(with_it, seen)) == _moves(plan_of(desired, observed))


def _with_disks(case: Case, random: Random) -> tuple[Desired, Cluster, dict[int, int]]:
    """Return the case with disks that are near their limit, and what each broker may hold."""
    desired, observed, _ = case
    held = _bytes_held(observed)
    largest = max(_size(observed, key) for key, _ in observed.partitions()) if observed.topics else 0
    capacity = {b: int((held[b] + random.choice([0, 1, 2, 4]) * largest) / DISK_USE) + 1 for b in observed.brokers}
    brokers = {
        b: replace(broker, log_dirs=(LogDir("/d1", capacity[b], capacity[b] - held[b]),))
        for b, broker in observed.brokers.items()
    }
    cluster = replace(desired.cluster, limits=Limits(disk_use=DISK_USE), moves=MovePolicy(per_stage=500))
    allowed = {b: int(total * DISK_USE) for b, total in capacity.items()}
    return replace(desired, cluster=cluster), replace(observed, brokers=brokers), allowed


@drawn(cases(), seeds, part=PART, deep=WHOLE)
def test_no_disk_passes_its_limit_at_any_moment_unless_the_plan_says_so(case: Case, seed: int) -> None:
    desired, observed, allowed = _with_disks(case, Random(seed))
    plan = plan_of(desired, observed)
    assume(not plan.violations)
    held = _bytes_held(observed)
    for stage in plan.stages:
        moves = stage.moves if isinstance(stage, ReassignStage) else ()
        for move in moves:
            held.update(dict.fromkeys(move.added, _size(observed, move.topic_partition)))
        assert all(held[b] <= allowed[b] for move in moves for b in move.added), stage.number
        for move in moves:
            held.subtract(dict.fromkeys(move.removed, _size(observed, move.topic_partition)))


@drawn(cases(), seeds, part=PART, deep=WHOLE)
def test_where_one_step_after_the_other_fits_the_disks_the_stages_do(case: Case, seed: int) -> None:
    desired, observed, allowed = _with_disks(case, Random(seed))
    plan = plan_of(desired, observed)
    if _is_fitting_one_by_one(observed, _moves(plan), allowed):
        assert [violation for violation in plan.violations if violation.code == DISK_VIOLATION] == []


def _is_fitting_one_by_one(observed: Cluster, moves: list[Move], allowed: dict[int, int]) -> bool:
    """Whether taking any step that fits, each after the one before it of its partition, carries out all of them."""
    held = _bytes_held(observed)
    while moves:
        first = {move.topic_partition: move for move in reversed(moves)}.values()
        fitting = [m for m in first if all(held[b] + _size(observed, m.topic_partition) <= allowed[b] for b in m.added)]
        if not fitting:
            return False
        size = _size(observed, fitting[0].topic_partition)
        held.update(dict.fromkeys(fitting[0].added, size))
        held.subtract(dict.fromkeys(fitting[0].removed, size))
        moves = [move for move in moves if move is not fitting[0]]
    return True


def _size(observed: Cluster, key: TopicPartition) -> int:
    partition = observed.partition(key)
    return (partition.bytes_to_copy or 0) if partition else 0


def _bytes_held(observed: Cluster) -> Counter[int]:
    held: Counter[int] = Counter(dict.fromkeys(observed.brokers, 0))
    for _, partition in observed.partitions():
        held.update(dict.fromkeys(partition.replicas, partition.bytes_to_copy or 0))
    return held
