"""On real brokers: a run dies by kill -9, its record is kept, deleted, expired or too small, and a verb cleans up.

The verb runs in an empty folder, as on another machine, with the plan or with nothing. What it says and its exit code
have to be what another client then sees. An operator's own throttles, one with the plan's own rate, stay.
"""

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from helpers.brokers.by_hand import create
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.controller import reassignments
from helpers.brokers.declared import client_file
from helpers.brokers.delivery import Delivery, delivery_faults
from helpers.brokers.run import SMOOTH
from helpers.depth import parts
from helpers.figures import Tell
from helpers.program.warm import Ended, Kill, run
from helpers.waiting import HANG, asked_again
from live.folder import Assignment, LiveFolder
from live.other_hands import LOCK_GROUP, bury, reassign

from reconciler.apply.crash import CRASH_POINTS

pytestmark = pytest.mark.brokers

TOPIC = "after-a-kill"
HOME: Assignment = {0: (1, 2), 1: (2, 5), 2: (3, 4), 3: (5, 4)}
THERE: Assignment = {0: (1, 3), 1: (2, 1), 2: (3, 2), 3: (1, 4)}
EMPTIED, FREE = 5, 6
RATE = "400000"
SIZE = 200_000
CORDON = "cordoned.log.dirs"
RATE_KEYS = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS = "leader.replication.throttled.replicas"
OPERATORS = {
    (ResourceType.BROKER, "2"): {RATE_KEYS[0]: "9000000"},
    (ResourceType.BROKER, str(FREE)): dict.fromkeys(RATE_KEYS, RATE),
    (ResourceType.TOPIC, TOPIC): {LEADERS: "7:9"},
}
VERBS: Mapping[str, tuple[str, ...]] = {
    "doctor": ("doctor", "--fix", "throttles", "--yes"),
    "doctor PLAN": ("doctor", "plan.json", "--fix", "throttles", "--yes"),
    "apply PLAN": ("apply", "plan.json", "--yes"),
    "cancel PLAN": ("cancel", "plan.json"),
    "cancel": ("cancel", "--yes"),
}
OF_OTHER_RUNS = {
    "dirs.before", "dirs.recorded", "dirs.sent", "topics.before", "topics.sent", "withdraw.before", "withdraw.sent",
}  # fmt: skip
POINTS = sorted({*CRASH_POINTS} - OF_OTHER_RUNS)
HITS = (1, 2)
Throttles = Mapping[str, str]


@dataclass
class Cases:
    """One cluster and one plan, run, killed and cleaned up again and again."""

    folder: LiveFolder
    figures: Tell
    plan: str = ""
    before: Throttles = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def prepare(self) -> None:
        """Create the topic, let an operator set throttles, and make the plan."""
        self.folder.moves = f"throttle: {RATE}B/s, perStage: 2, perPartition: 3"
        create(self.folder.kafka, {TOPIC: HOME})
        for number in HOME:
            self.folder.kafka.produce(TOPIC, number, size=SIZE)
        self.folder.set_throttles(OPERATORS)
        self.folder.brokers = f"{{id: {EMPTIED}, state: draining}}"
        self.plan = self.folder.plan("plan", {TOPIC: THERE})
        self.before = self.throttles()

    def throttles(self) -> Throttles:
        """Return every throttle and cordon, as another client sees them."""
        observer = self.folder.observer
        cordon = observer.overrides(ResourceType.BROKER, str(EMPTIED)).get(CORDON)
        found = observer.throttles((TOPIC,), self.folder.kafka.alive)
        return {**found, **({f"{EMPTIED}:{CORDON}": cordon} if cordon is not None else {})}

    def case(self, point: str, record: str, verb: str) -> None:
        """Kill a run at that point, let its record become so, clean up by that verb, and judge what it said."""
        self._go_home()
        place = self._place("there", has_plan=True)
        ended = run(
            "apply", "plan.json", "--yes", *client_file(place, self.folder.kafka), cwd=place, kill=Kill(point=point)
        )
        shutil.rmtree(place)
        if not ended.is_killed:
            assert ended.code == 0, f"{ended.code}\n{ended.out}\n{ended.err}"
            self.counts["not killed"] += 1
            return
        bury(self.folder.kafka.bootstrap)
        self._change_record(record)
        place = self._place("elsewhere", has_plan="PLAN" in verb)
        told = f"killed at {point}, record {record}, {verb}"
        # Before its first stage a run has no record yet, and at its end no more: then it has left nothing either.
        is_without = point.partition(":")[0] in {"lock.taken", "end.recorded"}
        wrong = list(self._judged(verb, "none" if is_without else record, place))
        shutil.rmtree(place)
        assert not wrong, f"{told}: {wrong}"
        self.counts["cases"] += 1
        counted = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        self.figures(f"live, verbs after a kill, {record}", counted)

    def _judged(self, verb: str, record: str, place: Path) -> Iterator[str]:
        kafka, dead = self.folder.kafka, self.throttles()
        command = (*VERBS[verb], *client_file(place, kafka))
        ended = run(*command, cwd=place)
        if ended.code == 3 and "KR455" in ended.err:
            self.counts["refused while moves are in flight"] += 1
            kafka.wait_for(lambda: not reassignments(kafka.bootstrap), "the moves to end")
            if self.throttles() != dead:
                yield "it was refused, and changed something"
            ended = run(*command, cwd=place)
        text = f"exit {ended.code}\n{ended.out}\n{ended.err}"
        self.counts[f"{verb} exit {ended.code}"] += 1
        if verb == "cancel" and "KR726" in text:
            # By the record alone a cancel takes off; what was there before is for doctor, which asks.
            if ended.code != 5:
                yield f"it named what only the record says, and ended with {ended.code}\n{text}"
            ended = run(*VERBS["doctor"], *client_file(place, kafka), cwd=place)
            text += f"\nthen doctor, exit {ended.code}\n{ended.out}\n{ended.err}"
        yield from self._judged_end(verb, record, ended, text)

    def _judged_end(self, verb: str, record: str, ended: Ended, text: str) -> Iterator[str]:
        kafka = self.folder.kafka
        after = self.throttles()
        ours = {name: value for name, value in after.items() if self.before.get(name) != value}
        lost = {name: value for name, value in self.before.items() if name not in after}
        moving = reassignments(kafka.bootstrap)
        if lost:
            yield f"an operator's values are gone: {lost}\n{text}"
        is_at_hand = "PLAN" in verb or record == "kept"
        if is_at_hand and ended.code != 0:
            yield f"the plan or the record was at hand, and it ended with {ended.code}\n{text}"
        if ours and is_at_hand:
            yield f"the plan or the record was at hand, and it left {ours}\n{text}"
        if moving and (is_at_hand or ended.code == 0) and "doctor" not in verb:
            yield f"it left {moving} in flight\n{text}"
        if ended.code == 0 and ours:
            yield f"it ended with 0, and left {ours}\n{text}"
        if ended.code not in {0, 5} and not (verb == "cancel" and "KR709" in text and not ours):
            yield f"it ended with {ended.code}\n{text}"
        yield from (f"{name} is left, and not named\n{text}" for name in ours if not is_named(name, ended))
        yield from self._misplaced(verb, text)

    def _misplaced(self, verb: str, text: str) -> Iterator[str]:
        found = {number: state[0] for number, state in self.folder.state(TOPIC).items()}
        for number, replicas in found.items():
            if verb == "apply PLAN" and replicas != THERE[number]:
                yield f"{TOPIC}-{number} is on {replicas}, not {THERE[number]}\n{text}"
            if "cancel" in verb and not reassignments(self.folder.kafka.bootstrap):
                wanted = {frozenset(HOME[number]), frozenset(THERE[number])}
                if frozenset(replicas) not in wanted:
                    yield f"{TOPIC}-{number} is on {replicas}\n{text}"

    def _change_record(self, how: str) -> None:
        admin, kafka = self.folder.admin, self.folder.kafka
        if how == "deleted":

            def deleted() -> None:
                admin.delete_consumer_groups([LOCK_GROUP])[LOCK_GROUP].result(timeout=HANG)

            asked_again(deleted, KafkaException)
        elif how == "expired":
            kafka.wait_for(lambda: not self._has_group(), "the record to expire")

    def _has_group(self) -> bool:
        groups = self.folder.admin.list_groups(LOCK_GROUP, timeout=HANG)
        return any(group.state not in {"Dead", ""} for group in groups)

    def _go_home(self) -> None:
        """Take the partitions back by another client's hand, and let only the operator's values be set."""
        if self.throttles() != self.before:
            self._set_cordon(None)
            self.folder.set_throttles({**OPERATORS, **self._others()})
        self.folder.kafka.wait_for(self._is_home, "the replicas to be home")
        self.folder.observer.catch_up([TOPIC])

    def _is_home(self) -> bool:
        if reassignments(self.folder.kafka.bootstrap):
            return False
        found = {number: state[0] for number, state in self.folder.state(TOPIC).items()}
        away = {f"{TOPIC}-{number}": HOME[number] for number in HOME if found[number] != HOME[number]}
        if away:
            reassign(self.folder.kafka.bootstrap, away)
        return not away

    def _others(self) -> Mapping[tuple[ResourceType, str], Mapping[str, str]]:
        return {(ResourceType.BROKER, str(one)): {} for one in self.folder.kafka.alive if one not in {2, FREE}}

    def _set_cordon(self, value: str | None) -> None:
        if f"{EMPTIED}:{CORDON}" not in self.throttles():
            return
        entry = ConfigEntry(CORDON, value, incremental_operation=AlterConfigOpType.DELETE)
        resource = ConfigResource(ResourceType.BROKER, str(EMPTIED), incremental_configs=[entry])
        self.folder.admin.incremental_alter_configs([resource])[resource].result(timeout=HANG)

    def _place(self, name: str, *, has_plan: bool) -> Path:
        place = self.folder.path.with_name(name)
        place.mkdir()
        if has_plan:
            shutil.copy(self.folder.path / self.plan, place / "plan.json")
        return place


def is_named(name: str, ended: Ended) -> bool:
    """Whether one line says where that key is, and which."""
    owner, _, key = name.partition(":")
    return any(owner in line and key in line for line in f"{ended.out}\n{ended.err}".splitlines())


def drawn(records: tuple[str, ...], count: int) -> list[tuple[str, str, str]]:
    """Return so many cases, all points and verbs among them."""
    every = list(product([f"{point}:{hit}" for hit in HITS for point in POINTS], records, VERBS))
    random.Random(49).shuffle(every)
    return every[:count]


def judge(folder: LiveFolder, figures: Tell, records: tuple[str, ...], count: int) -> None:
    cases = Cases(folder, figures)
    cases.prepare()
    with Delivery(folder.kafka.bootstrap, TOPIC, len(HOME)) as delivery:
        for case in drawn(records, count):
            cases.case(*case)
    assert delivery_faults(delivery.sent, folder.observer.records(TOPIC), len(HOME)) == []


@parts("count", 3, deep=160)
def test_with_the_record_kept_or_deleted_what_a_verb_says_is_what_is_there(
    tmp_path: Path, steady: KafkaCluster, figures: Tell, count: int
) -> None:
    folder = LiveFolder(tmp_path / "here", steady)
    judge(folder, figures, ("kept", "deleted"), count)
    folder.heal(TOPIC)


SMALL: Mapping[str, tuple[Mapping[str, str], int]] = {
    "expired": ({"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}, 10),
    "too small but bare": ({"offsets.topic.num.partitions": "1", "offset.metadata.max.bytes": "512"}, 25),
    "too small": ({"offsets.topic.num.partitions": "1", "offset.metadata.max.bytes": "64"}, 25),
}


@pytest.mark.deep
@pytest.mark.parametrize("record", SMALL)
def test_with_the_record_expired_or_too_small_what_a_verb_says_is_what_is_there(
    tmp_path: Path, new_kafka: Callable[..., KafkaCluster], figures: Tell, record: str
) -> None:
    settings, count = SMALL[record]
    folder = LiveFolder(tmp_path / "here", new_kafka(settings={**SMOOTH, **settings}))
    judge(folder, figures, (record,), count)
