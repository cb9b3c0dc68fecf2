"""A value that is not spelt as Kafka spells it, on real brokers: refused with its place, or applied and then no change.

What the brokers show afterwards is read by another client library, and is what `spellings.py` has recorded.
"""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.declared import declare
from helpers.brokers.kafka_jars import DEFAULT_VERSION
from helpers.brokers.observer import Observer
from helpers.figures import Tell
from helpers.program.call import Program
from helpers.waiting import HANG
from model.topic_configs.spellings import Spelling, Trial

pytestmark = pytest.mark.brokers


@pytest.mark.parametrize(
    "tried",
    [
        pytest.param((DEFAULT_VERSION, 7), id="part"),
        *(pytest.param((version, 1), id=version, marks=pytest.mark.deep) for version in ("3.9.1", "4.4.0")),
    ],
)
def test_each_spelling_is_refused_with_its_place_or_its_plan_is_empty_after_the_apply(
    tried: tuple[str, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    figures: Tell,
) -> None:
    """`tried`: Kafka's version, and which of the spellings are tried, each or every seventh."""
    monkeypatch.chdir(tmp_path)
    version, step = tried
    with KafkaCluster(version=version, broker_ids=(1,)) as kafka:
        trial = Trial(Program(capsys), declare(tmp_path, kafka), step)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        for made in admin.create_topics([NewTopic(name, 1, 1) for name in trial.existing]).values():
            made.result(HANG)
        taken = taken_of_refused(admin, trial)
        applied = trial.made()
        observer = Observer(kafka.bootstrap)
        wrong = trial.wrong(applied, lambda name: observer.overrides(ResourceType.TOPIC, name))
    keys = {trial.tried[number].key for number in applied}
    figures(f"spellings on {version}", f"{len(trial.tried)} tried, {len(applied)} of {len(keys)} keys applied twice")
    assert not wrong, "\n".join(wrong)
    assert not taken, f"recorded as refused, and taken: {taken}"


def taken_of_refused(admin: AdminClient, trial: Trial) -> list[Spelling]:
    """Return the spellings that are recorded as refused, and that Kafka takes; nothing of them is changed."""
    asked = {}
    for number, spelling in trial.tried.items():
        if spelling.shown is None:
            entry = ConfigEntry(spelling.key, spelling.text, incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(ResourceType.TOPIC, f"old-{number}", incremental_configs=[entry])
            asked[number] = admin.incremental_alter_configs([resource], validate_only=True)[resource]
    return [trial.tried[number] for number, answer in asked.items() if answer.exception(HANG) is None]
