"""A group that began to read a topic since the plan was made: the topic is not deleted, unless its document says so."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest
from helpers.plans.small_runs import admin_of, cluster, move, plan_of

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.model.change import DeleteTopic
from reconciler.model.cluster import Cluster, Group, GroupMember
from reconciler.model.plan import Plan
from reconciler.model.problem import MissingRight, Refused
from reconciler.model.stage import ReassignStage, TopicsStage

GROUP = Group("late", "Stable", members=(GroupMember("m", subscription=("old",)),))


def plan_for(before: Cluster, *, is_declared: bool = False) -> Plan:
    deletion = DeleteTopic("old", "id-of-old", is_declared=is_declared)
    stages = (ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),)), TopicsStage(2, (0,)))
    return plan_of(stages, before, topic_changes=(deletion,))


def read_by(before: Cluster, *groups: Group) -> Cluster:
    return replace(before, groups=groups)


@pytest.mark.parametrize("is_dry_run", [False, True])
def test_a_group_that_reads_it_now_forbids_the_whole_run(is_dry_run: bool) -> None:  # noqa: FBT001 - a column
    admin = admin_of(read_by(cluster(), GROUP))
    with pytest.raises(Refused) as caught:
        run_plan(plan_for(cluster()), admin, MemoryJournal(), is_dry_run=is_dry_run)
    assert caught.value.code == "KR417"
    assert "old (by late)" in str(caught.value)
    assert admin.cluster.topics == cluster().topics


class _Joining(SimulatedAdmin):
    """A cluster in which a group begins to read once it was asked for groups."""

    def groups(self, group_ids: Collection[str] | None = None, but: Collection[str] = ()) -> Mapping[str, Group]:
        seen = super().groups(group_ids, but)
        self.cluster = replace(self.cluster, groups=(GROUP,))
        return seen


def test_a_group_that_began_while_the_run_went_on_keeps_its_topic() -> None:
    admin = _Joining(cluster())
    with pytest.raises(Refused) as caught:
        run_plan(plan_for(cluster()), admin, MemoryJournal())
    assert caught.value.code == "KR417"
    assert "old" in admin.cluster.topics
    assert admin.cluster.topics["orders"].partitions[0].replicas == (1, 2, 4)


def test_its_own_document_deletes_it_all_the_same_and_a_group_without_members_keeps_nothing() -> None:
    gone = replace(GROUP, state="Empty", members=(), offsets={"old": {0: 1}})
    for group, is_declared in ((GROUP, True), (gone, False)):
        before = read_by(cluster(), group)
        admin = admin_of(before)
        run_plan(plan_for(before, is_declared=is_declared), admin, MemoryJournal())
        assert "old" not in admin.cluster.topics


class _Hiding(SimulatedAdmin):
    """A cluster whose groups this user may not see."""

    def groups(self, group_ids: Collection[str] | None = None, but: Collection[str] = ()) -> Mapping[str, Group]:
        assert (group_ids, but) == (None, ())
        raise MissingRight("reading groups needs Describe on the groups")


def test_where_groups_may_not_be_seen_nothing_undeclared_is_deleted() -> None:
    admin = _Hiding(cluster())
    with pytest.raises(MissingRight):
        run_plan(plan_for(cluster()), admin, MemoryJournal())
    assert admin.cluster.topics == cluster().topics
