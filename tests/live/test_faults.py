"""Brokers die, freeze and restart while replicas move: nothing acknowledged is lost, and all ends as planned."""

import time
from pathlib import Path

import pytest
from helpers.brokers.checker import busy_groups
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.controller import active_controller
from helpers.brokers.run import MB, PLAN, SLOW, LiveRun, replaced
from helpers.brokers.sent_requests import requests_of
from helpers.figures import Tell
from live.faults import Tally, finish, stop_and_go_on

pytestmark = pytest.mark.brokers

DESTINATION, OTHERS = 6, (4, 1, 5, 2, 3)
FROZEN_SECONDS = 16


@pytest.fixture
def brokers(mended: KafkaCluster) -> KafkaCluster:
    return mended


@pytest.mark.deep
def test_a_run_that_meets_no_fault_is_one_request(tmp_path: Path, brokers: KafkaCluster, tally: Tally) -> None:
    run = LiveRun(tmp_path, brokers, "timing", *replaced(OTHERS, DESTINATION), partition_bytes=3 * MB)
    with run.delivery() as delivery:
        sent = requests_of("apply", PLAN, "--yes", cwd=tmp_path)
    run.checker.finished(tmp_path, PLAN, delivery)
    assert sent.writes["AlterPartitionReassignments"] == 1
    tally.passed("timing", run, delivery)


def test_moves_outlive_their_destination_and_a_source_that_is_the_active_controller(
    tmp_path: Path, brokers: KafkaCluster, tally: Tally
) -> None:
    run = LiveRun(tmp_path, brokers, "returns", *replaced(OTHERS, DESTINATION), 600_000, "200kB/s")
    with run.delivery() as delivery:
        applying = run.start()
        run.wait_in_flight(DESTINATION)
        assert len(busy_groups(run.checker.before, run.checker.look())) == 1, "a run holds the lock, and that is seen"
        controller = active_controller(brokers.bootstrap)
        led = next(number for number, replicas in run.before.items() if replicas[0] == controller)
        assert run.leader(led) == controller
        brokers.kill(DESTINATION)
        brokers.kill(controller)
        brokers.wait_for(lambda: active_controller(brokers.bootstrap) not in {controller, -1}, "a new controller")
        run.assert_in_flight()
        brokers.start(controller, DESTINATION)
        finish(run, applying)
    run.checker.finished(tmp_path, PLAN, delivery)
    tally.passed("destination, source and controller killed, return", run, delivery)


@pytest.mark.deep
def test_moves_to_a_destination_that_stays_dead_are_taken_back_and_the_rest_ends(
    tmp_path: Path, brokers: KafkaCluster, tally: Tally
) -> None:
    run = LiveRun(tmp_path, brokers, "stays-dead", *replaced(OTHERS, DESTINATION, 4), 4 * MB, SLOW)
    with run.delivery() as delivery:
        applying = run.start()
        run.wait_in_flight(DESTINATION)
        brokers.kill(DESTINATION)
        run.assert_in_flight(to=DESTINATION)
        stop_and_go_on(run, applying, delivery, destination=DESTINATION, heal=lambda: brokers.start(DESTINATION))
    run.checker.finished(tmp_path, PLAN, delivery)
    tally.passed("destination stays dead", run, delivery)


@pytest.mark.deep
def test_a_dead_destination_is_told_by_the_next_controller_too(
    tmp_path: Path, brokers: KafkaCluster, tally: Tally
) -> None:
    controller = active_controller(brokers.bootstrap)
    others = tuple(broker for broker in OTHERS if broker != controller)
    run = LiveRun(tmp_path, brokers, "both-dead", *replaced(others, DESTINATION, 4), 4 * MB, SLOW)
    with run.delivery() as delivery:
        applying = run.start()
        run.wait_in_flight(DESTINATION)
        brokers.kill(DESTINATION)
        run.assert_in_flight(to=DESTINATION)
        brokers.kill(controller)
        stop_and_go_on(
            run, applying, delivery, destination=DESTINATION, heal=lambda: brokers.start(controller, DESTINATION)
        )
    run.checker.finished(tmp_path, PLAN, delivery)
    tally.passed("controller and destination", run, delivery)


@pytest.mark.deep
def test_a_destination_that_is_frozen_for_a_while_gets_its_replicas(
    tmp_path: Path, brokers: KafkaCluster, tally: Tally
) -> None:
    run = LiveRun(tmp_path, brokers, "frozen", *replaced(OTHERS, DESTINATION), throttle="900kB/s")
    with run.delivery() as delivery:
        applying = run.start()
        run.wait_in_flight(DESTINATION)
        brokers.pause(DESTINATION)
        try:
            brokers.wait_until_gone(DESTINATION)
            run.assert_in_flight()
            time.sleep(FROZEN_SECONDS)  # more, after those in which it was missed
        finally:
            brokers.resume(DESTINATION)
        brokers.wait_until_alive((DESTINATION,))
        finish(run, applying)
    run.checker.finished(tmp_path, PLAN, delivery)
    tally.passed(f"destination frozen {4 + FROZEN_SECONDS} s", run, delivery)


@pytest.mark.deep
def test_a_run_outlives_the_restart_of_one_broker_after_another(
    tmp_path: Path, brokers: KafkaCluster, tally: Tally, figures: Tell
) -> None:
    run = LiveRun(tmp_path, brokers, "rolling", *replaced(OTHERS, DESTINATION), throttle="180kB/s")
    during, restarted = 0, sorted(brokers.alive)
    with run.delivery() as delivery:
        applying = run.start()
        run.wait_in_flight(DESTINATION)
        for broker in restarted:
            during += applying.process.poll() is None
            brokers.stop(broker)
            brokers.start(broker)
            run.wait_until_replicated()
        finish(run, applying)
    assert during >= 2
    run.checker.finished(tmp_path, PLAN, delivery)
    tally.passed("rolling restart", run, delivery)
    figures("live rolling restart", f"{during} of {len(restarted)} brokers restarted while the run went on")
