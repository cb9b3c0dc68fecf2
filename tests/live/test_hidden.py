"""A broker that the program cannot reach, and every other broker and client can: it is named, and not called dead."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.brokers.by_hand import create
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.network import CLIENT, PrivateNetwork, what_is_missing
from helpers.brokers.run import MB, PLAN, SMOOTH, LiveRun, replaced
from helpers.figures import Tell
from live.faults import LEFT_OVER, Tally
from live.worlds import Watched, described

from reconciler.model.lock import OFFSETS_TOPIC

pytestmark = [pytest.mark.brokers, pytest.mark.deep]

DESTINATION, SOURCE, OTHERS = 5, 4, (4, 1, 2, 3)
BROKERS = (*OTHERS, DESTINATION)


@pytest.fixture(scope="module")
def network() -> Iterator[PrivateNetwork]:
    """A private network that these tests sit in."""
    missing = what_is_missing()
    if missing is not None:
        pytest.skip(missing)
    with PrivateNetwork(BROKERS) as made, made.inside():
        yield made


@pytest.fixture(scope="module")
def brokers(network: PrivateNetwork, kafka_version: str) -> Iterator[KafkaCluster]:
    """Five brokers; those that get hidden do not coordinate the lock, without which no run goes on."""
    settings = SMOOTH | {"offsets.topic.num.partitions": "1"}
    with KafkaCluster(version=kafka_version, broker_ids=BROKERS, settings=settings, network=network) as started:
        seen = sorted({*BROKERS} - {DESTINATION, SOURCE})
        create(started, {OFFSETS_TOPIC: [seen]}, {"cleanup.policy": "compact"})
        yield started


@pytest.fixture
def run(
    tmp_path: Path, brokers: KafkaCluster, network: PrivateNetwork, request: pytest.FixtureRequest
) -> Iterator[LiveRun]:
    """A run of the program where it does not reach a broker that is hidden; none is at the end."""
    before, after = replaced(OTHERS, DESTINATION, 4)
    topic = re.sub(r"\W+", "-", request.node.name)
    yield LiveRun(tmp_path, brokers, topic, before, after, 4 * MB, "250kB/s", prefix=network.prefix(CLIENT))
    for broker in BROKERS:
        network.show(broker)


@pytest.mark.parametrize("hidden", [DESTINATION, SOURCE])
def test_moves_over_a_broker_hidden_from_the_start_are_left_alone_and_the_rest_ends(
    run: LiveRun, network: PrivateNetwork, tally: Tally, figures: Tell, hidden: int
) -> None:
    network.hide(hidden)
    with run.delivery() as delivery:
        with Watched(run.start(), run.kafka.bootstrap) as watched:
            watched.applying.process.wait()
        told = watched.applying.told
        assert watched.applying.process.returncode == 1, told
        assert "KR736" in told
        assert f"broker {hidden}, which" in told
        assert "not alive" not in told
        touched = [n for n in run.before if hidden in (*run.before[n], *run.after[n])]
        run.elect()
        run.checker.stopped(run.folder, PLAN, delivery, back=[f"{run.topic}-{number}" for number in touched])
        network.show(hidden)
        run.start().ended(0)
    run.checker.finished(run.folder, PLAN, delivery)
    tally.passed("hidden from the start", run, delivery)
    figures(f"hidden from the start, broker {hidden}", described(watched))


@pytest.mark.parametrize("hidden", [DESTINATION, SOURCE])
def test_a_broker_hidden_meanwhile_keeps_its_throttle_which_is_named_and_paid_later(
    run: LiveRun, network: PrivateNetwork, tally: Tally, figures: Tell, hidden: int
) -> None:
    with run.delivery() as delivery:
        with Watched(run.start(), run.kafka.bootstrap) as watched:
            run.wait_in_flight(DESTINATION)
            network.hide(hidden)
            run.assert_in_flight(to=DESTINATION)
            watched.applying.process.wait()
        told = watched.applying.told
        assert watched.applying.process.returncode == 0, told
        assert f"broker {hidden} {LEFT_OVER}" in told
        assert "it does not answer" in told
        assert "not alive" not in told
        kept_by = {where.partition(":")[0] for where in run.checker.look().throttles}
        assert kept_by == {str(hidden)}
        network.show(hidden)
        run.reconciler("doctor", "--fix", "throttles", "--yes")
    run.elect()
    run.checker.finished(run.folder, PLAN, delivery)
    tally.passed("hidden meanwhile", run, delivery)
    figures(f"hidden meanwhile, broker {hidden}", described(watched))
