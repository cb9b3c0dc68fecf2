"""Counts the windows of a plan, and finds the least throttle for fewer of them, as plans at that rate show."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from helpers.clusters.small_cluster import small_cluster
from staging.cases import move as staged

from reconciler.model.budget import WindowsNeeded
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, DesiredCluster, DesiredTopic, MovePolicy, Placement, Window
from reconciler.model.move_table import Moves
from reconciler.model.plan import Plan
from reconciler.staging.dealing import Dealing, Loads
from reconciler.staging.windows import windows_needed
from reconciler.workflow.plan import plan_of

MIB, HOUR = 1 << 20, 3600
NIGHTS = Window(("mon", "wed"), "23:00", "01:00")
SATURDAY = Window(("sat",), "10:00", "11:00")
WEEK = (SATURDAY, NIGHTS)  # of 2, 2 and 1 hours


def holding(hours: float, partitions: int = 1) -> Cluster:
    """Return a cluster of which the plan copies so many hours' bytes at 1 MiB/s, each partition in a stage."""
    size = int(hours * HOUR * MIB) // partitions
    return small_cluster(*(f"a-{number}: 1 size {size}" for number in range(partitions)), brokers=(1, 2))


def planned(observed: Cluster, windows: Sequence[Window], mib: int | None = 1) -> tuple[Plan, Desired]:
    policy = MovePolicy(throttle_bytes_per_second=mib and mib * MIB, per_stage=1)
    assignment = ((2,),) * len(observed.topics["a"].partitions)
    topic = DesiredTopic("a", placement=Placement(assignment=assignment))
    desired = Desired(DesiredCluster("c", moves=policy, windows=tuple(windows)), {"a": topic})
    return plan_of(desired, observed), desired


def needed(observed: Cluster, *windows: Window, mib: int | None = 1, fewer: int | None = None) -> WindowsNeeded | None:
    plan, desired = planned(observed, windows, mib)
    return windows_needed(plan, desired, observed, fewer)


@pytest.mark.parametrize(("hours", "count"), [(0.5, 1), (0.99, 1), (1.5, 2), (2.5, 2), (4.5, 3), (5.5, 4), (10.5, 7)])
def test_windows_are_counted_from_the_worst_one_on(hours: float, count: int) -> None:
    found = needed(holding(hours), *WEEK)
    assert found is not None
    assert (found.windows, found.fewer, found.present_bytes_per_second) == (count, max(1, count - 1), MIB)


@pytest.mark.parametrize(("hours", "fewer", "room"), [(5.5, None, 5), (5.5, 2, 3), (5.5, 1, 1), (0.5, None, 1)])
def test_at_the_throttle_that_is_told_fewer_windows_do_and_at_one_mib_less_they_do_not(
    hours: float, fewer: int | None, room: int
) -> None:
    found = needed(holding(hours), *WEEK, fewer=fewer)
    assert found is not None
    assert found.throttle_bytes_per_second is not None
    mib = found.throttle_bytes_per_second // MIB
    assert planned(holding(hours), WEEK, mib)[0].summary.estimated_seconds <= room * HOUR
    assert mib == 1 or planned(holding(hours), WEEK, mib - 1)[0].summary.estimated_seconds > room * HOUR


def test_no_throttle_is_told_where_stages_of_no_bytes_take_longer_than_the_window() -> None:
    minute = Window(("sun",), "10:00", "10:01:00")
    found = needed(holding(1 / HOUR, partitions=15), minute)
    assert found == WindowsNeeded(2, 1, None, MIB)


def test_nothing_is_told_without_windows_a_rate_or_anything_to_copy() -> None:
    half = holding(0.5)
    assert (needed(half), needed(half, SATURDAY, mib=None), needed(holding(0), SATURDAY)) == (None, None, None)
    assert needed(half, Window(("sat",), "10:00", "10:00")) == needed(half, SATURDAY) == WindowsNeeded(1, 1, MIB, MIB)


def test_of_many_stages_each_is_looked_at_in_its_turn() -> None:
    moves = Moves.of([staged(f"t-{n}: {1 + n % 20} -> {1 + (n + 1 + n % 7) % 20}", size=5) for n in range(4000)])
    none = np.zeros(len(moves), dtype=np.int64)
    dealing = Dealing(Loads.of(moves, moves.before[:, 0]), np.arange(len(moves)), none[:0], per_stage=100, stages=800)
    assert 0.4 < (dealing.deal(np.arange(len(moves)), none, none) % 2).mean() < 0.6


def test_copies_that_wait_for_a_slot_of_a_broker_count() -> None:
    observed = holding(1, partitions=4)
    desired = planned(observed, ())[1]
    one_by_one = replace(desired.cluster.moves, per_broker=1, per_stage=9)
    plan = plan_of(replace(desired, cluster=replace(desired.cluster, moves=one_by_one)), observed)
    assert (len(plan.stages), plan.summary.estimated_seconds) == (1, 5 + HOUR)
