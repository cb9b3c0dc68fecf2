"""A team's week on real brokers, by the installed command: adopt, change, review, and apply in time boxes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from helpers.brokers.by_hand import create
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.declared import declare
from helpers.brokers.observer import Observer
from helpers.brokers.run import SMOOTH
from helpers.program.command_line import Outcome
from journeys.installed import Installed

pytestmark = pytest.mark.brokers

ORDERS, PAYMENTS = "orders", "payments"
PLACES = {ORDERS: [[1, 2], [2, 3], [3, 1], [1, 3], [2, 1], [3, 2]], PAYMENTS: [[1, 2, 3], [2, 3, 1], [3, 1, 2]]}
MOST_COMMENT = 65_536
MOST_ROUNDS = 30
STOPPED = 5


class Team:
    """A team's repository, and the cluster that it describes."""

    def __init__(self, installed: Installed, folder: Path, kafka: KafkaCluster) -> None:
        self.installed, self.folder, self.kafka = installed, folder, kafka
        self.observer = Observer(kafka.bootstrap)
        self.root = folder / "desired-state" / "live"

    def run(self, *arguments: str, expect: int = 0) -> Outcome:
        """Run one command in the repository."""
        return self.installed.run(*arguments, cwd=self.folder, expect=expect)

    def create_topics(self) -> None:
        """Make the topics as somebody made them by hand, years ago."""
        create(self.kafka, PLACES)
        for number in range(len(PLACES[ORDERS])):
            self.kafka.produce(ORDERS, number, size=1_500_000)

    def adopt(self) -> None:
        """Say how to reach the cluster, and take over what it shows."""
        declare(self.folder, self.kafka, "moves: {throttle: 1MiB/s, perStage: 1}")
        self.run("import", "--cluster", "live")

    def edit(self, topic: str, field: str, value: object) -> None:
        """Change one field of a topic's document, as an editor does."""
        for path in sorted(self.root.rglob("*.yaml")):
            documents = list(yaml.safe_load_all(path.read_text("utf-8")))
            for document in documents:
                if document["kind"] == "Topic" and document["metadata"].get("name") == topic:
                    document["spec"][field] = value
                    path.write_text(yaml.safe_dump_all(documents, sort_keys=False), "utf-8")
                    return
        raise AssertionError(f"no document of topic {topic} below {self.root}")

    def apply_in_time_boxes(self) -> list[int]:
        """Run the saved plan as a schedule does, a box at a time, and return each exit code.

        The first ones are too short for all; each is longer than the last, so that a slow machine gets on as well.
        """
        codes: list[int] = []
        while len(codes) < MOST_ROUNDS:
            box = f"{3 + len(codes)}s"
            command = ("apply", "plan.json", "--yes", "--max-duration", box, "--metrics", "run.prom")
            codes.append(self.installed.try_(*command, cwd=self.folder).code)
            metrics = (self.folder / "run.prom").read_text("utf-8")
            assert f'reconciler_run_exit_code{{cluster="live"}} {codes[-1]}\n' in metrics
            assert ("last_success" in metrics) == (codes[-1] == 0)
            if codes[-1] != STOPPED:
                return codes
            self.kafka.wait_for(self.is_quiet, "throttles and moves to be gone between two boxes")
        raise AssertionError(f"no end after {MOST_ROUNDS} boxes")

    def is_quiet(self) -> bool:
        """Whether nothing is throttled, and every replica is in sync."""
        states = list(self.observer.partitions(*PLACES))
        is_in_sync = all(state.isr == set(state.replicas) for state in states)
        return is_in_sync and not self.observer.throttles(tuple(PLACES), self.kafka.alive)

    def replication_factors(self) -> set[int]:
        """Return the replication factors of the partitions of `orders`."""
        return {len(state.replicas) for state in self.observer.partitions(ORDERS)}


@pytest.mark.deep
def test_adopt_change_review_and_apply_in_time_boxes(
    installed: Installed, tmp_path: Path, new_kafka: Callable[..., KafkaCluster]
) -> None:
    team = Team(installed, tmp_path, new_kafka(broker_ids=(1, 2, 3), settings=SMOOTH))
    team.create_topics()
    team.adopt()
    assert "No changes" in team.run("plan", "--detailed-exitcode").out

    team.edit(ORDERS, "replicationFactor", 4)
    assert "4" in team.run("plan", expect=1).err  # three brokers cannot hold four replicas: said before anything runs
    team.edit(ORDERS, "replicationFactor", 3)
    team.run("validate")
    team.run("plan", "--out", "plan.json", "--detailed-exitcode", expect=2)
    comment = team.run("show", "plan.json", "-o", "markdown").out
    assert comment.startswith("<!-- reconciler")
    assert len(comment) <= MOST_COMMENT
    assert ORDERS in comment
    assert team.replication_factors() == {2}

    *boxes, last = team.apply_in_time_boxes()
    assert (set(boxes), last) == ({STOPPED}, 0)
    assert team.replication_factors() == {3}
    team.kafka.wait_for(team.is_quiet, "all to be in sync, and nothing throttled")
    assert "No changes" in team.run("plan", "--detailed-exitcode").out
    plan = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    assert plan["summary"]["replicaMoves"] == len(PLACES[ORDERS])
