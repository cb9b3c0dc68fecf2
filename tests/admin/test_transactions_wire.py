"""Late transactions where a coordinator does not tell, or what was open has ended meanwhile: nothing seems to hang."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from admin.test_client_wire import TIME_OUT, Brokers
from kafka.protocol.admin.transactions import (
    DescribeProducersResponse,
    DescribeTransactionsResponse,
    ListTransactionsResponse,
)
from kafka.protocol.consumer import ListOffsetsResponse
from kafka.protocol.metadata import MetadataResponse

from reconciler.admin.client.transactions import late_transactions
from reconciler.model.problem import ClusterUnavailable
from reconciler.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.api_message import ApiMessage

KEY, NOW = TopicPartition("t", 0), 1_000_000
COORDINATOR = 2


@dataclass
class OneOpen:
    """A partition led by broker 1 with an open transaction, which ends when it is asked of again if `is_ending`.

    Broker 2 coordinates, knows of none, and says `code`.
    """

    code: int = 0
    has_leader: bool = True
    is_silent: bool = False
    is_ending: bool = False
    asked: list[str] = field(default_factory=list)

    def __call__(self, node: int, request: "ApiMessage") -> "ApiMessage | Exception":
        kind = type(request).__name__
        self.asked.append(kind)
        match kind:
            case "ListOffsetsRequest":
                form = ListOffsetsResponse.ListOffsetsTopicResponse
                end = form.ListOffsetsPartitionResponse(
                    partition_index=0, error_code=0, timestamp=-1, offset=3 if request.isolation_level else 7
                )
                return ListOffsetsResponse(topics=[form(name="t", partitions=[end])])
            case "DescribeProducersRequest":
                topic = DescribeProducersResponse.TopicResponse
                told = topic.PartitionResponse
                producer = told.ProducerState(
                    producer_id=9, producer_epoch=0, last_sequence=0, last_timestamp=NOW - 1, coordinator_epoch=0,
                    current_txn_start_offset=-1 if self.is_ending and self.asked.count(kind) > 1 else 3,
                )  # fmt: skip
                one = told(partition_index=0, error_code=0, error_message=None, active_producers=[producer])
                return DescribeProducersResponse(topics=[topic(name="t", partitions=[one])])
            case "MetadataRequest":
                topic = MetadataResponse.MetadataResponseTopic
                leader = COORDINATOR if self.has_leader else -1
                one = topic.MetadataResponsePartition(
                    error_code=0, partition_index=0, leader_id=leader, replica_nodes=[2], isr_nodes=[2],
                    offline_replicas=[],
                )  # fmt: skip
                return MetadataResponse(topics=[topic(error_code=0, name="__transaction_state", partitions=[one])])
            case "ListTransactionsRequest":
                assert node == COORDINATOR
                return TIME_OUT if self.is_silent else ListTransactionsResponse(error_code=self.code)
            case _:
                assert kind == "DescribeTransactionsRequest"
                return DescribeTransactionsResponse(transaction_states=[])


def test_what_is_open_and_unknown_to_its_coordinator_hangs() -> None:
    one = OneOpen()
    seen = late_transactions(Brokers(one).wire(), {KEY: 1}, NOW)
    (found,) = seen.found
    assert (found.topic_partition, found.producer_id, found.first_offset, found.known) == (KEY, 9, 3, None)
    assert late_transactions(Brokers(OneOpen()).wire(), {KEY: 1}, NOW - 1).found == ()


def test_what_ended_while_coordinators_were_asked_does_not_hang() -> None:
    assert late_transactions(Brokers(OneOpen(is_ending=True)).wire(), {KEY: 1}, NOW).found == ()


@pytest.mark.parametrize("one", [OneOpen(has_leader=False), OneOpen(is_silent=True), OneOpen(code=37)])
def test_a_coordinator_that_does_not_tell_makes_nothing_seem_to_hang(one: OneOpen) -> None:
    with pytest.raises(ClusterUnavailable, match="not every coordinator tells its transactions"):
        late_transactions(Brokers(one).wire(), {KEY: 1}, NOW)
