"""The demo is what it says it is, and what the repository shows is what `init --demo` writes."""

from collections import Counter
from pathlib import Path

import pytest

from reconciler.files.load import load_desired
from reconciler.files.snapshot import read_snapshot
from reconciler.model.desired import Even, Spread
from reconciler.workflow.demo import demo_cluster, demo_files
from reconciler.workflow.init import layout_files

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


def test_the_demo_is_read_without_a_problem_and_asks_for_what_its_comments_say() -> None:
    desired = load_desired(SHOWN.parent, "demo")
    assert desired.cluster.simulation == "snapshot.json"
    assert desired.cluster.cluster_id == demo_cluster().cluster_id
    assert (desired.cluster.balance.replicas, desired.cluster.balance.leaders) == (Even(), Even())
    assert [pattern.name for pattern in desired.patterns] == ["metrics.*"]
    undeclared = {name for name in demo_cluster().topics if not name.startswith("metrics.")} - set(desired.topics)
    assert not undeclared
    assert set(desired.topics) - set(demo_cluster().topics) == {"wishlists"}
    assert desired.topics["clicks"].replication_factor == 3
    assert str(desired.topics["clicks"].where("replicationFactor")) == "demo/web.yaml:9"
    assert str(desired.topics["sessions"].where("placement.racks.spread")) == "demo/classes.yaml:7"
    assert desired.topics["pageviews"].partitions == 18
    assert desired.topics["orders.events"].config["retention.ms"] == "604800000"


def test_what_the_demo_does_not_want_changed_is_as_it_is() -> None:
    desired, observed = load_desired(SHOWN.parent, "demo"), demo_cluster()
    wanted = {"clicks", "orders.events", "pageviews", "wishlists"}
    for name in desired.topics.keys() - wanted:
        topic = observed.topics[name]
        assert desired.topics[name].partitions == len(topic.partitions)
        assert desired.topics[name].config == topic.configs
        assert desired.topics[name].replication_factor == 3


def test_a_new_layout_is_read_without_a_problem(tmp_path: Path) -> None:
    for name, text in layout_files("prod-eu").items():
        path = tmp_path / "prod-eu" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    desired = load_desired(tmp_path, "prod-eu")
    assert desired.cluster.client == {"bootstrap.servers": "localhost:9092"}
    assert desired.topics["example"].placement.racks_spread is Spread.PREFER
