"""The demo is what it says it is, and what the repository shows is what `init --demo` writes."""

from collections import Counter
from pathlib import Path

import pytest

from reconciler.files.snapshot import read_snapshot
from reconciler.workflow.demo import demo_cluster, demo_files
from reconciler.workflow.layout import layout_files

SHOWN = Path(__file__).parents[2] / "desired-state" / "demo"


def test_the_repository_shows_the_files_that_the_demo_writes() -> None:
    files = demo_files()
    assert sorted(path.relative_to(SHOWN).as_posix() for path in SHOWN.rglob("*") if path.is_file()) == sorted(files)
    for name, text in files.items():
        assert (SHOWN / name).read_text(encoding="utf-8") == text, name


def test_the_shown_snapshot_is_the_demos_cluster() -> None:
    assert read_snapshot(SHOWN / "snapshot.json") == demo_cluster()


def test_the_demo_has_the_size_that_init_tells() -> None:
    cluster = demo_cluster()
    assert len(cluster.brokers) == 6
    assert {broker.rack for broker in cluster.brokers.values()} == {"a", "b", "c"}
    assert len(cluster.topics) == 40
    assert len(dict(cluster.partitions())) == 480


def test_what_is_wrong_is_wrong_on_purpose_and_nothing_else_is() -> None:
    cluster = demo_cluster()
    racks = {broker.id: broker.rack for broker in cluster.brokers.values()}
    partitions = dict(cluster.partitions())
    short = {key.topic for key, one in partitions.items() if len(one.replicas) != 3}
    crowded = [
        str(key) for key, one in partitions.items() if len({racks[id_] for id_ in one.replicas}) < len(one.replicas)
    ]
    not_led = [key for key, one in partitions.items() if one.leader != one.preferred_leader]
    assert short == {"clicks"}
    assert crowded == ["sessions-4", "sessions-9"]
    assert len(not_led) == 5
    assert all(set(one.isr) == set(one.replicas) for one in partitions.values())
    assert set(Counter(one.preferred_leader for one in partitions.values()).values()) == {80}


def test_every_log_dir_has_room_for_what_it_holds() -> None:
    cluster = demo_cluster()
    for broker in cluster.brokers.values():
        for log_dir in broker.log_dirs:
            held = sum(
                size or 0
                for _, one in cluster.partitions()
                for replica, path, size in zip(one.replicas, one.log_dirs, one.sizes, strict=True)
                if (replica, path) == (broker.id, log_dir.path)
            )
            assert log_dir.total_bytes is not None
            assert log_dir.usable_bytes == log_dir.total_bytes - held > 0.2 * log_dir.total_bytes


@pytest.mark.parametrize("schemas", [None, "../../schemas", "https://example.org/schemas"])
def test_schema_lines_stand_first_or_nowhere(schemas: str | None) -> None:
    texts = {**demo_files(schemas), **layout_files("prod-eu", schemas)}
    for name, text in texts.items():
        if name.endswith(".yaml"):
            first = text.splitlines()[0]
            assert first.startswith(f"# yaml-language-server: $schema={schemas}/") is (schemas is not None)


def test_the_layout_names_the_cluster() -> None:
    assert "metadata: {name: prod-eu}" in layout_files("prod-eu")["cluster.yaml"]
    assert "${env:KAFKA_USERNAME}" in layout_files("prod-eu")["cluster.yaml"]
