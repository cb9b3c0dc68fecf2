"""The simulated controller keeps an ELR as Kafka's does; `tests/live/test_outages.py` shows real brokers do so."""

from itertools import permutations

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import Partition

TWO = {"a": {"min.insync.replicas": "2"}}


def partition_of(admin: SimulatedAdmin) -> Partition:
    return admin.observe().topics["a"].partitions[0]


@pytest.mark.parametrize("order", [*permutations((1, 2, 3))])
def test_after_an_outage_the_last_two_are_eligible_and_the_first_of_them_that_returns_leads(
    order: tuple[int, int, int],
) -> None:
    admin = SimulatedAdmin(small_cluster("a-0: 1,2,3 size 100", configs=TWO))
    first, second, last = order
    seen = []
    for broker in order:
        admin.kill_broker(broker)
        now = partition_of(admin)
        seen.append((set(now.isr), set(now.elr or ()), now.last_known_elr or ()))
    assert seen == [({second, last}, set(), ()), ({last}, {second}, ()), (set(), {second, last}, (last,))]
    admin.return_broker(first)
    admin.clock.sleep(60)
    assert (partition_of(admin).leader, partition_of(admin).isr) == (None, ())
    admin.return_broker(second)
    now = partition_of(admin)
    assert (now.leader, now.isr, now.elr, now.last_known_elr) == (second, (second,), (last,), ())
    admin.clock.sleep(60)
    now = partition_of(admin)
    assert ({*now.isr}, now.elr) == ({first, second}, ())


def test_a_change_of_min_isr_clears_the_elr() -> None:
    admin = SimulatedAdmin(small_cluster("a-0: 1,2,3", configs=TWO))
    for broker in (3, 2):
        admin.kill_broker(broker)
    admin.alter_topic_configs({"a": [ConfigChange("retention.ms", ConfigOperation.SET, "1")]})
    assert partition_of(admin).elr == (2,)
    admin.alter_topic_configs({"a": [ConfigChange("min.insync.replicas", ConfigOperation.SET, "1")]})
    assert partition_of(admin).elr == ()
