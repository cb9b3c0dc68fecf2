"""The contract of the lock, against real Kafka, and what only real Kafka can do to it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from admin.lock_contract import LockContract, Processes
from confluent_kafka import Consumer
from helpers.brokers.cluster import KafkaCluster
from helpers.waiting import wait_for
from kafka.protocol.consumer import LeaveGroupRequest

from reconciler.admin.client import KafkaAdmin, connect
from reconciler.admin.client.lock import ClusterLock
from reconciler.admin.client.lock_member import Member
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.lock import LOCK_GROUP, LockHeld, LockLost
from reconciler.model.problem import Refused

pytestmark = pytest.mark.brokers

RATE = "follower.replication.throttled.rate"


@pytest.fixture
def start(kafka: KafkaCluster) -> Iterator[Processes]:
    started: list[KafkaAdmin] = []

    def begun() -> KafkaAdmin:
        started.append(connect(kafka.properties))
        return started[-1]

    yield begun
    for admin in started:
        admin.close()


class TestRealKafka(LockContract):
    @pytest.fixture
    def processes(self, start: Processes) -> Processes:
        return start


def held_by(admin: object, purpose: str) -> ClusterLock:
    assert isinstance(admin, KafkaAdmin)
    return admin.lock(purpose)


def remove(lock: ClusterLock, by: object) -> None:
    """Let another client take the holder out of the group, as the end of its session would."""
    assert isinstance(by, KafkaAdmin)
    other = Member(by.wire, replace(lock.member.holder, purpose="remover"))
    form = LeaveGroupRequest.MemberIdentity
    gone = [form(member_id=lock.member.member_id)]
    answer = other.send(lambda: LeaveGroupRequest(group_id=LOCK_GROUP, members=gone, min_version=3))
    assert answer.error_code == 0


def wait_until_heard(lock: ClusterLock) -> None:
    """Wait until the holder has asked its coordinator twice more, or need not ask any more."""
    third = lock._beats + 3
    wait_for(lambda: lock._beats >= third or not lock._thread.is_alive(), "its coordinator's answers")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_who_sits_in_the_locks_group_for_something_else_is_named(
    start: Processes, kafka: KafkaCluster, protocol: str
) -> None:
    if protocol == "consumer" and kafka.version < "4":
        pytest.skip("KIP-848 came with Kafka 4")
    admin = start()
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": LOCK_GROUP, "client.id": "billing"}
    consumer = Consumer({**settings, "group.protocol": protocol})
    consumer.subscribe(["^.*"])
    try:
        wait_for(lambda: consumer.poll(0.1) is not None or bool(consumer.memberid()), "the consumer to be a member")
        with pytest.raises(Refused, match=r"Stop its members, then try again \(protocol type consumer") as refused:
            admin.lock("apply of plan 1")
        assert refused.value.code == "KR452"
        assert "client billing on 127.0.0.1, member " in str(refused.value)
    finally:
        consumer.close()
    start().lock("apply of plan 1").release()


def test_a_holder_that_was_forgotten_goes_on_if_nobody_came_in_between(start: Processes) -> None:
    first, second = start(), start()
    with held_by(first, "first") as lock:
        before = lock.member.member_id
        remove(lock, second)
        wait_until_heard(lock)
        lock.check()
        assert lock.is_held()
        assert lock.member.member_id != before
        with pytest.raises(LockHeld, match="first"):
            second.lock("second")


def test_a_holder_that_was_forgotten_stops_if_another_holds_the_lock(start: Processes) -> None:
    first, second = start(), start()
    with held_by(first, "first") as lock:
        remove(lock, second)
        with second.lock("apply of plan 2"):
            wait_until_heard(lock)
            with pytest.raises(LockLost, match="apply of plan 2"):
                first.alter_broker_configs(1, [ConfigChange(RATE, ConfigOperation.SET, "1000000")])
            assert not lock.is_held()
        with pytest.raises(LockLost):
            lock.check()
    assert RATE not in second.broker_configs([1])[1]


def test_a_holder_that_was_forgotten_stops_if_another_has_held_the_lock_in_between(start: Processes) -> None:
    first, second = start(), start()
    with held_by(first, "first") as lock:
        remove(lock, second)
        second.lock("second").release()
        wait_until_heard(lock)
        with pytest.raises(LockLost, match="did not hear of this process"):
            lock.check()
    assert second.lock_holder() is None
