"""Brokers 300 ms away, with TLS and a login: no lock is lost, nothing is taken for silence, and a stop cleans up."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.controller import reassignments
from helpers.brokers.far_away import FarAway
from helpers.brokers.run import PLAN, SMOOTH, LiveRun, replaced
from helpers.figures import Tell
from live.faults import Tally
from live.worlds import Watched, steps

pytestmark = [pytest.mark.brokers, pytest.mark.deep]

DESTINATION, OTHERS = 5, (4, 1, 2, 3)
BROKERS = (*OTHERS, DESTINATION)
SECONDS = 0.3
"""Each way: an answer takes twice that."""
RATE = 50_000


@pytest.fixture(scope="module")
def far() -> Iterator[FarAway]:
    """The proxies."""
    with FarAway(BROKERS, seconds=SECONDS) as proxies:
        yield proxies


@pytest.fixture(scope="module")
def brokers(far: FarAway, kafka_version: str) -> Iterator[KafkaCluster]:
    """Five brokers that tell the proxies' addresses to whoever logs in; the tests themselves go a straight way."""
    with KafkaCluster(
        version=kafka_version,
        broker_ids=BROKERS,
        settings=SMOOTH,
        advertised={"CLIENT": far.addresses},
    ) as started:
        straight = started.client["bootstrap.servers"].split(",")
        far.lead_to(dict(zip(sorted(BROKERS), straight, strict=True)))
        yield started


def run_of(folder: Path, brokers: KafkaCluster, far: FarAway, topic: str, seconds: int) -> LiveRun:
    """Return a run whose moves take about so long. Brokers let nearly twice as much through as so low a rate allows."""
    client = {**brokers.client, "bootstrap.servers": far.bootstrap}
    before, after = replaced(OTHERS, DESTINATION, 4)
    size = RATE * seconds  # two of the four go to the destination
    return LiveRun(folder, brokers, topic, before, after, size, f"{RATE}B/s", client=client)


@pytest.mark.parametrize("minutes", [2, 15, 60])
def test_a_run_far_away_keeps_its_lock_and_takes_no_delay_for_silence(
    tmp_path: Path, brokers: KafkaCluster, far: FarAway, *, tally: Tally, figures: Tell, minutes: int
) -> None:
    run = run_of(tmp_path, brokers, far, f"far-{minutes}", minutes * 60)
    with run.delivery() as delivery, Watched(run.start(), brokers.bootstrap) as watched:
        watched.applying.process.wait()
    assert watched.applying.process.returncode == 0, watched.applying.told
    assert len(watched.members) == 1, watched.members
    assert "outage" not in steps(tmp_path)
    assert "lost" not in watched.applying.told
    run.checker.stopped(tmp_path, PLAN, delivery, back=())
    run.reconciler("plan", "--detailed-exitcode")
    tally.passed("far away", run, delivery)
    figures(
        f"{2 * SECONDS * 1000:.0f} ms away, {minutes} min",
        f"{watched.seconds:.0f} s, 1 lock holder in {watched.looks} looks, longest silence {watched.silence:.1f} s",
    )


@pytest.mark.parametrize("how", ["cancel", "SIGTERM", "SIGHUP"])
def test_a_run_far_away_that_is_stopped_takes_all_of_it_back(
    tmp_path: Path, brokers: KafkaCluster, far: FarAway, *, tally: Tally, figures: Tell, how: str
) -> None:
    run = run_of(tmp_path, brokers, far, f"far-{how.lower()}", 300)
    with run.delivery() as delivery, Watched(run.start(), brokers.bootstrap) as watched:
        run.wait_in_flight(DESTINATION)
        if how == "cancel":
            run.reconciler("cancel", PLAN)
            watched.applying.ended(5)
        else:
            watched.applying.process.send_signal(signal.Signals[how])
            watched.applying.ended(143)
    assert reassignments(brokers.bootstrap) == {}
    moved = [name for name in run.checker.lists if name.startswith(run.topic)]
    run.checker.stopped(tmp_path, PLAN, delivery, back=moved)
    tally.passed(f"far away, {how}", run, delivery)
    figures(f"far away, {how}", f"{watched.seconds:.0f} s, longest silence {watched.silence:.1f} s")
