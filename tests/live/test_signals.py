"""A run that is asked to stop by a signal, on real brokers: it puts things in order, or says what it leaves."""

import signal
from pathlib import Path

import pytest
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.run import MB, PLAN, LiveRun
from helpers.depth import parts
from live.faults import Tally

pytestmark = pytest.mark.brokers

BEFORE = {0: (1, 2, 3), 1: (2, 3, 1), 2: (3, 1, 2), 3: (4, 5, 3)}
AFTER = {0: (6, 2, 3), 1: (2, 3, 6), 2: (3, 1, 5), 3: (4, 5, 6)}
DESTINATION = 6
SLOW, SLOWEST = "300kB/s", "100kB/s"
DONE, INTERRUPTED, TERMINATED = 0, 130, 143
CODES = {signal.SIGTERM: TERMINATED, signal.SIGINT: INTERRUPTED, signal.SIGHUP: TERMINATED}


def names(run: LiveRun) -> set[str]:
    return {f"{run.topic}-{number}" for number in run.before}


@parts("numbers", list(CODES)[:1], deep=list(CODES))
def test_a_signal_takes_the_moves_back_and_the_throttles_off(
    tmp_path: Path, mended: KafkaCluster, tally: Tally, numbers: list[signal.Signals]
) -> None:
    run = LiveRun(tmp_path, mended, "signalled", BEFORE, AFTER, partition_bytes=MB, throttle=SLOWEST)
    with run.delivery() as delivery:
        for number in numbers:
            applying = run.start()
            run.wait_in_flight(DESTINATION)
            run.assert_in_flight()
            applying.process.send_signal(number)
            applying.ended(CODES[number])
            assert f"{number.name}: ending in order" in applying.told
            assert "run apply again to go on" in applying.told
            run.checker.stopped(tmp_path, PLAN, delivery, back=names(run))
            tally.passed(number.name, run, delivery)


@pytest.mark.deep
def test_a_run_whose_output_nobody_reads_any_more_ends_in_order(
    tmp_path: Path, mended: KafkaCluster, tally: Tally
) -> None:
    run = LiveRun(tmp_path, mended, "unread", BEFORE, AFTER, partition_bytes=6 * MB, throttle=SLOWEST)
    with run.delivery() as delivery:
        applying = run.start("2>&1 | while [ ! -e gone ]; do sleep 0.1; done")
        run.wait_in_flight(DESTINATION)
        run.assert_in_flight()
        (tmp_path / "gone").touch()
        applying.ended(TERMINATED)
        assert applying.told == ""
        run.checker.stopped(tmp_path, PLAN, delivery, back=names(run))
        tally.passed("closed output", run, delivery)


@pytest.mark.deep
def test_a_second_signal_ends_the_wait_and_what_is_left_is_named_and_paid_later(
    tmp_path: Path, mended: KafkaCluster, tally: Tally
) -> None:
    run = LiveRun(tmp_path, mended, "signalled-twice", BEFORE, AFTER, partition_bytes=2 * MB, throttle=SLOW)
    with run.delivery() as delivery:
        applying = run.start()
        run.wait_in_flight(DESTINATION)
        mended.pause(DESTINATION)  # it will not answer when its throttle is to go
        applying.process.send_signal(signal.SIGTERM)
        mended.wait_for(lambda: "ending in order" in applying.told, "the first signal to be told of")
        applying.process.send_signal(signal.SIGTERM)
        applying.ended(TERMINATED)
        assert f"broker {DESTINATION}" in applying.told, applying.told
        assert "throttle" in applying.told
        mended.resume(DESTINATION)
        mended.wait_until_alive([DESTINATION])
        run.start().ended(DONE)
    run.checker.finished(tmp_path, PLAN, delivery)
    tally.passed("second signal", run, delivery)
