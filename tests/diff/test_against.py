"""Where each group of the source would go on in the copies, case by case; what cannot be known says why."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from reconciler.diff.against import MirrorMaker, Pair, Seen, compared_groups, compared_topics, pairs
from reconciler.diff.mirror_offsets import SyncHistory
from reconciler.model.against import Changeover, Checkpoint, ComparedPartition, Ground, OffsetSync
from reconciler.model.cluster import Cluster, Group, Partition, Topic
from reconciler.model.desired import Desired, DesiredCluster, DesiredMirror
from reconciler.model.topic_partition import TopicPartition

PAIR = Pair("orders", "us.orders", "from-us", ())
KEY, COPY = TopicPartition("orders", 0), TopicPartition("us.orders", 0)


def cluster(topic: str, partitions: int, groups: Sequence[Group] = ()) -> Cluster:
    numbers = tuple(Partition(number, 1, (1,), (1,)) for number in range(partitions))
    return Cluster(topic, topics={topic: Topic(topic, numbers)}, groups=tuple(groups), has_groups=True)


def history(*syncs: tuple[int, int]) -> SyncHistory:
    found = SyncHistory()
    for upstream, downstream in syncs:
        found.take(OffsetSync(KEY, upstream, downstream))
    return found


def log(key: TopicPartition, start: int, end: int) -> dict[str, Mapping[TopicPartition, int | None]]:
    return {"starts": {key: start}, "ends": {key: end}}


def told(*syncs: tuple[int, int], mark: tuple[int, int] | None = None) -> MirrorMaker:
    """Return what MirrorMaker 2 wrote: its syncs, and a checkpoint of group g."""
    marks = {("g", COPY): Checkpoint("g", COPY, *mark)} if mark else {}
    return MirrorMaker({KEY: history(*syncs)} if syncs else {}, marks)


def changed_over(
    committed: int,
    written: MirrorMaker,
    *,
    there: int | None = None,
    logs: tuple[tuple[int, int], tuple[int, int]] = ((0, 120), (0, 100)),
    partitions: int = 1,
) -> Changeover:
    """Return what becomes of group g, which has committed that, and `there` on the target."""
    source = cluster("orders", 1, [Group("g", offsets={"orders": {0: committed}})])
    target = cluster("us.orders", partitions)
    if there is not None:
        target = replace(target, groups=(Group("g", offsets={"us.orders": {0: there}}),))
    seen = Seen(source, **log(KEY, *logs[0])), Seen(target, **log(COPY, *logs[1]))
    groups = compared_groups([PAIR], *seen, written)
    assert groups is not None
    ((row,),) = (group.partitions for group in groups)
    assert [group.group_id for group in groups] == ["g"]
    return row


FULL = ((0, 0), (99, 99))
WITHOUT = MirrorMaker(None, None, "none", is_without_syncs=True)


@pytest.mark.parametrize(
    ("committed", "written", "there", "expected"),
    [
        # What counts first is what the group has committed on the target, then the checkpoint, then the syncs.
        (50, told(*FULL, mark=(40, 31)), 45, (45, Ground.COMMITTED, 5, 0)),
        (50, told(*FULL, mark=(40, 31)), None, (31, Ground.CHECKPOINT, 19, 0)),
        (50, told(*FULL), None, (1, Ground.SYNCS, 49, 0)),
        (50, told(*FULL), 50, (50, Ground.COMMITTED, 0, 0)),
        (50, told(*FULL), 60, (60, Ground.COMMITTED, 0, 10)),
        # The group went back on the source after its checkpoint.
        (20, told(*FULL, mark=(40, 40)), None, (40, Ground.CHECKPOINT, 0, 20)),
        # All that is copied is read: what comes then is read again, up to the commit.
        (110, told(*FULL), None, (100, Ground.SYNCS, 10, 0)),
        (120, told(*FULL), 100, (100, Ground.COMMITTED, 20, 0)),
        # Nothing is read yet.
        (0, told(*FULL), None, (0, Ground.SYNCS, 0, 0)),
    ],
)
def test_a_group_goes_on_where_it_is_known_best(
    committed: int, written: MirrorMaker, there: int | None, expected: tuple[int, Ground, int, int]
) -> None:
    row = changed_over(committed, written, there=there)
    assert (row.start, row.start_by, row.read_twice, row.missed, row.unknown) == (*expected, None)


def test_bounds_are_as_wide_as_what_is_known() -> None:
    """The topic has gaps between its syncs: ten offsets, of which the copy holds six records."""
    row = changed_over(55, told((50, 40), (60, 46), (119, 99)), there=43)
    assert (row.low, row.high) == (41, 45)
    assert (row.read_twice, row.missed, row.not_copied) == (2, 2, 0)


def test_a_checkpoint_tells_of_commits_before_the_first_sync_that_is_left() -> None:
    row = changed_over(30, told((99, 99), mark=(30, 28)))
    assert (row.start, row.low, row.high, row.missed, row.read_twice) == (28, 28, 99, 0, 71)


@pytest.mark.parametrize(
    ("committed", "written", "more", "why"),
    [
        (30, told((99, 99)), {}, "before the first offset sync"),
        (50, told(), {}, "has no offset sync of it"),
        (50, told((120, 99)), {}, "lies behind the end of a log"),
        (50, told((99, 100)), {}, "lies behind the end of a log"),
        (130, told(*FULL), {}, "the topic ends at 120, before that commit"),
        (50, told(*FULL, mark=(50, 45)), {"logs": ((0, 120), (60, 100))}, "the copy holds 60 to 100"),
        (50, told(*FULL), {"there": 101}, "the copy holds 0 to 100"),
        (50, MirrorMaker(None, None, "nobody read it"), {}, "nobody read it"),
        (50, WITHOUT, {"logs": ((5, 120), (0, 100))}, "none, and the logs no longer begin"),
        (50, WITHOUT, {"logs": ((0, 90), (0, 100))}, "the copy is longer than its topic"),
        (50, told(*FULL), {"partitions": 0}, "the copy has no such partition"),
    ],
)
def test_what_cannot_be_known_says_why_and_is_no_number(
    committed: int, written: MirrorMaker, more: dict[str, int], why: str
) -> None:
    row = changed_over(committed, written, **more)  # type: ignore[arg-type] # tables hold what they hold
    assert (row.read_twice, row.missed) == (None, None)
    assert row.unknown is not None
    assert why in row.unknown


def test_nobody_says_where_a_group_goes_on_if_the_targets_groups_were_not_looked_at() -> None:
    source = cluster("orders", 1, [Group("g", offsets={"orders": {0: 50}})])
    blind = replace(cluster("us.orders", 1), has_groups=False)
    written = told(*FULL, mark=(50, 50))
    groups = compared_groups([PAIR], Seen(source, **log(KEY, 0, 120)), Seen(blind, **log(COPY, 0, 100)), written)
    assert groups is not None
    ((row,),) = (group.partitions for group in groups)
    assert (row.start, row.missed, row.low) == (None, None, 50)
    assert compared_groups([PAIR], Seen(replace(source, groups=(), has_groups=False)), Seen(blind), written) is None


def partition(written: MirrorMaker, source: tuple[int, int], copy: tuple[int, int]) -> ComparedPartition:
    seen = Seen(cluster("orders", 1), **log(KEY, *source)), Seen(cluster("us.orders", 1), **log(COPY, *copy))
    ((row,),) = (each.partitions for each in compared_topics([PAIR], *seen, written))
    return row


@pytest.mark.parametrize(
    ("written", "source", "copy", "lag", "at_most"),
    [
        (told(*FULL), (0, 120), (0, 100), 20, 20),
        (told(*FULL), (0, 120), (0, 110), 10, 20),
        (told(*FULL), (0, 100), (0, 100), 0, 0),
        # The copy has more behind its last sync than the topic: markers, or another writer.
        (told(*FULL), (0, 105), (0, 110), None, 5),
        # Transactions of the copy were seen between two syncs.
        (told((0, 0), (9, 12)), (0, 20), (0, 15), None, 10),
        (told((0, 0), (9, 12)), (0, 10), (0, 15), 0, 0),
        # An empty copy lacks what the topic holds, and no more.
        (told(), (40, 120), (0, 0), 80, 80),
        (told(), (120, 120), (0, 0), 0, 0),
        (WITHOUT, (0, 120), (0, 100), 20, 120),
    ],
)
def test_what_a_copy_lacks_is_never_told_too_small(
    written: MirrorMaker, source: tuple[int, int], copy: tuple[int, int], lag: int | None, at_most: int
) -> None:
    row = partition(written, source, copy)
    assert (row.lag, row.lag_at_most) == (lag, at_most)
    assert (row.unknown is None) == (lag is not None)


def test_of_a_copy_that_is_not_there_nothing_is_known() -> None:
    (found,) = compared_topics([PAIR], Seen(cluster("orders", 2)), Seen(cluster("other", 1)), told())
    assert (found.partition_count, found.replication_factor) == (2, 1)
    assert (found.copy_partition_count, found.copy_replication_factor, found.partitions) == (None, None, ())
    (empty,) = compared_topics([PAIR], Seen(cluster("orders", 0)), Seen(cluster("us.orders", 1)), told())
    assert (empty.partition_count, empty.replication_factor, empty.copy_replication_factor) == (0, None, 1)


def test_topics_that_mirror_maker_keeps_for_itself_are_no_copies() -> None:
    topics = ("orders", "heartbeats", "mm2-offset-syncs.eu.internal", "__consumer_offsets", "eu.orders")
    there = ("us.orders", "us.heartbeats", "us.checkpoints.internal", "mm2-configs.us.internal", "us.old", "own")
    one = (Partition(0, 1, (1,), (1,)),)
    source, target = (Cluster("", topics={name: Topic(name, one) for name in names}) for names in (topics, there))
    every = Desired(DesiredCluster("eu"), mirrors=(DesiredMirror("m", "us", ("*",)),))
    found = pairs(every, source, target, "us", ("eu", "us"))
    assert [(pair.topic, pair.copy) for pair in found] == [("old", "us.old"), ("orders", "us.orders")]
    by_names = pairs(Desired(DesiredCluster("eu")), source, target, "us", ("eu", "us"))
    assert {pair.copy for pair in by_names} == {"orders", "eu.orders", "us.orders", "us.old", "own"}
