"""A broker that the others cannot reach, and every client can: it answers as if nothing had happened."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.network import PrivateNetwork, what_is_missing
from helpers.brokers.run import MB, PLAN, SLOW, SMOOTH, LiveRun, replaced
from live.faults import Tally, stop_and_go_on

pytestmark = [pytest.mark.brokers, pytest.mark.deep]

DESTINATION, OTHERS = 5, (4, 1, 2, 3)
BROKERS = (*OTHERS, DESTINATION)


@pytest.fixture
def network() -> Iterator[PrivateNetwork]:
    """A private network that this test sits in."""
    missing = what_is_missing()
    if missing is not None:
        pytest.skip(missing)
    with PrivateNetwork(BROKERS) as made, made.inside():
        yield made


@pytest.fixture
def brokers(network: PrivateNetwork, kafka_version: str) -> Iterator[KafkaCluster]:
    """Five brokers in that network, which miss a silent one after six seconds."""
    missed = {"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "1000"}
    # A broker that gives its controller up asks all of them again and again without a pause (a core for itself).
    patient = {"controller.quorum.fetch.timeout.ms": "600000"}
    settings = SMOOTH | missed | patient
    with KafkaCluster(version=kafka_version, broker_ids=BROKERS, settings=settings, network=network) as started:
        yield started


def test_moves_to_a_broker_that_is_cut_off_are_taken_back_and_end_once_it_is_joined_again(
    tmp_path: Path, brokers: KafkaCluster, tally: Tally
) -> None:
    run = LiveRun(tmp_path, brokers, "cut-off", *replaced(OTHERS, DESTINATION, 4), 4 * MB, SLOW)
    with run.delivery() as delivery:
        applying = run.start()
        run.wait_in_flight(DESTINATION)
        brokers.cut_off(DESTINATION)
        run.assert_in_flight(to=DESTINATION)
        stop_and_go_on(run, applying, delivery, destination=DESTINATION, heal=lambda: brokers.join(DESTINATION))
    run.checker.finished(tmp_path, PLAN, delivery)
    tally.passed("destination cut off", run, delivery)
