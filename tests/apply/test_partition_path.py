"""Where a partition stands is told from its plan and what the cluster shows, and from nothing else."""

from datetime import UTC, datetime

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.small_runs import election, ids, move, plan_of

from reconciler.admin.port import Reassignment
from reconciler.apply.partition_path import PartitionPath, Place, Position, cancelled, paths_of, union
from reconciler.apply.stage_memory import LEGAL, SETTLE, UNCLEAR, History, MoveState, next_history, state_of
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic
from reconciler.model.cluster import Partition
from reconciler.model.stage import ElectStage, ReassignStage, Stage
from reconciler.model.topic_partition import TopicPartition

PATH = PartitionPath((ids("3,1,2"), ids("1,4,5"), ids("1,4,6")), (1, 2))
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def resting(replicas: str) -> Partition:
    return Partition(0, 1, ids(replicas), ids(replicas))


@pytest.mark.parametrize(
    ("replicas", "place", "index"),
    [
        ("3,1,2", Place.AT, 0),
        ("1,4,5", Place.AT, 1),
        ("1,4,6", Place.AT, 2),
        ("1,2,3", Place.CANCELLED, 0),
        ("1,4,5,2,3", Place.BETWEEN, 0),
        ("1,4,6,5", Place.BETWEEN, 1),
        ("1,3,2", Place.UNKNOWN, -1),
    ],
)
def test_a_partition_at_rest_is_where_its_list_says(replicas: str, place: Place, index: int) -> None:
    position = PATH.position(resting(replicas), None)
    assert (position.place, position.index) == (place, index)


@pytest.mark.parametrize(
    ("union_", "adding", "removing", "place", "index"),
    [
        ("1,4,5,2,3", "4,5", "2,3", Place.MOVING, 1),
        ("1,4,6,5", "6", "5", Place.MOVING, 2),
        ("1,4,7,2,3", "4,7", "2,3", Place.FOREIGN, -1),
        ("3,1,2,4", "4", "4", Place.FOREIGN, -1),
    ],
)
def test_a_partition_in_flight_is_where_the_controller_says(
    union_: str, adding: str, removing: str, place: Place, index: int
) -> None:
    listed = Reassignment(ids(union_), ids(adding), ids(removing))
    position = PATH.position(resting("3,1,2"), listed)
    assert (position.place, position.index, position.found) == (place, index, listed.target_replicas)


def test_a_partition_that_does_not_exist_is_missing() -> None:
    assert PATH.position(None, None).place is Place.MISSING


def test_a_cancel_loses_the_order_as_kafka_does() -> None:
    assert cancelled((3, 1, 2), (1, 4, 5)) == (1, 2, 3)
    assert union((3, 1, 2), (1, 4, 5)) == (1, 4, 5, 2, 3)


def test_moves_of_successive_stages_chain() -> None:
    before = small_cluster("a-0: 1,2,3")
    stages = [ReassignStage(1, (move("a-0", "1,2,3", "1,2,4"),)), ReassignStage(3, (move("a-0", "1,2,4", "4,2,1"),))]
    found, key = paths_of(plan_of(stages, before)), stages[0].moves[0].topic_partition
    path = found.by_partition[key]
    assert path.lists == ((1, 2, 3), (1, 2, 4), (4, 2, 1))
    assert path.stages == (1, 3)
    assert [found.passed_with(stage, key) for stage in range(5)] == [0, 1, 1, 2, 2]
    assert found.passed_with(4, TopicPartition("another", 0)) == 0


def test_the_leader_before_a_move_is_the_last_one_elected_else_the_first() -> None:
    first, last = move("a-0", "1,2,3", "2,1,3"), move("a-0", "2,1,3", "4,1,3")
    stages: list[Stage] = [ReassignStage(1, (first,)), ElectStage(2, (election("a-0", 2),)), ReassignStage(3, (last,))]
    found = paths_of(plan_of(stages, small_cluster("a-0: 1,2,3 leader 3")))
    assert (found.leader_before(first), found.leader_before(last)) == (3, 2)


def test_how_many_partitions_a_plan_wants_of_a_topic_is_known_where_it_makes_or_grows_it() -> None:
    changes = (CreateTopic("new", 4, 1), CreatePartitions("grown", 1, 3), AlterConfigs("other", {"x": "1"}))
    found = paths_of(plan_of([], small_cluster("grown-0: 1", "other-0: 1"), topic_changes=changes))
    assert [found.planned_partitions(name) for name in ("new", "grown", "other")] == [4, 3, 0]


def at(index: int) -> Position:
    return Position(Place.AT, index)


def state(position: Position, history: History = History(), *, is_synced: bool = True) -> MoveState:  # noqa: B008 - a value
    return state_of(position, 1, history, NOW, is_synced=is_synced)


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (at(1), MoveState.TO_DO),
        (Position(Place.CANCELLED, 1), MoveState.TO_DO),
        (Position(Place.MOVING, 2), MoveState.IN_FLIGHT),
        (at(2), MoveState.DONE),
        (at(3), MoveState.DONE),
        (Position(Place.MOVING, 3), MoveState.DONE),
        (Position(Place.CANCELLED, 2), MoveState.DONE),
        (Position(Place.BETWEEN, 1), MoveState.SETTLING),
        (at(0), MoveState.SETTLING),
        (Position(Place.MOVING, 1), MoveState.SETTLING),
        (Position(Place.FOREIGN), MoveState.SETTLING),
        (Position(Place.UNKNOWN), MoveState.SETTLING),
        (Position(Place.MISSING), MoveState.SETTLING),
    ],
)
def test_a_moves_state_follows_from_the_partitions_position(position: Position, expected: MoveState) -> None:
    assert state(position) is expected


def test_in_order_but_not_in_sync_is_not_done() -> None:
    assert state(at(2), is_synced=False) is MoveState.UNSYNCED
    assert state(at(3), is_synced=False) is MoveState.DONE


def test_a_state_may_stay_as_it_is_and_a_conflict_stays_for_good() -> None:
    assert all(one in LEGAL[one] for one in MoveState)
    assert LEGAL[MoveState.CONFLICT] == {MoveState.CONFLICT}


def test_a_move_off_its_course_is_believed_after_a_while() -> None:
    off = Position(Place.FOREIGN)
    first = next_history(History(), off, 1, NOW, is_synced=True)
    assert first.state is MoveState.SETTLING
    assert next_history(first, off, 1, NOW + UNCLEAR, is_synced=True).state is MoveState.CONFLICT
    assert next_history(first, at(1), 1, NOW + UNCLEAR, is_synced=True).off_since is None


def test_a_move_seen_in_flight_and_then_at_its_start_was_cancelled() -> None:
    history = next_history(History(), Position(Place.MOVING, 2), 1, NOW, is_synced=False)
    history = next_history(history, at(1), 1, NOW, is_synced=True)
    assert history.state is MoveState.SETTLING
    assert next_history(history, at(1), 1, NOW + SETTLE, is_synced=True).state is MoveState.CONFLICT
