"""What both admins promise of groups: one test class, run against real Kafka and against the simulated cluster.

A subclass gives a fixture `group_cluster`: a cluster as in `admin.contract`, in which consumers can join and leave.
"""

import itertools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import pytest
from admin.contract import AdminCluster, Bench

from reconciler.admin.port import EARLIEST, LATEST, Answer
from reconciler.model.coordinator import OFFSETS_TOPIC, coordination
from reconciler.model.topic_partition import TopicPartition

OK = Answer()
RUN = uuid.uuid4().hex[:6]
COUNTER = itertools.count()


class GroupCluster(AdminCluster, Protocol):
    """A cluster under test with groups that no admin can make."""

    def join(self, group_id: str, topic: str) -> None:
        """Let one classic consumer join that group; returns when it owns all of the topic."""

    def leave(self, group_id: str) -> None:
        """Let it leave; returns when the group is empty."""


@dataclass
class GroupBench(Bench):
    """A cluster with groups, and what to clean up afterwards."""

    groups: GroupCluster | None = None
    group_ids: list[str] = field(default_factory=list)

    def group(self) -> str:
        """Return a group id that was not used before."""
        self.group_ids.append(f"contract-{RUN}-{next(COUNTER)}")
        return self.group_ids[-1]

    def commit(self, group_id: str, *keys: TopicPartition) -> None:
        """Commit offset 0 for partitions that are new; a coordinator may learn of them a moment later than others."""
        offsets = dict.fromkeys(keys, 0)
        self.wait_until(
            lambda: set(self.admin.commit_offsets(group_id, offsets).values()) == {OK}, f"{group_id} to commit"
        )

    def committed(self, group_id: str) -> dict[TopicPartition, int]:
        """Return the group's committed offsets."""
        found = self.admin.groups([group_id])
        return found[group_id].committed if found else {}


class GroupsContract:
    """Subclass it with a fixture `group_cluster`."""

    @pytest.fixture
    def bench(self, group_cluster: GroupCluster) -> Iterator[GroupBench]:
        bench = GroupBench(group_cluster, groups=group_cluster)
        yield bench
        bench.admin.delete_groups(bench.group_ids)
        bench.clean_up()

    def test_a_group_that_does_not_exist_is_left_out(self, bench: GroupBench) -> None:
        assert bench.admin.groups(["nobody", "nothing"]) == {}

    def test_offsets_begin_a_group_and_are_read_back(self, bench: GroupBench) -> None:
        name, group_id = bench.topic((1, 2), (2, 3), size=30_000), bench.group()
        wanted = {TopicPartition(name, 0): 1, TopicPartition(name, 1): 0}
        bench.commit(group_id, *wanted)
        assert bench.admin.commit_offsets(group_id, wanted) == dict.fromkeys(wanted, OK)
        group = bench.admin.groups([group_id])[group_id]
        assert (group.committed, group.state, group.members) == (wanted, "Empty", ())
        assert group.kind == "classic"
        again = {TopicPartition(name, 1): 3}
        assert bench.admin.commit_offsets(group_id, again) == {TopicPartition(name, 1): OK}
        assert bench.committed(group_id) == {**wanted, **again}
        assert group_id in bench.admin.groups()

    def test_each_partition_gets_its_own_answer(self, bench: GroupBench) -> None:
        name, group_id = bench.topic((1, 2)), bench.group()
        good, bad = TopicPartition(name, 0), TopicPartition(name, 7)
        bench.commit(group_id, good)
        answers = bench.admin.commit_offsets(group_id, {good: 1, bad: 0})
        assert answers[good] == OK
        assert answers[bad].error == "UNKNOWN_TOPIC_OR_PARTITION"
        assert bench.committed(group_id) == {good: 1}

    def test_a_group_with_members_takes_no_offsets_and_is_not_deleted(self, bench: GroupBench) -> None:
        assert bench.groups is not None
        name, group_id = bench.topic((1, 2), (2, 3), size=10_000), bench.group()
        key = TopicPartition(name, 0)
        bench.groups.join(group_id, name)
        assert bench.admin.commit_offsets(group_id, {key: 0})[key].error == "UNKNOWN_MEMBER_ID"
        assert bench.admin.delete_groups([group_id])[group_id].error == "NON_EMPTY_GROUP"
        (member,) = bench.admin.groups([group_id])[group_id].members
        assert member.assignment == {name: (0, 1)}
        bench.groups.leave(group_id)
        assert bench.admin.commit_offsets(group_id, {key: 0})[key] == OK
        assert bench.admin.delete_groups([group_id]) == {group_id: OK}
        assert bench.admin.groups([group_id]) == {}

    def test_deleting_a_group_that_is_not_there_says_so(self, bench: GroupBench) -> None:
        there = bench.group()
        key = TopicPartition(bench.topic((1, 2)), 0)
        bench.commit(there, key)
        answers = bench.admin.delete_groups([there, "nobody"])
        assert answers[there] == OK
        assert answers["nobody"].error == "GROUP_ID_NOT_FOUND"

    def test_offsets_are_those_of_both_ends_and_of_a_time(self, bench: GroupBench) -> None:
        name = bench.topic((1, 2), (2, 3), size=30_000)
        full, other = TopicPartition(name, 0), TopicPartition(name, 1)
        bench.admin.clock.sleep(0.5)
        since = int(bench.admin.clock.now().timestamp() * 1000)
        bench.admin.clock.sleep(0.5)
        bench.cluster.produce(name, 0, 20_000)
        keys = [full, other, TopicPartition(name, 9), TopicPartition("nothing", 0)]
        assert bench.admin.log_offsets(keys, EARLIEST) == {full: 0, other: 0}
        assert bench.admin.log_offsets(keys, LATEST) == {full: 5, other: 3}
        assert bench.admin.log_offsets(keys, since) == {full: 3, other: None}
        assert bench.admin.log_offsets(keys, 0) == {full: 0, other: 0}

    def test_the_newest_record_is_told_by_its_time(self, bench: GroupBench) -> None:
        key = TopicPartition(bench.topic((1, 2), size=10_000), 0)
        bench.admin.clock.sleep(0.5)
        since = int(bench.admin.clock.now().timestamp() * 1000)
        bench.cluster.produce(key.topic, 0, 10_000)
        told = bench.admin.newest_records([key, TopicPartition(key.topic, 9), TopicPartition("nothing", 0)])
        assert told.keys() == {key}
        newest = told[key]
        assert newest is not None
        assert newest >= since
        empty = TopicPartition(bench.topic((1, 2)), 0)
        assert bench.admin.newest_records([empty]) == {empty: None}

    def test_a_group_is_where_its_partition_of_the_offsets_topic_is_led(self, bench: GroupBench) -> None:
        key = TopicPartition(bench.topic((1, 2)), 0)
        group_ids = [bench.group() for _ in range(12)]
        for group_id in group_ids:
            bench.commit(group_id, key)
        seen = bench.admin.observe(has_groups=True)
        found = {group.group_id: group.coordinator for group in seen.groups}
        assert OFFSETS_TOPIC in seen.topics
        for group_id in group_ids:
            place = coordination(group_id, seen)
            assert place is not None
            assert found[group_id] == place.broker == bench.admin.groups([group_id])[group_id].coordinator
