"""What a placement holds beside the order of replicas: bytes, new partitions, what a deletion leaves."""

from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.planning import planned

from reconciler.model.budget import Budget
from reconciler.model.change import CreatePartitions, DeleteTopic
from reconciler.model.desired import (
    Balance,
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    Limits,
    Placement,
    TopicPolicy,
)
from reconciler.model.move import Reason
from reconciler.model.plan import TieredBytes
from reconciler.model.problem import Location
from reconciler.model.topic_partition import TopicPartition

AT = Location("c/cluster.yaml", 9)
EVEN_UNWRITTEN = Balance(replicas=Even())
"""A balance that no line asks for."""


def test_a_growth_assigns_new_partitions_alone_although_others_move_too() -> None:
    draining = DesiredCluster("c", brokers={1: DesiredBroker(1, BrokerState.DRAINING)})
    desired = Desired(draining, {"t": DesiredTopic("t", partitions=2, replication_factor=2)})
    placed = planned(desired, small_cluster("t-0: 1,2 size 5"))
    assert [move.topic_partition for move in placed.moves] == [TopicPartition("t", 0)]
    (growth,) = placed.topic_changes
    assert isinstance(growth, CreatePartitions)
    assert list(growth.assignment) == [1]


def test_the_bytes_of_a_move_are_known_where_its_size_is() -> None:
    draining = DesiredCluster("c", brokers={1: DesiredBroker(1, BrokerState.DRAINING)})
    moves = planned(Desired(draining, {"t": DesiredTopic("t")}), small_cluster("t-0: 1", "t-1: 1 size 5")).moves
    assert [(move.bytes, move.is_size_known) for move in moves] == [(0, False), (5, True)]
    empty = planned(Desired(draining, {"t": DesiredTopic("t")}), small_cluster("t-0: 1 size 0"), budget=Budget(bytes=0))
    assert [(move.bytes, move.is_size_known) for move in empty.moves] == [(0, True)]
    assert empty.warnings == ()


def test_a_broker_whose_id_is_0_is_as_any_other() -> None:
    desired = Desired(DesiredCluster("c", balance=Balance(replicas=Even())), {"t": DesiredTopic("t")})
    assert not planned(desired, small_cluster("t-0: 0,1", "t-1: 1,0", brokers=(0, 1))).moves
    (move,) = planned(desired, small_cluster("t-0: 1", "t-1: 1", brokers=(0, 1))).moves
    assert move.to_replicas == (0,)


@pytest.mark.parametrize(
    "limits", [Limits(replicas_per_broker=1, at={"replicasPerBroker": AT}), Limits(at={"diskUse": AT})]
)
def test_what_moves_for_a_limits_sake_has_its_line(limits: Limits) -> None:
    (move,) = planned(
        Desired(DesiredCluster("c", limits=limits, balance=EVEN_UNWRITTEN), {"t": DesiredTopic("t")}),
        small_cluster("t-0: 1 size 5", "t-1: 1 size 5", brokers=(1, 2)),
    ).moves
    assert move.at == AT


def test_a_new_leader_alone_has_another_reason_than_new_replicas() -> None:
    balance = Balance(replicas=Even(), leaders=Even())
    desired = Desired(DesiredCluster("c", balance=balance), {name: DesiredTopic(name) for name in "tu"})
    observed = small_cluster("t-0: 1,2 size 5", "t-1: 1,2 size 5", "u-0: 1 size 5", "u-1: 1 size 5", brokers=(1, 2))
    moves = planned(desired, observed).moves
    assert [(move.topic_partition.topic, move.reason) for move in moves] == [
        ("t", Reason.LEADERS),
        ("u", Reason.BALANCE),
    ]


def test_what_a_budget_leaves_undone_is_not_told_as_forbidden_by_rules() -> None:
    desired = Desired(DesiredCluster("c", balance=Balance(topics=Even())), {"t": DesiredTopic("t")})
    observed = small_cluster("t-0: 1 size 5", "t-1: 1 size 5", brokers=(1, 2))
    placed = planned(desired, observed, budget=Budget(bytes=0))
    assert (len(placed.moves), [problem.code for problem in placed.warnings]) == (0, ["KR871"])


def test_what_stands_as_it_is_assigned_does_not_move_beside_what_does_not() -> None:
    topics = {"t": ((1, 2), (2, 1)), "u": ((2, 1),)}
    declared = {name: DesiredTopic(name, placement=Placement(assignment=lists)) for name, lists in topics.items()}
    observed = small_cluster("t-0: 1,2 size 5", "t-1: 1,2 size 5", "u-0: 2,1 size 5")
    moves = planned(Desired(DesiredCluster("c"), declared), observed).moves
    assert [move.topic_partition for move in moves] == [TopicPartition("t", 1)]


def test_with_only_some_topics_the_others_stay_where_they_are() -> None:
    draining = DesiredCluster("c", brokers={1: DesiredBroker(1, BrokerState.DRAINING)})
    desired = Desired(draining, {name: DesiredTopic(name) for name in "tu"})
    observed = small_cluster("t-0: 1,2 size 5", "u-0: 1,2 size 5")
    assert [move.topic_partition.topic for move in planned(desired, observed, only={"u"}).moves] == ["u"]


def test_what_a_deletion_takes_away_is_not_counted_afterwards() -> None:
    cluster = DesiredCluster("c", topics=TopicPolicy(is_delete_allowed=True))
    placed = planned(
        Desired(cluster, {"old": DesiredTopic("old", is_absent=True)}),
        small_cluster("old-0: 1,2 size 5", "t-0: 1,3 size 7"),
    )
    assert [type(change) for change in placed.topic_changes] == [DeleteTopic]
    assert (placed.balance_before[1].replicas, placed.balance_before[1].bytes) == (2, 12)
    assert (placed.balance_after[1].replicas, placed.balance_after[1].bytes) == (1, 7)


@pytest.mark.parametrize(
    ("remote_storage", "untiered", "counted"),
    [
        ("true", (40, 50), TieredBytes.UNTIERED),
        ("true", (40, None), TieredBytes.LOCAL),
        ("true", (None, None), TieredBytes.LOCAL),
        ("false", (40, 50), None),
    ],
)
def test_a_proof_says_which_bytes_of_tiered_topics_it_counts(
    remote_storage: str, untiered: tuple[int | None, ...], counted: TieredBytes | None
) -> None:
    observed = small_cluster(
        "t-0: 1,2 size 900",
        "t-1: 1,2 size 900",
        "u-0: 1,2 size 5",
        configs={"t": {"remote.storage.enable": remote_storage}},
    )
    parts = zip(observed.topics["t"].partitions, untiered, strict=True)
    tiered = replace(observed.topics["t"], partitions=tuple(replace(part, untiered_bytes=size) for part, size in parts))
    observed = replace(observed, topics={**observed.topics, "t": tiered})
    declared = {name: DesiredTopic(name, replication_factor=3) for name in ("t", "u")}
    assert planned(Desired(DesiredCluster("c"), declared), observed).proof.tiered is counted
    shrunk = {name: DesiredTopic(name, replication_factor=1) for name in ("t", "u")}
    assert planned(Desired(DesiredCluster("c"), shrunk), observed).proof.tiered is None
