"""The order of a partition's replicas in a plan: the leader, kept ones as they stand, new ones by id from the leader's.

What is written out as an assignment stands as it is written.
"""

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.planning import planned

from reconciler.model.desired import (
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Placement,
    Spread,
)

BROKERS = range(1, 11)


def _planned(
    present: str, topic: DesiredTopic | None, draining: int | None = None, brokers: range = BROKERS
) -> tuple[int, ...]:
    observed = small_cluster(f"t-0: {present} size 100", brokers=brokers)
    states = {draining: DesiredBroker(draining, BrokerState.DRAINING)} if draining is not None else {}
    desired = Desired(DesiredCluster("c", brokers=states), {"t": topic} if topic else {})
    (move,) = planned(desired, observed).moves
    return move.to_replicas


def _topic(replication_factor: int) -> DesiredTopic:
    return DesiredTopic("t", replication_factor=replication_factor, placement=Placement(racks_spread=Spread.IGNORE))


@pytest.mark.parametrize(
    ("present", "draining", "replication_factor", "kept"),
    [
        ("5,2,9,4", 9, 4, (5, 2, 4)),
        ("1,9,5,2", 5, 4, (1, 9, 2)),
        ("1,9,5,2", 9, 4, (1, 5, 2)),
        ("4,9,5,2", 4, 4, (2, 9, 5)),  # a new leader comes first, the others stay in order behind it
        ("5,9,2", None, 4, (5, 9, 2)),
        ("7,3,9,2,5", 3, 5, (7, 9, 2, 5)),
    ],
)
def test_kept_replicas_stay_in_their_present_order_where_another_is_copied(
    present: str, draining: int | None, replication_factor: int, kept: tuple[int, ...]
) -> None:
    *before, new = _planned(present, _topic(replication_factor), draining)
    assert tuple(before) == kept
    assert new not in {int(broker_id) for broker_id in present.split(",")}


def test_new_replicas_follow_by_id_from_the_leaders_on() -> None:
    assert _planned("3", _topic(5), brokers=range(1, 6)) == (3, 4, 5, 1, 2)
    assert _planned("3,2", _topic(5), brokers=range(1, 6)) == (3, 2, 4, 5, 1)


def test_an_undeclared_topics_other_replicas_stay_in_order_where_one_has_to_leave() -> None:
    assert _planned("4,9,2", None, draining=9, brokers=range(1, 10))[:2] == (4, 2)
    assert len(_planned("4,9,2", None, draining=9)) == 3
    assert _planned("7,9,5,2", None, draining=9)[:3] == (7, 5, 2)


def test_a_replica_that_only_goes_is_a_move_although_the_rest_stays_as_it_is() -> None:
    observed = small_cluster("t-0: 1,2,3 size 5", "u-0: 1 size 5", fenced=[3])
    draining = DesiredCluster("c", brokers={3: DesiredBroker(3, BrokerState.DRAINING)})
    desired = Desired(draining, {"t": _topic(2), "u": DesiredTopic("u")})
    placed = planned(desired, observed)
    assert [(move.from_replicas, move.to_replicas) for move in placed.moves] == [((1, 2, 3), (1, 2))]


def test_an_assignment_stands_as_it_is_written() -> None:
    topic = DesiredTopic("t", placement=Placement(assignment=((9, 2, 5),)))
    assert _planned("2,5,7", topic) == (9, 2, 5)
    assert _planned("2,5,9", topic) == (9, 2, 5)
    assert _planned("9,5,2", topic) == (9, 2, 5)


def _levels(topic: DesiredTopic, *lines: str) -> dict[str, tuple[int, int]]:
    """Return the value and the bound of each level of the proof."""
    proof = planned(Desired(DesiredCluster("c"), {topic.name: topic}), small_cluster(*lines)).proof
    return {level.objective: (level.value, level.lower_bound) for level in proof.levels}


def test_an_assignment_counts_in_the_proof_by_what_it_copies_as_far_as_that_is_known() -> None:
    placement = Placement(assignment=((1, 2, 3),))
    unknown = _levels(DesiredTopic("t", placement=placement), "t-0: 2,5,6")
    assert (unknown["replicas"], unknown["bytes"]) == ((2, 2), (0, 0))
    new = _levels(DesiredTopic("t", partitions=1, replication_factor=3, placement=placement), "u-0: 1 size 5")
    assert (new["replicas"], new["bytes"]) == ((0, 0), (0, 0))


def test_what_an_assignment_copies_is_in_the_proof_and_in_its_bound() -> None:
    observed = small_cluster("t-0: 2,5,7 size 100")
    topic = DesiredTopic("t", placement=Placement(assignment=((1, 2, 3),)))
    desired = Desired(DesiredCluster("c"), {"t": topic})
    proof = planned(desired, observed).proof
    assert (proof.value, proof.lower_bound) == (200, 200)
    levels = {level.objective: (level.value, level.lower_bound) for level in proof.levels}
    assert (levels["bytes"], levels["replicas"], levels["leaders changed"]) == ((200, 200), (2, 2), (1, 1))
