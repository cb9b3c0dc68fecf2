"""The contract of the lock, against a simulated cluster in memory, and one kept in a file; and what ends a session."""

from pathlib import Path

import pytest
from admin.lock_contract import LockContract, Processes
from helpers.clusters.small_cluster import small_cluster

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.admin.simulated_locks import MemoryLocks
from reconciler.files.lock_file import LockFile
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import Cluster
from reconciler.model.lock import LockHeld, LockLost, StopRequest

RATE = ConfigChange("follower.replication.throttled.rate", ConfigOperation.SET, "1")


class TestInMemory(LockContract):
    @pytest.fixture
    def processes(self) -> Processes:
        locks = MemoryLocks()
        return lambda: SimulatedAdmin(small_cluster(), locks=locks)


class TestInAFile(LockContract):
    @pytest.fixture
    def processes(self, tmp_path: Path) -> Processes:
        return lambda: SimulatedAdmin(small_cluster(), locks=LockFile(tmp_path / "snapshot.json"))


def test_without_its_session_the_holder_writes_nothing() -> None:
    locks = MemoryLocks()
    first = SimulatedAdmin(small_cluster(), locks=locks)
    second = SimulatedAdmin(small_cluster(), locks=locks)
    with first.lock("first") as lock:
        first.alter_broker_configs(1, [RATE])
        locks.expire()
        assert not lock.is_held()
        with second.lock("second"):
            with pytest.raises(LockLost, match="its session ended"):
                first.alter_broker_configs(2, [RATE])
            lock.release()
            assert second.lock_holder() is not None, "giving back what was lost takes it from nobody"
    assert first.writes == 1
    assert 2 not in [broker.id for broker in first.cluster.brokers.values() if broker.configs]


def test_a_request_that_reaches_another_holder_than_it_is_meant_for_is_not_heard() -> None:
    locks = MemoryLocks()
    with SimulatedAdmin(small_cluster(), locks=locks).lock("apply of plan 2") as lock:
        assert locks.holder is not None
        locks.ask_to_stop(StopRequest("apply of plan 1", locks.holder))
        assert lock.asked_by is None


def test_the_cluster_is_read_again_once_it_is_locked() -> None:
    newer = small_cluster("made-meanwhile-0: 1,2")
    admin = SimulatedAdmin(small_cluster(), load=lambda: newer)
    assert admin.topics(["made-meanwhile"]) == {}
    with admin.lock("first"):
        assert list(admin.topics(["made-meanwhile"])) == ["made-meanwhile"]


def test_a_refused_process_does_not_read_the_cluster_again() -> None:
    locks = MemoryLocks()
    loads: list[str] = []

    def process(name: str) -> SimulatedAdmin:
        def load() -> Cluster:
            loads.append(name)
            return small_cluster()

        return SimulatedAdmin(small_cluster(), locks=locks, load=load)

    with process("first").lock("first"), pytest.raises(LockHeld):
        process("second").lock("second")
    assert loads == ["first"]
