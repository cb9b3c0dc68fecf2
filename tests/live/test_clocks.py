"""Clocks that are wrong by minutes, or are set while a run goes on: a broker's, a controller's, the program's own."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.controller import active_controller
from helpers.brokers.run import MB, PLAN, SMOOTH, LiveRun, replaced
from helpers.brokers.shifted_clock import ShiftedClock, what_is_missing
from helpers.figures import Tell
from live.faults import Tally
from live.worlds import Watched, events, steps

pytestmark = [pytest.mark.brokers, pytest.mark.deep]

DESTINATION, OTHERS = 5, (4, 1, 2, 3)
BROKERS = (*OTHERS, DESTINATION)
AHEAD, BEHIND = 7 * 60, -7 * 60
HOURS = 3 * 60 * 60
"""More than the time-out of a stage."""
RATE = 250_000


@pytest.fixture(scope="module")
def clocks(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, ShiftedClock]:
    """A clock for each broker, and for the program (0)."""
    missing = what_is_missing()
    if missing is not None:
        pytest.skip(missing)
    return {number: ShiftedClock(tmp_path_factory.mktemp(f"clock-{number}")) for number in (0, *BROKERS)}


@pytest.fixture(scope="module")
def brokers(clocks: Mapping[int, ShiftedClock], kafka_version: str) -> Iterator[KafkaCluster]:
    environments = {broker: clocks[broker].environment for broker in BROKERS}
    with KafkaCluster(version=kafka_version, broker_ids=BROKERS, settings=SMOOTH, environments=environments) as started:
        yield started


@pytest.fixture(autouse=True)
def right_again(clocks: Mapping[int, ShiftedClock]) -> Iterator[None]:
    yield
    for clock in clocks.values():
        clock.set(0)


Whose = Callable[[str], int]
CASES: Mapping[str, tuple[Whose, tuple[int, int]]] = {
    "destination ahead": (lambda _: DESTINATION, (AHEAD, AHEAD)),
    "destination behind": (lambda _: DESTINATION, (BEHIND, BEHIND)),
    "destination set forward": (lambda _: DESTINATION, (0, AHEAD)),
    "destination set back": (lambda _: DESTINATION, (0, BEHIND)),
    "source set back": (lambda _: 4, (AHEAD, BEHIND)),
    "controller set forward": (active_controller, (BEHIND, AHEAD)),
    "controller set back": (active_controller, (AHEAD, BEHIND)),
    "program ahead": (lambda _: 0, (AHEAD, AHEAD)),
    "program set forward": (lambda _: 0, (0, HOURS)),
    "program set back": (lambda _: 0, (0, -HOURS)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_run_ends_as_planned_whatever_a_clock_shows(
    tmp_path: Path, brokers: KafkaCluster, clocks: Mapping[int, ShiftedClock], *, tally: Tally, figures: Tell, case: str
) -> None:
    who, (first, then) = CASES[case]
    clock = clocks[who(brokers.bootstrap)]
    clock.set(first)
    topic = case.replace(" ", "-")
    before, after = replaced(OTHERS, DESTINATION, 4)
    run = LiveRun(tmp_path, brokers, topic, before, after, 5 * MB, f"{RATE}B/s", prefix=clocks[0].prefix)
    with run.delivery() as delivery, Watched(run.start(), brokers.bootstrap) as watched:
        run.wait_in_flight(DESTINATION)
        clock.set(then)
        run.assert_in_flight(to=DESTINATION)
        watched.applying.ended(0)
    run.elect()
    assert len(watched.members) == 1, watched.members
    assert "outage" not in steps(tmp_path)
    times = [str(event["time"]) for event in events(tmp_path)]
    assert times == sorted(times), times
    run.checker.finished(tmp_path, PLAN, delivery)
    tally.passed(case, run, delivery)
    figures(f"clock: {case}", f"{first:+} s, then {then:+} s; the run took {watched.seconds:.0f} s, no lock lost")
