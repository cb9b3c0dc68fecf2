"""The next step follows from the plan, what is seen, what is remembered and the time; no cluster is needed."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.small_runs import election, move, plan_of

from reconciler.admin.port import Reassignment
from reconciler.apply.decide import FAILED, decide
from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import paths_of
from reconciler.apply.slowness import CRAWL
from reconciler.apply.stage_memory import DEAD, BadDisk, History, MoveState, StageMemory, bad_disks_of, note
from reconciler.apply.steps import (
    ATTEMPTS,
    ChangeConfigs,
    CreateTopics,
    ElectLeaders,
    FailRun,
    FinishStage,
    GrowTopics,
    LeaveAlone,
    PutThrottles,
    Step,
    SubmitMoves,
    TakeThrottlesOff,
    Wait,
    Warn,
    WithdrawMoves,
    poll,
)
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic
from reconciler.model.cluster import Cluster, LogDir
from reconciler.model.problem import Problem, Severity
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage
from reconciler.model.topic_partition import TopicPartition

NOW = datetime(2026, 1, 1, tzinfo=UTC)
A0 = TopicPartition("a", 0)
IN_FLIGHT = {A0: Reassignment((1, 2, 4, 3), (4,), (3,))}
MOVE = move("a-0", "1,2,3", "1,2,4")
STAGE = ReassignStage(1, (MOVE,), 1000)
BEFORE = small_cluster("a-0: 1,2,3")
MEMORY = StageMemory(0, NOW, NOW)
ALL = frozenset(range(1, 7))


def seen(cluster: Cluster, reassignments: Mapping[TopicPartition, Reassignment] | None = None) -> Observed:
    return Observed(
        topics=cluster.topics,
        reassignments=reassignments or {},
        brokers=cluster.brokers,
        configs={name: topic.configs for name, topic in cluster.topics.items()},
    )


def next_step(
    stage: Stage, observed: Observed, memory: StageMemory = MEMORY, now: datetime = NOW, **fields: object
) -> Step:
    paths = paths_of(plan_of([stage], BEFORE, **fields))
    noted = note(paths, stage, observed, memory, now) if isinstance(stage, ReassignStage) else memory
    return decide(paths, observed, noted, now)


def test_throttles_go_on_before_anything_is_submitted() -> None:
    assert next_step(STAGE, seen(BEFORE)) == PutThrottles(STAGE)


def test_what_is_at_its_start_is_submitted() -> None:
    throttled = replace(MEMORY, throttled_brokers=ALL)
    assert next_step(STAGE, seen(BEFORE), throttled) == SubmitMoves((MOVE,), is_factor_change=False)
    assert next_step(replace(STAGE, throttle_bytes_per_second=None), seen(BEFORE)) == SubmitMoves(
        (MOVE,), is_factor_change=False
    )


def test_moves_that_change_the_factor_go_by_themselves() -> None:
    cluster = small_cluster("a-0: 1,2,3", "a-1: 1,2,3")
    shrink = move("a-1", "1,2,3", "1,2")
    stage = ReassignStage(1, (MOVE, shrink))
    assert next_step(stage, seen(cluster)) == SubmitMoves((MOVE,), is_factor_change=False)
    later = MEMORY.submitted([MOVE], NOW + timedelta(seconds=60))
    assert next_step(stage, seen(cluster), later) == SubmitMoves((shrink,), is_factor_change=True)


def test_what_is_in_flight_is_awaited() -> None:
    throttled = replace(MEMORY, throttled_brokers=ALL)
    assert isinstance(next_step(STAGE, seen(BEFORE, IN_FLIGHT), throttled), Wait)


def test_a_move_in_flight_without_its_throttle_gets_it_first() -> None:
    assert next_step(STAGE, seen(BEFORE, IN_FLIGHT)) == PutThrottles(STAGE)


def test_the_end_of_a_stage_takes_the_lists_off_and_finishes_it() -> None:
    done = small_cluster("a-0: 1,2,4")
    assert next_step(STAGE, seen(done), replace(MEMORY, has_throttles_on=True)) == TakeThrottlesOff()
    assert next_step(STAGE, seen(done)) == FinishStage()


def test_a_stage_of_which_a_move_was_left_alone_ends_and_fails_the_run() -> None:
    left = MEMORY.leaving_alone(A0, Problem("KR701", "a-0 is elsewhere"))
    step = next_step(STAGE, seen(BEFORE), left)
    assert isinstance(step, FailRun)
    assert step.problem.code == "KR701"
    assert step.problem.message.startswith("stage 1 ended with 1 of its moves not done: a-0 is elsewhere")


def test_a_replica_out_of_sync_keeps_a_stage_from_ending() -> None:
    behind = small_cluster("a-0: 1,2,4 isr 1,2")
    assert isinstance(next_step(STAGE, seen(behind), replace(MEMORY, throttled_brokers=ALL)), Wait)


def test_a_move_submitted_again_and_again_is_given_up() -> None:
    memory = replace(MEMORY, throttled_brokers=ALL)
    for _ in range(ATTEMPTS):
        memory = memory.submitted([MOVE], NOW)
    step = next_step(STAGE, seen(BEFORE), memory)
    assert isinstance(step, LeaveAlone)
    assert step.problem.code == "KR704"


def test_moves_to_a_broker_dead_for_long_are_withdrawn() -> None:
    dead = small_cluster("a-0: 1,2,3", fenced=[4])
    memory = replace(MEMORY, throttled_brokers=ALL, fenced_since={4: NOW})
    assert isinstance(next_step(STAGE, seen(dead, IN_FLIGHT), memory), Wait)
    step = next_step(STAGE, seen(dead, IN_FLIGHT), memory, NOW + DEAD)
    assert isinstance(step, WithdrawMoves)
    assert step.moves == (MOVE,)


def test_nothing_is_submitted_to_a_dead_broker() -> None:
    dead = small_cluster("a-0: 1,2,3", fenced=[4])
    memory = replace(MEMORY, throttled_brokers=ALL, fenced_since={4: NOW})
    assert isinstance(next_step(STAGE, seen(dead), memory), Wait)
    assert isinstance(next_step(STAGE, seen(dead), memory, NOW + DEAD), LeaveAlone)


def test_what_needs_a_broker_that_cannot_be_reached_from_here_is_left_alone_after_a_while() -> None:
    memory = replace(MEMORY, throttled_brokers=ALL - {4}, unreached_since={4: NOW})
    assert next_step(STAGE, seen(BEFORE), memory, NOW + DEAD) == PutThrottles(STAGE), "it is asked once more first"
    memory = replace(memory, hidden=frozenset({4}))
    step = next_step(STAGE, seen(BEFORE), memory, NOW + DEAD)
    assert isinstance(step, LeaveAlone)
    assert step.problem.code == "KR736"
    assert step.problem.message.startswith("broker 4, which a-0 needs in [1, 2, 4], is alive and cannot be reached")
    assert isinstance(next_step(STAGE, seen(BEFORE, IN_FLIGHT), memory, NOW + DEAD), PutThrottles), "it copies: let it"
    dead = small_cluster("a-0: 1,2,3", fenced=[4])
    assert isinstance(next_step(STAGE, seen(dead), memory, NOW + DEAD), Wait), "a dead one is another matter"


def test_a_change_of_order_waits_for_no_dead_broker() -> None:
    reorder = move("a-0", "1,2,3", "2,1,3")
    stage = ReassignStage(1, (reorder,))
    memory = replace(MEMORY, fenced_since={3: NOW})
    before = small_cluster("a-0: 1,2,3 isr 1,2", fenced=[3])
    assert next_step(stage, seen(before), memory, NOW + DEAD) == SubmitMoves((reorder,), is_factor_change=False)
    after = small_cluster("a-0: 2,1,3 leader 1 isr 1,2", fenced=[3])
    assert next_step(stage, seen(after), memory, NOW + DEAD) == FinishStage()
    behind = small_cluster("a-0: 2,1,3 leader 1 isr 1,2")
    assert isinstance(next_step(stage, seen(behind)), Wait)


def test_a_stage_that_does_not_go_on_fails_the_run() -> None:
    memory = replace(MEMORY, throttled_brokers=ALL)
    paths = paths_of(plan_of([STAGE], BEFORE, timeout_seconds=60))
    observed = seen(BEFORE, IN_FLIGHT)
    memory = note(paths, STAGE, observed, memory, NOW)
    later = NOW + timedelta(seconds=60)
    step = decide(paths, observed, note(paths, STAGE, observed, memory, later), later)
    assert isinstance(step, FailRun)
    assert step.problem.code == "KR702"


def test_copied_bytes_are_progress() -> None:
    paths = paths_of(plan_of([STAGE], BEFORE))
    memory = note(paths, STAGE, seen(BEFORE, IN_FLIGHT), MEMORY, NOW)
    later = NOW + timedelta(seconds=60)
    idle = note(paths, STAGE, replace(seen(BEFORE, IN_FLIGHT)), memory, later)
    busy = note(paths, STAGE, replace(seen(BEFORE, IN_FLIGHT), replica_bytes={(A0, 4): 5}), memory, later)
    assert (idle.progressed_at, busy.progressed_at) == (NOW, later)
    assert busy.state(A0) is MoveState.IN_FLIGHT


def test_a_replica_that_comes_no_closer_to_its_leader_is_no_progress() -> None:
    paths = paths_of(plan_of([STAGE], BEFORE))
    memory, behind = MEMORY, {(A0, 1): 100, (A0, 4): 40}
    times = [NOW + timedelta(seconds=seconds) for seconds in (1, 2, 3)]
    for now, sizes in zip(times, (behind, behind, {**behind, (A0, 4): 50}), strict=True):
        memory = note(paths, STAGE, replace(seen(BEFORE, IN_FLIGHT), replica_bytes=sizes), memory, now)
        assert memory.progressed_at == (times[0] if now < times[2] else now)
        assert memory.least_lag == {(A0, 4): 100 - sizes[A0, 4]}


def test_a_replica_that_comes_closer_by_no_more_than_chance_is_no_progress() -> None:
    paths = paths_of(plan_of([STAGE], BEFORE))
    flying = {A0: History(MoveState.IN_FLIGHT, is_seen_in_flight=True)}
    memory = replace(MEMORY, histories=flying, least_lag={(A0, 4): 10**6}, synced_replicas=2)
    later = NOW + timedelta(seconds=60)

    def progressed_at(lag: int) -> datetime:
        sizes = {(A0, 1): 2 * 10**6, (A0, 4): 2 * 10**6 - lag}
        return note(paths, STAGE, replace(seen(BEFORE, IN_FLIGHT), replica_bytes=sizes), memory, later).progressed_at

    assert [progressed_at(10**6 - 100), progressed_at(10**6 - 101)] == [NOW, later]


def test_a_replica_that_comes_in_sync_is_progress() -> None:
    paths = paths_of(plan_of([STAGE], BEFORE))
    memory = note(paths, STAGE, seen(BEFORE, IN_FLIGHT), MEMORY, NOW)
    later = NOW + timedelta(seconds=60)
    assert note(paths, STAGE, seen(BEFORE, IN_FLIGHT), memory, later).progressed_at == NOW
    in_sync = note(paths, STAGE, seen(small_cluster("a-0: 1,2,3 isr 1,2,3,4"), IN_FLIGHT), memory, later)
    assert (in_sync.progressed_at, in_sync.synced_replicas) == (later, 3)


def test_data_that_arrives_as_fast_as_it_is_written_is_told_once() -> None:
    paths = paths_of(plan_of([STAGE], BEFORE))
    histories = {A0: History(MoveState.IN_FLIGHT)}
    memory = replace(MEMORY, throttled_brokers=ALL, histories=histories, copied_when_progressed=5, copied_bytes=10)
    step = decide(paths, seen(BEFORE, IN_FLIGHT), memory, NOW + CRAWL)
    assert isinstance(step, Warn)
    assert (step.key, step.problem.code, step.problem.severity) == ("crawl", "KR723", Severity.WARNING)
    assert step.problem.message.startswith("a-0 came no closer to the end in 300 s although data arrives: ")
    told = replace(memory, warned=frozenset({step.key}))
    assert isinstance(decide(paths, seen(BEFORE, IN_FLIGHT), told, NOW + CRAWL), Wait)


def test_a_dead_replica_that_stays_is_told_once() -> None:
    memory = replace(MEMORY, throttled_brokers=ALL, histories={A0: History(MoveState.IN_FLIGHT)}, fenced_since={2: NOW})
    observed, paths = seen(BEFORE, IN_FLIGHT), paths_of(plan_of([STAGE], BEFORE))
    step = decide(paths, observed, memory, NOW + DEAD)
    assert isinstance(step, Warn)
    assert step.problem.message == "broker 2 is not alive, and a-0 cannot end before it is back; start it"
    assert isinstance(decide(paths, observed, replace(memory, warned=frozenset({step.key})), NOW + DEAD), Wait)


def test_a_stage_is_done_when_its_moves_are() -> None:
    for state in MoveState:
        assert replace(MEMORY, histories={A0: History(state)}).is_done(STAGE) == (state is MoveState.DONE)


def test_a_log_dir_is_bad_once_it_is_nearly_full() -> None:
    for usable in (10**12, 10**6):
        found = bad_disks_of({}, {4: (LogDir("/d1", total_bytes=2 * 10**12, usable_bytes=usable),)}, NOW)
        assert found == ({} if usable == 10**12 else {4: BadDisk(NOW, "/d1", is_offline=False, usable_bytes=usable)})


def test_moves_that_will_not_fit_on_a_disk_are_withdrawn_whether_or_not_all_of_them_tell_their_size() -> None:
    moves = (MOVE, move("a-1", "1,2,3", "1,2,4"))
    paths = paths_of(plan_of([ReassignStage(1, moves)], BEFORE))
    full = {4: BadDisk(NOW, "/d1", is_offline=False, usable_bytes=50)}
    flying = {one.topic_partition: History(MoveState.IN_FLIGHT) for one in moves}
    memory = replace(MEMORY, histories=flying, bad_disks=full, least_lag={(A0, 4): 51})
    observed = seen(small_cluster("a-0: 1,2,3", "a-1: 1,2,3"))
    step = decide(paths, observed, memory, NOW + FAILED)
    assert isinstance(step, WithdrawMoves)
    assert (step.moves, {problem.code for problem in step.problems}) == (moves, {"KR716"})
    fits = replace(memory, least_lag={(A0, 4): 50})
    assert not isinstance(decide(paths, observed, fits, NOW + FAILED), WithdrawMoves)


def test_a_poll_waits_longer_each_time_up_to_a_bound() -> None:
    waits = [poll(polls).seconds for polls in range(40)]
    assert waits == sorted(waits)
    assert (waits[:3], waits[-1]) == ([0.25, 0.375, 0.5625], 5.0)


@pytest.mark.parametrize(
    ("line", "expected"),
    [("a-0: 1,2,3 leader 1", FinishStage()), ("a-0: 1,2,3 leader 2", ElectLeaders((election("a-0", 1),)))],
)
def test_a_leader_is_elected_where_it_does_not_lead(line: str, expected: Step) -> None:
    assert next_step(ElectStage(1, (election("a-0", 1),)), seen(small_cluster(line))) == expected


def test_nobody_else_is_elected_where_the_list_has_changed() -> None:
    changed = seen(small_cluster("a-0: 3,1,2 leader 2"))
    stage = ElectStage(1, (election("a-0", 1),))
    assert isinstance(next_step(stage, changed), Wait)
    step = next_step(stage, changed, now=NOW + timedelta(seconds=120))
    assert isinstance(step, FailRun)
    assert "broker 1 is not its preferred leader" in step.problem.message
    gone = next_step(stage, Observed(), now=NOW + timedelta(seconds=120))
    assert isinstance(gone, FailRun)
    assert gone.problem.code == "KR701"


def test_an_election_that_a_later_move_overtook_is_not_due() -> None:
    stages: list[Stage] = [
        ReassignStage(1, (move("a-0", "1,2,3", "2,1,3"),)),
        ElectStage(2, (election("a-0", 2),)),
        ReassignStage(3, (move("a-0", "2,1,3", "4,1,3"),)),
    ]
    paths = paths_of(plan_of(stages, BEFORE))
    memory = replace(MEMORY, stage_index=1)
    assert decide(paths, seen(small_cluster("a-0: 4,1,3")), memory, NOW) == FinishStage()
    due = decide(paths, seen(small_cluster("a-0: 2,1,3 leader 1")), memory, NOW)
    assert due == ElectLeaders((election("a-0", 2),))


def test_what_kafka_may_refuse_has_shown_before_a_topic_grows_or_goes() -> None:
    """Each kind waits for the one before it, in the plan's order, although it is not asked for meanwhile."""
    create = CreateTopic("b", 1, 1, {}, {0: (1,)})
    alter = AlterConfigs("a", {"retention.ms": "1"}, (), {"retention.ms": None})
    grow = CreatePartitions("a", 1, 2, {1: (1, 2, 3)})
    changes = (create, alter, grow)
    stage = TopicsStage(1, (0, 1, 2))
    assert next_step(stage, seen(BEFORE), topic_changes=changes) == CreateTopics((create,))
    asked = MEMORY.attempted(["its creation b"], NOW + timedelta(seconds=60))
    assert isinstance(next_step(stage, seen(BEFORE), asked, topic_changes=changes), Wait)
    made = small_cluster("a-0: 1,2,3", "b-0: 1")
    assert next_step(stage, seen(made), asked, topic_changes=changes) == ChangeConfigs((alter,))
    both = asked.attempted(["its change of configs a"], NOW + timedelta(seconds=60))
    assert isinstance(next_step(stage, seen(made), both, topic_changes=changes), Wait)


def test_a_topic_change_asked_for_again_and_again_is_given_up() -> None:
    create = CreateTopic("b", 1, 1, {}, {0: (1,)})
    asked = MEMORY
    for _ in range(ATTEMPTS):
        assert next_step(TopicsStage(1, (0,)), seen(BEFORE), asked, topic_changes=(create,)) == CreateTopics((create,))
        asked = asked.attempted(["its creation b"], NOW)
    step = next_step(TopicsStage(1, (0,)), seen(BEFORE), asked, topic_changes=(create,))
    assert isinstance(step, FailRun)
    assert (step.problem.code, "its creation was asked for 5 times" in step.problem.message) == ("KR707", True)


def test_a_request_may_be_asked_for_again_sooner_than_it_was_said() -> None:
    asked = MEMORY.attempted(["its creation b"], NOW + timedelta(seconds=60))
    sooner = asked.quieted("its creation b", NOW + timedelta(seconds=5))
    now = NOW + timedelta(seconds=10)
    assert [memory.is_quiet("its creation b", now) for memory in (asked, sooner)] == [True, False]
    assert sooner.count("its creation b") == 1


def test_a_growth_larger_than_a_request_is_asked_for_part_by_part() -> None:
    grow = CreatePartitions("a", 1, 1500)
    first = next_step(TopicsStage(1, (0,)), seen(BEFORE), topic_changes=(grow,))
    assert first == GrowTopics((replace(grow, to_count=1001),))
    asked = MEMORY.attempted(["grow a to 1001"], NOW + timedelta(seconds=60))
    assert isinstance(next_step(TopicsStage(1, (0,)), seen(BEFORE), asked, topic_changes=(grow,)), Wait)


def test_a_growth_that_stands_elsewhere_is_told() -> None:
    grow = CreatePartitions("a", 1, 2, {1: (1, 2, 3)})
    step = next_step(TopicsStage(1, (0,)), seen(small_cluster("a-0: 1,2,3", "a-1: 1,2,5")), topic_changes=(grow,))
    assert isinstance(step, FailRun)
    expected = "topic a: expected 1 partitions, or 2 as planned, found partition 1 on [1, 2, 5];"
    assert step.problem.message.startswith(expected)


def test_a_creation_is_done_where_a_later_move_of_the_plan_has_taken_its_partition_on() -> None:
    create = CreateTopic("b", 1, 1, {}, {0: (1,)})
    stages = (TopicsStage(1, (0,)), ReassignStage(2, (move("b-0", "1", "2"),)))
    paths = paths_of(plan_of(stages, BEFORE, topic_changes=(create,)))
    assert decide(paths, seen(small_cluster("b-0: 2")), MEMORY, NOW) == FinishStage()
    elsewhere = decide(paths, seen(small_cluster("b-0: 5")), MEMORY, NOW)
    assert isinstance(elsewhere, FailRun)
    assert "found partition 0 on [5];" in elsewhere.problem.message
    other = replace(create, configs={"retention.ms": "1"})
    told = next_step(TopicsStage(1, (0,)), seen(small_cluster("b-0: 1")), topic_changes=(other,))
    assert isinstance(told, FailRun)
    assert "expected retention.ms=1, found retention.ms not set" in told.problem.message


def test_a_config_that_is_neither_as_it_was_nor_as_planned_is_told_and_not_changed() -> None:
    alter = AlterConfigs("a", {"retention.ms": "1"}, (), {"retention.ms": "2"})
    step = next_step(TopicsStage(1, (0,)), seen(BEFORE), topic_changes=(alter,))
    assert isinstance(step, FailRun)
    expected = "topic a: expected retention.ms set to 2 or set to 1, found retention.ms not set;"
    assert step.problem.message.startswith(expected)
    gone = next_step(TopicsStage(1, (0,)), Observed(), topic_changes=(alter,))
    assert isinstance(gone, FailRun)
    assert gone.problem.message.startswith("topic a: expected the topic, found no such topic;")


def test_a_move_over_a_broker_that_came_back_waits_for_its_throttle() -> None:
    without = replace(MEMORY, throttled_brokers=frozenset({1, 2, 3}))
    assert next_step(STAGE, seen(BEFORE), without) == PutThrottles(STAGE)
    asked = without.attempted(["throttle"], NOW + timedelta(seconds=5))
    assert isinstance(next_step(STAGE, seen(BEFORE), asked), Wait)
    dead = small_cluster("a-0: 1,2,3 isr 1,2", fenced=[3])
    living = replace(MEMORY, throttled_brokers=frozenset({1, 2, 4}))
    assert isinstance(next_step(STAGE, seen(dead), living), SubmitMoves)


def test_moves_are_submitted_in_the_plans_order_as_slots_become_free() -> None:
    """Broker 4 receives two at most, broker 3 serves two at most; what only leaves takes no slot."""
    before = small_cluster("a-0: 1,2", "a-1: 2,1", "a-2: 3,2", "a-3: 3,2", "a-4: 3,2", "a-5: 3,2")
    moves = (
        move("a-0", "1,2", "1,4"),
        move("a-1", "2,1", "2,4"),
        move("a-2", "3,2", "3,4"),
        move("a-3", "3,2", "3,5"),
        move("a-4", "3,2", "3,6"),
        move("a-5", "3,2", "3,5"),
    )
    stage = ReassignStage(1, moves)
    paths = paths_of(replace(plan_of([stage], before), per_broker=2))
    step = decide(paths, seen(before), MEMORY, NOW)
    assert isinstance(step, SubmitMoves)
    assert [one.topic_partition.partition for one in step.moves] == [0, 1, 3, 4]
    in_flight = {one.topic_partition: History(MoveState.IN_FLIGHT) for one in step.moves}
    assert decide(paths, seen(before), replace(MEMORY, histories=in_flight), NOW) == poll(0)
    ended = {**in_flight, moves[0].topic_partition: History(MoveState.DONE)}
    assert decide(paths, seen(before), replace(MEMORY, histories=ended), NOW) == poll(0), "broker 3 still serves two"
    ended[moves[3].topic_partition] = History(MoveState.DONE)
    step = decide(paths, seen(before), replace(MEMORY, histories=ended), NOW)
    assert isinstance(step, SubmitMoves)
    assert [one.topic_partition.partition for one in step.moves] == [2]


def test_a_plan_of_an_earlier_version_begins_all_moves_of_a_stage_at_once() -> None:
    before = small_cluster(*(f"a-{number}: 1,2" for number in range(30)))
    moves = tuple(move(f"a-{number}", "1,2", "1,3") for number in range(30))
    step = decide(paths_of(plan_of([ReassignStage(1, moves)], before)), seen(before), MEMORY, NOW)
    assert isinstance(step, SubmitMoves)
    assert step.moves == moves


def test_elections_of_a_stage_are_held_in_batches_once_its_moves_have_ended_and_lists_are_off() -> None:
    after = small_cluster("a-0: 2,1 leader 1", "a-1: 2,1 leader 1", "a-2: 2,1 leader 2")
    moves = tuple(move(f"a-{number}", "1,2", "2,1") for number in range(3))
    elections = tuple(election(f"a-{number}", 2) for number in range(3))
    stage = ReassignStage(1, moves, elections=elections)
    paths = paths_of(replace(plan_of([stage], after), election_batch=1))
    ended = {one.topic_partition: History(MoveState.DONE) for one in moves}
    memory = replace(MEMORY, histories=ended)
    assert decide(paths, seen(after), replace(memory, has_throttles_on=True), NOW) == TakeThrottlesOff()
    assert decide(paths, seen(after), memory, NOW) == ElectLeaders((elections[0],))
    led = small_cluster("a-0: 2,1", "a-1: 2,1", "a-2: 2,1")
    assert decide(paths, seen(led), memory, NOW) == FinishStage()


def test_a_partition_without_a_leader_gets_no_new_replica_and_is_left_alone_after_a_while() -> None:
    lost = small_cluster("a-0: 1,2,3 isr 1 leader 1", fenced=[1])
    memory = replace(MEMORY, throttled_brokers=ALL, leaderless_since={A0: NOW})
    assert isinstance(next_step(STAGE, seen(lost), memory), Wait)
    step = next_step(STAGE, seen(lost), memory, NOW + DEAD)
    assert isinstance(step, LeaveAlone)
    assert step.problem.code == "KR703"
    assert step.problem.message.startswith("a-0 has no leader, so nothing can be copied to [1, 2, 4]; bring back")
    step = next_step(STAGE, seen(lost, IN_FLIGHT), memory, NOW + DEAD)
    assert isinstance(step, WithdrawMoves)
    assert step.moves == (MOVE,)
