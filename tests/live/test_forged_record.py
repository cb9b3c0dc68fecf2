"""A neighbour writes records into the lock's group of real brokers: unasked, no verb changes anything by them."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import ResourceType
from helpers.brokers.by_hand import create
from helpers.brokers.cluster import KafkaCluster
from helpers.depth import parts
from helpers.figures import Tell
from helpers.plans.forged import LISTS, RATES, forged
from helpers.program.usage import Usage
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from live.folder import CLUSTER, Assignment, LiveFolder
from live.other_hands import LOCK_GROUP

from reconciler.admin.client.lock_kept import pieces

pytestmark = pytest.mark.brokers

REST: Mapping[str, Assignment] = {"forged-a": {0: (1, 2), 1: (3, 4), 2: (5, 6)}, "forged-b": {0: (2, 1), 1: (4, 5)}}
OPERATORS = {
    (ResourceType.BROKER, "1"): {RATES[0]: "7000000"},
    (ResourceType.BROKER, "2"): dict.fromkeys(RATES, "50000000"),
    (ResourceType.TOPIC, "forged-a"): {LISTS[0]: "*", LISTS[1]: "0:2,1:4"},
    (ResourceType.TOPIC, "forged-b"): {LISTS[0]: "0:2"},
}
VERBS: Mapping[str, tuple[str, ...]] = {
    "status": ("status", "--cluster", CLUSTER),
    "doctor": ("doctor", "--cluster", CLUSTER),
    "doctor --fix throttles": ("doctor", "--cluster", CLUSTER, "--fix", "throttles"),
    "cancel": ("cancel", "--cluster", CLUSTER),
    "apply": ("apply", "config.json", "--yes"),
}


@pytest.fixture
def folder(tmp_path: Path, steady: KafkaCluster) -> Iterator[LiveFolder]:
    live = LiveFolder(tmp_path / "here", steady, moves="throttle: 50000000B/s")
    yield live
    live.heal(*REST)


def commit(bootstrap: str, text: str) -> None:
    """Write a text where runs keep their record, as any member of the group can."""
    found = pieces(text, 50) or []
    consumer = KafkaConsumer(bootstrap_servers=bootstrap.split(","), group_id=LOCK_GROUP, enable_auto_commit=False)
    try:
        metadata = [found[number] if number < len(found) else "" for number in range(4)]
        places = [TopicPartition("__consumer_offsets", number) for number in range(4)]
        consumer.assign(places)
        consumer.commit({place: OffsetAndMetadata(0, one, -1) for place, one in zip(places, metadata, strict=True)})
    finally:
        consumer.close()


@parts("count", 10, deep=1000)
def test_unasked_no_verb_changes_anything(folder: LiveFolder, figures: Tell, count: int) -> None:
    create(folder.kafka, REST)
    plan = folder.plan("config", REST, config="retention.ms: 2d")
    assert plan == "config.json"
    folder.run("apply", plan, "--yes")
    folder.set_throttles(OPERATORS)
    chance, counts, usage = random.Random(count), Counter[str](), Usage()
    replicas = {f"{topic}-{number}": one for topic, lists in REST.items() for number, one in lists.items()}

    def seen() -> tuple[object, ...]:
        states = {name: folder.state(name) for name in REST}
        return folder.observer.throttles(tuple(REST), folder.kafka.alive), states

    before = seen()
    for number in range(count):
        text = forged(chance, chance.choice(["0badcafe", "0000beef"]), replicas, ["50000000"])
        commit(folder.kafka.bootstrap, text)
        name = sorted(VERBS)[number % len(VERBS)]
        ended = folder.run(*VERBS[name], expect=None)
        assert ended.code in {0, 1, 3, 5, 64}, f"{name}: {ended.code}\n{ended.err}\n{text}"
        assert "KR003" not in ended.err, f"{name}\n{ended.err}\n{text}"
        assert seen() == before, f"record {number}, {name}: {ended.code}\n{ended.out}\n{ended.err}\n{text}"
        usage.add(name, ended)
        counts[f"{name}, exit {ended.code}"] += 1
        counts["that tell of the record"] += any(code in ended.out + ended.err for code in ("KR460", "KR675", "KR726"))
    commit(folder.kafka.bootstrap, "")
    assert counts["that tell of the record"] >= count // 5
    figures("live, forged records", ", ".join(f"{each} {what}" for what, each in sorted(counts.items())) + ", 0 wrong")
    figures("live, what verbs need beside forged records", str(usage))
