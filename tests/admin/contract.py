"""What both admins promise: one test class, run against real Kafka and against the simulated cluster.

A subclass gives a fixture `admin_cluster`: a cluster of brokers 1 to 6, racks a, b, c, a, b, c, two log dirs each.

    class TestTheSimulatedCluster(AdminContract):
        @pytest.fixture
        def admin_cluster(self) -> AdminCluster: ...

`tests/admin/data/reassign.json` holds named sequences of controller states. `op`: `start` (the given state), `alter` (a
new target), `isr` (followers caught up: the new ISR), `cancel`; `state` is what the controller then holds. Two of them
went otherwise before Kafka 4.3 (`before`, `since`).
"""

import itertools
import json
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import NotRequired, Protocol, TypedDict

import pytest
from helpers.waiting import HANG

from reconciler.admin.port import Admin, Answer, Reassignment
from reconciler.model.change import ConfigChange, ConfigOperation, CreatePartitions, CreateTopic
from reconciler.model.cluster import (
    ALTER_LOG_DIRS_RATE,
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_REPLICAS,
    Broker,
    Partition,
)
from reconciler.model.problem import ClusterUnavailable
from reconciler.model.topic_partition import TopicPartition

SEQUENCES = json.loads((Path(__file__).parent / "data" / "reassign.json").read_text())
OK = Answer()
MIB = 1024 * 1024
# A throttled follower still gets one fetch of 1 MiB every 11 seconds from a real broker.
HELD_BYTES = 8 * MIB
RUN = uuid.uuid4().hex[:6]
COUNTER = itertools.count()
DEAD = Broker(0, is_fenced=True)


class State(TypedDict):
    """What the controller holds for a partition."""

    replicas: list[int]
    isr: list[int]
    adding: list[int]
    removing: list[int]
    leader: int


class Step(TypedDict):
    """One event, and the state after it."""

    op: str
    arg: NotRequired[list[int]]
    state: State


class AdminCluster(Protocol):
    """A cluster under test, and what no admin can do to it."""

    admin: Admin
    kafka_version: tuple[int, int]

    def produce(self, topic: str, partition: int, size: int) -> None:
        """Write about that many bytes to all of the partition's replicas."""

    def write(self, topic: str, partition: int, values: Sequence[bytes], key: bytes | None = None) -> None:
        """Write records with these values, all with that key."""

    def kill(self, broker_id: int) -> None:
        """Kill a broker; returns when the controller counts it as dead."""

    def start(self, broker_id: int) -> None:
        """Start a killed broker; returns when it is alive."""

    def catch_up(self, topics: Collection[str]) -> None:
        """Wait until every broker shows the same of these topics: a read may ask any of them."""


@dataclass
class Bench:
    """A cluster, the steps that many tests share, and what to clean up afterwards."""

    cluster: AdminCluster
    names: list[str] = field(default_factory=list)
    dead: list[int] = field(default_factory=list)
    throttled: set[int] = field(default_factory=set)

    @property
    def admin(self) -> Admin:
        return self.cluster.admin

    def topic(self, *assignment: Sequence[int], size: int = 0, configs: Mapping[str, str] | None = None) -> str:
        """Create a topic with one partition for each list, fill them, and wait until all replicas are in sync."""
        name = self.new_name()
        lists = {number: tuple(replicas) for number, replicas in enumerate(assignment)}
        change = CreateTopic(name, len(lists), len(assignment[0]), configs or {}, lists)
        assert self.admin.create_topics([change]) == {name: OK}
        self.wait_until(lambda: self.is_at_rest(name, lists), f"{name} to be in sync")
        for number in lists if size else ():
            self.cluster.produce(name, number, size)
        return name

    def new_name(self) -> str:
        """Return a topic name that was not used before."""
        self.names.append(f"contract-{RUN}-{next(COUNTER)}")
        return self.names[-1]

    def is_at_rest(self, name: str, lists: Mapping[int, Sequence[int]]) -> bool:
        """Whether each partition has these replicas, all of them in sync, and a leader."""
        topic = self.admin.topics([name]).get(name)
        if topic is None or len(topic.partitions) != len(lists):
            return False
        return all(
            one.replicas == tuple(lists[one.partition]) and set(one.isr) == set(one.replicas) and one.leader is not None
            for one in topic.partitions
        )

    def partition(self, name: str, number: int = 0) -> Partition:
        """Return a partition as metadata shows it."""
        return self.admin.topics([name])[name].partitions[number]

    def move(self, name: str, target: Sequence[int] | None) -> Answer:
        """Give partition 0 a new target, or cancel."""
        key = TopicPartition(name, 0)
        return self.admin.reassign({key: target})[key]

    def moving(self, name: str) -> Reassignment | None:
        """Return the reassignment of partition 0, None at rest."""
        return self.admin.reassignments().get(TopicPartition(name, 0))

    def elect(self, name: str) -> Answer:
        """Elect the first replica of partition 0."""
        key = TopicPartition(name, 0)
        return self.admin.elect_preferred_leaders([key])[key]

    def configure(self, name: str, *changes: ConfigChange) -> Answer:
        """Change configs of one topic."""
        return self.admin.alter_topic_configs({name: changes})[name]

    def config(self, name: str, key: str) -> str | None:
        """Return one override of a topic, None where there is none."""
        return self.admin.topic_configs([name])[name].get(key)

    def expect_config(self, name: str, key: str, value: str | None) -> None:
        """Wait until the brokers show that override."""
        self.wait_until(lambda: self.config(name, key) == value, f"{key} of {name} to be {value!r}")

    def hold(self, name: str, *brokers: int) -> None:
        """Let these brokers copy partition 0 so slowly that they never get into its ISR."""
        for broker in brokers:
            self.throttled.add(broker)
            assert self.admin.alter_broker_configs(broker, [SET(FOLLOWER_THROTTLED_RATE, "1")]).is_ok
        entries = ",".join(f"0:{broker}" for broker in brokers)
        assert self.configure(name, APPEND(FOLLOWER_THROTTLED_REPLICAS, entries)).is_ok  # each broker has read it then
        self.expect_config(name, FOLLOWER_THROTTLED_REPLICAS, entries)
        self.wait_until(lambda: self._have_rate(brokers), f"the rates of {brokers}")
        self.admin.clock.sleep(0.5)  # a broker shows what it has read a moment before it keeps to it

    def _have_rate(self, brokers: Collection[int]) -> bool:
        found = self.admin.broker_configs(brokers)
        return all(found[broker].get(FOLLOWER_THROTTLED_RATE) == "1" for broker in brokers)

    def release(self, name: str, *brokers: int) -> None:
        """Let these brokers copy as fast as they can."""
        for broker in brokers:
            assert self.configure(name, SUBTRACT(FOLLOWER_THROTTLED_REPLICAS, f"0:{broker}")).is_ok

    def kill(self, broker: int) -> None:
        """Kill a broker until the test ends."""
        self.dead.append(broker)
        self.cluster.kill(broker)

    def start(self, broker: int) -> None:
        """Start a killed broker again."""
        self.cluster.start(broker)
        self.dead.remove(broker)

    def wait_until(self, is_true: Callable[[], bool], what: str) -> None:
        """Let the cluster's time pass until it is so, whichever broker is asked."""
        deadline = self.admin.clock.now() + timedelta(seconds=HANG)
        while not is_true():
            assert self.admin.clock.now() < deadline, f"waited {HANG} s for {what}"
            self.admin.clock.sleep(0.1)
        self.cluster.catch_up(self.names)

    def clean_up(self) -> None:
        """Start what was killed, delete what was made, remove the throttles."""
        for broker in list(self.dead):
            self.start(broker)
        for broker in sorted(self.throttled):
            assert self.admin.alter_broker_configs(broker, [DELETE(FOLLOWER_THROTTLED_RATE)]).is_ok
        self.admin.delete_topics(self.names)


def SET(key: str, value: str) -> ConfigChange:  # noqa: N802 - Kafka's own spelling of the operation
    return ConfigChange(key, ConfigOperation.SET, value)


def DELETE(key: str) -> ConfigChange:  # noqa: N802 - Kafka's own spelling of the operation
    return ConfigChange(key, ConfigOperation.DELETE)


def APPEND(key: str, value: str) -> ConfigChange:  # noqa: N802 - Kafka's own spelling of the operation
    return ConfigChange(key, ConfigOperation.APPEND, value)


def SUBTRACT(key: str, value: str) -> ConfigChange:  # noqa: N802 - Kafka's own spelling of the operation
    return ConfigChange(key, ConfigOperation.SUBTRACT, value)


class AdminContract:
    """Subclass it with a fixture `admin_cluster`."""

    @pytest.fixture
    def bench(self, admin_cluster: AdminCluster) -> Iterator[Bench]:
        bench = Bench(admin_cluster)
        yield bench
        bench.clean_up()

    # Topics

    def test_a_topic_is_created_with_exactly_the_assignment_and_configs_asked_for(self, bench: Bench) -> None:
        name = bench.topic((3, 1, 2), (2, 5, 6), configs={"retention.ms": "1000"})
        first, second = bench.admin.topics([name])[name].partitions
        assert (first.partition, first.replicas, first.leader, set(first.isr)) == (0, (3, 1, 2), 3, {1, 2, 3})
        assert (second.partition, second.replicas, second.leader, set(second.isr)) == (1, (2, 5, 6), 2, {2, 5, 6})
        assert bench.admin.topic_configs([name]) == {name: {"retention.ms": "1000"}}
        assert bench.admin.topic_settings([name])[name]["retention.ms"] == "1000"

    def test_each_topic_gets_its_own_answer(self, bench: Bench) -> None:
        there, lost, wrong, new = bench.topic((1,)), bench.new_name(), bench.new_name(), bench.new_name()
        answers = bench.admin.create_topics(
            [
                CreateTopic(there, 1, 1, {}, {0: (1,)}),
                CreateTopic(lost, 1, 2, {}, {0: (1, 99)}),
                CreateTopic(wrong, 1, 1, {"retention.ms": "soon"}, {0: (1,)}),
                CreateTopic(new, 1, 1, {}, {0: (2,)}),
            ]
        )
        assert answers[new] == OK
        assert answers[there] == Answer("TOPIC_ALREADY_EXISTS", f"Topic '{there}' already exists.")
        assert answers[lost].error == "INVALID_REPLICA_ASSIGNMENT"
        assert answers[lost].message == (
            "The manual partition assignment includes broker 99, but no such broker is registered."
        )
        assert answers[wrong].error == "INVALID_CONFIG"

    def test_names_that_differ_only_in_dot_and_underscore_collide(self, bench: Bench) -> None:
        name = bench.new_name()
        bench.names += [f"{name}.x", f"{name}_x"]
        bench.admin.create_topics([CreateTopic(f"{name}.x", 1, 1, {}, {0: (1,)})])
        answer = bench.admin.create_topics([CreateTopic(f"{name}_x", 1, 1, {}, {0: (1,)})])[f"{name}_x"]
        assert answer == Answer("INVALID_TOPIC_EXCEPTION", f"Topic '{name}_x' collides with existing topic: {name}.x")

    def test_a_topic_grows_with_the_assignment_asked_for(self, bench: Bench) -> None:
        name = bench.topic((1, 2))
        assert bench.admin.create_partitions([CreatePartitions(name, 1, 3, {1: (4, 3), 2: (6, 5)})]) == {name: OK}
        lists = {0: (1, 2), 1: (4, 3), 2: (6, 5)}
        bench.wait_until(lambda: bench.is_at_rest(name, lists), "the new partitions")
        assert [partition.leader for partition in bench.admin.topics([name])[name].partitions] == [1, 4, 6]

    def test_a_topic_never_shrinks(self, bench: Bench) -> None:
        name = bench.topic((1,), (2,), (3,))
        answers = bench.admin.create_partitions([CreatePartitions(name, 3, 2)])
        text = f"The topic {name} currently has 3 partition(s); 2 would not be an increase."
        assert answers == {name: Answer("INVALID_PARTITIONS", text)}

    def test_a_new_partition_has_the_replication_factor_of_the_first(self, bench: Bench) -> None:
        name = bench.topic((1, 2, 3))
        answer = bench.admin.create_partitions([CreatePartitions(name, 1, 2, {1: (4, 5)})])[name]
        assert answer.error == "INVALID_REPLICA_ASSIGNMENT"
        assert "not consistent with previous partitions, which have 3 replica(s)." in answer.message

    def test_what_is_only_validated_gets_the_answers_of_a_change_and_changes_nothing(self, bench: Bench) -> None:
        """The refusals, word for word, of the same requests sent in earnest; what is taken is a success."""
        name, new = bench.topic((1, 2), configs={"retention.ms": "1000"}), bench.new_name()
        admin = bench.admin
        before = admin.topics([name]), admin.topic_configs([name])
        for creation in (
            CreateTopic(name, 1, 1, {}, {0: (1,)}),
            CreateTopic(new, 1, 1, {"retention.ms": "soon"}, {0: (1,)}),
            CreateTopic(new, 1, 1, {"retention.sm": "1000"}, {0: (1,)}),
            CreateTopic(new, 1, 2, {}, {0: (1, 99)}),
        ):
            asked = admin.create_topics([creation], is_validated_only=True)
            assert asked == admin.create_topics([creation]) != {creation.topic: OK}
        for growth in (
            CreatePartitions(name, 1, 1),
            CreatePartitions(name, 1, 2, {1: (4, 99)}),
            CreatePartitions(name, 1, 2, {1: (4,)}),
        ):
            asked = admin.create_partitions([growth], is_validated_only=True)
            assert asked == admin.create_partitions([growth]) != {name: OK}
        for configs in ([SET("retention.sm", "1")], [SET("max.message.bytes", "9"), SET("segment.ms", "no")]):
            asked = admin.alter_topic_configs({name: configs}, is_validated_only=True)
            assert asked == admin.alter_topic_configs({name: configs}) != {name: OK}
        creation = CreateTopic(new, 1, 1, {"segment.ms": "1"}, {0: (1,)})
        assert admin.create_topics([creation], is_validated_only=True) == {new: OK}
        growth = CreatePartitions(name, 1, 2, {1: (4, 5)})
        assert admin.create_partitions([growth], is_validated_only=True) == {name: OK}
        assert admin.alter_topic_configs({name: [DELETE("retention.ms")]}, is_validated_only=True) == {name: OK}
        assert (admin.topics([name]), admin.topic_configs([name])) == before
        assert admin.topics([new]) == {}

    def test_what_does_not_exist_is_left_out_or_refused_by_name(self, bench: Bench) -> None:
        name = bench.new_name()
        admin, key, unknown = bench.admin, TopicPartition(name, 0), "UNKNOWN_TOPIC_OR_PARTITION"
        assert admin.topics([name]) == {}
        assert admin.topic_configs([name]) == {}
        assert admin.disks([1, 2], [key]).replica_bytes == {}
        assert admin.delete_topics([name])[name].error == unknown
        assert admin.create_partitions([CreatePartitions(name, 1, 2, {1: (1,)})])[name].error == unknown
        assert admin.alter_topic_configs({name: [SET("retention.ms", "1")]})[name].error == unknown
        assert admin.reassign({key: (1, 2)})[key] == Answer(unknown, f"Unable to find a topic named {name}.")
        assert admin.reassign({key: None})[key] == Answer(unknown, f"Unable to find a topic named {name}.")
        assert admin.elect_preferred_leaders([key])[key] == Answer(unknown, f"No such topic as {name}")

    def test_a_partition_that_does_not_exist_is_refused(self, bench: Bench) -> None:
        key = TopicPartition(bench.topic((1, 2)), 7)
        answer = bench.admin.reassign({key: (1, 3)})[key]
        assert answer == Answer("UNKNOWN_TOPIC_OR_PARTITION", f"Unable to find partition {key.topic}:7.")
        assert bench.admin.elect_preferred_leaders([key])[key].error == "UNKNOWN_TOPIC_OR_PARTITION"

    def test_a_deleted_topic_is_gone(self, bench: Bench) -> None:
        name = bench.topic((1, 2))
        assert bench.admin.delete_topics([name]) == {name: OK}
        bench.wait_until(lambda: not bench.admin.topics([name]), "the topic to be gone")
        bench.wait_until(lambda: not bench.admin.topic_configs([name]), "its configs to be gone")

    # Configs

    def test_configs_are_set_and_deleted_all_of_a_topic_at_once(self, bench: Bench) -> None:
        name = bench.topic((1,), configs={"retention.ms": "1000", "segment.ms": "5000"})
        changes = (SET("max.message.bytes", "2000"), SET("segment.ms", "6000"), DELETE("retention.ms"))
        assert bench.configure(name, *changes) == OK
        wanted = {"max.message.bytes": "2000", "segment.ms": "6000"}
        bench.wait_until(lambda: bench.admin.topic_configs([name]) == {name: wanted}, "the new configs")
        refused = bench.configure(name, SET("segment.ms", "7000"), SET("retention.ms", "soon"))
        assert refused.error == "INVALID_CONFIG"
        assert bench.admin.topic_configs([name]) == {name: wanted}

    def test_deleting_a_config_that_is_not_set_is_a_success(self, bench: Bench) -> None:
        assert bench.configure(bench.topic((1,)), DELETE("retention.ms")) == OK

    def test_min_insync_replicas_above_the_replication_factor_is_accepted(self, bench: Bench) -> None:
        assert bench.configure(bench.topic((1, 2, 3)), SET("min.insync.replicas", "5")) == OK

    def test_throttled_replicas_are_appended_and_subtracted(self, bench: Bench) -> None:
        name, key = bench.topic((1, 2)), LEADER_THROTTLED_REPLICAS
        assert bench.configure(name, APPEND(key, "0:1,0:2")) == OK
        bench.expect_config(name, key, "0:1,0:2")
        assert bench.configure(name, APPEND(key, "0:2,0:3")) == OK
        bench.expect_config(name, key, "0:1,0:2,0:3")
        assert bench.configure(name, SUBTRACT(key, "0:1,0:9")) == OK
        bench.expect_config(name, key, "0:2,0:3")

    def test_subtracting_the_last_throttled_replica_leaves_an_empty_override(self, bench: Bench) -> None:
        name, key = bench.topic((1, 2), configs={LEADER_THROTTLED_REPLICAS: "0:1"}), LEADER_THROTTLED_REPLICAS
        assert bench.configure(name, SUBTRACT(key, "0:1")) == OK
        bench.expect_config(name, key, "")
        assert bench.configure(name, DELETE(key)) == OK
        bench.expect_config(name, key, None)

    def test_nothing_can_be_appended_to_a_star(self, bench: Bench) -> None:
        name, key = bench.topic((1, 2), configs={LEADER_THROTTLED_REPLICAS: "*"}), LEADER_THROTTLED_REPLICAS
        answer = bench.configure(name, APPEND(key, "0:1"))
        assert answer.error == "INVALID_CONFIG"
        assert "must be the literal '*' or a list of replicas" in answer.message
        assert bench.config(name, key) == "*"

    @pytest.mark.parametrize("value", ["none", "0-1"])
    def test_throttled_replicas_must_be_a_star_or_a_list(self, bench: Bench, value: str) -> None:
        answer = bench.configure(bench.topic((1, 2)), SET(LEADER_THROTTLED_REPLICAS, value))
        assert answer.error == "INVALID_CONFIG"
        assert "must be the literal '*' or a list of replicas" in answer.message

    def test_a_brokers_rate_is_its_own(self, bench: Bench) -> None:
        assert bench.admin.alter_broker_configs(4, [SET(FOLLOWER_THROTTLED_RATE, "1000")]) == OK
        wanted = {4: {FOLLOWER_THROTTLED_RATE: "1000"}, 5: {}}
        bench.wait_until(lambda: bench.admin.broker_configs([4, 5]) == wanted, "the rate")
        refused = bench.admin.alter_broker_configs(4, [SET(FOLLOWER_THROTTLED_RATE, "-1")])
        assert refused.error == "INVALID_REQUEST"
        assert f"Invalid value -1 for configuration {FOLLOWER_THROTTLED_RATE}" in refused.message
        assert bench.admin.alter_broker_configs(4, [DELETE(FOLLOWER_THROTTLED_RATE)]) == OK
        bench.wait_until(lambda: bench.admin.broker_configs([4, 5]) == {4: {}, 5: {}}, "the rate to be gone")

    # Reassignments

    @pytest.mark.parametrize("name", sorted({sequence["name"] for sequence in SEQUENCES}))
    def test_the_controller_goes_through_the_named_states(self, bench: Bench, name: str) -> None:
        version = list(bench.cluster.kafka_version)
        (steps,) = (
            sequence["steps"]
            for sequence in SEQUENCES
            if sequence["name"] == name and sequence.get("since", [0]) <= version < sequence.get("before", [99])
        )
        Sequenced(bench).run(steps)

    def test_what_is_in_flight_is_listed_and_observed(self, bench: Bench) -> None:
        name = bench.topic((3, 1, 2), size=HELD_BYTES)
        bench.hold(name, 4, 5)
        assert bench.move(name, (1, 4, 5)) == OK
        assert bench.moving(name) == Reassignment((1, 4, 5, 2, 3), (4, 5), (2, 3))
        seen = bench.admin.observe().topics[name].partitions[0]
        assert (seen.replicas, seen.adding_replicas, seen.removing_replicas) == ((1, 4, 5, 2, 3), (4, 5), (2, 3))
        assert (seen.target_replicas, seen.leader, set(seen.isr)) == ((1, 4, 5), 3, {1, 2, 3})
        bench.wait_until(lambda: bench.partition(name).replicas == (1, 4, 5, 2, 3), "metadata to show the union")

    def test_a_move_ends_when_every_target_replica_is_in_sync(self, bench: Bench) -> None:
        name = bench.topic((1, 2), size=HELD_BYTES)
        bench.hold(name, 6)
        bench.move(name, (5, 6))
        bench.wait_until(lambda: set(bench.partition(name).isr) == {1, 2, 5}, "5 to catch up")
        assert bench.moving(name) == Reassignment((5, 6, 1, 2), (5, 6), (1, 2))
        bench.release(name, 6)
        bench.wait_until(lambda: bench.is_at_rest(name, {0: (5, 6)}), "the move to end")
        assert bench.moving(name) is None
        bench.wait_until(lambda: bench.partition(name).leader == 5, "the first new replica to lead")

    def test_a_reorder_ends_at_once_and_does_not_move_the_leader(self, bench: Bench) -> None:
        name = bench.topic((1, 2, 3))
        assert bench.move(name, (3, 2, 1)) == OK
        assert bench.moving(name) is None
        bench.wait_until(lambda: bench.partition(name).replicas == (3, 2, 1), "the new order")
        assert bench.partition(name).leader == 1

    def test_a_move_to_where_it_is_changes_nothing(self, bench: Bench) -> None:
        name = bench.topic((1, 2, 3))
        assert bench.move(name, (1, 2, 3)) == OK
        assert bench.moving(name) is None

    def test_a_cancel_keeps_the_replicas_but_not_their_order(self, bench: Bench) -> None:
        name = bench.topic((3, 1, 2), size=HELD_BYTES)
        bench.hold(name, 4, 5)
        bench.move(name, (1, 4, 5))
        assert bench.move(name, None) == OK
        assert bench.moving(name) is None
        bench.wait_until(lambda: bench.is_at_rest(name, {0: (1, 2, 3)}), "the cancel to show")
        assert bench.move(name, None).error == "NO_REASSIGNMENT_IN_PROGRESS"

    def test_a_cancel_after_an_overwrite_loses_even_the_replication_factor(self, bench: Bench) -> None:
        name = bench.topic((3, 1, 2), size=HELD_BYTES)
        bench.hold(name, 4, 5, 6)
        bench.move(name, (1, 4, 5))
        assert bench.move(name, (1, 4, 6)) == OK
        assert bench.move(name, None) == OK
        bench.wait_until(lambda: bench.partition(name).replicas == (1, 4, 2, 3, 5), "the cancel to show")
        assert bench.moving(name) is None

    def test_the_original_list_restores_the_order_after_a_cancel(self, bench: Bench) -> None:
        name = bench.topic((2, 3, 5), size=HELD_BYTES)
        bench.hold(name, 6)
        bench.move(name, (3, 2, 6))
        bench.move(name, None)
        assert bench.move(name, (2, 3, 5)) == OK
        assert bench.moving(name) is None
        bench.wait_until(lambda: bench.is_at_rest(name, {0: (2, 3, 5)}), "the original order")

    def test_nothing_in_flight_cannot_be_cancelled(self, bench: Bench) -> None:
        assert bench.move(bench.topic((1, 2)), None).error == "NO_REASSIGNMENT_IN_PROGRESS"

    def test_a_cancel_that_needs_an_unclean_election_is_refused(self, bench: Bench) -> None:
        name = bench.topic((5,), size=HELD_BYTES)
        bench.hold(name, 6)
        bench.move(name, (4, 6))
        bench.wait_until(lambda: set(bench.partition(name).isr) == {4, 5}, "4 to catch up")
        bench.kill(5)
        bench.wait_until(lambda: bench.partition(name).isr == (4,), "5 to leave the ISR")
        text = (
            f"Unable to revert partition assignment for {name}:0 because it would require an unclean leader election."
        )
        assert bench.move(name, None) == Answer("INVALID_REPLICA_ASSIGNMENT", text)

    @pytest.mark.parametrize(
        ("target", "text"),
        [
            ((), "The manual partition assignment includes an empty replica list."),
            ((1, 2, 2), "The manual partition assignment includes the broker 2 more than once."),
            ((1, 99), "The manual partition assignment includes broker 99, but no such broker is registered."),
        ],
        ids=["empty", "duplicate", "unregistered"],
    )
    def test_a_target_that_is_no_assignment_is_refused(self, bench: Bench, target: tuple[int, ...], text: str) -> None:
        assert bench.move(bench.topic((1, 2)), target) == Answer("INVALID_REPLICA_ASSIGNMENT", text)

    def test_each_partition_gets_its_own_answer(self, bench: Bench) -> None:
        name = bench.topic((1, 2), (1, 2))
        good, bad = TopicPartition(name, 0), TopicPartition(name, 1)
        answers = bench.admin.reassign({good: (2, 1), bad: (1, 99)})
        assert answers[good] == OK
        assert answers[bad].error == "INVALID_REPLICA_ASSIGNMENT"

    def test_the_brokers_guard_the_replication_factor(self, bench: Bench) -> None:
        key = TopicPartition(bench.topic((1, 2, 3)), 0)
        answers = bench.admin.reassign({key: (1, 2)}, is_replication_factor_change_allowed=False)
        if bench.cluster.kafka_version < (4, 1):
            assert answers == {key: OK}
            return
        assert answers == {key: Answer("INVALID_REPLICATION_FACTOR", "The replication factor is changed from 3 to 2")}
        assert bench.admin.reassign({key: (3, 2, 1)}, is_replication_factor_change_allowed=False) == {key: OK}

    def test_a_cancel_is_not_held_up_by_the_guard(self, bench: Bench) -> None:
        name = bench.topic((1, 2), size=HELD_BYTES)
        key = TopicPartition(name, 0)
        bench.hold(name, 4)
        bench.move(name, (1, 2, 4))
        assert bench.admin.reassign({key: None}, is_replication_factor_change_allowed=False) == {key: OK}

    def test_a_topic_deleted_while_it_moves_leaves_the_list(self, bench: Bench) -> None:
        name = bench.topic((1, 2), size=HELD_BYTES)
        bench.hold(name, 4)
        bench.move(name, (1, 4))
        assert bench.moving(name) is not None
        assert bench.admin.delete_topics([name])[name] == OK
        assert bench.moving(name) is None
        assert bench.move(name, None).error == "UNKNOWN_TOPIC_OR_PARTITION"

    # Leaders

    def test_an_election_makes_the_first_replica_lead(self, bench: Bench) -> None:
        name = bench.topic((1, 2, 3))
        bench.move(name, (2, 1, 3))
        assert bench.elect(name) == OK
        bench.wait_until(lambda: bench.partition(name).leader == 2, "2 to lead")

    def test_an_election_that_is_not_needed_is_a_success(self, bench: Bench) -> None:
        assert bench.elect(bench.topic((1, 2, 3))) == OK

    def test_electing_nothing_elects_nothing(self, bench: Bench) -> None:
        name = bench.topic((1, 2))
        bench.move(name, (2, 1))
        assert bench.admin.elect_preferred_leaders([]) == {}
        bench.admin.clock.sleep(1)
        assert bench.partition(name).leader == 1

    # What a doctor asks

    def test_versions_tell_what_the_brokers_can_do(self, bench: Bench) -> None:
        told, version = bench.admin.features(), bench.cluster.kafka_version
        assert told.kafka_version == "{}.{}".format(*version)
        assert (told.has_factor_guard, told.has_consumer_groups) == (version >= (4, 1), version >= (4, 0))

    def test_the_quorum_is_told_with_its_leader_and_who_follows_it(self, bench: Bench) -> None:
        told = bench.admin.quorum()
        assert told.leader in {1, 2, 3}
        assert told.leader in {one.id for one in told.voters}
        assert {one.id for one in (*told.voters, *told.observers)} == {1, 2, 3, 4, 5, 6}

    def test_without_an_authorizer_every_right_is_there(self, bench: Bench) -> None:
        name, nowhere = bench.topic((1, 2)), bench.new_name()
        bench.wait_until(lambda: name in bench.admin.rights().topics, f"{name} to be known")
        told = bench.admin.rights(topics=[name, nowhere], groups=["contract-nobodys"])
        assert told.cluster >= {"Alter", "AlterConfigs", "Create", "Describe", "DescribeConfigs"}
        assert told.topics[name] >= {"Alter", "AlterConfigs", "Delete", "Describe", "DescribeConfigs"}
        assert (nowhere in told.topics, told.hidden) == (False, frozenset())
        assert told.groups == {"contract-nobodys": {"Describe", "Read"}}
        assert bench.admin.groups(["contract-nobodys"]) == {}

    def test_settings_are_told_as_they_are_in_force(self, bench: Bench) -> None:
        keys = ["auto.leader.rebalance.enable", "min.insync.replicas", FOLLOWER_THROTTLED_RATE]
        bench.throttled.add(2)
        assert bench.admin.alter_broker_configs(2, [SET(FOLLOWER_THROTTLED_RATE, "1234567")]).is_ok

        def told() -> Mapping[str, str]:
            return bench.admin.broker_settings([2], keys)[2]

        bench.wait_until(lambda: told().get(FOLLOWER_THROTTLED_RATE) == "1234567", "the rate to be told")
        assert (told()["auto.leader.rebalance.enable"], told()["min.insync.replicas"]) == ("false", "1")

    # Observation

    def test_the_whole_cluster_is_observed(self, bench: Bench) -> None:
        name = bench.topic((3, 1, 2), size=MIB, configs={"retention.ms": "100000000"})
        bench.wait_until(lambda: _is_measured(bench, name), "sizes")
        seen = bench.admin.observe()
        partition = seen.topics[name].partitions[0]
        assert seen.cluster_id == bench.admin.cluster_id()
        assert list(seen.brokers) == [1, 2, 3, 4, 5, 6]
        assert [broker.rack for broker in seen.brokers.values()] == ["a", "b", "c", "a", "b", "c"]
        assert all(len(broker.log_dirs) == 2 for broker in seen.brokers.values())
        assert seen.controller_id in {1, 2, 3}
        assert seen.observed_at is not None
        assert seen.topics[name].configs == {"retention.ms": "100000000"}
        assert list(seen.topics) == sorted(seen.topics)
        assert all(size is not None and size >= MIB for size in partition.sizes)
        for broker_id, log_dir in zip(partition.replicas, partition.log_dirs, strict=True):
            assert log_dir in [known.path for known in seen.brokers[broker_id].log_dirs]
        assert partition.end_offset is not None
        assert partition.end_offset > 0

    def test_replica_bytes_are_those_of_the_partitions_asked_for(self, bench: Bench) -> None:
        name = bench.topic((1, 2), (3, 4), size=MIB)
        key = TopicPartition(name, 1)
        bench.wait_until(lambda: _is_measured(bench, name), "sizes")
        assert set(bench.admin.disks([1, 3, 4], [key]).replica_bytes) == {(key, 3), (key, 4)}
        assert set(bench.admin.disks([1, 3], [key]).replica_bytes) == {(key, 3)}
        assert bench.admin.disks([1]).replica_bytes == bench.admin.disks([], [key]).replica_bytes == {}

    def test_log_dirs_are_those_of_the_live_brokers_asked_for(self, bench: Bench) -> None:
        found = bench.admin.disks([1, 2]).log_dirs
        assert list(found) == [1, 2]
        assert all(len(dirs) > 1 for dirs in found.values())
        assert not any(one.is_offline or one.usable_bytes is None for dirs in found.values() for one in dirs)
        assert bench.admin.disks([]).log_dirs == {}

    def test_new_replicas_are_made_in_the_log_dir_chosen_for_them(self, bench: Bench) -> None:
        path = bench.admin.disks([4]).log_dirs[4][-1].path
        for _ in range(3):  # Kafka by itself would put them into one dir and the other in turn
            name = bench.topic((1, 2))
            key = TopicPartition(name, 0)
            assert bench.admin.choose_log_dirs(4, {key: path}) == {key: OK}
            assert bench.move(name, (1, 4)) == OK
            bench.wait_until(lambda n=name: bench.is_at_rest(n, {0: (1, 4)}), f"{name} to be on 4")  # type: ignore[misc]
            assert bench.admin.observe().topics[name].partitions[0].log_dirs[1] == path

    def test_a_replica_that_is_there_is_copied_to_the_log_dir_chosen_for_it(self, bench: Bench) -> None:
        name = bench.topic((2, 1), size=MIB)
        key = TopicPartition(name, 0)
        bench.wait_until(lambda: _is_measured(bench, name), "sizes")
        before = bench.admin.disks([1], [key]).replica_paths[key, 1]
        other = next(one.path for one in bench.admin.disks([1]).log_dirs[1] if one.path != before)
        assert bench.admin.choose_log_dirs(1, {key: other}) == {key: OK}
        bench.wait_until(lambda: bench.admin.disks([1], [key]).replica_paths[key, 1] == other, "the other log dir")
        assert bench.admin.disks([1], [key]).futures == {}
        assert bench.admin.disks([1, 2], [key]).replica_paths.keys() == {(key, 1), (key, 2)}
        assert bench.admin.choose_log_dirs(1, {key: other}) == {key: OK}
        assert bench.admin.disks([1], [key]).futures == {}

    def test_a_copy_between_log_dirs_is_taken_back_by_choosing_the_one_that_holds_the_replica(
        self, bench: Bench
    ) -> None:
        name = bench.topic((2, 1), size=4 * MIB)
        key = TopicPartition(name, 0)
        bench.wait_until(lambda: _is_measured(bench, name), "sizes")
        before = bench.admin.disks([1], [key]).replica_paths[key, 1]
        other = next(one.path for one in bench.admin.disks([1]).log_dirs[1] if one.path != before)
        assert bench.admin.alter_broker_configs(1, [SET(ALTER_LOG_DIRS_RATE, "1000")]) == OK
        assert bench.admin.choose_log_dirs(1, {key: other}) == {key: OK}
        bench.wait_until(lambda: (key, 1) in bench.admin.disks([1], [key]).futures, "the copy to show")
        assert bench.admin.disks([1], [key]).futures[key, 1].path == other
        assert bench.admin.disks([1], [key]).replica_paths[key, 1] == before
        assert [one.path for one in bench.admin.observe().brokers[1].future_replicas] == [other]
        assert bench.admin.choose_log_dirs(1, {key: before}) == {key: OK}
        assert bench.admin.disks([1], [key]).futures == {}
        assert bench.admin.disks([1], [key]).replica_paths[key, 1] == before
        assert bench.admin.alter_broker_configs(1, [DELETE(ALTER_LOG_DIRS_RATE)]) == OK
        bench.wait_until(lambda: bench.admin.broker_configs([1]) == {1: {}}, "the rate to be gone")

    def test_a_log_dir_that_a_broker_does_not_have_is_refused(self, bench: Bench) -> None:
        key = TopicPartition(bench.topic((1, 2)), 0)
        assert bench.admin.choose_log_dirs(4, {key: "/nowhere"})[key].error == "LOG_DIR_NOT_FOUND"

    def test_records_are_read_on_from_any_offset(self, bench: Bench) -> None:
        name = bench.topic((1, 2), (2, 3))
        first, second = (TopicPartition(name, number) for number in range(2))
        bench.cluster.write(name, 0, [b"one", b"two", b"three"])
        told = bench.admin.records({first: 1, second: 0, TopicPartition(name, 7): 0})
        assert {key: (one.values, one.next_offset, one.error) for key, one in told.items()} == {
            first: (((1, b"two"), (2, b"three")), 3, None),
            second: ((), 0, None),
        }
        assert told[first].keys == (None, None)
        bench.cluster.write(name, 0, [b"four"], b"key")
        assert bench.admin.records({first: 2})[first].values == ((2, b"three"), (3, b"four"))
        assert bench.admin.records({first: 2})[first].keys == (None, b"key")

    def test_brokers_are_told_without_configs_and_log_dirs(self, bench: Bench) -> None:
        brokers = bench.admin.brokers()
        assert list(brokers) == [1, 2, 3, 4, 5, 6]
        assert [broker.rack for broker in brokers.values()] == ["a", "b", "c", "a", "b", "c"]
        assert not any(broker.is_fenced or broker.configs or broker.log_dirs for broker in brokers.values())

    def test_a_dead_broker_neither_leads_nor_copies_and_leaves_gaps_that_hide_nothing_else(self, bench: Bench) -> None:
        moved, led = bench.topic((1, 2)), bench.topic((6, 2, 3))
        name = bench.topic((5, 6), size=MIB, configs={"min.insync.replicas": "2"})
        key = TopicPartition(name, 0)
        bench.wait_until(lambda: _is_measured(bench, name), "sizes")
        told = bench.admin.disk_report()
        dirs = {number: [one for one in told.dirs if one.broker_id == number] for number in range(1, 7)}
        assert all(len({one.path for one in found}) == 2 for found in dirs.values())
        assert {(one.error, one.is_cordoned) for one in told.dirs} == {(None, False)}
        held = {one.broker_id: one for one in told.replicas if one.topic_partition == key}
        assert {5, 6} == set(held)
        assert all((one.size_bytes or 0) >= MIB and not one.is_future for one in held.values())
        bench.kill(6)
        told = bench.admin.disk_report()
        assert (told.silent, {one.broker_id for one in told.dirs}) == ((), {1, 2, 3, 4, 5})
        assert {one.broker_id for one in told.replicas if one.topic_partition == key} == {5}
        # Before Kafka 4.0 (KIP-1073) a dead broker is not told at all.
        bench.wait_until(lambda: bench.admin.brokers().get(6, DEAD).is_fenced, "6 to be fenced")
        seen = bench.admin.observe()
        partition = seen.topics[name].partitions[0]
        assert partition.sizes[0] is not None
        assert partition.sizes[1] is None
        assert partition.log_dirs[1] is None
        assert not seen.is_alive(6)
        assert 6 not in bench.admin.broker_configs([5, 6])
        assert list(bench.admin.disks([5, 6]).log_dirs) == [5]
        assert (key, 6) not in bench.admin.disks([5, 6], [key]).replica_bytes
        with pytest.raises(ClusterUnavailable, match="Broker 6 does not answer"):
            bench.admin.alter_broker_configs(6, [SET(FOLLOWER_THROTTLED_RATE, "1")])
        bench.wait_until(lambda: bench.partition(name).isr == (5,), "6 to be missed")
        wanted = [(6,)] if bench.cluster.kafka_version >= (4, 1) else [None, ()]
        bench.wait_until(lambda: _eligible(bench, name) in wanted, f"{wanted} to be told")
        assert bench.move(moved, (1, 6)) == OK
        bench.wait_until(lambda: bench.partition(led).leader == 2, "2 to lead")
        assert bench.elect(led).error == "PREFERRED_LEADER_NOT_AVAILABLE"
        bench.admin.clock.sleep(3)
        assert bench.moving(moved) == Reassignment((1, 6, 2), (6,), (2,))
        assert bench.move(moved, None) == OK
        bench.wait_until(lambda: bench.is_at_rest(moved, {0: (1, 2)}), "the cancel to show")
        bench.start(6)
        bench.wait_until(lambda: 6 in bench.partition(led).isr, "6 to be in sync again")
        assert bench.partition(led).leader == 2
        assert bench.elect(led) == OK
        bench.wait_until(lambda: bench.partition(led).leader == 6, "6 to lead")


@dataclass
class Sequenced:
    """Plays one of the named sequences, comparing the state after each step."""

    bench: Bench
    name: str = ""
    isr: tuple[int, ...] = ()

    def run(self, steps: Sequence[Step]) -> None:
        for number, step in enumerate(steps, 1):
            state, given = step["state"], tuple(step.get("arg", ()))
            match step["op"]:
                case "start":
                    self.begin(state, steps)
                case "alter":
                    assert self.bench.move(self.name, given) == OK
                case "cancel":
                    assert self.bench.move(self.name, None) == OK
                case "isr":
                    self.bench.release(self.name, *(broker for broker in given if broker not in self.isr))
            self.isr = tuple(state["isr"])
            self.compare(state, f"step {number}: {step['op']} {list(given)}")

    def begin(self, state: State, steps: Sequence[Step]) -> None:
        """Create the partition; let no replica catch up that the sequence adds later."""
        self.name = self.bench.topic(state["replicas"], size=HELD_BYTES)
        added = {broker for step in steps for broker in step["state"]["adding"]}
        if added:
            self.bench.hold(self.name, *sorted(added))
        for broker in set(state["replicas"]) - set(state["isr"]):
            self.bench.kill(broker)

    def compare(self, state: State, where: str) -> None:
        moving = Reassignment(tuple(state["replicas"]), tuple(state["adding"]), tuple(state["removing"]))
        wanted = moving if moving.adding_replicas or moving.removing_replicas else None

        def is_reached() -> bool:
            partition = self.bench.partition(self.name)
            seen = (partition.replicas, set(partition.isr), partition.leader)
            return seen == (tuple(state["replicas"]), set(state["isr"]), state["leader"])

        if wanted is None or not wanted.adding_replicas:
            self.bench.wait_until(lambda: self.bench.moving(self.name) == wanted, where)
        self.bench.wait_until(is_reached, f"{where} to show {dict(state)}; it is {self.bench.partition(self.name)}")
        assert self.bench.moving(self.name) == wanted, where


def _is_measured(bench: Bench, name: str) -> bool:
    sizes = [size for one in bench.admin.observe().topics[name].partitions for size in one.sizes]
    return bool(sizes) and all(size is not None and size >= MIB for size in sizes)


def _eligible(bench: Bench, name: str) -> object:
    """Return who may lead a topic's one partition though it is not in sync."""
    (partition,) = bench.admin.with_eligible_leaders(bench.admin.topics([name]))[name].partitions
    return partition.elr
