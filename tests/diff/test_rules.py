from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster, with_cordons

from reconciler.diff.rules import TopicRules, topic_rules
from reconciler.model.cluster import Cluster
from reconciler.model.desired import (
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Placement,
    Spread,
    TopicPolicy,
)

OBSERVED = small_cluster("orders-0: 1,2,3", "__internal-0: 1,2,3", "audit-0: 1,2,3", brokers=range(1, 7))


def rules_of(
    placement: Placement, *, states: dict[int, BrokerState] | None = None, observed: Cluster = OBSERVED
) -> TopicRules:
    brokers = {broker_id: DesiredBroker(broker_id, state) for broker_id, state in (states or {}).items()}
    desired = Desired(DesiredCluster("c", brokers=brokers), {"orders": DesiredTopic("orders", placement=placement)})
    return topic_rules(desired, observed)["orders"]


@pytest.mark.parametrize(
    ("state", "receives", "keeps", "leads"),
    [
        (BrokerState.ACTIVE, True, True, True),
        (BrokerState.CORDONED, False, True, True),
        (BrokerState.MAINTENANCE, True, True, False),
        (BrokerState.DRAINING, False, False, False),
        (BrokerState.ABSENT, False, False, False),
    ],
)
def test_a_broker_state_says_what_the_broker_may_receive_keep_and_lead(
    state: BrokerState, *, receives: bool, keeps: bool, leads: bool
) -> None:
    rules = rules_of(Placement(), states={5: state})
    assert (5 in rules.receivable, 5 in rules.keepable, 5 in rules.leadable) == (receives, keeps, leads)


def test_a_broker_that_kafka_cordons_gets_nothing_new_unless_a_file_says_that_it_is_active() -> None:
    brokers = {5: DesiredBroker(5, has_state=True), 6: DesiredBroker(6, capacity=2)}
    desired = Desired(DesiredCluster("c", brokers=brokers))
    rules = topic_rules(desired, with_cordons(OBSERVED, (4, 5, 6)))["orders"]
    assert rules.receivable == {1, 2, 3, 5}
    assert rules.keepable == {1, 2, 3, 4, 5, 6}


def test_a_rack_whose_brokers_are_down_still_counts() -> None:
    observed = small_cluster("orders-0: 1,2,3", fenced=(3, 6))
    assert rules_of(Placement(racks_spread=Spread.STRICT), observed=observed).racks == ("a", "b", "c")


def test_a_rack_whose_brokers_all_drain_does_not_count() -> None:
    draining = {3: BrokerState.DRAINING, 6: BrokerState.ABSENT}
    assert rules_of(Placement(racks_spread=Spread.STRICT), states=draining).racks == ("a", "b")


def test_brokers_and_racks_by_name_narrow_who_may_hold() -> None:
    rules = rules_of(Placement(racks_only=frozenset("ab"), brokers_except=frozenset({1})))
    assert rules.keepable == {2, 4, 5}


@pytest.mark.parametrize(("factor", "strict"), [(1, (0, 1)), (2, (0, 1)), (3, (1, 1)), (4, (1, 2)), (6, (2, 2))])
def test_strict_bounds_are_floor_and_ceiling_of_factor_over_racks(factor: int, strict: tuple[int, int]) -> None:
    limits = rules_of(Placement(racks_spread=Spread.STRICT)).rack_limits(factor, (1, 2, 3))
    assert set(limits.values()) == {strict}


def test_prefer_yields_no_more_than_it_must() -> None:
    draining = {3: BrokerState.DRAINING}
    observed = small_cluster("orders-0: 1,2,4", brokers=(1, 2, 3, 4, 5), fenced=(3,))
    limits = rules_of(Placement(racks_spread=Spread.PREFER), states=draining, observed=observed).rack_limits(
        3, (1, 2, 4)
    )
    assert limits == {"a": (1, 2), "b": (1, 2)}


def test_where_a_rack_is_down_prefer_takes_its_replica_elsewhere() -> None:
    observed = small_cluster("orders-0: 1,2,3", fenced=(3, 6))
    limits = rules_of(Placement(racks_spread=Spread.PREFER), observed=observed).rack_limits(3, (1, 2, 3))
    assert limits == {"a": (1, 2), "b": (1, 2), "c": (0, 2)}


def test_where_no_spread_is_written_a_rack_may_stay_as_it_is() -> None:
    limits = rules_of(Placement()).rack_limits(3, (1, 4, 2))
    assert limits == {"a": (1, 2), "b": (1, 1), "c": (0, 1)}


def test_ignored_topics_are_managed_only_where_a_document_names_them() -> None:
    everything = DesiredCluster("c", topics=TopicPolicy(is_all_managed=True))
    rules = topic_rules(Desired(everything), OBSERVED)
    assert {name: rule.is_managed for name, rule in rules.items()} == {
        "__internal": False,
        "audit": True,
        "orders": True,
    }
    named = topic_rules(Desired(everything, {"__internal": DesiredTopic("__internal")}), OBSERVED)
    assert named["__internal"].is_managed


def test_the_longest_matching_pattern_speaks() -> None:
    patterns = (
        DesiredTopic("*", placement=Placement(racks_spread=Spread.STRICT)),
        DesiredTopic("aud*", placement=Placement(racks_spread=Spread.IGNORE)),
    )
    rules = topic_rules(Desired(DesiredCluster("c"), patterns=patterns), OBSERVED)
    assert (rules["orders"].spread, rules["audit"].spread) == (Spread.STRICT, Spread.IGNORE)


@pytest.mark.parametrize(("replicas", "excess"), [((1, 2, 4), 0), ((1, 2, 3, 5), 1), ((1, 4, 6), 0)])
def test_beside_brokers_without_a_rack_a_rack_is_crowded_from_one_more_than_its_share_on(
    replicas: tuple[int, ...], excess: int
) -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: None, 5: "a", 6: None}
    brokers = {id_: replace(OBSERVED.brokers[id_], rack=rack) for id_, rack in racks.items()}
    assert rules_of(Placement(), observed=replace(OBSERVED, brokers=brokers)).rack_excess(replicas) == excess
