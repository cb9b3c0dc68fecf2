"""Topics that one answer lists and another does not know: asked again, then deleted, or an error; never left out."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from admin.test_client_wire import Brokers, let_time_pass
from kafka.protocol.admin import (
    DescribeConfigsResponse,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.metadata import MetadataResponse

from reconciler.admin.client import KafkaAdmin, observe
from reconciler.model.problem import NamesDiffer

UNKNOWN = 3


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    let_time_pass(monkeypatch)


class Answers:
    """Brokers whose answers disagree: for how many questions each of them lists, or knows, topic `t`."""

    def __init__(self, *, listed: int = 99, unknown: int = 0, moving: int = 0) -> None:
        self.listed, self.unknown, self.moving = listed, unknown, moving
        self.brokers = Brokers(self.answer)
        self.admin = KafkaAdmin(self.brokers.wire(), clock=SimpleNamespace(sleep=lambda _seconds: None))

    def answer(self, _node: int, request: object) -> object:
        match type(request).__name__.removesuffix("Request"):
            case "Metadata":
                self.listed -= 1
                return MetadataResponse(topics=[self._topic()] if self.listed >= 0 else [])
            case "DescribeConfigs":
                self.unknown -= 1
                form = DescribeConfigsResponse.DescribeConfigsResult
                code = UNKNOWN if self.unknown >= 0 else 0
                return DescribeConfigsResponse(results=[form(error_code=code, resource_name="t", configs=[])])
            case "ListPartitionReassignments":
                self.moving -= 1
                return self._reassignments(is_moving=self.moving >= 0)
        raise AssertionError(request)

    def sent(self, name: str) -> int:
        return sum(type(request).__name__ == f"{name}Request" for _, request in self.brokers.sent)

    @staticmethod
    def _topic() -> object:
        form = MetadataResponse.MetadataResponseTopic
        partition = form.MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1])
        return form(error_code=0, name="t", partitions=[partition], topic_id=None)

    @staticmethod
    def _reassignments(*, is_moving: bool) -> object:
        form = ListPartitionReassignmentsResponse.OngoingTopicReassignment
        partition = form.OngoingPartitionReassignment(
            partition_index=0, replicas=[1, 2], adding_replicas=[2], removing_replicas=[]
        )
        topics = [form(name="other", partitions=[partition])] if is_moving else []
        return ListPartitionReassignmentsResponse(error_code=0, error_message=None, topics=topics)


READ: tuple[Callable[[KafkaAdmin], object], ...] = (
    lambda admin: admin.topic_configs(["t"]),
    lambda admin: admin.topic_settings(["t"]),
    lambda admin: admin._configs_of(["t"], lambda *_: None),
)


@pytest.mark.parametrize("read", READ, ids=["configs", "settings", "all of a look"])
@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({}, {"t": {}}),
        ({"unknown": 1}, {"t": {}}),
        ({"unknown": 5}, {"t": {}}),
        ({"unknown": 1, "listed": 0}, {}),
        ({"unknown": 9, "listed": 3}, {}),
        ({"unknown": 6}, NamesDiffer),
        ({"unknown": 99}, NamesDiffer),
    ],
    ids=["known", "known soon", "known late", "deleted", "deleted late", "too late", "renamed"],
)
def test_a_topic_without_configs_is_asked_for_again_then_gone_or_an_error(
    read: Callable[[KafkaAdmin], object], answers: dict[str, int], found: object
) -> None:
    given = Answers(**answers)
    if found is not NamesDiffer:
        assert read(given.admin) == found
        return
    with pytest.raises(NamesDiffer, match=r"^Metadata lists t, which DescribeConfigs does not know: names of topics"):
        read(given.admin)
    assert given.sent("DescribeConfigs") == 6


def test_configs_that_are_all_there_cost_one_request() -> None:
    given = Answers()
    given.admin.topic_configs(["t"])
    assert len(given.brokers.sent) == 1


def test_a_move_of_a_topic_that_metadata_does_not_know_is_an_error_unless_it_ends() -> None:
    """Two questions come before and after the topics; a topic that was deleted leaves the list at once."""
    ended = Answers(moving=2)
    assert list(observe.topics_with_reassignments(ended.admin.wire)) == ["t"]
    with pytest.raises(NamesDiffer, match=r"^ListPartitionReassignments lists other, which Metadata does not know"):
        observe.topics_with_reassignments(Answers(moving=99).admin.wire)
    quiet = Answers()
    observe.topics_with_reassignments(quiet.admin.wire)
    assert len(quiet.brokers.sent) == 3
