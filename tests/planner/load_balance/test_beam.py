"""Few partitions with loads that differ much: bands that single exchanges stop short of are reached all the same."""

from dataclasses import replace
from fractions import Fraction

from helpers.clusters.small_cluster import small_cluster
from planner.load_balance.planning import planned_with

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Balance, Desired, DesiredCluster, DesiredTopic, Off, Placement, Spread, Within
from reconciler.model.loads import Loads, PartitionLoad
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.place import Placed

BROKERS = (1, 2, 3, 4)
REPLICAS = ((1, 2), (2, 1), (1, 2), (2, 1), (3, 4), (4, 3), (3, 4), (4, 3), (1, 4), (2, 3))
# As they were measured on real brokers: bytes a second, and bytes of one copy.
RATES = (237756, 227968, 182308, 143672, 28950, 23536, 19030, 9788, 69414, 37822)
SIZES = (7576480, 7673331, 6285861, 6640800, 1115540, 464492, 642366, 247260, 2928463, 1386697)


def _planned(rates: tuple[int, ...]) -> Placed:
    lines = [
        f"clicks-{number}: {first},{second} leader {first} size {size}"
        for number, ((first, second), size) in enumerate(zip(REPLICAS, SIZES, strict=True))
    ]
    observed = small_cluster(*lines, brokers=BROKERS)
    load_of = {
        TopicPartition("clicks", number): PartitionLoad(rate, None, size)
        for number, (rate, size) in enumerate(zip(rates, SIZES, strict=True))
    }
    return planned_with(_desired(observed), observed, Loads(load_of))


def _desired(observed: Cluster) -> Desired:
    balance = Balance(
        replicas=Off(),
        leaders=Off(),
        disk=Within(Fraction(1, 4)),
        network_in=Within(Fraction(1, 10)),
        network_out=Off(),
    )
    topic = DesiredTopic("clicks", placement=Placement(racks_spread=Spread.IGNORE))
    return Desired(replace(DesiredCluster("live"), cluster_id=observed.cluster_id, balance=balance), {"clicks": topic})


def _taken(placed: Placed, rates: tuple[int, ...]) -> list[float]:
    """Return what each broker takes in, as a share of its fair share."""
    reached: dict[int, tuple[int, ...]] = dict(enumerate(REPLICAS))
    reached |= {move.topic_partition.partition: move.to_replicas for move in placed.moves}
    mean = 2 * sum(rates) / len(BROKERS)
    return [sum(rates[number] for number, replicas in reached.items() if one in replicas) / mean for one in BROKERS]


def test_a_band_that_single_exchanges_miss_is_kept() -> None:
    placed = _planned(RATES)
    assert all(0.9 <= share <= 1.1 for share in _taken(placed, RATES))
    assert "KR842" not in {each.code for each in placed.warnings}


def test_a_band_that_nothing_keeps_is_told() -> None:
    rates = (2_000_000, *RATES[1:])
    placed = _planned(rates)
    assert max(_taken(placed, rates)) > 1.1
    assert "KR842" in {each.code for each in placed.warnings}
