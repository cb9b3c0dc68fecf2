"""Resets and deletions when answers are lost: nothing is repeated before the group was looked at."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.admin.port import Answer
from reconciler.admin.simulated import FaultHook, Moment, SimulatedAdmin
from reconciler.groups.model.state import GroupDeletion
from reconciler.groups.offsets import ToEarliest, ToOffset, TopicScope
from reconciler.groups.workflow import delete
from reconciler.groups.workflow.reset_offsets import ResetOutcome, ResetRequest, commit, plan_reset, refusal
from reconciler.model.cluster import Cluster, Group, GroupMember
from reconciler.model.problem import InvalidInput, MissingRight, OutcomeUnknown
from reconciler.model.topic_partition import TopicPartition

KEYS = tuple(TopicPartition("orders", number) for number in range(3))
LOST = Answer("COORDINATOR_NOT_AVAILABLE")


def cluster(*groups: Group, end: int = 100) -> Cluster:
    made = small_cluster("orders-0: 1,2", "orders-1: 2,3", "orders-2: 3,1")
    topic = made.topics["orders"]
    full = replace(topic, partitions=tuple(replace(partition, end_offset=end) for partition in topic.partitions))
    return replace(made, topics={"orders": full}, groups=groups)


IDLE = Group("billing", "Empty", offsets={"orders": {0: 10, 1: 20, 2: 30}})
BUSY = replace(IDLE, state="Stable", members=(GroupMember("m", assignment={"orders": (0, 1, 2)}),))
REQUEST = ResetRequest(ToOffset(50), ("billing",), scopes=(TopicScope("orders"),))


def planned(admin: SimulatedAdmin) -> ResetOutcome:
    return plan_reset(admin, REQUEST)


class Fault:
    """Fails the first `times` calls of one method, before or after their effect."""

    def __init__(self, method: str, moment: Moment, fail: Callable[[], Answer | None], times: int = 1) -> None:
        self.method, self.moment, self.fail, self.left = method, moment, fail, times
        self.calls = 0

    def __call__(self, name: str, moment: Moment) -> Answer | None:
        if name != self.method:
            return None
        self.calls += moment is Moment.BEFORE
        if moment is not self.moment or not self.left:
            return None
        self.left -= 1
        return self.fail()


def no_answer() -> Answer | None:
    raise OutcomeUnknown("no answer")


def test_offsets_are_committed_as_they_were_planned() -> None:
    admin = SimulatedAdmin(cluster(IDLE))
    (plan,) = planned(admin).groups
    assert admin.writes == 0
    assert commit(admin, plan).refused == {}
    assert admin.groups(["billing"])["billing"].committed == dict.fromkeys(KEYS, 50)


@pytest.mark.parametrize("moment", list(Moment))
@pytest.mark.parametrize("fail", [no_answer, lambda: LOST])
def test_a_lost_answer_is_followed_by_a_look(moment: Moment, fail: Callable[[], Answer | None]) -> None:
    fault = Fault("commit_offsets", moment, fail)
    admin = SimulatedAdmin(cluster(IDLE), fault=fault)
    (plan,) = planned(admin).groups
    assert commit(admin, plan).refused == {}
    assert admin.groups(["billing"])["billing"].committed == dict.fromkeys(KEYS, 50)
    # What had its effect is not sent again.
    assert fault.calls == (1 if moment is Moment.AFTER else 2)


def test_a_coordinator_that_never_answers_is_given_up_with_a_reason_for_each_partition() -> None:
    fault = Fault("commit_offsets", Moment.BEFORE, lambda: LOST, times=99)
    admin = SimulatedAdmin(cluster(IDLE), fault=fault)
    (plan,) = planned(admin).groups
    assert commit(admin, plan).refused == dict.fromkeys(KEYS, "COORDINATOR_NOT_AVAILABLE")
    assert fault.calls == 3


def test_a_right_that_is_missing_is_the_reason_for_each_partition() -> None:
    def refuse() -> Answer | None:
        raise MissingRight("needs Read")

    admin = SimulatedAdmin(cluster(IDLE), fault=Fault("commit_offsets", Moment.BEFORE, refuse))
    (plan,) = planned(admin).groups
    assert commit(admin, plan).refused == dict.fromkeys(KEYS, "needs Read")


def test_members_that_come_back_in_between_keep_their_offsets() -> None:
    admin = SimulatedAdmin(cluster(IDLE))
    outcome = planned(admin)
    assert refusal(outcome) is None
    admin.cluster = replace(admin.cluster, groups=(BUSY,))
    refused = commit(admin, outcome.groups[0]).refused
    assert refused == dict.fromkeys(KEYS, "the group has members again (UNKNOWN_MEMBER_ID)")
    assert admin.groups(["billing"])["billing"].committed == IDLE.committed


def test_a_coordinator_that_learns_of_a_partition_late_is_asked_again() -> None:
    fault = Fault("commit_offsets", Moment.BEFORE, lambda: Answer("UNKNOWN_TOPIC_OR_PARTITION"))
    admin = SimulatedAdmin(cluster(IDLE), fault=fault)
    (plan,) = planned(admin).groups
    assert commit(admin, plan).refused == {}
    assert admin.groups(["billing"])["billing"].committed == dict.fromkeys(KEYS, 50)


def test_a_partition_that_is_gone_is_told_and_the_others_are_committed() -> None:
    admin = SimulatedAdmin(cluster(IDLE))
    (plan,) = planned(admin).groups
    topic = admin.cluster.topics["orders"]
    admin.cluster = replace(admin.cluster, topics={"orders": replace(topic, partitions=topic.partitions[:2])})
    assert commit(admin, plan).refused == {KEYS[2]: "the partition is gone (UNKNOWN_TOPIC_OR_PARTITION)"}
    assert admin.groups(["billing"])["billing"].committed == {KEYS[0]: 50, KEYS[1]: 50, KEYS[2]: 30}


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"])
def test_a_group_with_members_is_refused(state: str) -> None:
    outcome = planned(SimulatedAdmin(cluster(replace(BUSY, state=state))))
    refused = refusal(outcome)
    assert refused is not None
    assert f"group billing is {state} with 1 member: stop the members first" in str(refused)


def test_members_count_where_a_snapshot_does_not_tell_the_state() -> None:
    refused = refusal(planned(SimulatedAdmin(cluster(replace(BUSY, state="")))))
    assert refused is not None
    assert "group billing is active with 1 member" in str(refused)


def test_share_and_streams_groups_are_left_to_their_own_tools() -> None:
    for kind in ("share", "streams"):
        with pytest.raises(InvalidInput, match=f"group billing is a {kind} group"):
            planned(SimulatedAdmin(cluster(replace(IDLE, kind=kind))))


def test_all_groups_are_those_that_have_committed_something() -> None:
    groups = (Group("empty", "Empty"), replace(IDLE, group_id="other"), Group("share", "Empty", kind="share"), IDLE)
    admin = SimulatedAdmin(cluster(*groups))
    outcome = plan_reset(admin, ResetRequest(ToEarliest(), is_all_groups=True))
    assert [each.group_id for each in outcome.groups] == ["billing", "other"]


def test_all_that_a_group_committed_is_nothing_where_there_is_no_group() -> None:
    with pytest.raises(InvalidInput, match=r"there is no group biling.* did you mean billing\?"):
        plan_reset(SimulatedAdmin(cluster(IDLE)), ResetRequest(ToEarliest(), ("biling",)))


# Deleting


def deleted(admin: SimulatedAdmin) -> tuple[GroupDeletion, ...]:
    return delete._delete(admin, [GroupDeletion(IDLE)])


@pytest.mark.parametrize("moment", list(Moment))
@pytest.mark.parametrize("fail", [no_answer, lambda: LOST])
def test_a_lost_answer_to_a_deletion_is_followed_by_a_look(moment: Moment, fail: Callable[[], Answer | None]) -> None:
    fault = Fault("delete_groups", moment, fail)
    admin = SimulatedAdmin(cluster(IDLE), fault=fault)
    assert deleted(admin) == (GroupDeletion(IDLE),)
    assert admin.groups() == {}
    assert fault.calls == (1 if moment is Moment.AFTER else 2)


def test_a_group_whose_members_come_back_is_not_deleted() -> None:
    admin = SimulatedAdmin(cluster(BUSY))
    assert deleted(admin) == (GroupDeletion(IDLE, "the group has members again (NON_EMPTY_GROUP)"),)


def test_a_group_that_somebody_else_deleted_is_deleted() -> None:
    assert deleted(SimulatedAdmin(cluster())) == (GroupDeletion(IDLE),)


def test_a_coordinator_that_never_answers_a_deletion_is_given_up() -> None:
    fault: FaultHook = Fault("delete_groups", Moment.BEFORE, no_answer, times=99)
    assert deleted(SimulatedAdmin(cluster(IDLE), fault=fault)) == (GroupDeletion(IDLE, "no answer"),)
