"""Where no placement keeps every rule, the error names the rules in conflict, each with its line."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import pytest
from helpers.clusters.small_cluster import with_cordons
from helpers.plans.planning import planned

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import (
    Balance,
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Placement,
    Protection,
    Spread,
    Within,
)
from reconciler.model.problem import InvalidInput, Location, PlacementInfeasible

THREE_RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
PLACES = {
    "": Location("topics.yaml", 1),
    "replicationFactor": Location("topics.yaml", 9),
    "placement.brokers.only": Location("topics.yaml", 12),
    "placement.racks.only": Location("topics.yaml", 13),
    "placement.racks.spread": Location("topics.yaml", 14),
    "placement.racks.leader": Location("topics.yaml", 15),
    "placement.assignment": Location("topics.yaml", 16),
    "protect": Location("topics.yaml", 17),
}
DRAINING_FIVE = {5: DesiredBroker(5, BrokerState.DRAINING, at=Location("cluster.yaml", 21))}


def _topic(
    placement: Placement | None = None, factor: int | None = None, protect: frozenset[Protection] = frozenset()
) -> DesiredTopic:
    return DesiredTopic(
        "orders", replication_factor=factor, placement=placement or Placement(), protect=protect, at=PLACES
    )


def _refusal(
    replicas: Sequence[int],
    topic: DesiredTopic,
    brokers: Mapping[int, DesiredBroker] | None = None,
    dead: Sequence[int] = (),
    closed: Sequence[int] = (),
) -> str:
    held = tuple(replicas)
    observed = Cluster(
        "c",
        {b: Broker(b, rack, is_fenced=b in dead) for b, rack in THREE_RACKS.items()},
        {"orders": Topic("orders", (Partition(0, held[0], held, held, sizes=(1,) * len(held)),))},
    )
    observed = with_cordons(observed, closed)
    desired = Desired(DesiredCluster("c", brokers=brokers or {}), {"orders": topic})
    with pytest.raises(PlacementInfeasible) as refusal:
        planned(desired, observed)
    assert all(problem.code.startswith("KR3") for problem in refusal.value.problems)
    return str(refusal.value)


def test_too_few_brokers_by_name_and_one_of_them_draining() -> None:
    topic = _topic(Placement(brokers_only=frozenset({1, 4, 5})), factor=3)
    text = _refusal([1, 4, 5], topic, DRAINING_FIVE)
    for words in ("orders-0", "replicationFactor is 3 (topics.yaml:9)", "brokers.only names 1, 4, 5 (topics.yaml:12)"):
        assert words in text
    assert "broker 5 is declared draining (cluster.yaml:21)" in text


def test_only_the_rules_in_conflict_are_named() -> None:
    placement = Placement(brokers_only=frozenset({1, 4}), racks_leader=frozenset({"a"}), racks_spread=Spread.STRICT)
    text = _refusal([1, 4, 5], _topic(placement, factor=3), DRAINING_FIVE)
    assert "brokers.only" in text
    assert "draining" not in text
    assert "leader" not in text


def test_a_dead_rack_does_not_loosen_the_strict_rule() -> None:
    text = _refusal([1, 3, 5], _topic(Placement(racks_spread=Spread.STRICT), factor=3), dead=[5])
    assert "racks.spread is strict over racks a, b, c (topics.yaml:14)" in text
    assert "broker 5 is not alive" in text


def test_a_rack_that_leaves_does_loosen_it() -> None:
    topic = _topic(Placement(racks_spread=Spread.STRICT), factor=3)
    text = _refusal([1, 3, 5], _topic(Placement(racks_spread=Spread.STRICT), factor=5), DRAINING_FIVE)
    assert "replicationFactor is 5" in text
    held = (1, 3, 5)
    observed = Cluster(
        "c",
        {b: Broker(b, rack) for b, rack in THREE_RACKS.items()},
        {"orders": Topic("orders", (Partition(0, 1, held, held, sizes=(1, 1, 1)),))},
    )
    desired = Desired(DesiredCluster("c", brokers=DRAINING_FIVE), {"orders": topic})
    (move,) = planned(desired, observed).moves
    assert set(move.to_replicas) in ({1, 3, 2}, {1, 3, 4})


def test_a_cordoned_broker_takes_nothing_new() -> None:
    cordoned = {b: DesiredBroker(b, BrokerState.CORDONED, at=Location("cluster.yaml", b)) for b in (4, 5)}
    text = _refusal([1, 2, 3], _topic(factor=4), cordoned)
    assert "brokers 4 (cluster.yaml:4), 5 (cluster.yaml:5) are cordoned" in text


def test_a_broker_that_kafka_cordons_takes_nothing_new_unless_it_is_written_as_active() -> None:
    written = {4: DesiredBroker(4, capacity=2, at=Location("cluster.yaml", 4))}
    text = _refusal([1, 2, 3], _topic(factor=4), written, closed=[1, 4, 5])
    assert "brokers 4 (cluster.yaml:4), 5 are cordoned by Kafka (cordoned.log.dirs)" in text
    assert "declare it active" in text
    text = _refusal([1, 2], _topic(Placement(assignment=((1, 5),))), closed=[5])
    assert "assignment names brokers 1, 5 (topics.yaml:16), but broker 5 is cordoned by Kafka" in text


def test_an_assignment_to_a_draining_broker() -> None:
    text = _refusal([1, 3], _topic(Placement(assignment=((1, 5),)), factor=2), DRAINING_FIVE)
    assert "assignment names brokers 1, 5 (topics.yaml:16)" in text
    assert "draining (cluster.yaml:21)" in text


def test_an_assignment_that_breaks_the_strict_spread() -> None:
    placement = Placement(assignment=((1, 2),), racks_spread=Spread.STRICT)
    text = _refusal([1, 3], _topic(placement, factor=2))
    assert "assignment" in text
    assert "racks.spread is strict" in text


def test_a_protected_topic_on_a_draining_broker() -> None:
    text = _refusal([1, 5], _topic(protect=frozenset({Protection.MOVE})), DRAINING_FIVE)
    assert "protect names move (topics.yaml:17)" in text
    assert "cluster.yaml:21" in text


def test_a_protected_topic_in_conflict_refuses_no_plan_that_leaves_it_out() -> None:
    partitions = (Partition(0, 1, (1, 5), (1, 5), sizes=(1, 1)),)
    brokers = {b: Broker(b, rack) for b, rack in THREE_RACKS.items()}
    observed = Cluster("c", brokers, {name: Topic(name, partitions) for name in ("kept", "free")})
    topics = {"kept": DesiredTopic("kept", protect=frozenset({Protection.MOVE})), "free": DesiredTopic("free")}
    desired = Desired(DesiredCluster("c", brokers=DRAINING_FIVE), topics)
    assert [move.topic_partition.topic for move in planned(desired, observed, only={"free"}).moves] == ["free"]
    with pytest.raises(PlacementInfeasible) as refusal:
        planned(desired, observed, only={"kept"})
    assert [problem.code for problem in refusal.value.problems] == ["KR302"]


def test_every_topic_in_conflict_is_named_once() -> None:
    held = (1, 3)
    partitions = tuple(Partition(number, 1, held, held, sizes=(1, 1)) for number in range(3))
    observed = Cluster(
        "c",
        {b: Broker(b, rack) for b, rack in THREE_RACKS.items()},
        {name: Topic(name, partitions) for name in ("one", "two")},
    )
    topics = {name: DesiredTopic(name, replication_factor=6) for name in ("one", "two")}
    with pytest.raises(PlacementInfeasible) as refusal:
        planned(Desired(DesiredCluster("c"), topics), observed)
    text = str(refusal.value)
    assert text.startswith("one-0 cannot be placed: ")
    assert text.endswith("The same holds for two. (KR301)")


def test_a_broker_declared_absent_must_be_empty() -> None:
    absent = {5: DesiredBroker(5, BrokerState.ABSENT, at=Location("cluster.yaml", 21))}
    text = _refusal([1, 5], _topic(), absent)
    assert "broker 5 is declared absent" in text
    assert "cluster.yaml:21" in text


def test_the_replicas_on_a_broker_declared_absent_are_counted() -> None:
    partitions = tuple(Partition(number, 1, (1, 5, 2), (1, 5, 2), sizes=(1, 1, 1)) for number in range(3))
    brokers = {b: Broker(b, rack) for b, rack in THREE_RACKS.items()}
    absent = DesiredCluster("c", brokers={5: DesiredBroker(5, BrokerState.ABSENT)})
    with pytest.raises(PlacementInfeasible, match="declared absent, but it holds 3 replicas: declare it draining"):
        planned(Desired(absent, {"t": DesiredTopic("t")}), Cluster("c", brokers, {"t": Topic("t", partitions)}))


@pytest.mark.parametrize("measure", ["network_in", "network_out"])
def test_a_balance_of_rates_without_loads_is_refused_not_ignored(measure: str) -> None:
    balance = {"network_in": Balance(network_in=Within(Fraction(1, 10)))}
    balance |= {"network_out": Balance(network_out=Within(Fraction(1, 10)))}
    desired = Desired(DesiredCluster("c", balance=balance[measure]))
    with pytest.raises(InvalidInput, match="loads"):
        planned(desired, Cluster("c", {1: Broker(1)}))


def test_topics_that_the_same_lines_put_into_conflict_share_one_problem() -> None:
    partition = Partition(0, 1, (1, 2), (1, 2), sizes=(1, 1))
    names = ["a", "b", "c", "other"]
    observed = Cluster("c", {b: Broker(b, "a") for b in (1, 2)}, {name: Topic(name, (partition,)) for name in names})
    declared = {name: DesiredTopic(name, replication_factor=3, at=PLACES) for name in "abc"}
    declared["other"] = DesiredTopic("other", replication_factor=4, at=PLACES)
    with pytest.raises(PlacementInfeasible) as refusal:
        planned(Desired(DesiredCluster("c"), declared), observed)
    told = [problem.message for problem in refusal.value.problems]
    assert [words[: len("a-0 cannot be placed: ")] for words in told] == [
        "a-0 cannot be placed: ",
        "other-0 cannot be plac",
    ]
    assert {problem.at for problem in refusal.value.problems} == {PLACES["replicationFactor"]}
    assert told[0].endswith("or add brokers. The same holds for b, c.")
    assert "The same" not in told[1]


def test_a_broker_that_another_rule_bars_already_is_not_named_and_the_cure_names_the_one_that_helps() -> None:
    states = {b: DesiredBroker(b, BrokerState.DRAINING, at=Location("cluster.yaml", 10 + b)) for b in (2, 4)}
    placement = Placement(racks_only=frozenset({"a"}), racks_spread=Spread.IGNORE)
    text = _refusal([1, 3], _topic(placement, factor=2), states)
    assert "broker 2 is declared draining (cluster.yaml:12), racks.only names a" in text
    assert "keep broker 2 active" in text
    assert "broker 4" not in text
    assert "cluster.yaml:14" not in text


def test_a_broker_barred_already_is_not_named_though_its_neighbour_in_the_rack_is() -> None:
    states = {b: DesiredBroker(b, BrokerState.DRAINING, at=Location("cluster.yaml", 10 + b)) for b in (3, 4)}
    text = _refusal([1, 3], _topic(Placement(brokers_only=frozenset({1, 3})), factor=2), states)
    assert "broker 3 is declared draining (cluster.yaml:13), brokers.only names 1, 3" in text


def test_every_broker_of_the_conflict_is_named_with_its_own_line_and_how_many_are_wanted() -> None:
    states = {b: DesiredBroker(b, BrokerState.DRAINING, at=Location("cluster.yaml", 10 + b)) for b in (2, 4, 5)}
    text = _refusal([1, 3], _topic(factor=3), states)
    assert "brokers 2 (cluster.yaml:12), 4 (cluster.yaml:14), 5 (cluster.yaml:15) are declared draining. " in text
    assert "keep one of them active" in text


def test_brokers_that_are_enough_for_the_conflict_are_named_alone_and_the_cure_names_all_that_have_to_change() -> None:
    states = {b: DesiredBroker(b, BrokerState.DRAINING, at=Location("cluster.yaml", 10 + b)) for b in (2, 4, 5)}
    text = _refusal([1, 3], _topic(factor=4), states)
    assert "brokers 2 (cluster.yaml:12), 4 (cluster.yaml:14) are declared draining. " in text
    assert "or keep brokers 2, 4 active. (" in text
    text = _refusal([1, 3], _topic(factor=5), states)
    assert "replicationFactor is 5 (topics.yaml:9), broker 2 is declared draining (cluster.yaml:12). " in text
    assert "or keep brokers 2, 4, 5 active. (" in text


def test_a_cure_that_is_not_enough_by_itself_is_not_offered() -> None:
    only = Placement(brokers_only=frozenset({1, 2}))
    text = _refusal([1, 3], _topic(only, factor=3), dead=[3, 4, 5])
    assert "replicationFactor is 3 (topics.yaml:9), brokers 3, 4, 5 are not alive. Lower replicationFactor. (" in text
    text = _refusal([5], _topic(Placement(brokers_only=frozenset({5}))), DRAINING_FIVE, dead=[1, 2, 3, 4])
    assert "orders-0 cannot be placed: no broker may hold it: broker 5 is declared draining (cluster.yaml:21)" in text
    assert text.endswith("Keep broker 5 active. (KR301)")
    states = {**DRAINING_FIVE, 4: DesiredBroker(4, BrokerState.CORDONED, at=Location("cluster.yaml", 20))}
    text = _refusal([1, 4], _topic(Placement(brokers_only=frozenset({5})), factor=2), states, dead=[1, 2, 3])
    assert text.endswith(". No single change is enough. (KR301)")


def test_the_number_of_replicas_is_not_named_where_not_even_one_finds_a_place() -> None:
    text = _refusal([5], _topic(Placement(brokers_only=frozenset({5}))), DRAINING_FIVE)
    assert (
        "orders-0 cannot be placed: no broker may hold it: broker 5 is declared draining (cluster.yaml:21), brokers."
        in text
    )
    assert ". Keep broker 5 active; or name more brokers. (KR301)" in text


def test_a_broker_that_leaves_is_named_where_its_rack_would_take_what_another_cannot() -> None:
    """Were broker 5 active, racks a, b and c would hold 1, 2 and 1 of the four replicas."""
    racks = {**THREE_RACKS, 6: "b"}
    observed = Cluster(
        "c",
        {b: Broker(b, rack, is_fenced=b == 2) for b, rack in racks.items()},
        {"orders": Topic("orders", (Partition(0, 1, (1, 3), (1, 3), sizes=(1, 1)),))},
    )
    topic = _topic(Placement(racks_spread=Spread.STRICT), factor=4)
    with pytest.raises(PlacementInfeasible) as refusal:
        planned(Desired(DesiredCluster("c", brokers=DRAINING_FIVE), {"orders": topic}), observed)
    assert (
        "broker 5 is declared draining (cluster.yaml:21), broker 2 is not alive, "
        "racks.spread is strict over racks a, b (topics.yaml:14). "
        "Lower replicationFactor; or keep broker 5 active; or start broker 2; or let racks.spread be prefer."
    ) in str(refusal.value)


def test_each_broker_of_an_assignment_that_may_not_be_there_is_a_conflict_of_its_own() -> None:
    text = _refusal([1, 3], _topic(Placement(assignment=((4, 5),)), factor=2), DRAINING_FIVE, dead=[4])
    first, second = text.splitlines()
    assert "but broker 5 is declared draining (cluster.yaml:21). Change one of them." in first
    assert "but broker 4 is not alive. Change one of them." in second


def test_a_rack_whose_brokers_do_not_matter_is_not_named() -> None:
    strict = _topic(Placement(racks_spread=Spread.STRICT), factor=3)
    text = _refusal([1, 3, 5], strict, dead=[2, 5])
    assert "broker 5 is not alive" in text
    assert "start broker 5" in text


def test_of_an_assignment_only_the_brokers_that_it_names_are_told() -> None:
    states = {b: DesiredBroker(b, BrokerState.DRAINING, at=Location("cluster.yaml", 10 + b)) for b in (2, 5)}
    text = _refusal([1, 3], _topic(Placement(assignment=((1, 5),)), factor=2), states)
    assert "but broker 5 is declared draining (cluster.yaml:15). Change one of them." in text


def test_the_places_that_the_sentence_names_stand_beside_it() -> None:
    held = (1, 3)
    observed = Cluster(
        "c",
        {b: Broker(b, rack) for b, rack in THREE_RACKS.items()},
        {"orders": Topic("orders", (Partition(0, 1, held, held, sizes=(1, 1)),))},
    )
    with pytest.raises(PlacementInfeasible) as refusal:
        planned(Desired(DesiredCluster("c", brokers=DRAINING_FIVE), {"orders": _topic(factor=5)}), observed)
    (problem,) = refusal.value.problems
    assert problem.beside == (Location("cluster.yaml", 21), Location("topics.yaml", 9))
