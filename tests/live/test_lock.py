"""One run per cluster, on real brokers: who comes second, and what ends, or does not end, who came first."""

import json
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.brokers.by_hand import create
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.controller import reassignments
from helpers.brokers.declared import client_file, declare
from helpers.brokers.observer import Observer
from helpers.brokers.run import MB, PLAN, LiveRun
from helpers.depth import parts
from helpers.figures import Tell
from helpers.program.held_runs import HeldRun
from helpers.program.warm import reconciler

from reconciler.admin.client import KafkaAdmin, connect

pytestmark = pytest.mark.brokers

SEEN_AT = r"\(process \d+, as it says; Kafka sees it at 127\.0\.0\.1\)"

SWAP = {0: (1, 2), 1: (2, 1)}, {0: (1, 3), 1: (2, 4)}
SIZE, SLOW = 4 * MB, "100kB/s"
"""Moves that take 40 s and more: for tests that take them back, and need them in flight for as long as they look."""


@pytest.fixture
def cluster(mended: KafkaCluster) -> KafkaCluster:
    return mended


@pytest.fixture
def admin(cluster: KafkaCluster) -> Iterator[KafkaAdmin]:
    connected = connect(cluster.properties)
    yield connected
    connected.close()


def plan_of(folder: Path, cluster: KafkaCluster, name: str, **topics: str) -> str:
    """Write a plan, of a cluster document and perhaps topics; return its file's name."""
    root = declare(folder, cluster, topics=topics)
    reconciler("plan", "--out", name, cwd=folder)
    shutil.rmtree(root)  # after an apply there is nothing to plan again from: that costs as much as the apply
    return name


@parts("races", 2, deep=20)
def test_of_two_applies_at_once_one_runs_and_the_other_names_it(
    tmp_path: Path, cluster: KafkaCluster, figures: Tell, races: int
) -> None:
    create(cluster, {"raced": [[1, 2]]}, {"retention.ms": "2000000"})
    at = client_file(tmp_path, cluster)
    forth = plan_of(tmp_path, cluster, "forth.json", raced="config: {retention.ms: 1000000}")
    reconciler("apply", forth, "--yes", *at, cwd=tmp_path)
    back = plan_of(tmp_path, cluster, "back.json", raced="config: {retention.ms: 2000000}")
    for number in range(races):
        plan = forth if number % 2 else back
        both = [HeldRun(tmp_path / name, "apply", plan, "--yes", *at) for name in ("left", "right")]
        cluster.wait_for(lambda b=both: any(one.is_over for one in b), "one to be refused")  # type: ignore[misc]
        winner, loser = sorted(both, key=lambda one: one.is_over)
        assert winner.is_there
        assert not loser.is_there
        winner.go_on()
        code, told = loser.ended()
        assert code == 3, told
        assert re.search(rf"locked by apply of plan \w+ \(started by .+ process {winner.pid}, at 20", told), told
        assert "KR450" in told
        code, told = winner.ended()
        assert code == 0, told
    figures("lock races, live", f"{races} of two applies on real brokers, exactly one ran in each")


def test_the_lock_of_a_killed_holder_passes_to_who_waits(
    tmp_path: Path, cluster: KafkaCluster, admin: KafkaAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.admin.client.lock.MOMENT_SECONDS", 0.0)  # any wait is worth a word
    nothing = plan_of(tmp_path, cluster, "nothing.json")
    holder = HeldRun(tmp_path / "held", "apply", nothing, "--yes", *client_file(tmp_path, cluster))
    cluster.wait_for(lambda: holder.is_there, "the lock to be held")
    told: list[str] = []
    holder.kill()
    with admin.lock("a test", waiting=told.append) as lock:
        assert lock.is_held()
    holder.ended()
    assert told == ["Waiting for the cluster's lock: if its holder has died, it is free within 6 s."]


def test_a_holder_that_stood_still_writes_nothing_more(
    tmp_path: Path, cluster: KafkaCluster, admin: KafkaAdmin
) -> None:
    run = LiveRun(tmp_path, cluster, "frozen", *SWAP, SIZE, SLOW)
    applying = run.start()
    run.wait_in_flight(3)
    observer = Observer(cluster.bootstrap)
    throttles = observer.throttles(("frozen",), cluster.alive)
    assert throttles
    applying.process.send_signal(signal.SIGSTOP)
    with admin.lock("a test that came in between") as lock:
        applying.process.send_signal(signal.SIGCONT)
        applying.ended(1)
        assert lock.is_held()
    # Stopped while it waits for the answer to a heartbeat, it cannot tell that it stood still.
    why = r"this process stood still for \d+ s|its coordinator did not hear of this process"
    assert re.search(rf"The cluster's lock was lost: ({why})", applying.told)
    assert "keeps" in applying.told
    assert observer.throttles(("frozen",), cluster.alive) == throttles
    run.assert_in_flight()
    assert "2 taken back (frozen-0, frozen-1)" in run.reconciler("cancel", PLAN).out
    assert reassignments(cluster.bootstrap) == {}
    cluster.wait_for(lambda: not observer.throttles(("frozen",), cluster.alive), "the throttles to be gone")


def test_a_cancel_stops_the_apply_that_is_on(tmp_path: Path, cluster: KafkaCluster, admin: KafkaAdmin) -> None:
    before, after = {**SWAP[0], 2: (1, 2)}, {**SWAP[1], 2: (2, 1)}  # a change of order arrives at once
    run = LiveRun(tmp_path, cluster, "cancelled", before, after, SIZE, SLOW)
    applying = run.start()
    run.wait_in_flight(3)
    run.assert_in_flight()
    flying = set(reassignments(cluster.bootstrap))
    cancelled = run.reconciler("cancel", "-o", "json")
    applying.ended(5)
    assert re.search(r"Asked apply of plan \w+ .+ to stop: waiting until it has put everything back", cancelled.err)
    assert re.search(rf"`reconciler cancel` of .+ {SEEN_AT} asked for it; run apply again", applying.told)
    assert reassignments(cluster.bootstrap) == {}
    observer = Observer(cluster.bootstrap)
    now = {number: state.replicas for number, state in observer.topic("cancelled").items()}
    assert flying == {"cancelled-0", "cancelled-1"}
    assert now == {**before, 2: (2, 1)}
    told = json.loads(cancelled.out)
    stands = {
        kind: {key["partition"] for stage in told["moves"]["byStage"] for key in stage[kind]}
        for kind in ("done", "inFlight", "takenBack", "left", "foreign")
    }
    assert stands == {"done": {2}, "takenBack": {0, 1}, "inFlight": set(), "left": set(), "foreign": set()}
    assert (told["state"], told["writes"]) == ("cancelled", 0), "the run itself has taken its moves back"
    again = run.reconciler("cancel").out
    assert re.search(r"Nothing to cancel: nothing of plan \w+ is in flight; 3 moves: 1 done .*2 to do", again)
    cluster.wait_for(lambda: not observer.throttles(("cancelled",), cluster.alive), "no throttle")
    assert admin.lock_holder() is None


@pytest.mark.deep
def test_a_run_goes_on_when_the_coordinator_of_its_lock_dies(
    tmp_path: Path, cluster: KafkaCluster, admin: KafkaAdmin
) -> None:
    with admin.lock("a test that looks where it is kept") as lock:
        coordinator = lock.member.coordinator
    assert coordinator is not None
    first, second, third, *_ = (broker for broker in cluster.broker_ids if broker != coordinator)
    before, after = {0: (first, second), 1: (second, first)}, {0: (first, third), 1: (second, third)}
    run = LiveRun(tmp_path, cluster, "survives", before, after, 7 * MB, "700kB/s")
    applying = run.start()
    run.wait_in_flight(third)
    cluster.kill(coordinator)
    run.assert_in_flight()
    applying.ended(0)
    cluster.wait_for(lambda: admin.lock_holder() is None, "the lock to be free")
    observer = Observer(cluster.bootstrap)
    assert {number: state.replicas for number, state in observer.topic("survives").items()} == after
    cluster.start(coordinator)
    assert observer.throttles(("survives",), cluster.alive) == {}
