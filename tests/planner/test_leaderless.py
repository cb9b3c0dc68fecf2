"""A partition whose records are on dead brokers alone gets no empty replica beside them, and holds nothing else up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from random import Random

import pytest
from helpers.clusters.mixed_clusters import mixed_cluster
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts
from helpers.plans.oracle import declared_topic

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.desired import (
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Placement,
    Spread,
)
from reconciler.model.move import Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import Location, PlacementInfeasible, Severity
from reconciler.model.stage import moves_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.check import prove
from reconciler.simulate.events import fence_all
from reconciler.workflow.plan import plan_of

GIB = 1 << 30
UNCLEAN: Mapping[str, tuple[dict[str, str], dict[str, str]]] = {
    "off": ({}, {}),
    "topic": ({"unclean.leader.election.enable": "true"}, {}),
    "broker": ({}, {"unclean.leader.election.enable": "true"}),
}


@dataclass(frozen=True)
class Form:
    """A way in which a topic has lost its brokers."""

    replication_factor: int
    unclean: str
    state: BrokerState
    is_declared: bool
    is_registered: bool  # the dead brokers are fenced; else nobody knows them any more

    def __str__(self) -> str:
        words = (f"RF {self.replication_factor}", f"unclean {self.unclean}", self.state)
        return ", ".join(
            (*words, "declared" if self.is_declared else "undeclared", "fenced" if self.is_registered else "gone")
        )


STATES = BrokerState.ACTIVE, BrokerState.DRAINING
FORMS = [
    Form(factor, unclean, state, is_declared=is_declared, is_registered=is_registered)
    for factor, unclean, state in product((1, 2, 3), UNCLEAN, STATES)
    for is_declared, is_registered in product((True, False), repeat=2)
]


def _states(form: Form) -> tuple[Desired, Cluster]:
    """Return nine brokers, the last ones dead: `pay` is on these alone, `well` has one replica more on a living one."""
    dead = (9, 8, 7)[: form.replication_factor]
    ids = ",".join(map(str, dead))
    of_topic, of_broker = UNCLEAN[form.unclean]
    observed = small_cluster(
        f"pay-0: {ids} isr {dead[-1]} size {5 * GIB}",
        f"well-0: 1,{ids} isr 1 size {GIB}",
        brokers=range(1, 10),
        fenced=dead,
        configs={"pay": of_topic},
        rates=dict.fromkeys(range(1, 7), of_broker),
    )
    pay = replace(observed.topics["pay"].partitions[0], leader=None)
    observed = replace(observed, topics={**observed.topics, "pay": replace(observed.topics["pay"], partitions=(pay,))})
    if not form.is_registered:
        observed = replace(observed, brokers={b: one for b, one in observed.brokers.items() if b not in dead})
    brokers = {b: DesiredBroker(b, state=form.state, has_state=True) for b in dead}
    factors = {"pay": form.replication_factor, "well": form.replication_factor + 1} if form.is_declared else {}
    topics = {name: DesiredTopic(name, replication_factor=count) for name, count in factors.items()}
    cluster = DesiredCluster("c", brokers=brokers if form.state is BrokerState.DRAINING else {})
    return Desired(cluster, topics), observed


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_no_plan_puts_an_empty_replica_beside_lost_ones(form: Form) -> None:
    desired, observed = _states(form)
    plan = plan_of(desired, observed)
    moves = {str(move.topic_partition): move for move in moves_of(plan.stages)}
    assert "pay-0" not in moves
    assert prove(plan, desired, observed).is_proved
    is_asked = form.is_declared or form.state is BrokerState.DRAINING
    # What has a living replica is repaired as ever.
    assert bool("well-0" in moves and moves["well-0"].added) is is_asked
    named = [problem for problem in plan.warnings if problem.code == "KR817"]
    assert [problem.severity for problem in named] == [Severity.WARNING] * is_asked
    assert named == [problem for problem in plan.drift if problem.code == "KR817"]
    if is_asked:
        last = (9, 8, 7)[form.replication_factor - 1]
        assert named[0].message.startswith(f"no leader: pay-0 (5.0 GiB, all records on broker {last}). ")


def _living(observed: Cluster, brokers: Iterator[int] | tuple[int, ...]) -> set[int]:
    return {broker for broker in brokers if broker in observed.brokers and not observed.brokers[broker].is_fenced}


def _is_lost(observed: Cluster, one: Partition) -> bool:
    return one.leader is None or not _living(observed, (one.leader, *one.isr))


def _changes(plan: Plan) -> set[TopicPartition]:
    return {move.topic_partition for move in moves_of(plan.stages)}


def _elections(plan: Plan) -> set[TopicPartition]:
    return {each.topic_partition for stage in plan.stages for each in getattr(stage, "elections", ())}


@parts("seeds", range(60), deep=range(2000))
def test_whatever_dies_a_plan_touches_no_partition_without_a_source_and_names_each(seeds: range) -> None:
    lost_ones = 0
    for seed in seeds:
        desired, observed = mixed_cluster(seed)
        random = Random(seed)
        observed = fence_all(observed, random.sample(sorted(observed.brokers), k=random.choice([1, 1, 2])))
        try:
            plan = plan_of(desired, observed)
        except PlacementInfeasible:
            continue
        lost = {key for key, one in observed.partitions() if _is_lost(observed, one)}
        lost_ones += len(lost)
        assert not lost & (_changes(plan) | _elections(plan))
        said = " ".join(problem.message for problem in plan.warnings if problem.code == "KR817")
        doomed = {change.topic for change in plan.topic_changes if change.kind == "deleteTopic"}
        for key in lost:
            declared = declared_topic(desired, key.topic)
            has_rule = declared is not None and (declared.replication_factor or declared.placement != Placement())
            targets = observed.topics[key.topic].partitions[key.partition].target_replicas
            leaving = {BrokerState.DRAINING, BrokerState.ABSENT}
            is_leaving = any(desired.cluster.broker(broker).state in leaving for broker in targets)
            if key.topic not in doomed and (has_rule or is_leaving) and "more" not in said:
                assert str(key) in said, seed
    assert lost_ones > len(seeds) // 4


def test_a_document_without_placement_moves_nothing_while_a_broker_is_away() -> None:
    observed = small_cluster("t-0: 1,2,3 isr 1,2 size 9", brokers=(1, 2, 3, 4), fenced=(3,))
    plan = plan_of(Desired(DesiredCluster("c"), {"t": DesiredTopic("t", config={"retention.ms": "7"})}), observed)
    assert ([*moves_of(plan.stages)], [change.kind for change in plan.topic_changes]) == ([], ["alterConfigs"])
    assert not plan.drift


@pytest.mark.parametrize(
    ("topic", "is_moved"),
    [
        (DesiredTopic("t"), False),
        (DesiredTopic("t", partitions=1), False),
        (DesiredTopic("t", replication_factor=3), True),
        (DesiredTopic("t", placement=Placement(racks_spread=Spread.PREFER)), True),
        (DesiredTopic("t", placement=Placement(brokers_except=frozenset({9}))), True),
    ],
)
def test_only_a_document_that_places_a_topic_replaces_a_dead_broker(topic: DesiredTopic, *, is_moved: bool) -> None:
    observed = small_cluster("t-0: 1,2,3 isr 1,2 size 9", brokers=(1, 2, 3, 4, 5, 6), fenced=(3,))
    assert bool([*moves_of(plan_of(Desired(DesiredCluster("c"), {"t": topic}), observed).stages)]) is is_moved


def test_a_draining_broker_is_emptied_of_topics_that_no_document_places_and_of_the_dead_beside() -> None:
    observed = small_cluster("t-0: 1,2,3 isr 1,2 size 9", brokers=(1, 2, 3, 4, 5), fenced=(3,))
    brokers = {2: DesiredBroker(2, state=BrokerState.DRAINING, has_state=True)}
    plan = plan_of(Desired(DesiredCluster("c", brokers=brokers), {"t": DesiredTopic("t")}), observed)
    *_, last = moves_of(plan.stages)
    assert set(last.to_replicas) == {1, 4, 5}


def test_a_dead_broker_that_drains_is_the_reason_of_a_move_of_a_topic_that_no_document_places() -> None:
    observed = small_cluster("t-0: 1,2,3 isr 1,2 size 9", brokers=(1, 2, 3, 4), fenced=(3,))
    brokers = {3: DesiredBroker(3, state=BrokerState.DRAINING, has_state=True)}
    plan = plan_of(Desired(DesiredCluster("c", brokers=brokers), {"t": DesiredTopic("t")}), observed)
    assert [(move.reason, set(move.to_replicas)) for move in moves_of(plan.stages)] == [(Reason.DRAINING, {1, 2, 4})]


def test_new_partitions_are_placed_beside_one_without_a_leader() -> None:
    observed = small_cluster("t-0: 3 size 9", brokers=(1, 2, 3), fenced=(3,))
    plan = plan_of(Desired(DesiredCluster("c"), {"t": DesiredTopic("t", partitions=2, replication_factor=1)}), observed)
    (change,) = plan.topic_changes
    assert not [*moves_of(plan.stages)]
    assert set(change.assignment[1]) <= {1, 2}  # type: ignore[union-attr] # partitions are created


@pytest.mark.parametrize("is_declared", [True, False])
def test_a_partition_without_a_leader_is_named_at_its_topic_or_else_at_the_broker_that_is_to_be_emptied(
    *, is_declared: bool
) -> None:
    of_topic, of_broker = Location("topics.yaml", 3), Location("cluster.yaml", 5)
    observed = small_cluster("t-0: 1", brokers=(1, 2, 3), fenced=[1])
    draining = {1: DesiredBroker(1, BrokerState.DRAINING, at=of_broker)}
    topics = {"t": DesiredTopic("t", replication_factor=1, at={"": of_topic})} if is_declared else {}
    plan = plan_of(Desired(DesiredCluster("c", brokers=draining), topics), observed)
    (named,) = (problem for problem in plan.warnings if problem.code == "KR817")
    assert named.at == (of_topic if is_declared else of_broker)
