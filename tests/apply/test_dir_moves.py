"""Replicas that move between the log dirs of their broker: run, resumed, cancelled, left alone where they must be."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest
from apply.small_world import At
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts
from helpers.plans.deaths import (
    Journals,
    boundaries_of,
    by_name,
    kept,
    killed,
    lost,
    nth,
    passing,
    put_back_what_is_named,
)
from helpers.plans.end_state import throttles
from helpers.plans.small_runs import MB, RATE, plan_of
from helpers.plans.small_runs import move as reassigned

from reconciler.admin.simulated import Moment, SimulatedAdmin
from reconciler.admin.simulated_locks import MemoryLocks
from reconciler.apply.cancel import cancel_run, moves_in_flight
from reconciler.apply.crash import CRASH_POINTS
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.leftovers import restore_throttles
from reconciler.apply.run import run_plan
from reconciler.apply.run_record import read_record
from reconciler.apply.session import Belief
from reconciler.apply.status import Watcher
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import Cluster, LogDir
from reconciler.model.move import DirMove, Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import Refused, StalePlan
from reconciler.model.run import RunFailed, RunProgress, RunState, StoppedEarly
from reconciler.model.stage import LogDirsStage, ReassignStage, Stage
from reconciler.model.tally import Standing
from reconciler.model.topic_partition import TopicPartition
from reconciler.staging.rollback import GoingBack, every_throttle_back, policy_of, rollback_of

SIZE = 40 * MB
KEY = "replica.alter.log.dirs.io.max.bytes.per.second"
OWN = "7000000"
BROKERS = (1, 2)
NUMBERS = range(4)


def cluster(**options: object) -> Cluster:
    """Return brokers with two log dirs each; an operator's own rate stands on broker 2."""
    lines = [f"orders-{number}: 1,2,3 size {SIZE}" for number in range(6)]
    return small_cluster(*lines, rates={2: {KEY: OWN}}, **options)  # type: ignore[arg-type]


@pytest.fixture
def admin() -> SimulatedAdmin:
    return SimulatedAdmin(cluster())


def place(seen: Cluster, number: int, broker: int) -> str | None:
    found = seen.partition(TopicPartition("orders", number))
    assert found is not None
    return found.log_dirs[found.replicas.index(broker)]


def dir_move(number: int, broker: int) -> DirMove:
    """Return the move of a replica to the log dir in which it is not."""
    before = place(cluster(), number, broker)
    after = "/d2" if before == "/d1" else "/d1"
    return DirMove(TopicPartition("orders", number), broker, str(before), after, SIZE, Reason.LOG_DIRS)


MOVES = tuple(dir_move(number, broker) for number in NUMBERS for broker in BROKERS)


def plan(rate: int | None = RATE, **fields: object) -> Plan:
    before = cluster()
    made = plan_of([LogDirsStage(1, MOVES, rate)], before, **{"per_broker": 2, **fields})
    return replace(made, topic_ids={"orders": "id-of-orders"})


def is_done(seen: Cluster) -> bool:
    return all(place(seen, one.topic_partition.partition, one.broker) == one.to_dir for one in MOVES) and at_rest(seen)


def is_as_before(seen: Cluster) -> bool:
    return all(place(seen, one.topic_partition.partition, one.broker) == one.from_dir for one in MOVES)


def at_rest(seen: Cluster) -> bool:
    """Whether nothing is copied, and rates are as they were."""
    rates = {id_: broker.configs.get(KEY) for id_, broker in seen.brokers.items()}
    are_back = rates == {id_: OWN if id_ == 2 else None for id_ in seen.brokers}
    return are_back and not any(broker.future_replicas for broker in seen.brokers.values())


def used(seen: Cluster) -> dict[tuple[int, str], int]:
    """Return the bytes used in each log dir, by what is usable of it."""
    return {
        (id_, one.path): (one.total_bytes or 0) - (one.usable_bytes or 0)
        for id_, broker in seen.brokers.items()
        for one in broker.log_dirs
    }


@pytest.mark.parametrize("rate", [RATE, None])
def test_every_replica_ends_in_the_log_dir_that_the_plan_names(admin: SimulatedAdmin, rate: int | None) -> None:
    result = run_plan(plan(rate), admin, MemoryJournal())
    assert result.state is RunState.DONE
    assert is_done(admin.cluster)
    assert {key: one.replicas for key, one in admin.cluster.partitions()} == {
        key: one.replicas for key, one in cluster().partitions()
    }
    assert str(result.tally) == "all 8 moves done"
    writes = admin.writes
    run_plan(plan(rate), admin, MemoryJournal())
    assert admin.writes == writes


def test_only_the_brokers_that_move_are_throttled_and_each_copies_as_many_at_once_as_it_may() -> None:
    admin = SimulatedAdmin(cluster())
    seen: list[tuple[set[int], int]] = []
    rates: set[str | None] = set()

    def look(name: str, moment: Moment) -> None:
        if name == "disks" and moment is Moment.BEFORE:
            brokers = admin.cluster.brokers.values()
            copying = [one.id for one in brokers for _ in one.future_replicas]
            seen.append((set(copying), max((copying.count(id_) for id_ in copying), default=0)))
            if copying:
                rates.update(admin.cluster.brokers[id_].configs.get(KEY) for id_ in BROKERS)
                assert not any(KEY in one.configs for one in brokers if one.id not in BROKERS)

    admin.fault = look
    run_plan(plan(), admin, MemoryJournal())
    assert max(most for _, most in seen) == 2
    assert set().union(*(brokers for brokers, _ in seen)) == set(BROKERS)
    assert rates == {str(RATE)}


def test_progress_counts_what_is_copied() -> None:
    told: list[RunProgress] = []
    run_plan(plan(), SimulatedAdmin(cluster()), MemoryJournal(), progress=told.append)
    assert [(one.moves, one.total_bytes) for one in told] == [(8, 8 * SIZE)] * len(told)
    assert [one.copied_bytes for one in told] == sorted(one.copied_bytes for one in told)
    assert (told[0].copied_bytes, told[-1].copied_bytes, told[-1].done_moves) == (0, 8 * SIZE, 8)
    assert any(one.eta_seconds is not None and 0 < one.copied_bytes < 8 * SIZE for one in told)


PASSED = boundaries_of(lambda: run_plan(plan(), SimulatedAdmin(cluster()), MemoryJournal()))
JOURNALS = pytest.mark.parametrize("next_journal", [kept, lost])
EVERY = parts("every", 5, deep=1)


def test_a_run_passes_known_boundaries_only() -> None:
    assert {"dirs.before", "dirs.sent", "dirs.recorded"} <= set(PASSED) <= set(CRASH_POINTS)


@pytest.mark.long
@JOURNALS
@EVERY
def test_killed_at_each_boundary_and_started_again_it_ends_the_same(next_journal: Journals, every: int) -> None:
    for at, name in by_name(PASSED, every):
        admin = SimulatedAdmin(cluster())
        journal = killed(admin, plan(), nth(at))
        put_back_what_is_named(plan(), admin, run_plan(plan(), admin, next_journal(journal)))
        assert is_done(admin.cluster), f"killed at {at}: {name}"


@pytest.mark.long
@JOURNALS
@EVERY
def test_killed_at_each_boundary_and_cancelled_nothing_is_copied_any_more(next_journal: Journals, every: int) -> None:
    for at, name in by_name(PASSED, every):
        admin = SimulatedAdmin(cluster())
        journal = killed(admin, plan(), nth(at))
        put_back_what_is_named(plan(), admin, cancel_run(plan(), admin, next_journal(journal)))
        assert at_rest(admin.cluster), f"killed at {at}: {name}"
        before, after = used(cluster()), used(admin.cluster)
        for move in MOVES:
            if place(admin.cluster, move.topic_partition.partition, move.broker) == move.to_dir:
                before[move.broker, move.to_dir] += SIZE
                before[move.broker, move.from_dir] -= SIZE
        assert after == before, f"killed at {at}: {name}"


def test_killed_while_it_copies_and_cancelled_by_the_record_alone_it_is_as_before() -> None:
    locks = MemoryLocks()
    admin = SimulatedAdmin(cluster(), locks=locks)
    killed(admin, plan(), passing("dirs.sent", 2))
    locks.expire()
    record = read_record(admin)
    assert record is not None
    assert {(one.replica, one.from_dir, one.to_dir, one.bytes) for one in record.dir_moves} == {
        (one.replica, one.from_dir, one.to_dir, one.bytes) for one in MOVES
    }
    result = cancel_run(record.plan("simulated"), admin, MemoryJournal(), belief=Belief.TO_TAKE_OFF)
    assert result.state is RunState.CANCELLED
    assert is_as_before(admin.cluster)
    restore_throttles(record.plan("simulated"), admin, MemoryJournal(), belief=Belief.ALL)
    assert at_rest(admin.cluster)


@pytest.mark.long
@JOURNALS
@EVERY
def test_stopped_in_each_turn_it_takes_its_copies_back_and_goes_on_later(next_journal: Journals, every: int) -> None:
    for turn in range(1, 30, every):
        admin, journal = SimulatedAdmin(cluster()), MemoryJournal()
        asked = iter(range(1, 1000))
        with pytest.raises(StoppedEarly) as stopped:
            run_plan(plan(), admin, journal, should_stop=lambda t=turn, a=asked: "SIGTERM" if next(a) >= t else None)  # type: ignore[misc]
        assert at_rest(admin.cluster), turn
        assert stopped.value.code == "KR713"
        run_plan(plan(), admin, next_journal(journal))
        assert is_done(admin.cluster), turn


def test_once_the_time_given_is_over_copies_end_and_no_more_begin(admin: SimulatedAdmin) -> None:
    with pytest.raises(StoppedEarly) as stopped:
        run_plan(plan(), admin, MemoryJournal(), deadline=admin.clock.now() + timedelta(seconds=3))
    assert stopped.value.code == "KR711"
    assert at_rest(admin.cluster)
    moved = [one for one in MOVES if place(admin.cluster, one.topic_partition.partition, one.broker) == one.to_dir]
    assert moved == [one for one in MOVES if one.topic_partition.partition < 2]
    run_plan(plan(), admin, MemoryJournal())
    assert is_done(admin.cluster)


def test_a_broker_that_cannot_be_reached_to_be_throttled_is_left_and_the_others_end(admin: SimulatedAdmin) -> None:
    told = admin.broker_configs

    def reachable(broker_ids: Collection[int]) -> Mapping[int, Mapping[str, str]]:
        return {broker: found for broker, found in told(broker_ids).items() if broker != 1}

    admin.broker_configs = reachable  # type: ignore[method-assign]
    with pytest.raises(RunFailed) as failed:
        run_plan(plan(), admin, MemoryJournal())
    assert failed.value.code == "KR736"
    assert "broker 1 is alive and cannot be reached from here" in str(failed.value)
    places = {
        (one.broker, place(admin.cluster, one.topic_partition.partition, one.broker) == one.to_dir) for one in MOVES
    }
    assert places == {(1, False), (2, True)}


def test_a_copy_that_ends_as_it_is_taken_back_is_not_begun_the_other_way(admin: SimulatedAdmin) -> None:
    killed(admin, plan(), passing("dirs.sent", 2))

    def arrive() -> None:
        admin.fault = None
        admin.clock.sleep(60)

    admin.fault = At("choose_log_dirs", 1, arrive)
    result = cancel_run(plan(), admin, MemoryJournal())
    assert at_rest(admin.cluster)
    first = [one for one in MOVES if place(admin.cluster, one.topic_partition.partition, one.broker) == one.to_dir]
    assert first
    admin.clock.sleep(60)
    assert all(place(admin.cluster, one.topic_partition.partition, one.broker) == one.to_dir for one in first)
    assert result.state is RunState.CANCELLED


def test_doctor_puts_the_rate_back_once_the_copies_have_ended(admin: SimulatedAdmin) -> None:
    journal = killed(admin, plan(), passing("dirs.sent", 2))
    assert restore_throttles(plan(), admin, journal).state is RunState.STOPPED
    assert admin.cluster.brokers[1].configs[KEY] == str(RATE)
    admin.clock.sleep(600)
    assert restore_throttles(plan(), admin, journal).state is RunState.DONE
    assert at_rest(admin.cluster)


def test_another_plan_waits_for_what_a_dead_run_copies() -> None:
    locks = MemoryLocks()
    admin = SimulatedAdmin(cluster(), locks=locks)
    killed(admin, plan(), passing("dirs.sent", 2))
    locks.expire()
    other = replace(
        plan_of([ReassignStage(1, (reassigned("orders-5", "1,2,3", "1,2,4"),), RATE)], cluster()), id="0000cafe"
    )
    with pytest.raises(Refused) as refused:
        run_plan(other, admin, MemoryJournal())
    assert refused.value.code == "KR457"
    admin.clock.sleep(600)
    ended = run_plan(other, admin, MemoryJournal())
    assert any("nothing was touched by it" in one and "KR726" in one for one in ended.messages)
    restore_throttles(plan(), admin, MemoryJournal())
    assert at_rest(admin.cluster)


def test_another_rate_is_taken_up_by_what_is_under_way(admin: SimulatedAdmin) -> None:
    seen: list[str | None] = []

    def ask(name: str, moment: Moment) -> None:
        if name == "disks" and moment is Moment.BEFORE:
            seen.append(admin.cluster.brokers[1].configs.get(KEY))
            if len(seen) == 6:
                admin.ask_rate("apply of plan 0badcafe", 5 * MB)

    admin.fault = ask
    run_plan(plan(), admin, MemoryJournal())
    assert str(5 * MB) in seen
    assert is_done(admin.cluster)


def test_status_shows_what_is_copied_inside_brokers(admin: SimulatedAdmin) -> None:
    killed(admin, plan(), passing("dirs.recorded", 2))
    first = Watcher(plan(), admin).look()
    admin.clock.sleep(1)
    status = Watcher(plan(), admin, previous=first).look()
    assert [(one.move.broker, str(one.move.topic_partition)) for one in status.dir_moves] == [
        (1, "orders-0"),
        (2, "orders-0"),
        (1, "orders-1"),
        (2, "orders-1"),
    ]
    assert (status.copied_bytes, status.total_bytes, status.bytes_per_second) == (2 * RATE, 4 * SIZE, 2 * RATE)
    assert status.eta_seconds == (4 * SIZE - 2 * RATE) / (2 * RATE)
    assert [str(move) for move in moves_in_flight(plan(), admin)] == [str(one.move) for one in status.dir_moves]
    assert status.tally is not None
    assert status.tally.counts[Standing.IN_FLIGHT] == 4
    assert str(status.tally) == "8 moves: 4 in flight (orders-0, orders-1), 4 to do (orders-2, orders-3)"


def test_a_dry_run_tells_each_move(admin: SimulatedAdmin) -> None:
    lines = run_plan(plan(), admin, MemoryJournal(), is_dry_run=True).messages
    assert lines[0] == "stage 1: throttle copies between log dirs of brokers 1, 2 to 19.1 MiB/s"
    assert lines[1] == "stage 1: move orders-0 on broker 1 from /d1 to /d2, copies 38.1 MiB"
    assert lines[-1] == "stage 1: put throttles back to what they were"
    assert admin.writes == 0


# What forbids to begin


def refusal(admin: SimulatedAdmin, kind: type[Exception], code: str) -> str:
    writes = admin.writes
    with pytest.raises(kind) as refused:
        run_plan(plan(), admin, MemoryJournal())
    assert refused.value.code == code  # type: ignore[attr-defined]
    assert admin.writes == writes
    return str(refused.value)


def test_a_replica_that_is_elsewhere_makes_the_plan_stale() -> None:
    elsewhere = (LogDir("/d1", 10**12, 10**12), LogDir("/d2", 10**12, 10**12), LogDir("/d3", 10**12, 10**12))
    before = cluster()
    brokers = {**before.brokers, 1: replace(before.brokers[1], log_dirs=elsewhere)}
    admin = SimulatedAdmin(replace(before, brokers=brokers))
    admin.choose_log_dirs(1, {TopicPartition("orders", 0): "/d3"})
    told = refusal(admin, StalePlan, "KR502")
    assert "orders-0 on broker 1: expected in /d1 or /d2, found in /d1, on its way to /d3" in told
    admin.clock.sleep(60)
    assert "orders-0 on broker 1: expected in /d1 or /d2, found in /d3" in refusal(admin, StalePlan, "KR502")


def test_a_replica_that_left_the_broker_makes_the_plan_stale(admin: SimulatedAdmin) -> None:
    admin.reassign({TopicPartition("orders", 1): (1, 3)})
    told = refusal(admin, StalePlan, "KR502")
    assert "orders-1 on broker 2: expected in /d1 or /d2, found in no replica there, but on [1, 3]" in told


@pytest.mark.parametrize("path", ["/d1", "/d2"])
def test_a_log_dir_that_is_offline_makes_the_plan_stale(admin: SimulatedAdmin, path: str) -> None:
    admin.fail_log_dir(1, path)
    assert f"log dir {path} of broker 1 is offline" in refusal(admin, StalePlan, "KR502")


def test_a_dead_broker_is_refused(admin: SimulatedAdmin) -> None:
    admin.kill_broker(2)
    assert "broker 2, which is not alive" in refusal(admin, Refused, "KR420")


def test_a_log_dir_without_room_is_refused() -> None:
    before = cluster()
    full = tuple(replace(one, usable_bytes=2 * SIZE - 1) for one in before.brokers[1].log_dirs)
    admin = SimulatedAdmin(replace(before, brokers={**before.brokers, 1: replace(before.brokers[1], log_dirs=full)}))
    assert "copies 76.3 MiB to log dir /d1 of broker 1, which has 76.3 MiB left" in refusal(admin, Refused, "KR456")


def test_half_done_it_is_not_stale(admin: SimulatedAdmin) -> None:
    admin.choose_log_dirs(1, {TopicPartition("orders", 0): MOVES[0].to_dir})
    admin.clock.sleep(60)
    admin.choose_log_dirs(1, {TopicPartition("orders", 1): "/d1" if MOVES[2].to_dir == "/d1" else "/d2"})
    run_plan(plan(), admin, MemoryJournal())
    assert is_done(admin.cluster)


# What goes wrong on the way


def failure(admin: SimulatedAdmin) -> RunFailed:
    with pytest.raises(RunFailed) as failed:
        run_plan(plan(), admin, MemoryJournal())
    assert not [one for one in throttles(admin.cluster) if KEY in one and one != f"broker 2 {KEY}"]
    return failed.value


def test_a_log_dir_that_fails_on_the_way_ends_the_run_with_what_to_do(admin: SimulatedAdmin) -> None:
    admin.fault = At("choose_log_dirs", 2, lambda: admin.fail_log_dir(1, "/d2"))
    error = failure(admin)
    assert error.code == "KR716"
    assert "log dir /d2 of broker 1 is offline" in str(error)
    assert "restart the broker, and run apply again" in str(error)
    done = [one for one in MOVES if one.broker == 2]
    assert all(place(admin.cluster, one.topic_partition.partition, 2) == one.to_dir for one in done)


def test_a_broker_that_dies_is_given_up_and_the_others_end(admin: SimulatedAdmin) -> None:
    admin.fault = At("choose_log_dirs", 3, lambda: admin.kill_broker(1))
    error = failure(admin)
    assert error.code == "KR703"
    assert "on broker 1 to /d1: broker 1 is not alive: it goes on with the copy once it is back" in str(error)
    assert all(place(admin.cluster, one.topic_partition.partition, 2) == one.to_dir for one in MOVES if one.broker == 2)
    admin.fault = None
    admin.return_broker(1)
    admin.clock.sleep(60)
    run_plan(plan(), admin, MemoryJournal())
    assert is_done(admin.cluster)


def test_a_cancel_says_of_which_brokers_it_cannot_see_whether_they_copy(admin: SimulatedAdmin) -> None:
    killed(admin, plan(), passing("dirs.sent", 2))
    admin.kill_broker(1)
    result = cancel_run(plan(), admin, MemoryJournal())
    told = [one for one in result.messages if "cannot be seen of orders-0 on broker 1" in one]
    assert len(told) == 1
    assert told[0].endswith("start these brokers, then run cancel again")
    admin.return_broker(1)
    cancel_run(plan(), admin, MemoryJournal())
    assert is_as_before(admin.cluster)
    assert at_rest(admin.cluster)


def test_a_copy_that_somebody_takes_back_is_left_alone_and_the_rest_ends(admin: SimulatedAdmin) -> None:
    key = TopicPartition("orders", 0)

    def take_back() -> None:
        admin.fault = None
        admin.choose_log_dirs(1, {key: MOVES[0].from_dir})

    admin.fault = At("disks", 7, take_back)
    error = failure(admin)
    assert error.code == "KR701"
    assert "orders-0 on broker 1 is in /d1 again: somebody else took its copy to /d2 back" in str(error)
    left = [one for one in MOVES if place(admin.cluster, one.topic_partition.partition, one.broker) != one.to_dir]
    assert left == [MOVES[0]]


def test_a_refusal_leaves_that_replica_alone() -> None:
    admin = SimulatedAdmin(cluster(kafka_version="4.3"))
    cordon = ConfigChange("cordoned.log.dirs", ConfigOperation.SET, "/d2")
    admin.fault = At("choose_log_dirs", 1, lambda: admin.alter_broker_configs(1, [cordon]))
    error = failure(admin)
    assert error.code == "KR704"
    assert "broker 1 refused to copy orders-0 to /d2: INVALID_REPLICA_ASSIGNMENT" in str(error)


def test_a_source_that_kafka_cordons_takes_nothing_back_and_that_is_told() -> None:
    admin = SimulatedAdmin(cluster(kafka_version="4.3"))
    killed(admin, plan(), passing("dirs.sent", 1))
    admin.alter_broker_configs(1, [ConfigChange("cordoned.log.dirs", ConfigOperation.SET, "/d1")])
    with pytest.raises(RunFailed, match="log dir /d1 is cordoned, and Kafka takes nothing back into it") as failed:
        cancel_run(plan(), admin, MemoryJournal())
    assert failed.value.code == "KR714"
    assert admin.cluster.brokers[1].configs.get(KEY) is None


def test_no_progress_for_the_time_out_ends_the_run(admin: SimulatedAdmin) -> None:
    with pytest.raises(RunFailed, match="stage 1 made no progress for 60 s: orders-0 on broker 1") as failed:
        run_plan(replace(plan(1), timeout_seconds=60), admin, MemoryJournal())
    assert failed.value.code == "KR702"
    assert is_as_before(admin.cluster)
    assert at_rest(admin.cluster)


@pytest.mark.long
def test_a_throttle_below_what_is_written_is_told_of(admin: SimulatedAdmin) -> None:
    told: list[str] = []
    last = [admin.clock.now()]

    def write(name: str, moment: Moment) -> None:
        if name == "disks" and moment is Moment.BEFORE and not told:
            seconds, last[0] = (admin.clock.now() - last[0]).total_seconds(), admin.clock.now()
            for number in NUMBERS:
                admin.produce(TopicPartition("orders", number), size=round(seconds * MB))

    admin.fault = write
    run_plan(plan(MB), admin, MemoryJournal(), notify=told.append)
    assert "came no closer to the end in 300 s although data arrives: the throttle of 1000000 bytes a second" in told[0]
    assert is_done(admin.cluster)


# New replicas of moves between brokers


def test_a_new_replica_goes_where_its_move_asks_for() -> None:
    for path in ("/d1", "/d2"):
        admin = SimulatedAdmin(cluster())
        move = replace(reassigned("orders-0", "1,2,3", "1,2,4"), log_dirs={4: path})
        run_plan(plan_of([ReassignStage(1, (move,), RATE)], cluster()), admin, MemoryJournal())
        assert place(admin.cluster, 0, 4) == path


def test_a_new_replica_that_lands_elsewhere_is_told_and_no_error(admin: SimulatedAdmin) -> None:
    move = replace(reassigned("orders-0", "1,2,3", "1,2,4"), log_dirs={4: "/d2"})

    def forget() -> None:
        admin.kill_broker(4)
        admin.return_broker(4)

    admin.fault = At("reassign", 1, forget)
    result = run_plan(plan_of([ReassignStage(1, (move,), RATE)], cluster()), admin, MemoryJournal())
    assert result.state is RunState.DONE
    assert place(admin.cluster, 0, 4) == "/d1"
    (told,) = result.messages
    assert told.startswith("orders-0 was to go to log dir /d2 of broker 4, and is in /d1")


def test_a_log_dir_that_is_gone_stops_a_move_before_it_begins(admin: SimulatedAdmin) -> None:
    move = replace(reassigned("orders-0", "1,2,3", "1,2,4"), log_dirs={4: "/nowhere"})
    with pytest.raises(RunFailed, match="LOG_DIR_NOT_FOUND"):
        run_plan(plan_of([ReassignStage(1, (move,), RATE)], cluster()), admin, MemoryJournal())
    assert is_as_before(admin.cluster)


# The way back of a plan that has run


def way_back(undone: Plan, admin: SimulatedAdmin) -> GoingBack:
    return rollback_of(undone, admin.observe(), policy_of(undone))


def test_a_rollback_takes_every_replica_back_and_then_there_is_nothing_to_undo(admin: SimulatedAdmin) -> None:
    run_plan(plan(), admin, MemoryJournal())
    back = way_back(plan(), admin)
    assert back.left == ()
    (stage,) = back.plan.stages
    assert isinstance(stage, LogDirsStage)
    assert stage.throttle_bytes_per_second == RATE
    assert stage.estimated_seconds >= 4 * SIZE // RATE
    assert back.plan.rollback.broker_throttles == {2: {KEY: OWN}}
    assert back.plan.topic_ids == {"orders": "id-of-orders"}
    run_plan(back.plan, admin, MemoryJournal())
    assert is_as_before(admin.cluster)
    assert at_rest(admin.cluster)
    assert used(admin.cluster) == used(cluster())
    assert way_back(plan(), admin).plan.is_empty


def test_a_rollback_undoes_the_stages_in_turn() -> None:
    between = ReassignStage(1, (reassigned("orders-5", "1,2,3", "1,2,4"),), RATE)
    first, last = LogDirsStage(1, MOVES, RATE), LogDirsStage(2, MOVES, RATE)
    orders: tuple[tuple[list[Stage], list[str]], ...] = (
        ([between, last], ["logDirs", "reassign"]),
        ([first, replace(between, number=2)], ["reassign", "logDirs"]),
    )
    for stages, order in orders:
        admin = SimulatedAdmin(cluster())
        undone = plan_of(stages, cluster(), per_broker=2)
        run_plan(undone, admin, MemoryJournal())
        back = way_back(undone, admin).plan
        assert [(stage.number, stage.kind) for stage in back.stages] == list(enumerate(order, start=1))
        run_plan(back, admin, MemoryJournal())
        assert is_as_before(admin.cluster)
        found = admin.cluster.partition(TopicPartition("orders", 5))
        assert found is not None
        assert found.replicas == (1, 2, 3)


def test_a_rollback_leaves_alone_what_somebody_else_moved_and_says_what_cannot_go_back(admin: SimulatedAdmin) -> None:
    run_plan(plan(), admin, MemoryJournal())
    moved = admin.cluster.brokers[1]
    dirs = (*moved.log_dirs, LogDir("/d3", 10**12, 10**12))
    admin.cluster = replace(admin.cluster, brokers={**admin.cluster.brokers, 1: replace(moved, log_dirs=dirs)})
    admin.choose_log_dirs(1, {TopicPartition("orders", 0): "/d3"})
    admin.clock.sleep(60)
    admin.kill_broker(2)
    back = way_back(plan(), admin)
    told = [f"{one.code} {one.message}" for one in back.left]
    assert "KR854 orders-0 on broker 1 is in /d3, where this plan never put it" in told[-1]
    assert [one.partition(": ")[0] for one in told[:-1]] == [
        f"KR856 orders-{number} on broker 2 cannot go back to {dir_move(number, 2).from_dir} now"
        for number in reversed(NUMBERS)
    ]
    assert {move.broker for stage in back.plan.stages if isinstance(stage, LogDirsStage) for move in stage.moves} == {1}


def test_throttles_of_a_rollback_that_was_lost_are_found_by_the_plan_that_it_undoes(admin: SimulatedAdmin) -> None:
    run_plan(plan(), admin, MemoryJournal())
    back = way_back(plan(), admin).plan
    killed(admin, back, passing("throttle.broker"))
    traces = every_throttle_back(plan(), policy_of(plan()))
    restore_throttles(traces, admin, MemoryJournal())
    assert admin.cluster.brokers[1].configs.get(KEY) is None
