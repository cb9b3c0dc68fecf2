"""New topics go round the brokers where nothing else decides."""

from collections import Counter

from helpers.clusters.small_cluster import small_cluster
from helpers.plans.planning import planned

from reconciler.model.change import CreateTopic
from reconciler.model.desired import Balance, Desired, DesiredCluster, DesiredTopic, Even, Placement, Spread


def assignment(partitions: int, replication_factor: int, balance: Balance) -> dict[int, tuple[int, ...]]:
    placement = Placement(racks_spread=Spread.STRICT)
    topic = DesiredTopic("new", partitions=partitions, replication_factor=replication_factor, placement=placement)
    desired, observed = Desired(DesiredCluster("c", balance=balance), {"new": topic}), small_cluster()
    (change,) = planned(desired, observed).topic_changes
    assert isinstance(change, CreateTopic)
    return dict(change.assignment)


def test_a_new_topics_replicas_leaders_and_pairs_spread_over_all_brokers() -> None:
    for balance in (Balance(), Balance(replicas=Even(), leaders=Even())):
        placed = assignment(12, 3, balance)
        assert set(Counter(replica for replicas in placed.values() for replica in replicas).values()) == {6}
        assert set(Counter(replicas[0] for replicas in placed.values()).values()) == {2}
        assert len({frozenset(replicas) for replicas in placed.values()}) > 2


def test_a_single_partition_starts_with_the_first_broker() -> None:
    assert assignment(1, 3, Balance()) == {0: (1, 2, 3)}
