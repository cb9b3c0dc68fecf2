"""Why a partition moves, and the line that asks for it, where it breaks no rule and a balance alone moves it."""

from fractions import Fraction

import pytest
from helpers.clusters.small_cluster import small_cluster
from planner.load_balance.planning import planned_with

from reconciler.model.desired import Balance, Desired, DesiredCluster, DesiredTopic, Even, Placement, Spread, Within
from reconciler.model.loads import Loads, PartitionLoad
from reconciler.model.move import Reason
from reconciler.model.move_table import Moves
from reconciler.model.problem import Location
from reconciler.model.topic_partition import TopicPartition

NAMES = ("replicas", "leaders", "topics", "disk", "networkIn", "networkOut")
AT = {name: Location("cluster.yaml", line) for line, name in enumerate(NAMES, start=10)}
WITHIN = Within(Fraction(1, 10))


def _moves(balance: Balance, replicas: str) -> Moves:
    """Return the moves of two like partitions on brokers 1 and 2, each with its share of every load."""
    observed = small_cluster(*(f"t-{number}: {replicas} size 10" for number in range(2)), brokers=(1, 2))
    topic = DesiredTopic("t", placement=Placement(racks_spread=Spread.IGNORE))
    loads = Loads({TopicPartition("t", number): PartitionLoad(10, 10, 10) for number in range(2)})
    return planned_with(Desired(DesiredCluster("c", balance=balance), {"t": topic}), observed, loads).moves


@pytest.mark.parametrize(
    ("balance", "named"),
    [
        (Balance(replicas=Even(), leaders=Even(), at=AT), "replicas"),
        (Balance(topics=Even(), at=AT), "topics"),
        (Balance(disk=WITHIN, at=AT), "disk"),
        (Balance(network_in=WITHIN, at=AT), "networkIn"),
        (Balance(network_out=WITHIN, at=AT), "networkOut"),
        (Balance(disk=WITHIN, network_in=WITHIN, at=AT), "disk"),
    ],
)
def test_what_is_copied_for_a_balance_names_the_first_measure_that_asks_for_copies(
    balance: Balance, named: str
) -> None:
    (move,) = _moves(balance, "1")
    assert (move.reason, move.at) == (Reason.BALANCE, AT[named])


@pytest.mark.parametrize(
    ("balance", "named"),
    [
        (Balance(leaders=Even(), at=AT), "leaders"),
        (Balance(replicas=Even(), leaders=Even(), at=AT), "leaders"),
        (Balance(network_out=WITHIN, at=AT), "networkOut"),
    ],
)
def test_what_is_reordered_for_a_balance_names_the_first_measure_of_leaders(balance: Balance, named: str) -> None:
    (move,) = _moves(balance, "1,2")
    assert move.to_replicas == (2, 1)
    assert (move.reason, move.at, move.bytes) == (Reason.LEADERS, AT[named], 0)
