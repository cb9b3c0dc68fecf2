"""What is counted for a load that was never measured, and how that is told."""

from dataclasses import replace
from fractions import Fraction

import pytest
from helpers.plans.planning import cluster_after
from planner.load_balance.planning import planned_with

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import Balance, Desired, DesiredCluster, DesiredTopic, Even, Limits, Protection, Within
from reconciler.model.loads import Loads, PartitionLoad
from reconciler.model.problem import InvalidInput, Location
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.load_balance.measured import measured
from reconciler.planner.to_place import PartitionToPlace

KEY = TopicPartition
WITHIN = Within(Fraction(1, 10))
AT = {name: Location("cluster.yaml", line) for line, name in enumerate(("disk", "networkIn", "networkOut"), start=5)}
ALL = Balance(disk=WITHIN, network_in=WITHIN, network_out=WITHIN, at=AT)


def _two_topics(balance: Balance) -> tuple[Desired, Cluster]:
    """Return two brokers, all of topics `a` and `b` on the first; each partition has 10 bytes."""
    topics = {
        name: Topic(name, tuple(Partition(n, 1, (1,), (1,), sizes=(10,)) for n in range(4))) for name in ("a", "b")
    }
    observed = Cluster("c", {1: Broker(1), 2: Broker(2)}, topics)
    declared = {name: DesiredTopic(name) for name in topics}
    return Desired(DesiredCluster("c", balance=balance), declared), observed


def _slot(key: TopicPartition, size: int | None = 10, replicas: tuple[int, ...] = (1,)) -> PartitionToPlace:
    desired, observed = _two_topics(ALL)
    from reconciler.diff.rules import topic_rules

    return PartitionToPlace(key, topic_rules(desired, observed)["a"], replicas, (), 1, size)


def test_the_unknown_counts_as_the_mean_of_the_topic_else_of_the_cluster_rounded_up() -> None:
    partitions = [_slot(KEY("a", n)) for n in range(3)] + [_slot(KEY("b", 0))]
    loads = Loads({KEY("a", 0): PartitionLoad(1, 10, 100), KEY("a", 1): PartitionLoad(4, None, 200)})
    found = measured(partitions, [], ALL, loads)
    assert found.of == {
        KEY("a", 0): (100, 1, 10),
        KEY("a", 1): (200, 4, 10),
        KEY("a", 2): (10, 3, 10),
        KEY("b", 0): (10, 3, 10),
    }


def test_what_is_unknown_is_counted_and_told_for_each_measure_that_is_asked_for() -> None:
    partitions = [_slot(KEY("a", 0)), _slot(KEY("a", 1), None), _slot(KEY("a", 2), 0, ())]
    warnings = measured(partitions, [], ALL, Loads({KEY("a", 0): PartitionLoad(1, None, 100)})).warnings
    assert [(problem.code, problem.at) for problem in warnings] == [("KR841", AT[name]) for name in AT]
    assert warnings[0].message.startswith("balance.disk: the load of a-1 is unknown; each counts as the mean")
    assert "2 partitions (a-0 and others) are unknown" in warnings[2].message
    (only_disk,) = measured(partitions, [], Balance(disk=WITHIN), Loads({})).warnings
    assert "a-1 is" in only_disk.message


def test_amounts_that_no_exact_sum_could_hold_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"cannot be planned exactly: check the unit .*KR343"):
        measured([_slot(KEY("a", 0))], [], ALL, Loads({KEY("a", 0): PartitionLoad(10**18, 0, 1)}))


def test_partitions_of_unknown_load_are_spread_by_their_mean_and_stay_there() -> None:
    desired, observed = _two_topics(Balance(network_in=WITHIN, at=AT))
    loads = Loads({KEY("a", n): PartitionLoad(100, 0, 10) for n in range(4)})
    placed = planned_with(desired, observed, loads)
    assert len(placed.moves) == 4
    assert [problem.code for problem in placed.warnings] == ["KR841"]
    assert placed.balance_after[2].bytes_in_per_second == 400
    limited = replace(desired, cluster=replace(desired.cluster, limits=Limits(rates={"networkOut": 10**9})))
    told = [problem.message.partition(":")[0] for problem in planned_with(limited, observed, loads).warnings]
    assert told == ["balance.networkIn", "limits.networkOut"]
    assert not planned_with(desired, cluster_after(observed, placed.moves, ()), loads).moves


def test_disks_are_balanced_by_the_sizes_of_the_snapshot_without_loads() -> None:
    desired, observed = _two_topics(Balance(disk=WITHIN, at=AT))
    placed = planned_with(desired, observed, None)
    assert (placed.proof.value, placed.proof.lower_bound) == (40, 36)
    assert {move.at for move in placed.moves} == {AT["disk"]}
    assert placed.balance_after[1].bytes == placed.balance_after[2].bytes == 40
    assert placed.balance_after[1].bytes_in_per_second is None


def test_what_may_not_move_counts_where_it_is_when_disks_are_balanced() -> None:
    desired, observed = _two_topics(Balance(disk=WITHIN, at=AT))
    protected = DesiredTopic("b", protect=frozenset({Protection.MOVE}))
    placed = planned_with(replace(desired, topics={**desired.topics, "b": protected}), observed, None)
    assert [move.topic_partition for move in placed.moves] == [KEY("a", n) for n in range(4)]
    assert placed.balance_after[1].bytes == placed.balance_after[2].bytes == 40


def test_what_cannot_be_balanced_is_refused_with_its_line() -> None:
    desired, observed = _two_topics(replace(ALL, disk=Even()))
    with pytest.raises(InvalidInput) as raised:
        planned_with(desired, observed, None)
    told = [(problem.code, problem.at) for problem in raised.value.problems]
    assert told == [("KR341", AT["networkIn"]), ("KR341", AT["networkOut"]), ("KR342", AT["disk"])]


def test_the_whole_numbers_next_to_a_share_of_counts_are_inside_a_band() -> None:
    desired, observed = _two_topics(Balance(replicas=WITHIN, leaders=WITHIN, disk=Within(Fraction(1, 2))))
    three = {"a": Topic("a", observed.topics["a"].partitions[:3])}
    desired = replace(desired, topics={"a": DesiredTopic("a")})
    placed = planned_with(desired, replace(observed, topics=three), None)
    assert sorted(share.replicas for share in placed.balance_after.values()) == [1, 2]
    assert sorted(share.leaders for share in placed.balance_after.values()) == [1, 2]
    assert [problem for problem in placed.warnings if problem.code == "KR842"] == []


def test_a_partition_larger_than_a_band_is_told_as_what_forbids_more() -> None:
    desired, observed = _two_topics(Balance(disk=WITHIN, at=AT))
    loads = Loads({KEY("a", 0): PartitionLoad(0, 0, 10_000)})
    (told,) = [problem for problem in planned_with(desired, observed, loads).warnings if problem.code == "KR842"]
    assert "broker 2 ends at 10000 bytes, above its band's" in told.message
    assert "(1 more broker is outside as well): one partition alone is more than that" in told.message
