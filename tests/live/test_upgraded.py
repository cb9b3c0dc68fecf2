"""Topics that keep a config which Kafka 4.0 has removed, on brokers of 3.9.1 that were upgraded with their data.

Brokers of 4.0 to 4.2 refuse every change of such a topic's configs; 4.3 and later have forgotten the key (KAFKA-19851).
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic, ResourceType
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.declared import assigned, declare
from helpers.brokers.run import SMOOTH
from helpers.figures import Tell
from helpers.program.warm import Ended
from helpers.waiting import HANG, asked_again
from live.folder import LiveFolder

pytestmark = pytest.mark.brokers

OLD, BLOCKING, FORGETTING = "3.9.1", "4.1.1", "4.4.0"
FORMAT, DOWN, DIFFERENCE = (
    "message.format.version",
    "message.downconversion.enable",
    "message.timestamp.difference.max.ms",
)
SET: Mapping[str, Mapping[str, str]] = {
    "clean": {},
    "format": {FORMAT: "3.0-IV1"},
    "down": {DOWN: "false"},
    "difference": {DIFFERENCE: "1000"},
    "two": {FORMAT: "3.0", DOWN: "false", "retention.ms": "777777"},
}
BEFORE, AFTER = {0: (1, 2)}, {0: (3, 2)}
DIRTY = [name for name in SET if name != "clean"]


@pytest.fixture
def upgraded(tmp_path: Path) -> Iterator[LiveFolder]:
    """Three brokers of 3.9.1 with these topics; the test upgrades them."""
    with KafkaCluster(version=OLD, broker_ids=(1, 2, 3), settings=SMOOTH) as kafka:
        folder = LiveFolder(tmp_path, kafka)
        topics = [NewTopic(name, replica_assignment=[[1, 2]], num_partitions=1, config=dict(SET[name])) for name in SET]
        for made in folder.admin.create_topics(topics).values():
            made.result(HANG)
        for name in SET:
            kafka.produce(name, 0, size=200_000)
        yield folder


def write(folder: LiveFolder, nulls: Mapping[str, list[str]], *names: str) -> None:
    """Declare the topics on other brokers, each with these keys as null."""
    topics = {
        name: f"config: {{{', '.join(f'{key}: null' for key in nulls.get(name, []))}}}, {assigned(AFTER)}"
        for name in names or SET
    }
    declare(folder.path, folder.kafka, f"moves: {{{folder.moves}}}", topics)


def blamed(ended: Ended) -> list[str]:
    """Return the topics that a message names as refused or left with a throttle."""
    return [name for name in SET if f"topic {name}: " in ended.err or f"topic {name} keeps" in ended.err]


def overrides(folder: LiveFolder, name: str) -> Mapping[str, str]:
    return folder.observer.overrides(ResourceType.TOPIC, name)


def test_removed_keys_are_named_refused_with_their_place_and_deleted_by_null(
    upgraded: LiveFolder, figures: Tell
) -> None:
    folder, kafka = upgraded, upgraded.kafka
    write(folder, {})
    folder.run("plan", "--out", "old.json", "--detailed-exitcode", expect=2)
    for number, broker in enumerate(kafka.broker_ids, 1):
        kafka.upgrade(BLOCKING, broker)
        folder.run("snapshot", "--out", "state.json")
        snapshot = json.loads((folder.path / "state.json").read_text())
        assert {topic["name"] for topic in snapshot["topics"]} >= {*SET}, f"{number} of 3 brokers upgraded"
    doctor = folder.run("doctor", "-o", "json", expect=None)
    (found,) = [one for one in json.loads(doctor.out)["findings"] if one["code"] == "KR639"]
    assert (sorted(found["topics"]), found["severity"]) == (sorted(DIRTY), "warning")
    planned = folder.run("plan", "--out", "plan.json", expect=1)
    assert (blamed(planned), planned.err.count("(KR611)"), planned.err.count("cluster.yaml:")) == (DIRTY, 4, 4)
    for option in ("--dry-run", "--yes"):
        refused = folder.run("apply", "old.json", option, expect=1)
        assert (blamed(refused), "(KR611)" in refused.err, "KR720" in refused.err) == (DIRTY, True, False), refused
        assert all(folder.observer.topic(name)[0].replicas == BEFORE[0] for name in SET)
    write(folder, {}, "clean")
    folder.run("plan", "--out", "clean.json", "--detailed-exitcode", expect=2)
    folder.run("apply", "clean.json", "--yes")
    nulls = {name: [key for key in config if key != "retention.ms"] for name, config in SET.items()}
    write(folder, nulls)
    folder.run("plan", "--out", "plan.json", "--detailed-exitcode", expect=2)
    folder.run("apply", "plan.json", "--dry-run")
    ended = folder.run("apply", "plan.json", "--yes")
    assert "KR720" not in ended.err + ended.out
    for name in SET:
        assert folder.observer.topic(name)[0].replicas == AFTER[0]
        kept = {key: value for key, value in SET[name].items() if key == "retention.ms"}
        assert overrides(folder, name) == kept
    for verb in ("plan", "diff"):
        folder.run(verb, "--detailed-exitcode")
    assert "KR639" not in folder.run("doctor", expect=None).out
    figures("removed keys", f"{len(DIRTY)} topics on {BLOCKING}: named, refused, deleted by null, moved")


def test_a_release_that_forgets_removed_keys_blocks_nothing(upgraded: LiveFolder) -> None:
    folder = upgraded
    for broker in folder.kafka.broker_ids:
        folder.kafka.upgrade(FORGETTING, broker)
    write(folder, {name: list(config) for name, config in SET.items() if name != "two"})
    folder.run("plan", "--out", "plan.json", "--detailed-exitcode", expect=2)
    folder.run("apply", "plan.json", "--yes")
    folder.run("plan", "--detailed-exitcode")
    asked_again(lambda: [overrides(folder, name) for name in SET], AssertionError)
    assert "KR639" not in folder.run("doctor", expect=None).out
