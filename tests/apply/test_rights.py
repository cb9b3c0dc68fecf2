"""What a plan's user may not do is told before anything is changed: every missing right at once, by name."""

from collections.abc import Collection

import pytest
from helpers.plans.small_runs import RATE, cluster, election, move, plan_of, whole_plan

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.refusals import plan_needs
from reconciler.apply.run import run_plan
from reconciler.model.cluster import Cluster
from reconciler.model.plan import Plan
from reconciler.model.problem import MissingRight, NotOffered
from reconciler.model.stage import ElectStage, ReassignStage
from reconciler.model.vitals import Rights


class LimitedAdmin(SimulatedAdmin):
    """A user without some rights: `lacking` on the cluster, or on the topics named; `hidden` topics."""

    def __init__(
        self,
        before: Cluster,
        *,
        lacking: Collection[str] = (),
        on_topics: Collection[tuple[str, str]] = (),
        hidden: Collection[str] = (),
    ) -> None:
        super().__init__(before)
        self._lacking, self._on_topics, self._hidden = frozenset(lacking), frozenset(on_topics), frozenset(hidden)

    def rights(self, topics: Collection[str] = (), groups: Collection[str] = ()) -> Rights:
        every = super().rights(topics, groups)
        return Rights(
            cluster=every.cluster - self._lacking,
            topics={
                name: held - {operation for topic, operation in self._on_topics if topic == name}
                for name, held in every.topics.items()
                if name not in self._hidden
            },
            groups=every.groups,
            hidden=self._hidden & frozenset(topics),
        )


class ServiceAdmin(SimulatedAdmin):
    """Brokers that leave out some of Kafka's requests."""

    left_out: tuple[str, ...] = ()

    def lacking(self) -> tuple[str, ...]:
        return self.left_out


@pytest.mark.parametrize("is_dry_run", [False, True])
def test_what_brokers_do_not_take_is_named_before_the_first_change_and_only_what_the_plan_needs(
    before: Cluster, *, is_dry_run: bool
) -> None:
    plan, admin = whole_plan(before), ServiceAdmin(before)
    admin.left_out = ("AlterPartitionReassignments", "ElectLeaders", "AlterReplicaLogDirs", "DescribeLogDirs")
    with pytest.raises(NotOffered) as refused:
        run_plan(plan, admin, MemoryJournal(), is_dry_run=is_dry_run)
    assert admin.writes == 0
    assert str(refused.value) == (
        "nothing has been changed: these brokers do not take AlterPartitionReassignments, so there are no moves of "
        "replicas: declare replication factors and racks as they are, and balance off; these brokers do not take "
        "ElectLeaders, so there are no preferred-leader elections: declare balance.leaders off"
    )
    admin.left_out = ("AlterReplicaLogDirs", "DescribeLogDirs")
    run_plan(plan, admin, MemoryJournal(), is_dry_run=is_dry_run)


def told(plan: Plan, admin: LimitedAdmin, *, is_dry_run: bool = False) -> str:
    with pytest.raises(MissingRight) as refused:
        run_plan(plan, admin, MemoryJournal(), is_dry_run=is_dry_run)
    assert admin.writes == 0
    return str(refused.value)


@pytest.mark.parametrize("is_dry_run", [False, True])
def test_every_missing_right_is_named_with_its_resource_before_the_first_change(*, is_dry_run: bool) -> None:
    before = cluster()
    admin = LimitedAdmin(
        before,
        lacking=["Alter", "AlterConfigs"],
        on_topics=[("orders", "AlterConfigs"), ("clicks", "Alter"), ("old", "Delete"), ("quiet", "AlterConfigs")],
    )
    text = told(whole_plan(before), admin, is_dry_run=is_dry_run)
    assert text.replace("has been changed: ", "has been changed:\n").split("\n")[:-1] == [
        "this user lacks rights that the plan needs, and nothing has been changed:",
        "Alter on the cluster, for moves and elections",
        "AlterConfigs on the cluster, for throttle rates of brokers",
        "AlterConfigs on topic orders, for throttled replicas and configs",
        "Alter on topic clicks, for new partitions",
        "Delete on topic old, for deleting them",
    ]
    assert "kafka-acls --add --allow-principal User:NAME --operation Alter --cluster`" in text


def test_a_topic_that_may_not_be_described_is_no_topic_that_is_not_there(before: Cluster) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)], before)
    assert "AlterConfigs on topic orders, for" in told(plan, LimitedAdmin(before, hidden=["orders"]))


def test_only_what_the_plan_does_needs_a_right(before: Cluster) -> None:
    unthrottled = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),))], before)
    run_plan(unthrottled, LimitedAdmin(before, lacking=["AlterConfigs"]), MemoryJournal())
    elections = plan_of([ElectStage(1, (election("orders-2", 3),))], before)
    assert [(need.operation, need.topics) for need in plan_needs(elections)] == [("Alter", ())]
    assert "Alter on the cluster" in told(elections, LimitedAdmin(before, lacking=["Alter"]))


def test_a_plan_that_is_done_needs_no_right_to_find_that_out(before: Cluster, admin: SimulatedAdmin) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)], before)
    run_plan(plan, admin, MemoryJournal())
    limited = LimitedAdmin(admin.cluster, lacking=["Alter"])
    assert run_plan(plan, limited, MemoryJournal()).stages_done == 1
