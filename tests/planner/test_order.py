"""Kept replicas stay in their present order, whatever is copied beside them."""

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.desired import (
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Placement,
    Spread,
)
from reconciler.planner.place import plan_placement


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
    observed = small_cluster(f"t-0: {present} size 100", brokers=range(1, 11))
    states = {draining: DesiredBroker(draining, BrokerState.DRAINING)} if draining is not None else {}
    topic = DesiredTopic("t", replication_factor=replication_factor, placement=Placement(racks_spread=Spread.IGNORE))
    desired = Desired(DesiredCluster("c", brokers=states), {"t": topic})
    rules = topic_rules(desired, observed)
    (move,) = plan_placement(desired, observed, rules, compare(desired, observed, rules)).moves
    *before, new = move.to_replicas
    assert tuple(before) == kept
    assert new not in {int(broker_id) for broker_id in present.split(",")}
