"""A right that is taken away in the middle of a run, a cancel or a clean-up: what can be removed is, the rest is named.

The run is in this process, and a hook at its crash points takes the right away there. Then the right is given back,
and `doctor --fix throttles`, or an apply, leaves the four throttle keys as before: seen by another client library.
"""

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import ResourceType
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.controller import reassignments
from helpers.brokers.declared import assigned, declare
from helpers.brokers.observer import Observer
from helpers.brokers.run import SMOOTH
from helpers.depth import parts
from helpers.figures import Tell
from helpers.program.call import Ended, Program
from live.folder import LiveFolder
from live.test_rights import DENIED, USERS, Acls

from reconciler.admin.client import KafkaAdmin, connect
from reconciler.apply.crash import Killed, planted
from reconciler.model.change import CreateTopic

pytestmark = pytest.mark.brokers

TOPICS, HEAVY = ("orders", "other"), 2
RATE, HEAVY_BYTES = 50_000, 1_200_000
LISTS = ({0: (1, 2), 1: (2, 3), HEAVY: (3, 1)}, {0: (3, 1), 1: (2, 1), HEAVY: (3, 1)})
OTHER = ({0: (1, 2)}, {0: (1, 3)})
IN_FLIGHT = "in flight"
APPLY = ("intent.written", "throttle.topic", "reassign.sent", IN_FLIGHT, "stage.done", "moves.done", "election.before")
CANCEL = ("withdraw.before", "withdraw.sent")
DOCTOR = ("unthrottle.topic", "unthrottle.broker")
BY_SHOWN = {one.shown: one for one in DENIED}
TOPIC_CONFIGS, CLUSTER_CONFIGS = "AlterConfigs on topic orders", "AlterConfigs on the cluster"
LOCK = "Read on group __reconciler-lock"
MAY_STAY: dict[str, Callable[[str], bool]] = {
    TOPIC_CONFIGS: lambda key: key.startswith("orders:"),
    CLUSTER_CONFIGS: lambda key: key[0].isdecimal(),
    LOCK: lambda _key: True,
}
"""Which keys nobody could remove without that right."""


def _nothing(_key: str) -> bool:
    return False


@dataclass(frozen=True)
class Case:
    """Which right is taken away where in which verb."""

    verb: str
    point: str
    right: str

    def __str__(self) -> str:
        return f"{self.verb} at {self.point} without {self.right}"


EVERY = [
    *(Case("apply", point, right) for point in APPLY for right in BY_SHOWN),
    *(Case("cancel", point, right) for point in CANCEL for right in BY_SHOWN),
    *(Case("doctor", point, right) for point in DOCTOR for right in BY_SHOWN),
]
SOME = [Case("apply", "moves.done", TOPIC_CONFIGS), Case("apply", "reassign.sent", CLUSTER_CONFIGS)]


@dataclass
class World:
    """A cluster with an operator's own throttles, and a user who applies, of whom rights are taken."""

    kafka: KafkaCluster
    admin: KafkaAdmin
    acls: Acls
    program: Program
    observer: Observer
    turn: int = 0
    before: dict[str, str] = field(default_factory=dict)

    def throttles(self) -> dict[str, str]:
        """Return the four keys wherever they are set."""
        return self.observer.throttles(TOPICS, self.kafka.alive)

    def plan(self, *, is_heavy: bool) -> None:
        """Plan the way to the other lists, with elections, a config and a new topic."""
        self.turn += 1
        now = {number: one.replicas for number, one in self.observer.topic("orders").items()}
        lists: dict[int, tuple[int, ...]] = dict(LISTS[now[0] == LISTS[0][0]])
        lists[HEAVY] = ((3, 2) if now[HEAVY] == (3, 1) else (3, 1)) if is_heavy else now[HEAVY]
        other = OTHER[self.observer.topic("other")[0].replicas == OTHER[0][0]]
        topics = {
            "orders": f"{assigned(lists)}, config: {{retention.ms: {self.turn + 1}d}}",
            "other": assigned(other),
            "fresh": f"partitions: {self.turn}, replicationFactor: 1",
        }
        moves = f"moves: {{throttle: {RATE}B/s, perStage: 2}}"
        declare(Path(), self.kafka, moves, topics, client="{file: worker.properties}")
        shutil.rmtree("runs", ignore_errors=True)
        planned = self.program("plan", "--out", "plan.json", "--detailed-exitcode")
        assert planned.code == 2, planned

    def moving(self) -> list[str]:
        """Return the partitions that the controller lists."""
        return sorted(reassignments(self.kafka.bootstrap))

    def settled(self) -> None:
        """Wait until nothing is in flight."""
        self.kafka.wait_for(lambda: not self.moving(), "moves to end")

    def killed(self, point: str) -> None:
        """Let an apply die at a point."""

        def die(name: str) -> None:
            if name == point and (point != "poll" or self.moving()):
                raise Killed

        with planted(die), pytest.raises(Killed):
            self.program("apply", "plan.json", "--yes")

    def robbed(self, case: Case, *arguments: str) -> tuple[Ended, bool]:
        """Call the program and take the right away at the point; return its end, and whether it came there."""
        taken: list[str] = []
        denied = BY_SHOWN[case.right]

        def take(name: str) -> None:
            is_there = name == "poll" and bool(self.moving()) if case.point == IN_FLIGHT else name == case.point
            if is_there and not taken:
                taken.append(name)
                self.acls.deny(denied)

        with planted(take):
            ended = self.program(*arguments)
        if not taken:
            self.acls.deny(denied)
        return ended, bool(taken)


@pytest.fixture
def world(
    tmp_path: Path, kafka_version: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[World]:
    root = tmp_path / "desired-state" / "live"
    root.mkdir(parents=True)
    with KafkaCluster(version=kafka_version, broker_ids=(1, 2, 3), users=USERS, settings=SMOOTH) as kafka:
        admin = connect(kafka.properties)
        changes = [CreateTopic("orders", 3, 2, {}, LISTS[0]), CreateTopic("other", 1, 2, {}, OTHER[0])]
        assert all(answer.is_ok for answer in admin.create_topics(changes).values())
        kafka.wait_for(lambda: len(admin.topics(TOPICS)) == len(TOPICS), "the topics")
        kafka.produce("orders", HEAVY, size=HEAVY_BYTES)
        LiveFolder(tmp_path, kafka).set_throttles(
            {
                (ResourceType.BROKER, "1"): {"leader.replication.throttled.rate": str(RATE)},
                (ResourceType.BROKER, "2"): {"follower.replication.throttled.rate": "7000000"},
                (ResourceType.TOPIC, "orders"): {"leader.replication.throttled.replicas": "9:1,9:2"},
            }
        )
        lines = [f"{key}={value}\n" for key, value in kafka.properties_of("worker").items()]
        (root / "worker.properties").write_text("".join(lines), "utf-8")
        monkeypatch.chdir(tmp_path)
        made = World(kafka, admin, Acls(kafka), Program(capsys), Observer(kafka.bootstrap))
        made.before = made.throttles()
        yield made
        admin.close()


@parts("cases", SOME, deep=EVERY)
def test_a_right_that_is_taken_away_midway_leaves_nothing_unnamed(
    world: World, cases: list[Case], figures: Tell, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong: list[str] = []
    taken = left_keys = left_moves = 0
    for number, case in enumerate(cases):
        ended, was_taken = _played(world, case)
        left, moving = _left(world), world.moving()
        taken, left_keys, left_moves = taken + was_taken, left_keys + len(left), left_moves + len(moving)
        found = [*_unnamed(case, ended, left, moving), *_after(world, case, number)]
        wrong += [f"{case}: {one}\n{ended.code} {ended.out}{ended.err}" for one in found]
        with capsys.disabled():
            told = f"exit {ended.code}, left {len(left)} keys, {len(moving)} moves{': WRONG' if found else ''}"
            sys.stdout.write(f"{case}: {told}\n")
    assert wrong == []
    figures(
        f"rights taken away midway ({len(cases)})",
        f"{taken} midway, {left_keys} keys and {left_moves} moves left and named, all as before in the end",
    )


def _played(world: World, case: Case) -> tuple[Ended, bool]:
    world.plan(is_heavy=case.point == IN_FLIGHT or case.verb == "cancel")
    if case.verb == "cancel":
        world.killed("poll")
        return world.robbed(case, "cancel", "plan.json")
    if case.verb == "doctor":
        world.killed("reassign.before")
        return world.robbed(case, "doctor", "--fix", "throttles", "--yes")
    return world.robbed(case, "apply", "plan.json", "--yes")


def _left(world: World) -> dict[str, str]:
    """Return the throttle keys that are not as before, and what they hold."""
    now = world.throttles()
    return {key: now.get(key, "") for key in now.keys() | world.before if now.get(key) != world.before.get(key)}


def _unnamed(case: Case, ended: Ended, left: dict[str, str], moving: list[str]) -> Iterator[str]:
    """Yield what is left and could have been removed, or is not named."""
    told = ended.out + ended.err
    if ended.code not in {0, 1}:
        yield f"exit code {ended.code}"
    may_stay = MAY_STAY.get(case.right, _nothing)
    for where in left:
        owner, _, key = where.partition(":")
        kind = "broker" if owner.isdecimal() else "topic"
        if not re.search(rf"{kind} {owner}( keeps what this run set)?:[^\n]*{re.escape(key)}", told):
            yield f"{where} is left, and not named"
        if not (may_stay(where) or moving):
            yield f"{where} could have been removed"
    yield from (f"{name} is in flight, and not named" for name in moving if name not in told)
    if "Traceback" in told or "internal error" in told:
        yield "it failed"


def _after(world: World, case: Case, number: int) -> Iterator[str]:
    """Give the right back, clean up, apply to the end; yield where the keys are not as before."""
    world.acls.allow(BY_SHOWN[case.right])
    world.settled()
    if number % 2 == 0:
        fixed = world.program("doctor", "--fix", "throttles", "--yes")
        if _left(world):
            yield f"after doctor {_left(world)}: {fixed}"
    applied = world.program("apply", "plan.json", "--yes")
    if applied.code != 0:
        yield f"apply again ended with {applied.code}: {applied.err}"
    if _left(world):
        yield f"after apply {_left(world)}: {applied}"
