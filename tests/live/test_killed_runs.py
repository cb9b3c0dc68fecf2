"""Runs on real brokers that die by kill -9 at every crash point: the next one goes on, and nothing tells of it."""

import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import ResourceType
from helpers.brokers.checker import Checker
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.declared import client_file
from helpers.brokers.delivery import Delivery
from helpers.depth import parts
from helpers.figures import Tell
from live.copies import Copies
from live.faults import Tally
from live.folder import Assignment, LiveFolder
from live.killing import killed_or_ended
from live.other_hands import bury

from reconciler.apply.crash import CRASH_POINTS

pytestmark = pytest.mark.brokers

MOVED, GROWN = "killed-moved", "killed-grown"
TOPICS = (MOVED, GROWN)
BEFORE: Mapping[str, Assignment] = {
    MOVED: {0: (1, 2), 1: (3, 1), 2: (4, 5), 3: (6, 4), 4: (2, 6), 5: (5, 3)},
    GROWN: {0: (2, 3), 1: (5, 6), 2: (4, 1), 3: (3, 5)},
}
AFTER: Mapping[str, Assignment] = {
    MOVED: {0: (3, 2), 1: (1, 3), 2: (4, 6), 3: (1, 4), 4: (5, 6), 5: (5, 1)},
    GROWN: {0: (2, 3, 4), 1: (6, 5, 1), 2: (4, 1, 3), 3: (2, 3, 5)},
}
SIZE = 400_000
OF_CANCEL = frozenset({"withdraw.before", "withdraw.sent"})
AT_THE_END = frozenset({"unthrottle.topic", "unthrottle.broker", "unthrottle.sent", "end.before", "end.recorded"})
OF_ROLLBACK = frozenset(
    {"withdraw.before", "withdraw.sent", "topics.sent", "intent.written", "reassign.sent", "poll", "unthrottle.broker"}
)
OF_A_WHOLE_ROLLBACK = frozenset({"topics.sent", "unthrottle.broker"})
OF_LOG_DIRS = frozenset({"dirs.before", "dirs.sent", "dirs.recorded"})
"""See `test_dir_moves.py`."""
OF_APPLY = frozenset(CRASH_POINTS) - OF_CANCEL - OF_LOG_DIRS
OF_SOME_STEPS = ("election.sent", "intent.written", "reassign.sent", "unthrottle.topic")
LOCK_AWAITED = 8
"""After every so many kills the lock of the dead run is left to end by itself, in 6 s; else it is taken off at once."""
OFTEN = {
    "throttle.broker": 2, "intent.written": 4, "reassign.sent": 4, "poll": 15, "unthrottle.broker": 2,
    "withdraw.before": 15, "withdraw.sent": 3,
}  # fmt: skip
"""Where a run dies again and again: for the most part inside a stage, some of its moves waiting for a slot."""
AN_OPERATORS_OWN = {
    (ResourceType.BROKER, "3"): {"leader.replication.throttled.rate": "9000000"},
    (ResourceType.TOPIC, MOVED): {"leader.replication.throttled.replicas": "3:6,0:1"},
    (ResourceType.TOPIC, GROWN): {"follower.replication.throttled.replicas": "*"},
}


@pytest.fixture
def folder(tmp_path: Path, steady: KafkaCluster) -> Iterator[LiveFolder]:
    live = LiveFolder(tmp_path / "here", steady, moves=moves_at("500kB/s"))
    yield live
    live.heal(*TOPICS)


def moves_at(rate: str) -> str:
    return f"throttle: {rate}, perStage: 6, perBroker: 1, perPartition: 3"


@dataclass
class Deaths:
    """Kills a command again and again, at the first crash point it passes that has not killed often enough."""

    folder: LiveFolder
    places: Sequence[Path]
    left: Counter[str]
    copies: Copies
    killed: Counter[str] = field(default_factory=Counter)

    def until_it_ends(self, *arguments: str) -> None:
        """Run the command, here and there in turn, until it passes no such point any more."""
        while +self.left:
            place = self.places[self.killed.total() % len(self.places)]
            command = (*arguments, *client_file(place, self.folder.kafka))
            death = killed_or_ended("|".join(sorted(+self.left)), *command, cwd=place)
            if death is None:
                return
            self.killed[death.died_at] += 1
            self.left[death.died_at] -= 1
            self.copies.look()
            if self.killed.total() % LOCK_AWAITED:
                bury(self.folder.kafka.bootstrap)


def times(points: Collection[str]) -> Counter[str]:
    return Counter({point: OFTEN.get(point, 1) for point in points})


def size_for(points: Counter[str]) -> int:
    """Return the bytes of a partition: a run that dies often needs copies that last longer."""
    return SIZE if points.total() < LOCK_AWAITED else 5 * SIZE


def elsewhere(folder: LiveFolder, plan: str) -> Path:
    """Return a folder, as of another machine, with nothing in it but the plan."""
    place = folder.path.with_name("elsewhere")
    place.mkdir()
    shutil.copy(folder.path / plan, place / plan)
    return place


@parts("points", Counter(OF_SOME_STEPS), deep=times(OF_APPLY))
def test_a_run_killed_at_crash_points_ends_as_one_that_never_died_and_so_does_its_rollback(
    folder: LiveFolder, figures: Tell, tally: Tally, points: Counter[str]
) -> None:
    kafka = folder.kafka
    if size_for(points) > SIZE:
        folder.moves = moves_at("250kB/s")
    folder.create(BEFORE, size=size_for(points), config="retention.ms: 1d")
    folder.set_throttles(AN_OPERATORS_OWN)
    checker, copies = Checker(kafka, *TOPICS), Copies(kafka, *TOPICS)
    plan = folder.plan("plan", AFTER, config="retention.ms: 2d")
    places = (folder.path, elsewhere(folder, plan))
    with Delivery(kafka.bootstrap, MOVED, len(BEFORE[MOVED])) as delivery:
        deaths = Deaths(folder, places, Counter(points), copies)
        deaths.until_it_ends("apply", plan, "--yes")
        folder.run("apply", plan, "--yes")
    checker.finished(folder.path, plan, delivery)
    assert copies.made_more_than_once(BEFORE, AFTER) == []
    assert {folder.observer.overrides(ResourceType.TOPIC, topic)["retention.ms"] for topic in TOPICS} == {"172800000"}
    assert set(deaths.killed) == set(points), f"never killed at {sorted(set(points) - set(deaths.killed))}"
    figures("live kills, apply", f"{deaths.killed.total()} kill -9 at {len(deaths.killed)} crash points")
    tally.accepted("apply killed", checker, delivery)
    with Delivery(kafka.bootstrap, MOVED, len(BEFORE[MOVED])) as delivery:
        deaths = Deaths(folder, places, Counter(OF_A_WHOLE_ROLLBACK), copies)
        deaths.until_it_ends("cancel", "--rollback", "--yes", plan)
        folder.run("cancel", "--rollback", "--yes", plan)
    assert checker.faults(checker.lists, delivery) == []
    assert {folder.observer.overrides(ResourceType.TOPIC, topic)["retention.ms"] for topic in TOPICS} == {"86400000"}
    assert set(deaths.killed) == OF_A_WHOLE_ROLLBACK
    tally.accepted("rollback killed", checker, delivery)


@pytest.mark.deep
def test_a_cancel_killed_at_crash_points_takes_back_all_that_is_in_flight(
    folder: LiveFolder, figures: Tell, tally: Tally
) -> None:
    kafka, points = folder.kafka, times(OF_CANCEL | AT_THE_END)
    # Eleven minutes a copy, so that what is to be taken back does not end meanwhile.
    folder.create(BEFORE, size=10 * size_for(points), config="retention.ms: 1d")
    folder.moves = moves_at("30kB/s")
    folder.set_throttles(AN_OPERATORS_OWN)
    checker = Checker(kafka, *TOPICS)
    as_it_is = {1: BEFORE[MOVED][1]}  # a change of order ends at once: nothing takes it back
    plan = folder.plan("plan", {**AFTER, MOVED: {**AFTER[MOVED], **as_it_is}}, config="retention.ms: 2d")
    with Delivery(kafka.bootstrap, MOVED, len(BEFORE[MOVED])) as delivery:
        folder.kill("poll", "apply", plan, "--yes")
        bury(kafka.bootstrap)
        deaths = Deaths(folder, (folder.path, elsewhere(folder, plan)), Counter(points), Copies(kafka, *TOPICS))
        deaths.until_it_ends("cancel", plan)
        folder.run("cancel", plan)
    assert checker.faults(checker.lists, delivery) == []
    assert set(deaths.killed) >= OF_CANCEL
    figures("live kills, cancel", f"{deaths.killed.total()} kill -9 at {len(deaths.killed)} crash points")
    tally.accepted("cancel killed", checker, delivery)


@pytest.mark.deep
def test_a_rollback_killed_again_and_again_ends_where_the_plan_began(
    folder: LiveFolder, figures: Tell, tally: Tally
) -> None:
    kafka, points = folder.kafka, times(OF_ROLLBACK)
    folder.moves = moves_at("250kB/s")
    folder.create(BEFORE, size=size_for(points), config="retention.ms: 1d")
    folder.set_throttles(AN_OPERATORS_OWN)
    checker = Checker(kafka, *TOPICS)
    plan = folder.plan("plan", AFTER, config="retention.ms: 2d")
    with Delivery(kafka.bootstrap, MOVED, len(BEFORE[MOVED])) as delivery:
        folder.kill("stage.done:2", "apply", plan, "--yes")  # the topics, and the first stage that copies
        bury(kafka.bootstrap)
        folder.kill("poll", "apply", plan, "--yes")
        bury(kafka.bootstrap)
        deaths = Deaths(folder, (folder.path, elsewhere(folder, plan)), Counter(points), Copies(kafka, *TOPICS))
        deaths.until_it_ends("cancel", "--rollback", "--yes", plan)
        folder.run("cancel", "--rollback", "--yes", plan)
    assert checker.faults(checker.lists, delivery) == []
    assert {folder.observer.overrides(ResourceType.TOPIC, topic)["retention.ms"] for topic in TOPICS} == {"86400000"}
    # A slow machine may let what is in flight end first.
    assert set(deaths.killed) >= set(points) - {*OF_CANCEL, "poll"}
    figures("live kills, cancel --rollback", f"{deaths.killed.total()} kill -9 at {len(deaths.killed)} crash points")
    tally.accepted("rollback killed", checker, delivery)
