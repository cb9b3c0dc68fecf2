"""Finds transactions that are open for too long (KIP-664), with as few questions as a large cluster can take.

Offsets tell which partitions have an open transaction: there the last stable offset is behind the high watermark. Their
leaders tell who writes it and since when. Of those that are late, coordinators tell whether they still know them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kafka.protocol.admin.transactions import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)

from reconciler.admin.client import observe
from reconciler.admin.client.errors import NONE
from reconciler.admin.client.offsets import COMMITTED, Leaders, by_leader, end_offsets
from reconciler.admin.client.wire import Build, Wire, batches, by_topic
from reconciler.model.cluster import leaders_of
from reconciler.model.problem import ClusterUnavailable
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import CoordinatedTransaction, LateTransactions, OpenTransaction

if TYPE_CHECKING:
    from kafka.protocol.api_message import ApiMessage

PARTITIONS_A_REQUEST = 1_000
NO_TRANSACTION = -1
TOPIC_AUTHORIZATION_FAILED, ID_AUTHORIZATION_FAILED, ID_NOT_FOUND = 29, 53, 105
NOBODY = "reconciler-doctor"  # a transactional id that no producer has
TRANSACTION_STATE = "__transaction_state"
_UNTOLD = "not every coordinator tells its transactions, so a late one is not told from one that hangs; look again"


def late_transactions(wire: Wire, leaders: Leaders, before_ms: int) -> LateTransactions:
    """Return the open transactions whose last record is older than that time; a leader that is silent is left out."""
    # Whoever was silent about its log dirs keeps nobody waiting again.
    answering = {key: node for key, node in leaders.items() if node is not None and not wire.is_silent(node)}
    held = _held_back(wire, answering)
    answers = list(_producers(wire, held))
    untold = sum(code == TOPIC_AUTHORIZATION_FAILED for _, code, _ in answers)
    late = [one for _, _, found in answers for one in found if one.last_written_ms < before_ms]
    if not late:
        return LateTransactions(before_ms, untold=untold)
    if _is_hidden(wire):
        return LateTransactions(before_ms, hidden=len(late), untold=untold)
    known = _known(wire, late)
    # One that ended after its partition was asked is not known to a coordinator any more, and did not hang.
    where = {one.topic_partition: held[one.topic_partition] for one in late}
    again = {one for _, _, told in _producers(wire, where) for one in told}
    found = sorted((one for one in late if one in again), key=lambda one: (one.topic_partition, one.first_offset))
    return LateTransactions(before_ms, tuple(known.get(one, one) for one in found), untold=untold)


def _held_back(wire: Wire, leaders: Leaders) -> dict[TopicPartition, int | None]:
    """Return the partitions with an open transaction, and their leaders: the watermark is asked for first."""
    watermarks = end_offsets(wire, leaders)
    stable = end_offsets(wire, {key: leaders[key] for key in watermarks}, isolation=COMMITTED)
    return {key: leaders[key] for key, offset in stable.items() if offset < watermarks[key]}


def _producers(wire: Wire, leaders: Leaders) -> Iterator[tuple[TopicPartition, int, list[OpenTransaction]]]:
    """Yield what each partition's leader tells: an error code, and the transactions that are open there."""
    left = {leader: batches(some, PARTITIONS_A_REQUEST) for leader, some in by_leader(leaders).items()}
    while any(left.values()):
        form = DescribeProducersRequest.TopicRequest
        builds = {
            leader: partial(
                DescribeProducersRequest,
                topics=[form(name=name, partition_indexes=found) for name, found in by_topic(some.pop(0)).items()],
            )
            for leader, some in left.items()
            if some
        }
        for answer in wire.read_each(builds).values():
            for topic in answer.topics:
                for told in topic.partitions:
                    key = TopicPartition(topic.name, told.partition_index)
                    producers = told.active_producers or () if told.error_code == NONE else ()
                    yield (
                        key,
                        told.error_code,
                        [
                            OpenTransaction(
                                key,
                                one.producer_id,
                                one.producer_epoch,
                                one.current_txn_start_offset,
                                one.last_timestamp,
                            )
                            for one in producers
                            if one.current_txn_start_offset != NO_TRANSACTION
                        ],
                    )


def _is_hidden(wire: Wire) -> bool:
    """Whether transactional ids may be hidden: lists leave out those without Describe, and say nothing of it."""
    answer = wire.read(partial(DescribeTransactionsRequest, transactional_ids=[NOBODY]))
    return any(one.error_code == ID_AUTHORIZATION_FAILED for one in answer.transaction_states)


def _known(wire: Wire, late: list[OpenTransaction]) -> Mapping[OpenTransaction, OpenTransaction]:
    """Return those of the transactions that a coordinator still has, with what it tells of them.

    Raises ClusterUnavailable where one does not tell: what it alone knows would seem to hang.
    """
    # The leaders of its partitions are the coordinators.
    state = observe.topics(wire, [TRANSACTION_STATE])
    coordinators = set(leaders_of(state.values()).values())
    if None in coordinators:
        raise ClusterUnavailable(_UNTOLD)
    producers = sorted({one.producer_id for one in late})
    listing = partial(ListTransactionsRequest, producer_id_filters=producers)
    listed = _each(wire, {one: listing for one in coordinators if one is not None})
    if any(answer.error_code != NONE for answer in listed.values()):
        raise ClusterUnavailable(_UNTOLD)
    ids = {broker: [one.transactional_id for one in answer.transaction_states] for broker, answer in listed.items()}
    described = _each(
        wire,
        {broker: partial(DescribeTransactionsRequest, transactional_ids=some) for broker, some in ids.items() if some},
    )
    found: dict[tuple[int, TopicPartition], CoordinatedTransaction] = {}
    for answer in described.values():
        for told in answer.transaction_states:
            if told.error_code not in {NONE, ID_NOT_FOUND}:
                raise ClusterUnavailable(_UNTOLD)
            one = CoordinatedTransaction(told.transactional_id, told.transaction_state, told.transaction_start_time_ms)
            keys = [TopicPartition(topic.topic, number) for topic in told.topics for number in topic.partitions]
            found |= dict.fromkeys(((told.producer_id, key) for key in keys), one)
    return {
        one: replace(one, known=found[one.producer_id, one.topic_partition])
        for one in late
        if (one.producer_id, one.topic_partition) in found
    }


def _each(wire: Wire, builds: Mapping[int, Build]) -> "Mapping[int, ApiMessage]":
    answers = wire.read_each(builds)
    if answers.keys() != builds.keys():
        raise ClusterUnavailable(_UNTOLD)
    return answers
