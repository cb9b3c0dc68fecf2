"""States with nothing in them, or with something odd: their plans are proved like any other."""

from dataclasses import replace
from fractions import Fraction

import pytest
from helpers.plans.proving import provable_plan

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import (
    Balance,
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    Placement,
    Protection,
    TopicPolicy,
    Within,
)
from reconciler.model.move import Move, Reason
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.check import prove_end

THREE = {broker_id: Broker(broker_id, "a") for broker_id in (1, 2, 3)}
ONE_TOPIC = {"t": Topic("t", (Partition(0, 1, (1, 2), (1, 2), sizes=(5, 5)),))}
INTERNAL = Topic("__offsets", (Partition(0, 1, (1, 2), (1, 2)),), is_internal=True)
MOVING = Partition(0, 1, (1, 2, 3), (1, 2), (3,), (2,), sizes=(5, 5, 1))
UNREGISTERED = Partition(0, 1, (1, 9), (1,), sizes=(5, 5))
DECLARED = {"t": DesiredTopic("t")}
EDGES: list[tuple[str, DesiredCluster, dict[str, DesiredTopic], Cluster]] = [
    ("nothing at all", DesiredCluster("c"), {}, Cluster("x")),
    ("no topic", DesiredCluster("c"), {}, Cluster("x", THREE)),
    ("no broker alive", DesiredCluster("c"), {}, Cluster("x", {1: Broker(1, is_fenced=True)}, ONE_TOPIC)),
    ("nothing declared", DesiredCluster("c"), {}, Cluster("x", THREE, ONE_TOPIC)),
    (
        "nothing may move",
        DesiredCluster("c"),
        {"t": DesiredTopic("t", protect=frozenset({Protection.MOVE}))},
        Cluster("x", THREE, ONE_TOPIC),
    ),
    (
        "all is assigned",
        DesiredCluster("c"),
        {"t": DesiredTopic("t", placement=Placement(assignment=((3, 1),)))},
        Cluster("x", THREE, ONE_TOPIC),
    ),
    (
        "all is new",
        DesiredCluster("c"),
        {"n": DesiredTopic("n", partitions=2, replication_factor=2)},
        Cluster("x", THREE),
    ),
    (
        "it grows and gets replicas",
        DesiredCluster("c"),
        {"t": DesiredTopic("t", partitions=3, replication_factor=3)},
        Cluster("x", THREE, ONE_TOPIC),
    ),
    ("a reassignment is in flight", DesiredCluster("c"), DECLARED, Cluster("x", THREE, {"t": Topic("t", (MOVING,))})),
    ("a replica is nowhere", DesiredCluster("c"), DECLARED, Cluster("x", THREE, {"t": Topic("t", (UNREGISTERED,))})),
    (
        "an undeclared topic leaves a broker that is gone",
        DesiredCluster("c", brokers={9: DesiredBroker(9, BrokerState.DRAINING)}),
        {},
        Cluster("x", THREE, {"t": Topic("t", (UNREGISTERED,))}),
    ),
    (
        "capacities have no small common multiple",
        DesiredCluster("c", brokers={1: DesiredBroker(1, capacity=999_983), 2: DesiredBroker(2, capacity=1_000_003)}),
        DECLARED,
        Cluster("x", THREE, ONE_TOPIC),
    ),
    (
        "all topics are managed",
        DesiredCluster("c", topics=TopicPolicy(is_all_managed=True)),
        {},
        Cluster("x", THREE, {**ONE_TOPIC, "__offsets": INTERNAL}),
    ),
    (
        "what is not declared goes",
        DesiredCluster("c", topics=TopicPolicy(is_all_managed=True, is_delete_allowed=True)),
        {},
        Cluster("x", THREE, {**ONE_TOPIC, "__offsets": INTERNAL}),
    ),
]
NONE = Within(Fraction(0))


@pytest.mark.parametrize(
    "balance", [Balance(), Balance(Even(), Even(), Even()), Balance(NONE, NONE, NONE)], ids=["off", "even", "within"]
)
@pytest.mark.parametrize(
    ("document", "topics", "observed"), [edge[1:] for edge in EDGES], ids=[edge[0] for edge in EDGES]
)
def test_plans_at_the_edges_are_proved(
    document: DesiredCluster, topics: dict[str, DesiredTopic], observed: Cluster, balance: Balance
) -> None:
    desired = Desired(replace(document, balance=balance), topics)
    verdict = prove_end(provable_plan(desired, observed), desired, observed)
    assert verdict.wrong is None


def test_a_round_trip_is_not_proved_to_copy_nothing() -> None:
    there, back = ((1, 2), (1, 3)), ((1, 3), (1, 2))
    moves = [Move(TopicPartition("t", 0), before, after, 5, Reason.BALANCE) for before, after in (there, back)]
    desired = Desired(DesiredCluster("c"), {"t": DesiredTopic("t", protect=frozenset({Protection.MOVE}))})
    observed = Cluster("x", THREE, ONE_TOPIC)
    plan = provable_plan(desired, observed)
    assert prove_end(plan, desired, observed).is_proved
    stages = tuple(ReassignStage(number, (move,)) for number, move in enumerate(moves, start=1))
    wrong = prove_end(replace(plan, stages=stages), desired, observed).wrong
    assert wrong == "the plan copies 2 replicas, although nothing is asked for"


def test_a_plan_of_some_topics_says_so() -> None:
    desired = Desired(DesiredCluster("c"), {"t": DesiredTopic("t", replication_factor=3)})
    observed = Cluster("x", THREE, ONE_TOPIC)
    plan = provable_plan(desired, observed)
    assert prove_end(plan, desired, observed).notes == ()
    confined = replace(plan, source=replace(plan.source, only=("t", "u*")))
    (note,) = prove_end(confined, desired, observed).notes
    assert note == "This is shown among the plans for the same topics alone: t, u*."


def test_a_pattern_is_followed_as_the_planner_follows_it() -> None:
    patterns = (DesiredTopic("t*", replication_factor=3), DesiredTopic("*", replication_factor=1))
    desired, observed = Desired(DesiredCluster("c"), {}, patterns), Cluster("x", THREE, ONE_TOPIC)
    plan = provable_plan(desired, observed)
    assert prove_end(plan, desired, observed).is_proved
    assert not prove_end(plan, replace(desired, patterns=patterns[1:]), observed).is_proved
