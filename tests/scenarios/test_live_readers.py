"""Files are lost on real brokers: a topic with live consumers is never deleted, before and after the plan was made."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.brokers.by_hand import create, delete
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.declared import declare
from helpers.brokers.observer import Observer
from helpers.program.warm import reconciler
from scenarios.consumers import Consumers

pytestmark = pytest.mark.brokers

RUN = uuid.uuid4().hex[:6]
READ, MATCHED, FREE = (f"lost-{RUN}-{name}" for name in ("clicks", "orders", "stock"))
TOPICS = (READ, MATCHED, FREE)


@pytest.fixture
def live(kafka: KafkaCluster) -> Iterator[KafkaCluster]:
    create(kafka, {name: [[1, 2], [2, 3]] for name in TOPICS})
    yield kafka
    delete(kafka, *TOPICS)


def test_what_live_consumers_read_is_not_deleted_with_its_file(live: KafkaCluster, tmp_path: Path) -> None:
    """A classic group, and one of KIP-848, from Kafka 4.0 on, that subscribes by a pattern; each of two members."""
    declare(tmp_path, live, "topics: {managed: all, delete: allow}, limits: {deletedTopics: 3}")
    plan = ("plan", "--only", f"lost-{RUN}-*", "--out", "plan.json")
    named, by_pattern = f"named-{RUN}", f"by-pattern-{RUN}"
    protocol = ("range", "classic") if live.version.startswith("3.") else ("uniform", "consumer")
    with (
        Consumers(live.bootstrap, named, [READ]) as one,
        Consumers(live.bootstrap, by_pattern, [f"^lost-{RUN}-ord.*"], *protocol) as other,
    ):
        for group in (one, other):
            group.join("ada", "bob")
            group.wait_until_all_is_owned(2)
        refused = reconciler(*plan, cwd=tmp_path, expect=3)
        assert f"topic {READ} is not declared, but group {named} reads it" in refused.out
        assert f"topic {MATCHED} is not declared, but group {by_pattern} reads it" in refused.out
        assert deleted(tmp_path / "plan.json") == [FREE]
        reconciler("apply", "plan.json", "--yes", cwd=tmp_path, expect=3)
    reconciler(*plan, cwd=tmp_path)
    assert deleted(tmp_path / "plan.json") == list(TOPICS)
    with Consumers(live.bootstrap, named, [READ]) as late:
        late.join("cyd")
        late.wait_until_all_is_owned(2)
        for options in (["--dry-run"], ["--yes"]):
            stopped = reconciler("apply", "plan.json", *options, cwd=tmp_path, expect=3)
            assert f"{READ} (by {named})" in stopped.err
    seen = Observer(live.bootstrap)
    assert all(seen.topic(name) for name in TOPICS)
    reconciler("apply", "plan.json", "--yes", cwd=tmp_path)
    live.wait_for(lambda: not any(seen.topic(name) for name in TOPICS), "the topics to be gone")


def deleted(plan: Path) -> list[str]:
    """Return the topics that a plan file deletes."""
    changes = json.loads(plan.read_text("utf-8"))["topicChanges"]
    return [change["topic"] for change in changes if change["kind"] == "deleteTopic"]
