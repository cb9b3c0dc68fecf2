"""What is supposed is made true in both states, and nothing else; what makes no sense is told, all of it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.what_if import NotASupposition, health, suppose, suppositions
from reconciler.model.cluster import Cluster, LogDir
from reconciler.model.desired import BrokerState, Desired, DesiredBroker, DesiredCluster, DesiredTopic, Placement
from reconciler.model.problem import InvalidInput, Location
from reconciler.model.stage import moves_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.what_if import (
    AddBroker,
    Affected,
    DrainBroker,
    FailBroker,
    FailRack,
    Health,
    SetPartitions,
    SetReplicationFactor,
)
from reconciler.workflow.plan import plan_of

DECLARED = Desired(
    DesiredCluster("c", brokers={8: DesiredBroker(8, BrokerState.ABSENT, at=Location("c/cluster.yaml", 4))}),
    {
        "orders": DesiredTopic("orders", partitions=2, replication_factor=2, at={"": Location("c/t.yaml", 3)}),
        "fixed": DesiredTopic(
            "fixed", placement=Placement(assignment=((1, 2),)), at={"placement.assignment": Location("c/t.yaml", 9)}
        ),
        "old": DesiredTopic("old", is_absent=True, at={"state": Location("c/t.yaml", 19)}),
    },
    patterns=(DesiredTopic("metrics.*", placement=Placement(brokers_except=frozenset({6}))),),
)
LINES = ("fixed-0: 1,2", "metrics.cpu-0: 1,2", "old-0: 1,2", "orders-0: 1,2", "orders-1: 2,3", "plain-0: 4,5")


def _cluster() -> Cluster:
    return small_cluster(*LINES)


@pytest.mark.parametrize(
    ("text", "supposed"),
    [
        ("drain=5", (DrainBroker(5),)),
        ("drain=5,add=9@rack-c", (DrainBroker(5), AddBroker(9, "rack-c"))),
        ("add=9", (AddBroker(9),)),
        ("add=9@a@b", (AddBroker(9, "a@b"),)),
        ("fail=3", (FailBroker(3),)),
        ("fail-rack=a=b", (FailRack("a=b"),)),
        (r"add=9@row1\,left,fail-rack=row1\,right", (AddBroker(9, "row1,left"), FailRack("row1,right"))),
        ("replicationFactor=orders:3, partitions=o:24", (SetReplicationFactor("orders", 3), SetPartitions("o", 24))),
    ],
)  # fmt: skip
def test_a_supposition_reads_as_written(text: str, supposed: Sequence[object]) -> None:
    assert suppositions([text]) == tuple(supposed)
    assert ",".join(map(str, suppositions([text]))) == text.replace(" ", "")


def test_the_option_may_be_repeated() -> None:
    assert suppositions(["drain=5", "add=9@c"]) == suppositions(["drain=5,add=9@c"])


@pytest.mark.parametrize(
    "text",
    [
        "", ",", "drain=5,", "drain", "drain=", "drain=x", "drain=-1", "drain=1e3", "drain=٣", "Drain=5", "add=@a",
        "add=9@", "fail-rack=", "replicationFactor=orders", "replicationFactor=orders:0", "replicationFactor=:3",
        "partitions=orders:-1", "partitions=orders:1.5", "drop=5", "drain=99999999999",
    ],
)  # fmt: skip
def test_nonsense_is_no_supposition(text: str) -> None:
    with pytest.raises(NotASupposition):
        suppositions([text])


def test_how_a_comma_in_a_rack_is_written_is_said() -> None:
    with pytest.raises(NotASupposition, match=r"'right' is not one of .*; write a comma in the name of a rack as \\,"):
        suppositions(["fail-rack=row1,right"])


def test_a_broker_that_is_gone_for_good_and_still_has_replicas_can_be_supposed_to_drain() -> None:
    observed = small_cluster("orders-0: 1,7 isr 1 size 1", "orders-1: 1,2 size 1")
    supposed = suppose(DECLARED, observed, suppositions(["drain=7"]))
    (move,) = moves_of(plan_of(replace(supposed.desired, topics={"orders": DesiredTopic("orders")}), observed).stages)
    assert 7 not in move.to_replicas


def test_how_a_supposition_of_a_topic_is_written_is_told() -> None:
    with pytest.raises(NotASupposition, match="'partitions=orders': write TOPIC:N, N being at least 1"):
        suppositions(["partitions=orders"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("drain=7", "no broker 7 is registered; known are 1, 2, 3, 4, 5, 6"),
        ("fail=7", "no broker 7 is registered; known are 1, 2, 3, 4, 5, 6"),
        ("fail=5,fail=5", "this is supposed twice"),
        ("add=3@a", "broker 3 is registered already"),
        ("add=9", "say in which rack: add=9@RACK; known are a, b, c"),
        ("add=8@a", "broker 8 is declared absent (c/cluster.yaml:4): it would receive nothing"),
        ("fail-rack=z", "no broker is in rack 'z'; known are a, b, c"),
        ("replicationFactor=order:3", "no topic 'order' is observed or declared; did you mean 'orders'?"),
        (
            "partitions=zzz:3",
            "no topic 'zzz' is observed or declared; known are fixed, metrics.cpu, old, orders, plain",
        ),
        ("partitions=orders:1", "it has 2 partitions, and Kafka cannot take any away"),
        ("replicationFactor=fixed:3", "its replicas are written one by one (c/t.yaml:9): change that instead"),
        ("partitions=fixed:3", "its replicas are written one by one (c/t.yaml:9)"),
        ("replicationFactor=old:3", "topic old is declared absent (c/t.yaml:19)"),
        ("drain=5,drain=5", "this is supposed twice"),
        ("partitions=orders:4,partitions=orders:5", "partitions=orders:5: this is supposed twice"),
    ],
)
def test_what_makes_no_sense_for_this_cluster_is_told(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        suppose(DECLARED, _cluster(), suppositions([text]))
    (problem,) = refused.value.problems
    assert words in problem.message
    assert problem.message.startswith("--what-if ")
    assert problem.code == "KR307"


def test_all_of_it_is_told_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        suppose(DECLARED, _cluster(), suppositions(["drain=7,drain=5,fail-rack=z"]))
    assert len(refused.value.problems) == 2


def test_a_drain_keeps_what_else_is_declared_of_the_broker() -> None:
    desired = Desired(DesiredCluster("c", brokers={5: DesiredBroker(5, capacity=2, at=Location("c", 7))}))
    after = suppose(desired, _cluster(), suppositions(["drain=5"]))
    assert after.desired.cluster.brokers == {5: DesiredBroker(5, BrokerState.DRAINING, 2, at=Location("--what-if", 1))}
    assert after.observed == _cluster()


def test_a_new_broker_is_empty_with_the_disks_of_the_smallest_peer_of_its_rack() -> None:
    cluster = _cluster()
    small = {
        **cluster.brokers,
        1: replace(cluster.brokers[1], log_dirs=(LogDir("/of another rack", 10, 3),)),
        6: replace(cluster.brokers[6], log_dirs=(LogDir("/small", 100, 3),)),
    }
    cluster = Cluster("c", small, cluster.topics)
    after = suppose(DECLARED, cluster, suppositions(["add=9@c"]))
    assert after.observed.brokers[9].log_dirs == (LogDir("/small", 100, 100),)
    assert after.observed.brokers[9].rack == "c"
    assert list(after.observed.brokers) == [1, 2, 3, 4, 5, 6, 9]
    assert after.assumptions == ("broker 9 joins in rack c, empty, with disks like those of broker 6",)
    assert after.desired == DECLARED
    assert after.observed.topics == cluster.topics


def test_a_new_rack_is_said_to_be_new() -> None:
    after = suppose(DECLARED, _cluster(), suppositions(["add=9@d"]))
    assert after.assumptions == ("broker 9 joins in rack d, empty, with disks like those of broker 1; rack d is new",)


def test_a_failed_rack_leads_nothing_and_is_in_no_isr_and_who_led_last_stays_eligible() -> None:
    cluster = small_cluster("a-0: 1,2,3", "a-1: 4,1", "a-2: 2,4 leader 4")
    after = suppose(Desired(DesiredCluster("c")), cluster, suppositions(["fail-rack=a"])).observed
    assert [broker.is_fenced for broker in after.brokers.values()] == [True, False, False, True, False, False]
    found = {number: after.partition(TopicPartition("a", number)) for number in range(3)}
    assert [(one.leader, one.isr) for one in found.values() if one] == [(2, (2, 3)), (None, ()), (2, (2,))]
    assert found[1] is not None
    assert found[1].elr == (4,)


def test_a_failed_broker_leads_nothing_and_is_in_no_isr() -> None:
    cluster = small_cluster("a-0: 1,2,3", "a-1: 4,1")
    after = suppose(Desired(DesiredCluster("c")), cluster, suppositions(["fail=1"]))
    assert [broker_id for broker_id in cluster.brokers if not after.observed.is_alive(broker_id)] == [1]
    found = [after.observed.partition(TopicPartition("a", number)) for number in range(2)]
    assert [(one.leader, one.isr) for one in found if one] == [(2, (2, 3)), (4, (4,))]
    assert after.assumptions == ("broker 1 is down",)


def test_suppositions_hold_in_the_order_given() -> None:
    before = suppose(DECLARED, _cluster(), suppositions(["add=9@a,fail-rack=a"]))
    after = suppose(DECLARED, _cluster(), suppositions(["fail-rack=a,add=9@a"]))
    assert [before.observed.is_alive(9), after.observed.is_alive(9)] == [False, True]


def test_the_same_may_be_supposed_of_several_topics() -> None:
    found = suppose(DECLARED, _cluster(), suppositions(["partitions=orders:4,partitions=plain:3"]))
    assert {name: found.desired.topics[name].partitions for name in ("orders", "plain")} == {"orders": 4, "plain": 3}
    failed = suppose(DECLARED, _cluster(), suppositions(["fail-rack=a,fail-rack=b"])).observed
    assert [broker_id for broker_id in failed.brokers if failed.is_alive(broker_id)] == [3, 6]


def test_topics_change_in_what_is_declared_alone() -> None:
    after = suppose(DECLARED, _cluster(), suppositions(["replicationFactor=orders:3,partitions=orders:24"]))
    orders = after.desired.topics["orders"]
    assert (orders.replication_factor, orders.partitions) == (3, 24)
    assert orders.where("replicationFactor") == Location("--what-if", 1)
    assert orders.where("partitions") == Location("--what-if", 2)
    assert orders.where("config") == Location("c/t.yaml", 3)
    assert after.observed == _cluster()
    assert after.assumptions == ()


def test_a_topic_that_a_pattern_covers_keeps_the_patterns_rules() -> None:
    after = suppose(DECLARED, _cluster(), suppositions(["replicationFactor=metrics.cpu:3"]))
    assert after.desired.topics["metrics.cpu"].placement.brokers_except == {6}


def test_a_topic_that_nobody_declared_is_said_to_be_managed_from_then_on() -> None:
    after = suppose(DECLARED, _cluster(), suppositions(["replicationFactor=plain:3,partitions=plain:2"]))
    assert after.assumptions == ("topic plain, which no document names, is managed as if one did",)


def test_health_counts_as_the_broker_does() -> None:
    cluster = small_cluster(
        "a-0: 1,2,3",
        "a-1: 1,2,3 isr 1,2",
        "a-2: 1,2,3 isr 1",
        "one-0: 1",
        "low-0: 1,2,3 isr 1",
        configs={"a": {"min.insync.replicas": "2"}, "one": {"min.insync.replicas": "2"}},
    )
    dead = suppose(Desired(DesiredCluster("c")), cluster, suppositions(["fail-rack=a"])).observed
    assert health(cluster) == Health(Affected(3, ("a-1", "a-2", "low-0")), Affected(1, ("a-2",)), Affected())
    assert health(dead).offline == Affected(3, ("a-2", "low-0", "one-0"))
    assert health(dead).under_min_isr == Affected(1, ("a-1",))


def test_a_brokers_own_min_isr_counts_where_a_topic_says_nothing() -> None:
    cluster = small_cluster("a-0: 1,2 isr 1", rates={1: {"min.insync.replicas": "2"}})
    assert health(cluster).under_min_isr.count == 1


def test_only_the_first_few_are_named() -> None:
    cluster = small_cluster(*(f"t-{number}: 1,2 isr 1" for number in range(25)))
    found = health(cluster).under_replicated
    assert (found.count, len(found.some), found.some[:2]) == (25, 10, ("t-0", "t-1"))
