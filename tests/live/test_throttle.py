"""`throttle` on real brokers: a run that is on takes up another rate, and what was there before comes back."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import ResourceType
from helpers.brokers.by_hand import create
from helpers.brokers.cluster import KafkaCluster
from helpers.waiting import HANG
from live.folder import CLUSTER, Assignment, LiveFolder, led_by_the_first
from live.other_hands import bury

pytestmark = pytest.mark.brokers

TOPIC, IDLE = "rated", "rated-idle"
BEFORE: Assignment = {0: (1, 2), 1: (3, 4)}
AFTER: Assignment = {0: (5, 2), 1: (3, 6)}
BROKERS = (1, 2, 3, 4, 5, 6)
SIZE = 3_000_000
SLOW, FAST = "50kB/s", "1MiB/s"
"""At the one a move lasts for a minute, at the other it is over."""
BOTH_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
OPERATORS = {
    (ResourceType.BROKER, "1"): {BOTH_RATES[0]: "50000"},
    (ResourceType.BROKER, "5"): {BOTH_RATES[1]: "7000000"},
    (ResourceType.TOPIC, TOPIC): {LISTS[0]: "1:3,0:9", LISTS[1]: ""},
}
HELD_BY_THE_OPERATOR = {
    **{(ResourceType.BROKER, str(broker)): dict.fromkeys(BOTH_RATES, "50000") for broker in BROKERS},
    (ResourceType.TOPIC, TOPIC): dict.fromkeys(LISTS, "*"),
}
Values = Mapping[tuple[ResourceType, str], Mapping[str, str]]


class Rated:
    """One topic on its way, and somebody elsewhere who asks its run for other rates."""

    def __init__(self, folder: LiveFolder, throttle: str | None, operators: Values) -> None:
        self.folder, self.kafka = folder, folder.kafka
        create(folder.kafka, {TOPIC: BEFORE, IDLE: [[1, 2]]})
        for number in BEFORE:
            self.kafka.produce(TOPIC, number, size=SIZE)
        folder.set_throttles(operators)
        folder.moves = f"throttle: {throttle}" if throttle else "perStage: 4"
        self.plan = folder.plan("plan", {TOPIC: AFTER})
        self.before = self.throttles()
        self.elsewhere = folder.path.with_name("elsewhere")
        root = self.elsewhere / "desired-state" / CLUSTER
        root.mkdir(parents=True)
        whole = (folder.path / "desired-state" / CLUSTER / "cluster.yaml").read_text()
        (root / "cluster.yaml").write_text(whole.partition("---")[0])
        shutil.copy(folder.path / self.plan, self.elsewhere / self.plan)

    def throttles(self) -> Mapping[str, str]:
        return self.folder.observer.throttles((TOPIC,), self.kafka.alive)

    def ask(self, rate: str, *, expect: int = 0, plan: str = "plan.json") -> str:
        """Ask from elsewhere; return what is told."""
        told = self.folder.run("throttle", plan, rate, cwd=self.elsewhere, expect=expect)
        return told.out + told.err

    def ask_to_end(self) -> None:
        """Ask for a rate at which the moves are over in a moment, maybe before the run has told that it took it up."""
        ended = self.folder.run("throttle", self.plan, FAST, cwd=self.elsewhere, expect=None)
        assert ended.code == 0 or "KR458" in ended.err, ended.err

    def sped_to_its_end(self, running: subprocess.Popen[str]) -> str:
        """Have a run end soon, and well; return what it told."""
        self.ask_to_end()
        out, err = running.communicate(timeout=HANG)
        assert running.returncode == 0, out + err
        return err

    def wait_for_rate(self, rate: str) -> None:
        """Wait until every broker that sends or receives shows that rate, to another client."""
        wanted = {f"{broker}:{key}": rate for broker in BROKERS for key in BOTH_RATES}
        self.kafka.wait_for(lambda: self.throttles().items() >= wanted.items(), f"{rate} B/s", seen=self.throttles)

    def ended(self) -> None:
        """Assert that the topic is as planned, and the throttles as they were."""
        assert self.folder.state(TOPIC) == led_by_the_first(AFTER)
        self.kafka.wait_for(lambda: self.throttles() == self.before, "what was there before", seen=self.throttles)

    def taken_up(self) -> list[int]:
        """Return the rates that the journal here tells of."""
        (path,) = self.folder.path.glob("runs/**/*.jsonl")
        events = map(json.loads, path.read_text().splitlines())
        return [event["detail"]["rate"] for event in events if event["step"] == "rate"]


@pytest.fixture
def folder(tmp_path: Path, steady: KafkaCluster) -> Iterator[LiveFolder]:
    live = LiveFolder(tmp_path / "here", steady)
    yield live
    live.heal(TOPIC, IDLE)


def test_a_run_is_sped_up_from_elsewhere_and_wrong_uses_change_nothing(folder: LiveFolder) -> None:
    rated = Rated(folder, SLOW, OPERATORS)
    other = folder.plan("other", {IDLE: {0: (1, 3)}})
    shutil.copy(folder.path / other, rated.elsewhere / other)
    told = rated.ask(FAST, expect=1)
    assert "KR458" in told
    assert "nobody holds the lock" in told
    with folder.started("apply", rated.plan, "--yes") as running:
        folder.wait_in_flight(running, TOPIC)
        rated.wait_for_rate("50000")
        assert "KR458" in rated.ask(FAST, plan=other, expect=1)
        rated.ask("0", expect=64)
        rated.ask("fast", expect=64)
        assert running.poll() is None
        rated.wait_for_rate("50000")
        err = rated.sped_to_its_end(running)
    assert "the throttle is 1 MiB/s from now on" in err
    rated.ended()
    assert rated.taken_up() == [1_048_576]
    assert "KR458" in rated.ask(FAST, expect=1)


@pytest.mark.deep
def test_a_plan_without_a_throttle_is_given_one(folder: LiveFolder) -> None:
    rated = Rated(folder, None, HELD_BY_THE_OPERATOR)
    with folder.started("apply", rated.plan, "--yes") as running:
        folder.wait_in_flight(running, TOPIC)
        rated.ask("60kB/s", expect=3)
        rated.sped_to_its_end(running)
    rated.ended()
    assert rated.taken_up() == [1_048_576]


@pytest.mark.deep
def test_a_run_is_slowed_down_and_asked_twice_in_a_row(folder: LiveFolder) -> None:
    rated = Rated(folder, "20kB/s", OPERATORS)
    with folder.started("apply", rated.plan, "--yes") as running:
        folder.wait_in_flight(running, TOPIC)
        rated.ask("60kB/s")
        rated.wait_for_rate("60000")
        rated.ask("10kB/s", expect=3)
        rated.ask("30kB/s")
        rated.ask("60kB/s")
        rated.wait_for_rate("60000")
        rated.sped_to_its_end(running)
    rated.ended()
    assert rated.taken_up() == [60_000, 30_000, 60_000, 1_048_576]


@pytest.mark.deep
@pytest.mark.parametrize("then", ["apply", "cancel", "doctor"])
def test_after_kill_9_the_rate_that_was_asked_for_is_known_to_another_machine(folder: LiveFolder, then: str) -> None:
    rated = Rated(folder, SLOW, OPERATORS)
    with folder.started("apply", rated.plan, "--yes") as running:
        folder.wait_in_flight(running, TOPIC)
        rated.ask("60kB/s")
        rated.wait_for_rate("60000")
        running.kill()
        running.wait()
    assert rated.taken_up() == [60_000]
    shutil.rmtree(folder.path)
    bury(rated.kafka.bootstrap)
    folder.path = rated.elsewhere
    if then == "doctor":
        (rated.elsewhere / rated.plan).unlink()
        told = folder.run("doctor", "--fix", "throttles", "--yes", expect=3).err
        assert "KR455" in told
        then = "cancel"
    if then == "cancel":
        named = then == "cancel" and (rated.elsewhere / rated.plan).exists()
        folder.run("cancel", *([rated.plan] if named else ["--cluster", CLUSTER, "--yes"]), expect=0 if named else None)
        folder.run("doctor", "--fix", "throttles", "--yes")
        assert folder.state(TOPIC) == led_by_the_first(BEFORE)
        rated.kafka.wait_for(lambda: rated.throttles() == rated.before, "what was there before", seen=rated.throttles)
        return
    with folder.started("apply", rated.plan, "--yes") as running:
        folder.wait_in_flight(running, TOPIC)
        rated.wait_for_rate("60000")
        err = rated.sped_to_its_end(running)
    assert "the throttle is 58.6 KiB/s, as this plan's run was asked for" in err
    rated.ended()
