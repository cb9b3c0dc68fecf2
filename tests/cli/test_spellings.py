"""A value that is not spelt as Kafka spells it is refused with its place, or applied once and then no change."""

from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import Program
from helpers.program.documents import write_simulated
from model.topic_configs.spellings import Trial

from reconciler.files.snapshot import read_snapshot

pytestmark = pytest.mark.long


@pytest.mark.parametrize("release", ["3.9", "4.3"])
def test_each_spelling_is_refused_with_its_place_or_its_plan_is_empty_after_the_apply(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    trial = Trial(Program(capsys), Path("desired-state/small"))
    snapshot = write_simulated(small_cluster(*(f"{name}-0: 1" for name in trial.existing), kafka_version=release))
    applied = trial.made()
    topics = read_snapshot(snapshot).topics
    assert trial.wrong(applied, lambda name: topics[name].configs) == []
    assert len({trial.tried[number].key for number in applied}) >= 26
    assert len(applied) >= 98
