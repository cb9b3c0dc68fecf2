"""What a reset would do, partition by partition: Kafka's own rules, as a table."""

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.groups.model.state import GroupState, partition_lags
from reconciler.groups.offsets import (
    Log,
    ShiftBy,
    Target,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToOffsets,
    TopicScope,
    ToTime,
    reset,
    scope,
)
from reconciler.model.cluster import Group, GroupMember
from reconciler.model.problem import InvalidInput
from reconciler.model.topic_partition import TopicPartition

ZERO, ONE, TWO = (TopicPartition("orders", number) for number in range(3))
# 0: 10 to 100, committed 40. 1: 10 to 100, nothing committed. 2: empty from 5 on, committed 3, which is gone.
LOG = Log({ZERO: 10, ONE: 10, TWO: 5}, {ZERO: 100, ONE: 100, TWO: 5}, {ZERO: 60, ONE: None, TWO: None})
GROUP = Group("billing", "Empty", offsets={"orders": {0: 40, 2: 3}})
TOPICS = small_cluster("orders-0: 1,2", "orders-1: 1,2", "orders-2: 1,2").topics


@pytest.mark.parametrize(
    ("target", "new", "codes"),
    [
        (ToEarliest(), (10, 10, 5), []),
        (ToLatest(), (100, 100, 5), []),
        # As it is, even where the record is gone; without a commit, the latest.
        (ToCurrent(), (40, 100, 3), []),
        (ToOffset(50), (50, 50, 5), ["KR902"]),
        (ToOffset(1000), (100, 100, 5), ["KR902"]),
        (ToOffset(0), (10, 10, 5), ["KR903"]),
        (ToOffset(-7), (10, 10, 5), ["KR903"]),
        (ToOffset(10), (10, 10, 5), ["KR902"]),
        (ToOffset(100), (100, 100, 5), ["KR902"]),
        (ToTime(1), (60, 100, 5), ["KR904"]),
        (ToOffsets({ZERO: 99, ONE: 101, TWO: 4}), (99, 100, 5), ["KR902", "KR903"]),
    ],
)
def test_each_target_goes_where_kafkas_own_tool_goes(target: Target, new: tuple[int, ...], codes: list[str]) -> None:
    made = reset(GROUP, (TWO, ZERO, ONE), target, LOG)
    assert [change.topic_partition for change in made.changes] == [ZERO, ONE, TWO]
    assert tuple(change.new for change in made.changes) == new
    assert [problem.code for problem in made.warnings] == codes
    assert [change.old for change in made.changes] == [40, None, 3]
    assert [change.lag for change in made.changes] == [100 - new[0], 100 - new[1], 5 - new[2]]


@pytest.mark.parametrize(
    ("records", "new"), [(5, (45, 5)), (-5, (35, 5)), (1000, (100, 5)), (-1000, (10, 5)), (0, (40, 5))]
)
def test_a_shift_starts_from_the_commit_and_ends_within_the_log(records: int, new: tuple[int, int]) -> None:
    made = reset(GROUP, (ZERO, TWO), ShiftBy(records), LOG)
    assert tuple(change.new for change in made.changes) == new


def test_records_read_again_and_skipped_are_told_apart() -> None:
    back, on = (reset(GROUP, (ZERO, ONE), target, LOG).changes for target in (ToEarliest(), ToLatest()))
    assert [change.again for change in back] == [30, None]
    assert [change.again for change in on] == [-60, None]


@pytest.mark.parametrize(
    ("committed", "target", "again"),
    [
        # 10 to 100 are there. A commit behind the end, as of a topic that was made again, has read nothing of this log.
        (200, ToLatest(), 0),
        (200, ToEarliest(), 90),
        (200, ToCurrent(), 0),
        (200, ToOffset(60), 40),
        # What is deleted cannot be skipped.
        (3, ToLatest(), -90),
        (3, ToEarliest(), 0),
        (3, ToCurrent(), 0),
    ],
)
def test_only_records_that_are_there_count(committed: int, target: Target, again: int) -> None:
    (change,) = reset(Group("g", offsets={"orders": {0: committed}}), (ZERO,), target, LOG).changes
    assert change.again == again


def test_a_shift_without_a_commit_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"orders-1: has no committed offset to shift: leave it out \(KR906\)"):
        reset(GROUP, (ZERO, ONE), ShiftBy(1), LOG)


def test_partitions_without_a_leader_are_told_at_once_with_those_that_cannot_be_shifted() -> None:
    log = Log({ZERO: 0, ONE: 0}, {ZERO: 1, ONE: 1})
    with pytest.raises(InvalidInput) as told:
        reset(GROUP, (ZERO, ONE, TWO), ShiftBy(1), log)
    assert [problem.code for problem in told.value.problems] == ["KR907", "KR906"]


def test_a_scope_is_a_topic_or_some_of_its_partitions() -> None:
    assert scope(GROUP, [TopicScope("orders")], TOPICS) == ((ZERO, ONE, TWO), ())
    assert scope(GROUP, [TopicScope("orders", (2, 0))], TOPICS) == ((ZERO, TWO), ())


def test_all_topics_means_what_is_committed_and_still_there() -> None:
    group = Group("g", offsets={"orders": {0: 1, 7: 1}, "gone": {0: 1}})
    keys, warnings = scope(group, None, TOPICS)
    assert keys == (ZERO,)
    (warning,) = warnings
    assert (warning.code, warning.message) == (
        "KR905",
        "gone-0, orders-7: each has a committed offset but is gone: left out",
    )


def test_every_topic_and_partition_that_does_not_exist_is_told_at_once() -> None:
    with pytest.raises(InvalidInput) as told:
        scope(GROUP, [TopicScope("nope"), TopicScope("orders", (0, 3, 9))], TOPICS)
    assert [problem.message for problem in told.value.problems] == [
        "there is no topic nope: check its name",
        "topic orders has no partition 3: they are numbered 0 to 2",
        "topic orders has no partition 9: they are numbered 0 to 2",
    ]


def test_many_partitions_make_one_warning() -> None:
    keys = [TopicPartition("t", number) for number in range(1000)]
    log = Log(dict.fromkeys(keys, 0), dict.fromkeys(keys, 10))
    (warning,) = reset(Group("g"), keys, ToOffset(11), log).warnings
    assert warning.message == (
        "t-0, t-1, t-2, t-3, t-4 and 995 more: each ends before that offset: set to its latest offset"
    )


# Lag


def test_lag_covers_what_is_owned_and_what_is_committed() -> None:
    member = GroupMember("m", assignment={"orders": (1,), "clicks": (0,)})
    group = Group("g", "Stable", members=(member,), offsets={"orders": {0: 40, 1: 90}, "old": {0: 7}})
    found = partition_lags(group, {ZERO: 100, ONE: 80, TopicPartition("clicks", 0): 9})
    assert [(str(each.topic_partition), each.lag, each.member_id) for each in found] == [
        ("clicks-0", None, "m"),  # no commit: not zero
        ("old-0", None, None),  # no end
        ("orders-0", 60, None),
        ("orders-1", -10, "m"),  # committed behind the end
    ]
    assert GroupState(group, found).total_lag == 60
    assert GroupState(group, found[:2]).total_lag is None
