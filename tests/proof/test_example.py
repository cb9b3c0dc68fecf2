"""The worked example of `reconciler.proof` is true as written."""

from dataclasses import replace

from helpers.clusters.small_cluster import small_cluster
from helpers.plans.proving import provable_plan, with_levels

from reconciler.model.desired import Balance, Desired, DesiredCluster, DesiredTopic, Even
from reconciler.model.plan import PriceLevel
from reconciler.proof.check import prove_end


def test_the_worked_example_is_proved_by_its_prices_and_by_no_wider_counts() -> None:
    observed = small_cluster(
        *(f"p-{number}: {1 + number // 4} size {number + 1}" for number in range(5)), brokers=(1, 2, 3)
    )
    desired = Desired(DesiredCluster("c", balance=Balance(replicas=Even())), {"p": DesiredTopic("p")})
    plan = provable_plan(desired, observed)
    even = PriceLevel("replicas balance", 9, 9, {1: 3, 2: 3, 3: 3})
    others = [each for each in plan.proof.levels if each.objective not in {"replicas balance", "bytes"}]
    for prices, wrong in (({1: 2}, None), ({1: 4}, "the prices prove only 2,"), ({}, "the prices prove only 0,")):
        told = with_levels(plan, [even, PriceLevel("bytes", 3, 3, prices), *others])
        told = replace(told, proof=replace(told.proof, joint_prices=prices))
        verdict = prove_end(told, desired, observed)
        assert (verdict.wrong is None) == (wrong is None), verdict.wrong
        assert (wrong or "") in (verdict.wrong or "")
