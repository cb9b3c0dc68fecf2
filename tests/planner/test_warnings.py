from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.planning import planned
from helpers.plans.proving import plan_of_placed

from reconciler.model.cluster import Cluster
from reconciler.model.desired import (
    Balance,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    Placement,
    Spread,
)
from reconciler.model.problem import Problem, Severity
from reconciler.proof.check import prove_end

STRICT = Placement(racks_spread=Spread.STRICT)


def warnings(observed: Cluster, topic: DesiredTopic, balance: Balance) -> tuple[Problem, ...]:
    desired = Desired(DesiredCluster("c", balance=balance), {topic.name: topic})
    return planned(desired, observed).warnings


def test_a_reassignment_in_flight_is_told() -> None:
    observed = small_cluster("orders-0: 1,2,3 size 5")
    moving = replace(
        observed.topics["orders"].partitions[0], replicas=(1, 2, 4, 3), removing_replicas=(3,), sizes=(5, 5, 5, 5)
    )
    observed = replace(observed, topics={"orders": replace(observed.topics["orders"], partitions=(moving,))})
    told = [problem for problem in warnings(observed, DesiredTopic("orders"), Balance()) if problem.code == "KR802"]
    assert [problem.message for problem in told] == [
        "orders-0 is being reassigned now: the plan takes the target of each as reached"
    ]


def test_several_reassignments_in_flight_are_one_warning() -> None:
    observed = small_cluster("orders-0: 1,2,3 size 5", "orders-1: 1,2,3 size 5")
    topic = observed.topics["orders"]
    moving = tuple(replace(each, removing_replicas=(3,)) for each in topic.partitions)
    observed = replace(observed, topics={"orders": replace(topic, partitions=moving)})
    (told,) = [problem for problem in warnings(observed, DesiredTopic("orders"), Balance()) if problem.code == "KR802"]
    assert told.message.startswith("2 partitions (orders-0 and others) are being reassigned now: ")
    assert (told.severity, told.at) == (Severity.WARNING, None)


def test_unknown_sizes_are_told() -> None:
    told = warnings(small_cluster("orders-0: 1,2,3"), DesiredTopic("orders"), Balance())
    assert [(problem.code, problem.severity) for problem in told] == [("KR801", Severity.WARNING)]
    assert told[0].message.startswith("the size of 1 partitions is unknown (orders-0 and others): ")


def test_the_rule_that_forbids_a_tighter_balance_is_named() -> None:
    lines = [f"orders-{number}: 1,2,3 size 1" for number in range(6)]
    observed = small_cluster(*lines, brokers=(1, 2, 3, 4))
    (problem,) = warnings(observed, DesiredTopic("orders", placement=STRICT), Balance(replicas=Even()))
    assert problem.code == "KR803"
    assert problem.message == "replicas per broker end at 3 to 6: placement.racks forbids more"


@pytest.mark.parametrize("placement", [Placement(), Placement(brokers_only=frozenset({1, 2, 3, 4}))])
def test_no_rule_is_blamed_that_nobody_wrote(placement: Placement) -> None:
    lines = [f"orders-{number}: 1,2,3 size 1" for number in range(6)]
    observed = small_cluster(*lines, brokers=(1, 2, 3, 4))
    (problem,) = warnings(observed, DesiredTopic("orders", placement=placement), Balance(replicas=Even()))
    assert problem.code == "KR803"
    assert problem.message.startswith("replicas per broker end at 3 to 6: no topic writes placement.racks, but ")


def test_capacities_without_a_small_common_multiple_are_planned_and_proved() -> None:
    observed = small_cluster("orders-0: 1,2,3 size 1", "orders-1: 1,2,3 size 1")
    primes = (999_983, 999_979, 999_961, 999_959, 999_953, 999_931)
    brokers = {number: DesiredBroker(number, capacity=prime) for number, prime in enumerate(primes, start=1)}
    desired = Desired(
        DesiredCluster("c", brokers=brokers, balance=Balance(replicas=Even())), {"orders": DesiredTopic("orders")}
    )
    placed = planned(desired, observed)
    assert placed.proof.levels[0].value > 1 << 100
    assert prove_end(plan_of_placed(desired, observed, placed), desired, observed).wrong is None
