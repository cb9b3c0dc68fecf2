"""The client against real brokers that die, freeze and refuse: what the contract cannot ask of a simulated cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AclOperation, ResourceType
from helpers.brokers.by_hand import allow
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.observer import Observer
from helpers.waiting import HANG, wait_for
from kafka.admin._transactions import AbortTransactionSpec
from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.structs import TopicPartition as KafkaPartition

from reconciler.admin.client import KafkaAdmin, connect, observe, requests
from reconciler.admin.client.exchange import NoAnswer, NotSent
from reconciler.admin.client.offsets import end_offsets
from reconciler.admin.client.wire import Build, Wire
from reconciler.admin.port import Answer
from reconciler.model.change import ConfigChange, ConfigOperation, CreateTopic
from reconciler.model.cluster import LEADER_THROTTLED_RATE
from reconciler.model.problem import ClusterUnavailable, MissingRight, OutcomeUnknown
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import LateTransactions

NewKafka = Callable[..., KafkaCluster]
USERS = {"admin": "admin-password", "reader": "reader-password", "nobody": "nobody-password"}

pytestmark = pytest.mark.brokers


@pytest.fixture(scope="module")
def three(kafka_version: str) -> Iterator[KafkaCluster]:
    with KafkaCluster(version=kafka_version, broker_ids=(1, 2, 3), users=USERS) as cluster:
        yield cluster


@pytest.fixture
def admin(three: KafkaCluster) -> Iterator[KafkaAdmin]:
    connected = connect(three.properties)
    yield connected
    connected.close()


def create(admin: KafkaAdmin, name: str, *assignment: Sequence[int]) -> None:
    lists = {number: tuple(replicas) for number, replicas in enumerate(assignment)}
    assert admin.create_topics([CreateTopic(name, len(lists), len(assignment[0]), {}, lists)]) == {name: Answer()}


# Faults


def test_the_next_change_after_the_death_of_the_active_controller_is_made_by_its_successor(
    three: KafkaCluster, admin: KafkaAdmin
) -> None:
    controller, epoch = observe.controller_id(admin.wire), admin.quorum().epoch
    assert controller is not None
    assert epoch is not None
    three.kill(controller)
    alive = [broker for broker in (1, 2, 3) if broker != controller]
    try:
        create(admin, "after-the-controller", alive)
    except OutcomeUnknown:
        wait_for(lambda: bool(admin.topics(["after-the-controller"])), "the topic")
    successor, later = observe.controller_id(admin.wire), admin.quorum().epoch
    three.start(controller)
    assert successor in alive
    assert later is not None
    assert later > epoch


def test_a_frozen_broker_delays_reads_once(
    three: KafkaCluster, admin: KafkaAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.admin.client.wire.AVOID_SECONDS", HANG)
    silent: list[str] = []
    exchange = Wire.ask

    def noting(wire: Wire, build: Build, node_id: int | None, seconds: float) -> object:
        try:
            return exchange(wire, build, node_id, seconds)
        except (NotSent, NoAnswer) as error:
            silent.append(str(error))
            raise

    monkeypatch.setattr(Wire, "ask", noting)
    frozen = next(broker for broker in (1, 2, 3) if broker != observe.controller_id(admin.wire))
    for _ in range(6):
        admin.reassignments()
    three.pause(frozen)
    try:
        for _ in range(12):
            admin.reassignments()
    finally:
        three.resume(frozen)
    three.wait_until_alive([frozen])
    assert [text.partition(":")[0] for text in silent].count(f"broker {frozen}") <= 1


def test_a_cluster_that_stops_altogether_is_told_in_one_sentence(new_kafka: NewKafka) -> None:
    kafka = new_kafka(broker_ids=(1,))
    admin = connect(kafka.properties)
    kafka.kill(1)
    with pytest.raises(ClusterUnavailable, match=r"does not answer \(broker 1: .*\). Check that its brokers run"):
        admin.topics(["any"])
    admin.close()


# Rights


def test_every_missing_right_is_named_and_nothing_passes_for_empty(three: KafkaCluster, admin: KafkaAdmin) -> None:
    create(admin, "guarded", (1, 2, 3))
    key = TopicPartition("guarded", 0)
    limited = connect(three.properties_of("nobody"))
    expected: Mapping[str, Callable[[], object]] = {
        "Describe on the cluster": limited.observe,
        "Describe on topic guarded": lambda: limited.topics(["guarded"]),
        "DescribeConfigs on topic guarded": lambda: limited.topic_configs(["guarded"]),
        "DescribeConfigs on the cluster": lambda: limited.broker_configs([1]),
        "Alter on the cluster": lambda: limited.reassign({key: (3, 2, 1)}),
        "Create on topic fresh": lambda: limited.create_topics([CreateTopic("fresh", 1, 1, {}, {0: (1,)})]),
        "Delete on topic guarded": lambda: limited.delete_topics(["guarded"]),
        "AlterConfigs on the cluster": lambda: limited.alter_broker_configs(
            1, [ConfigChange(LEADER_THROTTLED_RATE, ConfigOperation.SET, "1")]
        ),
    }
    told = {}
    for right, call in expected.items():
        with pytest.raises(MissingRight) as refused:
            call()
        told[right] = str(refused.value)
    for more in (limited.reassignments, lambda: limited.elect_preferred_leaders([key])):
        with pytest.raises(MissingRight, match=r"on the cluster, which this user lacks"):
            more()
    told["AlterConfigs on topic guarded"] = limited.alter_topic_configs({"guarded": []})["guarded"].message
    limited.close()
    assert all(f"needs the right {right}, which this user lacks. Grant it" in text for right, text in told.items())


def test_a_topic_that_kafka_hides_is_noticed_by_its_log_dirs(three: KafkaCluster, admin: KafkaAdmin) -> None:
    create(admin, "hidden", (1, 2, 3))
    rights = (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    allow(three, "reader", ResourceType.BROKER, "kafka-cluster", *rights)
    limited = connect(three.properties_of("reader"))
    wait_for(lambda: _may_list(limited), "the right to be known")
    with pytest.raises(MissingRight, match=r"Reading a topic needs the right Describe on topic .*hidden"):
        limited.observe()
    limited.close()


def _may_list(limited: KafkaAdmin) -> bool:
    try:
        limited.reassignments()
    except MissingRight:
        return False
    return True


# The cluster-wide default of broker configs


def test_configs_of_all_brokers_are_told_apart_from_a_brokers_own(three: KafkaCluster, admin: KafkaAdmin) -> None:
    change = [ConfigChange(LEADER_THROTTLED_RATE, ConfigOperation.SET, "123456")]
    admin.wire.write(partial(requests._alteration, observe.BROKER_RESOURCE, {"": change}))
    in_force = {id_: {LEADER_THROTTLED_RATE: "123456"} for id_ in three.alive}
    wait_for(lambda: admin.broker_settings(three.alive, [LEADER_THROTTLED_RATE]) == in_force, "the rate")
    assert admin.broker_configs(three.alive) == {1: {}, 2: {}, 3: {}}
    undo = [ConfigChange(LEADER_THROTTLED_RATE, ConfigOperation.DELETE)]
    admin.wire.write(partial(requests._alteration, observe.BROKER_RESOURCE, {"": undo}))


# Groups


def test_groups_of_every_kind_are_observed(three: KafkaCluster, admin: KafkaAdmin) -> None:
    create(admin, "grouped", (1, 2), (2, 3))
    wait_for(lambda: bool(admin.topics(["grouped"])), "the topic")
    for partition in (0, 1):
        three.produce("grouped", partition, size=30_000)
    common = {"bootstrap.servers": three.bootstrap, "auto.offset.reset": "earliest", "log_level": 0}
    classic = Consumer({**common, "group.id": "classic", "client.id": "ada", "partition.assignment.strategy": "range"})
    classic.subscribe(["grouped"])
    consume(classic, 6)
    classic.commit(asynchronous=False)
    join_with_own_protocol(admin, "own-protocol")
    is_new = not three.version.startswith("3.")  # KIP-848 is on from 4.0
    modern = Consumer({**common, "group.id": "modern", "group.protocol": "consumer"}) if is_new else None
    if modern is not None:
        modern.subscribe(["grouped"])
        consume(modern, 6)
        modern.commit(asynchronous=False)
    found = {group.group_id: group for group in admin.observe(has_groups=True).groups}
    classic.close()
    group = found["classic"]
    assert (group.state, group.protocol, group.offsets) == ("Stable", "range", {"grouped": {0: 3, 1: 3}})
    assert group.coordinator in (1, 2, 3)
    (member,) = group.members
    assert (member.client_id, member.subscription, member.assignment) == ("ada", ("grouped",), {"grouped": (0, 1)})
    assert found["own-protocol"].members[0].subscription == ()
    if modern is not None:
        modern.close()
        assert (found["modern"].state, found["modern"].offsets) == ("Stable", {"grouped": {0: 3, 1: 3}})
        assert (found["modern"].kind, found["modern"].protocol) == ("consumer", "uniform")
        assert [member.assignment for member in found["modern"].members] == [{"grouped": (0, 1)}]


def consume(consumer: Consumer, count: int) -> None:
    got = 0

    def has_enough() -> bool:
        nonlocal got
        message = consumer.poll(1)
        got += message is not None and message.error() is None
        return got >= count

    wait_for(has_enough, f"{count} records", pause=0, seen=lambda: got)


def join_with_own_protocol(admin: KafkaAdmin, group_id: str) -> None:
    """Join a group whose members do not speak the consumer protocol."""
    common = {"group_id": group_id, "protocol_type": "mine"}
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="v1", metadata=b"since noon")
    timeouts = {"session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000}
    member = ""

    def has_joined() -> bool:  # a new cluster first makes the internal topic; then the first answer gives the id to use
        nonlocal member
        found = admin.wire.read(lambda: FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id], min_version=4))
        join = partial(JoinGroupRequest, member_id=member, protocols=[protocol], **common, **timeouts)
        answers = admin.wire.read_each({coordinator.node_id: join for coordinator in found.coordinators})
        for coordinator, answer in answers.items():
            member = answer.member_id or member
            if answer.error_code == 0:
                sync = {"generation_id": answer.generation_id, "member_id": member, "protocol_name": "v1"}
                admin.wire.read(partial(SyncGroupRequest, assignments=[], **common, **sync), coordinator)
                return True
        return False

    wait_for(has_joined, "the group to take a member", pause=0.2)


def test_the_cluster_is_observed_with_few_requests(
    three: KafkaCluster, admin: KafkaAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"many-{number:03}" for number in range(40)]
    changes = [CreateTopic(name, 2, 2, {"retention.ms": "1000000"}, {0: (1, 2), 1: (2, 3)}) for name in names]
    assert set(admin.create_topics(changes).values()) == {Answer()}
    leaders = {TopicPartition(name, number): leader for name in names for number, leader in ((0, 1), (1, 2))}
    wait_for(lambda: len(end_offsets(admin.wire, leaders)) == len(leaders), "every leader to answer")
    wait_for(lambda: len(admin.topics(names)) == len(names), "the topics")
    Observer(three.bootstrap).catch_up(names[-1:])  # one request made them all
    sent: list[object] = []
    exchange = Wire.ask

    def counting(wire: Wire, build: Build, node_id: int | None, seconds: float) -> object:
        sent.append(build)
        return exchange(wire, build, node_id, seconds)

    monkeypatch.setattr(Wire, "ask", counting)
    seen = admin.observe()
    assert all(seen.topics[name].configs == {"retention.ms": "1000000"} for name in names)
    assert all(partition.end_offset == 0 for name in names for partition in seen.topics[name].partitions)
    assert len(sent) < 30
    assert not any("auto.leader.rebalance.enable" in broker.configs for broker in seen.brokers.values())
    static = seen.in_force("auto.leader.rebalance.enable")  # of server.properties, as no broker has it of itself
    assert (static, seen.number_in_force("default.replication.factor")) == (dict.fromkeys(seen.brokers, "false"), 1)


HOUR_MS = 3_600_000
VERIFIED = "transaction.partition.verification.enable"


def left_hanging(admin: KafkaAdmin, key: TopicPartition, leader: int, written_ms: int) -> int:
    """Write a record of a transaction that no coordinator is told of, and return its producer's id.

    A late write to a broker that does not verify transactions (KIP-890) comes to the same.
    """
    begun = admin.wire.read(partial(InitProducerIdRequest, transactional_id=None, transaction_timeout_ms=60_000))
    batch = DefaultRecordBatchBuilder(2, 0, 1, begun.producer_id, begun.producer_epoch, 0, 10_000)
    batch.append(0, written_ms, None, b"left", [])
    form = ProduceRequest.TopicProduceData
    data = form.PartitionProduceData(index=key.partition, records=bytes(batch.build()))
    # With version 12 the leader itself would add the partition to the transaction.
    build = partial(
        ProduceRequest, transactional_id="nobody-knows", acks=-1, timeout_ms=10_000,
        topic_data=[form(name=key.topic, partition_data=[data])], max_version=11,
    )  # fmt: skip
    (topic,) = admin.wire.read(build, leader).responses
    assert [one.error_code for one in topic.partition_responses] == [0]
    return int(begun.producer_id)


def test_a_transaction_that_no_coordinator_knows_is_told_from_one_that_is_only_late(
    three: KafkaCluster, admin: KafkaAdmin
) -> None:
    create(admin, "written", (1, 2, 3), (2, 3, 1))
    hanging, late = TopicPartition("written", 0), TopicPartition("written", 1)
    leaders: dict[TopicPartition, int | None] = {hanging: 1, late: 2}
    now = int(admin.clock.now().timestamp() * 1000)
    for value in ("false", "true"):  # the leader verifies again before anything is looked at
        change = ConfigChange(VERIFIED, ConfigOperation.SET, value)
        assert admin.alter_broker_configs(1, [change]) == Answer()
        if value == "false":
            wait_for(lambda: admin.broker_settings([1], [VERIFIED])[1][VERIFIED] == "false", "the setting")
            producer_id = left_hanging(admin, hanging, 1, now - HOUR_MS)
    producer = Producer({"bootstrap.servers": three.bootstrap, "transactional.id": "slow", "log_level": 0})
    producer.init_transactions(HANG)
    producer.begin_transaction()
    producer.produce("written", b"x", partition=1, timestamp=now - HOUR_MS)
    producer.flush(HANG)

    seen = admin.late_transactions(leaders, now - HOUR_MS // 2)
    assert [one.topic_partition for one in seen.found] == [hanging, late]
    first, second = seen.found
    assert (first.producer_id, first.first_offset, first.known) == (producer_id, 0, None)
    assert first.last_written_ms == now - HOUR_MS
    assert second.known is not None
    assert (second.known.transactional_id, second.known.state) == ("slow", "Ongoing")
    assert second.known.began_ms > now - HOUR_MS // 2
    assert admin.late_transactions(leaders, now - 2 * HOUR_MS).found == ()

    limited = connect(three.properties_of("nobody"))
    unread = LateTransactions(now, untold=0)
    for right, expected in (
        (AclOperation.DESCRIBE, replace(unread, untold=2)),
        (AclOperation.READ, replace(unread, hidden=2)),
    ):
        allow(three, "nobody", ResourceType.TOPIC, "written", right)
        wait_for(lambda: limited.late_transactions(leaders, now) == expected, f"{right} to be known")  # noqa: B023
    limited.close()

    producer.abort_transaction(HANG)
    partition = KafkaPartition(*hanging)
    admin.wire.client.abort_transaction(AbortTransactionSpec(partition, producer_id, first.producer_epoch))
    wait_for(lambda: admin.late_transactions(leaders, now) == unread, "nothing to be open")
