"""Groups against scripted brokers: who is asked again, what is told, what an answer that never came means."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import kafka.errors
import pytest
from admin.test_client_wire import TIME_OUT, Brokers, let_time_pass
from kafka.protocol.admin import DeleteGroupsResponse, DescribeGroupsResponse, ListGroupsResponse
from kafka.protocol.consumer import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OffsetCommitResponse,
    OffsetFetchResponse,
)
from kafka.protocol.metadata import FindCoordinatorResponse

from reconciler.admin.client import group_writes, groups
from reconciler.admin.client.groups import ConsumerGroupDescribeResponse
from reconciler.admin.port import Answer
from reconciler.model.cluster import GroupMember
from reconciler.model.problem import ClusterUnavailable, MissingRight, OutcomeUnknown
from reconciler.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.api_message import ApiMessage

KEY, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    let_time_pass(monkeypatch)


class Coordinators:
    """Brokers 1 and 2; group `g` is listed, described and written at whichever `at` says, by turns."""

    def __init__(self, at: tuple[int, ...] = (1,), kind: str = "classic") -> None:
        self.at = list(at)
        self.kind = kind
        self.group: ApiMessage | None = None
        self.code = 0
        self.committed: list[Mapping[int, int] | Exception] = []
        self.deleted: list[int | Exception] = []
        self.brokers = Brokers(self.answer, nodes=(1, 2), versions={69: (0, 1)})

    def answer(self, node: int, request: "ApiMessage") -> object:
        match type(request).__name__.removesuffix("Request"):
            case "ListGroups":
                listed = ListGroupsResponse.ListedGroup(group_id="g", protocol_type="consumer", group_type=self.kind)
                told: object = ListGroupsResponse(error_code=0, groups=[listed] if node == self.at[0] else [])
            case "DescribeGroups":
                told = DescribeGroupsResponse(groups=[self.group or self._bare(next(iter(request.groups)))])
            case "ConsumerGroupDescribe":
                told = ConsumerGroupDescribeResponse(groups=[self.group])
            case "OffsetFetch":
                told = OffsetFetchResponse(error_code=0, topics=[])
            case "FindCoordinator":
                node_id = self.at.pop(0) if len(self.at) > 1 else self.at[0]
                coordinator = FindCoordinatorResponse.Coordinator(key="g", node_id=node_id, error_code=self.code)
                told = FindCoordinatorResponse(coordinators=[coordinator])
            case "OffsetCommit":
                told = self._committed(self.committed.pop(0))
            case "DeleteGroups":
                told = self._deleted(self.deleted.pop(0))
            case other:
                raise AssertionError(other)
        return told

    def _bare(self, group_id: str) -> "ApiMessage":
        return DescribeGroupsResponse.DescribedGroup(
            error_code=self.code, group_id=group_id, group_state="Empty", protocol_type="consumer", members=[]
        )

    @staticmethod
    def _deleted(code: int | Exception) -> object:
        if isinstance(code, Exception):
            return code
        form = DeleteGroupsResponse.DeletableGroupResult
        return DeleteGroupsResponse(results=[form(group_id="g", error_code=code)])

    @staticmethod
    def _committed(codes: Mapping[int, int] | Exception) -> object:
        if isinstance(codes, Exception):
            return codes
        form = OffsetCommitResponse.OffsetCommitResponseTopic
        partitions = [
            form.OffsetCommitResponsePartition(partition_index=number, error_code=code)
            for number, code in codes.items()
        ]
        return OffsetCommitResponse(topics=[form(name="orders", partitions=partitions)])


def classic(
    assignment: bytes, *, name: str = "g", kind: str = "consumer", protocol: str = "range", metadata: bytes = b""
) -> "ApiMessage":
    form = DescribeGroupsResponse.DescribedGroup
    member = form.DescribedGroupMember(
        member_id="m", client_id="c", client_host="/h", member_metadata=metadata, member_assignment=assignment
    )
    return form(
        error_code=0, group_id=name, group_state="Stable", protocol_type=kind, protocol_data=protocol, members=[member]
    )


def test_a_group_with_a_protocol_of_its_own_is_described_without_being_understood() -> None:
    described = classic(b"", name="lock", kind="reconciler", protocol="v1", metadata=b"ada")
    broken = classic(b"\x00\x01\xff", name="odd", protocol="mine", metadata=b"\x00")
    listed = [
        ListGroupsResponse.ListedGroup(group_id="lock", protocol_type="reconciler", group_state="Stable"),
        ListGroupsResponse.ListedGroup(group_id="odd", protocol_type="consumer", group_state="Stable"),
        ListGroupsResponse.ListedGroup(group_id="new", group_state="Assigning", group_type="consumer"),
    ]

    def script(_node: int, request: "ApiMessage") -> "ApiMessage":
        match type(request).__name__:
            case "ListGroupsRequest":
                return ListGroupsResponse(error_code=0, groups=listed)
            case "DescribeGroupsRequest":
                assert list(request.groups) == ["lock", "odd"]
                return DescribeGroupsResponse(groups=[described, broken])
        return OffsetFetchResponse(error_code=0, topics=[])

    brokers = Brokers(script, nodes=(1,))
    found = {group.group_id: group for group in groups.groups(brokers.wire(), [1])}
    assert list(found) == ["lock", "new", "odd"]
    assert (found["lock"].protocol, found["lock"].members) == ("v1", (GroupMember("m", "c", "h"),))
    assert (found["new"].state, found["new"].members) == ("Assigning", ())
    assert found["odd"].members[0].assignment == {}


def test_a_topic_that_an_assignment_names_twice_is_one_topic() -> None:
    form = ConsumerProtocolAssignment.TopicPartition
    parts = [form(topic=topic, partitions=found) for topic, found in (("b", [3]), ("a", [1]), ("b", [2, 0]))]
    known = Coordinators()
    known.group = classic(ConsumerProtocolAssignment(assigned_partitions=parts, user_data=None).encode(version=1))
    (group,) = groups.all_groups(known.brokers.wire(), [1, 2]).values()
    assert group.members[0].assignment == {"a": (1,), "b": (0, 2, 3)}


@pytest.mark.parametrize(("protocol", "told"), [("by-weight", "Mw=="), ("sticky", None)])
def test_what_a_members_own_assignor_sent_is_read_and_what_kafkas_own_sends_is_not(
    protocol: str, told: str | None
) -> None:
    known = Coordinators()
    sent = ConsumerProtocolSubscription(topics=["t"], user_data=b"3", owned_partitions=[])
    known.group = classic(b"", protocol=protocol, metadata=sent.encode(version=1))
    (group,) = groups.all_groups(known.brokers.wire(), [1, 2]).values()
    assert (group.members[0].subscription, group.members[0].user_data) == (("t",), told)


def test_a_kip_848_group_is_described_with_what_its_members_own() -> None:
    form = ConsumerGroupDescribeResponse.DescribedGroup
    owned = form.Member.Assignment.TopicPartitions(topic_name="orders", partitions=[2, 0])
    member = form.Member(
        member_id="m", client_id="c", client_host="/10.0.0.1", rack_id="a", instance_id="i", member_epoch=1,
        subscribed_topic_names=["orders"], subscribed_topic_regex="or.*",
        assignment=form.Member.Assignment(topic_partitions=[owned]), member_type=1,
    )  # fmt: skip
    known = Coordinators(kind="Consumer")
    known.group = form(error_code=0, group_id="g", group_state="Stable", assignor_name="uniform", members=[member])
    (group,) = groups.all_groups(known.brokers.wire(), [1, 2], ["g"]).values()
    assert (group.kind, group.state, group.protocol, group.coordinator) == ("consumer", "Stable", "uniform", 1)
    (found,) = group.members
    assert (found.rack, found.instance_id, found.host) == ("a", "i", "10.0.0.1")
    assert (found.subscription, found.subscription_pattern) == (("orders",), "or.*")
    assert found.assignment == {"orders": (0, 2)}


def test_a_group_that_was_just_deleted_is_left_out() -> None:
    known = Coordinators()
    known.code = 69
    assert groups.all_groups(known.brokers.wire(), [1, 2]) == {}


@pytest.mark.parametrize("code", [14, 15, 16])
def test_a_coordinator_that_stays_busy_is_told_not_taken_for_an_empty_group(code: int) -> None:
    known = Coordinators()
    known.code = code
    for read in (groups.all_groups, groups.groups):
        with pytest.raises(ClusterUnavailable, match=r"The coordinator of group g answered \w+: it is starting or mov"):
            read(known.brokers.wire(), [1, 2])


def test_a_broker_that_does_not_list_its_groups_is_told() -> None:
    known = Coordinators()
    known.brokers.down.add(2)
    with pytest.raises(ClusterUnavailable, match="broker 2"):
        groups.all_groups(known.brokers.wire(), [1, 2])


def test_a_snapshot_is_made_without_the_groups_of_a_broker_that_is_down() -> None:
    known = Coordinators()
    known.brokers.down.add(2)
    assert [group.group_id for group in groups.groups(known.brokers.wire(), [1, 2])] == ["g"]


def test_a_named_group_that_may_not_be_seen_is_told_and_an_unknown_one_left_out() -> None:
    known = Coordinators()
    known.code = 30
    with pytest.raises(MissingRight, match=r"needs the right Describe on group hidden, which this user lacks"):
        groups.all_groups(known.brokers.wire(), [1, 2], ["hidden"])
    known.code = 16
    assert groups.all_groups(known.brokers.wire(), [1, 2], ["nobody"]) == {}


# Writes


def test_what_was_certainly_not_committed_is_sent_to_the_new_coordinator() -> None:
    known = Coordinators(at=(1, 2))
    known.committed = [{0: 0, 1: 16}, {1: 0}]
    assert group_writes.commit_offsets(known.brokers.wire(), "g", {KEY: 5, OTHER: 6}) == {
        KEY: Answer(),
        OTHER: Answer(),
    }
    sent = [(node, request) for node, request in known.brokers.sent if type(request).__name__ == "OffsetCommitRequest"]
    assert [node for node, _ in sent] == [1, 2]
    (topic,) = sent[1][1].topics
    assert [(each.partition_index, each.committed_offset) for each in topic.partitions] == [(1, 6)]


def test_an_answer_that_leaves_it_open_is_passed_on_and_nothing_repeated() -> None:
    known = Coordinators()
    known.committed = [{0: 15}]
    answers = group_writes.commit_offsets(known.brokers.wire(), "g", {KEY: 5})
    assert answers[KEY].error == "COORDINATOR_NOT_AVAILABLE"


def test_a_commit_without_an_answer_is_unknown_and_not_sent_again() -> None:
    known = Coordinators()
    known.committed = [TIME_OUT]
    with pytest.raises(OutcomeUnknown):
        group_writes.commit_offsets(known.brokers.wire(), "g", {KEY: 5})


def test_missing_rights_to_write_are_told_in_words() -> None:
    known = Coordinators()
    known.committed = [{0: 30}]
    with pytest.raises(MissingRight, match=r"Committing offsets for a group needs the right Read on group g"):
        group_writes.commit_offsets(known.brokers.wire(), "g", {KEY: 5})
    known.committed = [{0: 29, 1: 0}]
    answers = group_writes.commit_offsets(known.brokers.wire(), "g", {KEY: 5, OTHER: 5})
    assert answers[OTHER] == Answer()
    assert "needs the right Read on topic orders" in answers[KEY].message
    known.deleted = [30]
    deleted = group_writes.delete_groups(known.brokers.wire(), ["g"])["g"]
    assert (deleted.error, "needs the right Delete on group g" in deleted.message) == (
        "GROUP_AUTHORIZATION_FAILED",
        True,
    )


def test_a_group_without_a_coordinator_is_told() -> None:
    known = Coordinators()
    known.code = 15
    with pytest.raises(ClusterUnavailable, match=r"Group g has no coordinator \(COORDINATOR_NOT_AVAILABLE\)"):
        group_writes.delete_groups(known.brokers.wire(), ["g"])


def test_a_deletion_is_sent_again_only_where_the_coordinator_has_moved() -> None:
    known = Coordinators(at=(1, 2))
    known.deleted = [16, 0]
    assert group_writes.delete_groups(known.brokers.wire(), ["g"]) == {"g": Answer()}
    known.deleted = [kafka.errors.RequestTimedOutError("late")]
    with pytest.raises(OutcomeUnknown):
        group_writes.delete_groups(known.brokers.wire(), ["g"])


def test_a_coordinator_that_is_down_is_told_with_what_is_certainly_not_written() -> None:
    known = Coordinators(at=(2,))
    known.brokers.down.add(2)
    with pytest.raises(ClusterUnavailable, match=r"1 of 1 items are certainly not written\. Try again"):
        group_writes.delete_groups(known.brokers.wire(), ["g"])


def test_groups_that_may_not_be_described_are_named_at_once_whatever_their_kind_and_the_others_can_be_had() -> None:
    kinds = {"a": "classic", "b": "consumer", "c": "share", "d": "streams", "e": "classic"}
    hidden = {"a", "b", "c", "d"}

    def code(name: str) -> int:
        return 30 if name in hidden else 0

    def script(_node: int, request: "ApiMessage") -> "ApiMessage":
        match type(request).__name__:
            case "ListGroupsRequest":
                form = ListGroupsResponse.ListedGroup
                listed = [
                    form(group_id=name, group_type=kind, protocol_type="consumer") for name, kind in kinds.items()
                ]
                return ListGroupsResponse(error_code=0, groups=listed)
            case "DescribeGroupsRequest":
                told = DescribeGroupsResponse.DescribedGroup
                return DescribeGroupsResponse(
                    groups=[told(error_code=code(name), group_id=name, members=[]) for name in request.groups]
                )
            case "ConsumerGroupDescribeRequest":
                described = ConsumerGroupDescribeResponse.DescribedGroup(error_code=30, group_id="b", members=[])
                return ConsumerGroupDescribeResponse(groups=[described])
        return OffsetFetchResponse(error_code=code(request.group_id), topics=[])

    asking = Brokers(script, nodes=(1,), versions={69: (0, 1)}).wire()
    for read in (lambda: groups.groups(asking, [1]), lambda: groups.all_groups(asking, [1])):
        with pytest.raises(
            MissingRight, match=r"Describe on group a, b, c and 1 more, which this user lacks"
        ) as refused:
            read()
        assert refused.value.names == hidden
    assert list(groups.all_groups(asking, [1], but=refused.value.names)) == ["e"]
    assert groups.hidden_groups(asking, groups.listed_groups(asking)) == sorted(hidden)
