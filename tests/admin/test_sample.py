"""One look at log dirs and end offsets: what a silent broker, a broken disk or a missing right hides, and no more."""

from types import SimpleNamespace
from typing import TYPE_CHECKING

from admin.test_client_wire import Brokers
from helpers.clusters.small_cluster import small_cluster
from kafka.protocol.admin import DescribeClusterRequest, DescribeLogDirsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from reconciler.admin.client.log_dirs import sample
from reconciler.admin.port import EARLIEST
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.model.sample import ClusterSample, ReplicaOnDisk
from reconciler.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.api_message import ApiMessage

ORDERS, CLICKS = TopicPartition("orders", 0), TopicPartition("clicks", 0)
STORAGE_ERROR, CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, NOT_LEADER = 56, 31, 29, 6
REPLICAS = {"orders": [1, 2], "clicks": [2, 4]}


def replica(size: int, lag: int = 0, *, is_future: bool = False) -> SimpleNamespace:
    return SimpleNamespace(partition_index=0, partition_size=size, offset_lag=lag, is_future_key=is_future)


def log_dir(path: str, error: int = 0, **topics: SimpleNamespace) -> SimpleNamespace:
    held = [SimpleNamespace(name=name, partitions=[one]) for name, one in topics.items()]
    return SimpleNamespace(log_dir=path, error_code=error, topics=held, total_bytes=9, usable_bytes=5)


class Told:
    """Three brokers, 3 of which is silent; 4 holds a replica and is not listed, as before Kafka 4.0."""

    def __init__(self) -> None:
        self.disks = {
            1: [log_dir("/d1", orders=replica(700)), log_dir("/d2", STORAGE_ERROR)],
            2: [log_dir("/d1", orders=replica(500, 7), clicks=replica(-1, -1)), log_dir("/d2", shut=replica(3))],
        }
        self.disk_error = 0
        self.offset_errors = {"clicks": NOT_LEADER}

    def __call__(self, node: int, request: "ApiMessage") -> object:
        match request:
            case DescribeClusterRequest():
                brokers = [
                    SimpleNamespace(broker_id=n, rack=None, host="k", port=9092, is_fenced=False) for n in (1, 2, 3)
                ]
                return SimpleNamespace(error_code=0, cluster_id="id", brokers=brokers)
            case MetadataRequest():
                return SimpleNamespace(topics=self.topics(request))
            case DescribeLogDirsRequest():
                if node not in self.disks:
                    return TimeoutError("no answer")
                results = [] if self.disk_error else self.disks[node]
                return SimpleNamespace(error_code=self.disk_error, results=results)
            case ListOffsetsRequest():
                is_start = request.topics[0].partitions[0].timestamp == EARLIEST
                return SimpleNamespace(topics=[self.offsets(one.name, 7 if is_start else 42) for one in request.topics])
            case _:
                raise AssertionError(request)

    def topics(self, request: "ApiMessage") -> list[SimpleNamespace]:
        if request.topics is None:
            return [self.topic(name) for name in REPLICAS]
        return [
            SimpleNamespace(name=one.name, error_code=TOPIC_AUTHORIZATION_FAILED, partitions=[])
            for one in request.topics
        ]

    def topic(self, name: str) -> SimpleNamespace:
        replicas = REPLICAS[name]
        one = SimpleNamespace(
            partition_index=0, leader_id=replicas[0], replica_nodes=replicas, isr_nodes=replicas, error_code=0
        )
        return SimpleNamespace(name=name, error_code=0, partitions=[one], topic_id=None, is_internal=False)

    def offsets(self, name: str, offset: int) -> SimpleNamespace:
        one = SimpleNamespace(partition_index=0, error_code=self.offset_errors.get(name, 0), offset=offset)
        return SimpleNamespace(name=name, partitions=[one])


def test_what_is_told_is_there_and_what_is_not_is_named_and_left_out() -> None:
    found = sample(Brokers(Told()).wire(retry_seconds=0))
    assert found.cluster_id == "id"
    assert found.replicas == (
        ReplicaOnDisk(CLICKS, 2, "/d1", None, None),
        ReplicaOnDisk(ORDERS, 1, "/d1", 700, 0),
        ReplicaOnDisk(ORDERS, 2, "/d1", 500, 7),
        ReplicaOnDisk(TopicPartition("shut", 0), 2, "/d2", 3, 0),
    )
    assert found.end_offsets == {ORDERS: 42}
    assert found.start_offsets == {ORDERS: 7}
    assert found.sizes() == {ORDERS: 700, TopicPartition("shut", 0): 3}
    first, second, third, fourth, fifth = found.untold
    assert first == "broker 3 does not answer: what its log dirs hold is unknown"
    assert second == "broker 4 is not alive: what its log dirs hold is unknown"
    assert third == "broker 1 cannot read its log dir /d2 (KAFKA_STORAGE_ERROR): what it holds is unknown"
    assert fourth.startswith("end offsets and leaders of some topics are unknown: ")
    assert "the right Describe on topic shut" in fourth
    assert fifth == "no leader told the end offset of clicks-0: unknown"


def test_without_the_right_to_log_dirs_sizes_are_unknown_and_the_rest_is_told() -> None:
    told = Told()
    told.disk_error = CLUSTER_AUTHORIZATION_FAILED
    told.offset_errors = {}
    found = sample(Brokers(told).wire(retry_seconds=0))
    assert found.replicas == ()
    assert found.end_offsets == {CLICKS: 42, ORDERS: 42}
    assert any("sizes are unknown: Reading log dirs needs the right Describe" in each for each in found.untold)


def test_the_bytes_of_a_partition_are_its_leaders_and_never_those_of_a_copy_on_the_way() -> None:
    topics = SimulatedAdmin(small_cluster("orders-0: 1,2 leader 2", "clicks-0: 2,4 isr 4 leader 4")).sample().topics
    on_disk = (
        ReplicaOnDisk(ORDERS, 1, "/d1", 900),
        ReplicaOnDisk(ORDERS, 2, "/d1", 500),
        ReplicaOnDisk(ORDERS, 2, "/d2", 7000, is_future=True),
        ReplicaOnDisk(CLICKS, 2, "/d1", 30),
        ReplicaOnDisk(CLICKS, 4, "/d1", None),
    )
    assert ClusterSample("id", topics, on_disk).sizes() == {ORDERS: 500, CLICKS: 30}


def test_the_simulated_cluster_tells_what_it_would_show_a_client() -> None:
    admin = SimulatedAdmin(small_cluster("orders-0: 1,2 isr 1 size 500", "clicks-0: 2,4 size 30"))
    admin.kill_broker(4)
    found = admin.sample()
    assert found.replicas == (
        ReplicaOnDisk(CLICKS, 2, "/d2", 30, 0),
        ReplicaOnDisk(ORDERS, 1, "/d1", 500, 0),
        ReplicaOnDisk(ORDERS, 2, "/d2", 500, None),
    )
    assert found.untold == ("broker 4 is not alive: what its log dirs hold is unknown",)
