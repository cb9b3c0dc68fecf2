"""After kill -9 and with its folder gone, a run is cleaned up from a machine that knows nothing of it."""

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, ElectionType, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from helpers.brokers.by_hand import create
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.controller import reassignments
from helpers.brokers.declared import client_file
from helpers.brokers.run import SMOOTH
from helpers.depth import parts
from helpers.figures import Tell
from helpers.program.warm import Ended, Kill, run
from helpers.waiting import HANG
from live.folder import CLUSTER, Assignment, LiveFolder
from live.other_hands import LOCK_GROUP, bury, reassign

from reconciler.apply.crash import CRASH_POINTS

pytestmark = pytest.mark.brokers

QUICK, SLOW, OTHER = "bare-quick", "bare-slow", "bare-other"
TOPICS = (QUICK, SLOW, OTHER)
BACK: Mapping[str, Assignment] = {
    QUICK: {0: (1, 2), 1: (3, 4), 2: (5, 6), 3: (2, 5)},
    SLOW: {0: (1, 2), 1: (4, 3), 2: (6, 1)},
}
THERE: Mapping[str, Assignment] = {
    QUICK: {0: (3, 2), 1: (4, 3), 2: (6, 1), 3: (2, 4)},
    SLOW: {0: (3, 2), 1: (4, 5), 2: (1, 2)},
}
RATES = {QUICK: "1000000", SLOW: "50000"}
SIZES = {QUICK: 20_000, SLOW: 1_500_000}
"""What is slow copies for 30 s."""
WAYS = ("doctor", "apply", "cancel")
LOCK_AWAITED = 8
OF_OTHER_STEPS = {
    "dirs.before", "dirs.recorded", "dirs.sent", "topics.before", "topics.sent", "withdraw.before", "withdraw.sent",
}  # fmt: skip
POINTS = sorted({*CRASH_POINTS} - OF_OTHER_STEPS)
RATE_KEYS = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
Values = Mapping[tuple[ResourceType, str], Mapping[str, str]]


def operators(number: int, topic: str) -> Values:
    """Return what an operator has set before a run that moves this topic: all of it, for every broker and topic."""
    both = dict.fromkeys(RATE_KEYS, RATES[topic])
    rates: dict[str, Mapping[str, str]] = {str(broker): {} for broker in range(1, 7)}
    lists: dict[str, Mapping[str, str]] = {QUICK: {}, SLOW: {}}
    match number % 4:
        case 0:
            rates |= {"1": both, "2": {RATE_KEYS[0]: RATES[topic]}, "4": both}
        case 1:
            lists[topic] = {LEADERS: "*", FOLLOWERS: "0:1,2:6"}
        case 2:
            rates |= {"3": {RATE_KEYS[0]: "9000000"}, "2": both}
            lists[topic] = {LEADERS: "2:6,0:1,7:9", FOLLOWERS: "*"}
        case _:
            lists[topic] = {LEADERS: "", FOLLOWERS: "1:4"}
    return {(ResourceType.BROKER, name): keys for name, keys in rates.items()} | {
        (ResourceType.TOPIC, name): keys for name, keys in lists.items()
    }


def _is_in_order(ended: Ended) -> bool:
    """Whether it ended well, or with 5 and what it names: what the record alone says, or an operator's own list."""
    undecided = ("KR726", "nothing shows whether a run or somebody else set it")
    return ended.code == 0 or (ended.code == 5 and any(words in ended.out + ended.err for words in undecided))


@dataclass
class Bare:
    """One run after the other, each killed and bereft of its folder, then cleaned up from elsewhere."""

    folder: LiveFolder
    plans: Mapping[str, str]
    chance: random.Random
    requests: dict[str, int]
    set_now: Values = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    phases: Counter[str] = field(default_factory=Counter)
    direction: str = "back"

    def round(self, number: int) -> None:
        """Kill one run, and clean up after it."""
        way = WAYS[number % len(WAYS)]
        topic = SLOW if (way == "cancel" and number % 4) or (way == "apply" and number % 8 == 2) else QUICK
        if topic == SLOW and {number: one[0] for number, one in self.folder.state(SLOW).items()} != BACK[SLOW]:
            as_at_first(self.folder)
        self._set(operators(number, topic))
        before, states = self._throttles(), self._states()
        plan = "slow" if topic == SLOW else self._quick_plan()
        phase = self._killed(number, plan, topic)
        if phase is None:
            return
        if number % LOCK_AWAITED:
            bury(self.folder.kafka.bootstrap)
        told = self._cleaned_up(way, number)
        self.folder.kafka.wait_for(
            lambda: self._throttles() == before,
            "throttles as they were",
            seen=lambda: f"round {number}, {plan}, died in {phase}: {self._throttles()}, not {before}\n{told}",
        )
        assert self._record() == [], f"round {number}, {plan}, died in {phase}: a record is left\n{told}"
        assert reassignments(self.folder.kafka.bootstrap) == {}
        if way == "cancel":
            self._check_places(states, plan, told)
        self.counts[f"kills, {way}"] += 1
        self.phases[phase] += 1

    def _killed(self, number: int, plan: str, topic: str) -> str | None:
        """Let a run die on a machine of its own, which is gone with it; return in which phase, None if it did not."""
        place = self._place("there", with_cluster=number % 2 == 0)
        shutil.copy(self.folder.path / self.plans[plan], place / "plan.json")
        kill = Kill.drawn(self.chance, self.requests[topic])
        if number % 5 < 2:
            kill = Kill(point=f"{self.chance.choice(POINTS)}:{self.chance.randint(1, 2)}")
        ended = run("apply", "plan.json", "--yes", *self._where(number, place), cwd=place, kill=kill)
        lines = [one for path in place.glob("**/*.jsonl") for one in path.read_text().splitlines()]
        shutil.rmtree(place)
        if not ended.is_killed:
            assert ended.code == 0, ended.err
            self.counts["not killed"] += 1
            self.requests[topic] = ended.requests
            return None
        return f"{json.loads(lines[-1])['step']} {json.loads(lines[-1])['outcome']}" if lines else "before its journal"

    def _cleaned_up(self, way: str, number: int) -> str:
        """Clean up from an empty machine; where moves are in flight it refuses first, and their end is awaited."""
        place = self._place("elsewhere", with_cluster=number % 2 == 0)
        where = self._where(number, place)
        verb: tuple[str, ...] = ("doctor", "--fix", "throttles", "--yes")
        if way == "apply":
            self._undo_other()
            shutil.copy(self.folder.path / self.plans["other"], place / "other.json")
            verb = ("apply", "other.json", "--yes")
        elif way == "cancel" and self._record():
            is_left = not number % 2 or self._refused(run(*verb, *where, cwd=place))
            verb = ("cancel", "--yes") if is_left else verb
        dead, is_recorded = self._throttles(), bool(self._record())
        ended = run(*verb, *where, cwd=place)
        if self._refused(ended):
            self.folder.kafka.wait_for(lambda: not reassignments(self.folder.kafka.bootstrap), "the moves to end")
            ended = run(*verb, *where, cwd=place)
        told = f"{verb} {where}: {ended.code}\n{ended.out}\n{ended.err}"
        assert _is_in_order(ended), told
        if way == "apply":
            assert (self._throttles(), bool(self._record())) == (dead, is_recorded), f"it touched something: {told}"
            assert ("KR726" in ended.err) is is_recorded, told
        if verb[0] != "doctor":
            fixed = run("doctor", "--fix", "throttles", "--yes", *where, cwd=place)
            told += f"\nthen doctor: {fixed.code}\n{fixed.out}\n{fixed.err}"
            assert _is_in_order(fixed), told
        shutil.rmtree(place)
        return told

    def _refused(self, ended: Ended) -> bool:
        """Return whether it was refused because moves of the dead run are in flight."""
        code = next((code for code in ("KR455", "KR457") if code in ended.err), None)
        if ended.code != 3 or code is None:
            return False
        self.counts[f"refused, {code}"] += 1
        return True

    def _check_places(self, before: Mapping[str, tuple[tuple[int, ...], int]], plan: str, told: str) -> None:
        """Assert that each partition is where it was, leader and all, or where the plan wanted it.

        One that an earlier run brought there, and did not live to elect, may have the leader that this one gave it.
        """
        content = json.loads((self.folder.path / self.plans[plan]).read_text())
        moves = [move for stage in content["stages"] for move in stage.get("moves", ())]
        targets = {f"{move['topic']}-{move['partition']}": tuple(move["to"]) for move in moves}
        elections = [one for stage in content["stages"] for one in stage.get("elections", ())]
        elected = {f"{one['topic']}-{one['partition']}": one["leader"] for one in elections}
        for name, (replicas, leader) in self._states().items():
            if replicas == before[name][0]:
                own = elected.get(name) if targets.get(name) == replicas else None
                assert leader in {before[name][1], own}, f"{name} is led by {leader}, before by {before[name]}\n{told}"
                self.counts["partitions as before"] += 1
            else:
                assert replicas == targets[name], f"{name} is on {replicas}, before on {before[name]}\n{told}"
                self.counts["partitions done"] += 1

    def _undo_other(self) -> None:
        """Let the other plan have something to do."""
        gone = [ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE)]
        asked = ConfigResource(ResourceType.TOPIC, OTHER, incremental_configs=gone)
        self.folder.admin.incremental_alter_configs([asked])[asked].result(HANG)
        observer = self.folder.observer
        self.folder.kafka.wait_for(lambda: "retention.ms" not in observer.overrides(ResourceType.TOPIC, OTHER), "it")

    def _quick_plan(self) -> str:
        """Return the plan that has something left to do: there, or back again."""
        wanted = THERE[QUICK] if self.direction == "forth" else BACK[QUICK]
        if {number: state[0] for number, state in self.folder.state(QUICK).items()} == wanted:
            self.direction = "back" if self.direction == "forth" else "forth"
        return self.direction

    def _place(self, name: str, *, with_cluster: bool) -> Path:
        """Return a folder, as of another machine, with nothing in it, or with the cluster's document alone."""
        place = self.folder.path.with_name(name)
        place.mkdir()
        if with_cluster:
            root = place / "desired-state" / CLUSTER
            root.mkdir(parents=True)
            whole = (self.folder.path / "desired-state" / CLUSTER / "cluster.yaml").read_text()
            (root / "cluster.yaml").write_text(whole.partition("---")[0])
        return place

    def _where(self, number: int, place: Path) -> tuple[str, ...]:
        """Return how the cluster is named: by that folder's document, or by a client's file."""
        return client_file(place, self.folder.kafka) if number % 2 else ("--cluster", CLUSTER)

    def _set(self, values: Values) -> None:
        self.folder.set_throttles({key: keys for key, keys in values.items() if self.set_now.get(key, {}) != keys})
        self.set_now = values

    def _throttles(self) -> Mapping[str, str]:
        return self.folder.observer.throttles(TOPICS, self.folder.kafka.alive)

    def _states(self) -> dict[str, tuple[tuple[int, ...], int]]:
        return {f"{topic}-{n}": state for topic in (QUICK, SLOW) for n, state in self.folder.state(topic).items()}

    def _record(self) -> list[str]:
        """Return what is kept in the cluster, as another client reads it, which reads beyond the end of long texts."""
        asked = ConsumerGroupTopicPartitions(LOCK_GROUP)
        found = self.folder.admin.list_consumer_group_offsets([asked])[LOCK_GROUP].result(HANG)
        try:
            return [one.metadata for one in found.topic_partitions if one.metadata]
        except UnicodeDecodeError:
            return ["a text"]


@pytest.fixture
def folder(tmp_path: Path, steady: KafkaCluster) -> Iterator[LiveFolder]:
    live = LiveFolder(tmp_path / "here", steady)
    yield live
    live.heal(*TOPICS)


def planned(folder: LiveFolder) -> Mapping[str, str]:
    """Create the topics and make every plan; return their files by name."""
    first = {**BACK, SLOW: {**BACK[SLOW], 0: (2, 1)}, OTHER: {0: (1, 2)}}
    create(folder.kafka, first)
    for topic, size in SIZES.items():
        for number in BACK[topic]:
            folder.kafka.produce(topic, number, size=size)
    as_at_first(folder)

    def plan(name: str, topics: Mapping[str, Assignment], config: str = "") -> str:
        folder.write(topics, config=config)
        ended = run("plan", "--out", f"{name}.json", "--detailed-exitcode", cwd=folder.path)
        assert ended.code == 2, ended.err
        return f"{name}.json"

    folder.moves = f"throttle: {RATES[SLOW]}B/s, perStage: 3, perPartition: 3"
    plans = {"slow": plan("slow", {SLOW: THERE[SLOW]})}
    folder.moves = f"throttle: {RATES[QUICK]}B/s, perStage: 2, perPartition: 3"
    plans["forth"] = plan("forth", {QUICK: THERE[QUICK]})
    plans["other"] = plan("other", {OTHER: {0: (1, 2)}}, config="retention.ms: 2d")
    put(folder, {QUICK: THERE[QUICK]})
    plans["back"] = plan("back", {QUICK: BACK[QUICK]})
    return plans


def as_at_first(folder: LiveFolder) -> None:
    """Give the slow topic the replicas and leaders that every round begins with: one is led by its second replica."""
    put(folder, {SLOW: {**BACK[SLOW], 0: (2, 1)}})
    wanted = {number: one[0] for number, one in BACK[SLOW].items()} | {0: 2}

    def is_led_so() -> bool:
        if {number: state[1] for number, state in folder.state(SLOW).items()} == wanted:
            return True
        folder.admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(SLOW, n) for n in wanted]).result(HANG)
        return False

    folder.kafka.wait_for(is_led_so, "its leaders")
    put(folder, {SLOW: {0: (1, 2)}})


def put(folder: LiveFolder, topics: Mapping[str, Assignment]) -> None:
    """Have these partitions on these replicas, by another client's hand."""
    bootstrap = folder.kafka.bootstrap
    reassign(bootstrap, {f"{name}-{number}": one for name, of in topics.items() for number, one in of.items()})
    folder.kafka.wait_for(lambda: not reassignments(bootstrap), "the replicas to be there")
    folder.observer.catch_up(topics)


@parts("kills", 2, deep=110)
def test_an_empty_machine_cleans_up_after_a_run_that_was_killed(folder: LiveFolder, figures: Tell, kills: int) -> None:
    bare = Bare(folder, planned(folder), random.Random(kills), {QUICK: 150, SLOW: 150})
    number = 0
    while bare.phases.total() < kills:
        bare.round(number)
        number += 1
        counted = ", ".join(f"{count} {name}" for name, count in sorted(bare.counts.items()))
        phases = ", ".join(f"{name} {count}" for name, count in sorted(bare.phases.items()))
        told = f"{bare.phases.total()} kill -9 of {bare.requests} requests: {counted}; died in: {phases}"
        figures("live kills, folder deleted", told)


@pytest.mark.deep
def test_a_run_of_more_moves_than_its_record_holds_goes_back_to_the_replicas_it_had(
    tmp_path: Path, new_kafka: Callable[..., KafkaCluster], figures: Tell
) -> None:
    kafka = new_kafka(broker_ids=(1, 2, 3, 4), settings={**SMOOTH, "offsets.topic.num.partitions": "1"})
    folder = LiveFolder(tmp_path / "here", kafka, moves="throttle: 50kB/s, perStage: 2000, perBroker: 2000")
    chance = random.Random(1)
    drawn = {number: chance.sample(kafka.broker_ids, 3) for number in range(1000)}
    before = {number: (first, second) for number, (first, second, _) in drawn.items()}
    after = {number: (second, third) for number, (_, second, third) in drawn.items()}
    create(kafka, {SLOW: before})
    for number in range(5):
        kafka.produce(SLOW, number, size=SIZES[SLOW])
    folder.set_throttles({(ResourceType.BROKER, "2"): {RATE_KEYS[0]: "50000"}})
    throttles = folder.observer.throttles((SLOW,), kafka.alive)
    plan = folder.plan("plan", {SLOW: after})
    folder.kill("poll:2", "apply", plan, "--yes")
    shutil.rmtree(folder.path)
    bury(kafka.bootstrap)
    empty = tmp_path / "empty"
    empty.mkdir()
    ended = folder.run("cancel", "--yes", *client_file(empty, kafka), cwd=empty, expect=None)
    assert "the order of replicas before the run is not in that record" in ended.err
    assert reassignments(kafka.bootstrap) == {}
    folder.run("doctor", "--fix", "throttles", "--yes", *client_file(empty, kafka), cwd=empty)
    kafka.wait_for(lambda: folder.observer.throttles((SLOW,), kafka.alive) == throttles, "throttles as they were")
    found = {number: state[0] for number, state in folder.state(SLOW).items()}
    back = [number for number, replicas in found.items() if set(replicas) == set(before[number])]
    assert {*range(5)} <= {*back}
    assert all(found[number] == after[number] for number in found if number not in back)
    ordered = sum(found[number] == before[number] for number in back)
    told = f"of 1000 moves {len(back)} went back, {ordered} of them in their order; {ended.out.strip()}"
    figures("live, more moves than a record holds", told)
