"""Cordoned log dirs on real brokers (KIP-1066): no plan fills such a broker, and a run cordons what it empties."""

import json
import signal
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.declared import declare
from helpers.brokers.run import SMOOTH
from helpers.depth import parts
from helpers.waiting import HANG
from live.folder import LiveFolder

pytestmark = pytest.mark.brokers

CORDON = "cordoned.log.dirs"
SINCE, REFUSED_SINCE = "4.3", "4.4"
FILLED, LEFT, MEANWHILE = "cordon-filled", "cordon-left", "cordon-meanwhile"
DYNAMIC, STATIC = 3, 4
SIZE = 1_000_000
ENDS = ("success", "cancel", "SIGINT", "SIGTERM", "SIGHUP", "killed, then cancel", "killed, then doctor")
MOVED = "stage.done:2"
"""The first stage only hands over a leader, by a list with the emptied broker, which 4.4 takes of an open one alone."""
EVEN = "balance: {replicas: even}"


@pytest.fixture(scope="module")
def cordoned(kafka_version: str) -> Iterator[KafkaCluster]:
    """Four brokers; the file of the last one cordons all its log dirs."""
    if kafka_version < SINCE:
        pytest.skip(f"{CORDON} is of Kafka {SINCE}")
    two = {**SMOOTH, "offsets.topic.replication.factor": "2"}  # Kafka places it itself, on what is not cordoned
    with KafkaCluster(version=kafka_version, broker_ids=(1, 2, DYNAMIC), settings=two) as started:
        started.settings = {**started.settings, CORDON: "*"}
        started.add(STATIC)
        yield started


@pytest.fixture
def folder(tmp_path: Path, cordoned: KafkaCluster) -> Iterator[LiveFolder]:
    live = LiveFolder(tmp_path, cordoned)
    yield live
    set_cordon(live, None)
    live.heal(FILLED, LEFT, MEANWHILE)


def set_cordon(folder: LiveFolder, value: str | None) -> None:
    """Set, or remove, the dynamic cordon of one broker, and wait until it shows."""
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(CORDON, value, incremental_operation=operation)
    folder.admin.list_topics(timeout=HANG)  # only a client that knows a broker can ask it
    resource = ConfigResource(ResourceType.BROKER, str(DYNAMIC), incremental_configs=[entry])
    for answer in folder.admin.incremental_alter_configs([resource]).values():
        answer.result(timeout=HANG)
    wait_for_cordon(folder, value)


def wait_for_cordon(folder: LiveFolder, value: str | None) -> None:
    """Return once the broker shows that cordon: it follows what the controller wrote a moment later."""
    folder.kafka.wait_for(lambda: cordon(folder) == value, f"the cordon {value} to show")


def cordon(folder: LiveFolder) -> str | None:
    """Return the dynamic cordon, as another client sees it."""
    return folder.observer.overrides(ResourceType.BROKER, str(DYNAMIC)).get(CORDON)


def holders(folder: LiveFolder, topic: str) -> set[int]:
    return {replica for replicas, _ in folder.state(topic).values() for replica in replicas}


def placed_by_kafka(folder: LiveFolder) -> set[int]:
    """Return the brokers to which Kafka itself gives replicas of a new topic, which is gone again afterwards."""
    made = folder.admin.create_topics([NewTopic(MEANWHILE, 12, 2)])
    made[MEANWHILE].result(timeout=HANG)
    folder.kafka.wait_for(lambda: len(folder.observer.topic(MEANWHILE)) == 12, "the topic to show")
    placed = holders(folder, MEANWHILE)
    folder.admin.delete_topics([MEANWHILE])[MEANWHILE].result(timeout=HANG)
    folder.kafka.wait_for(lambda: not folder.observer.topic(MEANWHILE), "the topic to be gone")
    return placed


@parts("is_opened", part=False, deep=True)
def test_plan_and_apply_fill_no_broker_that_kafka_cordons(folder: LiveFolder, *, is_opened: bool) -> None:
    def applied(partitions: int, *spec: str) -> set[int]:
        topics = {FILLED: f"partitions: {partitions}, replicationFactor: 2"}
        declare(folder.path, folder.kafka, ", ".join(spec), topics)
        folder.run("plan", "--out", "plan.json", "--detailed-exitcode", expect=2)
        folder.run("apply", "plan.json", "--yes")
        folder.run("plan", "--detailed-exitcode", expect=0)
        return holders(folder, FILLED)

    set_cordon(folder, "*")
    assert applied(4, EVEN) == {1, 2}
    if not is_opened:
        return
    set_cordon(folder, str(folder.kafka.log_dirs(DYNAMIC)[0]))
    opened = applied(6, EVEN)
    assert (DYNAMIC in opened, STATIC in opened) == (True, False)
    active = f"brokers: [{{id: {STATIC}, state: active}}]"
    if folder.kafka.version >= REFUSED_SINCE:
        declare(folder.path, folder.kafka, f"{EVEN}, {active}", {FILLED: "partitions: 6, replicationFactor: 2"})
        folder.run("plan", "--out", "plan.json", "--detailed-exitcode", expect=2)
        assert "(KR461)" in folder.run("apply", "plan.json", "--dry-run", expect=3).err
    else:
        assert STATIC in applied(6, EVEN, active)


def test_a_broker_that_is_emptied_is_cordoned_until_the_run_ends(folder: LiveFolder) -> None:
    before = str(folder.kafka.log_dirs(DYNAMIC)[1])
    set_cordon(folder, before)
    plan = draining(folder)
    folder.kill(MOVED, "apply", plan, "--yes")
    wait_for_cordon(folder, "*")
    # The controller hears of the cordon with the broker's next heartbeat.
    folder.kafka.wait_for(lambda: placed_by_kafka(folder) == {1, 2}, "a new topic to be placed elsewhere")
    folder.run("apply", plan, "--yes")
    assert holders(folder, LEFT) == {1, 2}
    wait_for_cordon(folder, before)


@pytest.mark.deep
@pytest.mark.parametrize("end", ENDS)
def test_whatever_ends_the_run_the_cordon_is_given_back(folder: LiveFolder, end: str) -> None:
    plan = draining(folder)
    if end.startswith("killed"):
        folder.kill(MOVED, "apply", plan, "--yes")
        wait_for_cordon(folder, "*")
        folder.run(*(("cancel", plan) if end.endswith("cancel") else ("doctor", "--fix", "throttles", "--yes")))
    else:
        with folder.started("apply", plan, "--yes") as running:
            wait_for_cordon(folder, "*")
            if end == "cancel":
                folder.run("cancel", plan)
            elif end != "success":
                running.send_signal(signal.Signals[end])
            running.wait(timeout=HANG)
    wait_for_cordon(folder, None)
    lists = on_the_way(folder, plan)
    assert all(replicas in lists[number] for number, (replicas, _) in folder.state(LEFT).items())


def on_the_way(folder: LiveFolder, plan: str) -> Mapping[int, Collection[tuple[int, ...]]]:
    """Return each partition's ordered lists: before the plan, and after each of its moves."""
    found: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    stages = json.loads((folder.path / plan).read_text())["stages"]
    for move in (move for stage in stages for move in stage.get("moves", ())):
        found[move["partition"]] |= {tuple(move["from"]), tuple(move["to"])}
    return found


def draining(folder: LiveFolder) -> str:
    """Return a plan that empties a broker in stages of one partition, with some seconds of copying."""
    partitions = {0: (DYNAMIC, 1), 1: (2, DYNAMIC), 2: (1, DYNAMIC)}
    folder.moves = "throttle: 500kB/s, perStage: 1"
    folder.create({LEFT: partitions}, size=SIZE)
    spec = f"brokers: [{{id: {DYNAMIC}, state: draining}}], moves: {{{folder.moves}}}"
    declare(folder.path, folder.kafka, spec, {LEFT: "replicationFactor: 2"})
    folder.run("plan", "--out", "drain.json", "--detailed-exitcode", expect=2)
    return "drain.json"
