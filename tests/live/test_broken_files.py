"""Files break while a run moves replicas on real brokers: it is looked at, and ended, all the same."""

import shutil
from pathlib import Path

import pytest
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.declared import client_file
from helpers.waiting import HANG
from live.folder import CLUSTER, LiveFolder, led_by_the_first

pytestmark = pytest.mark.brokers

TOPIC = "broken-files"
BEFORE, AFTER = {0: (1, 2), 1: (2, 3)}, {0: (1, 6), 1: (2, 6)}
# So slow that no machine sees its end: ten seconds' bytes are let through at once, the rest would take minutes.
MOVES, SIZE = "throttle: 10kB/s", 8_000_000
BROKEN = {
    "an unknown kind": b"apiVersion: reconciler/v1\nkind: Topik\nmetadata: {name: other}\n",
    "not UTF-8": b"kind: \xff\n",
    "syntax": b"kind: [\n",
}
STOPPED = 5


@pytest.mark.deep
def test_a_run_is_looked_at_and_cancelled_whatever_is_wrong_in_the_files(tmp_path: Path, steady: KafkaCluster) -> None:
    folder = LiveFolder(tmp_path, steady, moves=MOVES)
    folder.create({TOPIC: BEFORE}, size=SIZE)
    folder.plan("plan", {TOPIC: AFTER})
    root = tmp_path / "desired-state" / CLUSTER
    where = ("--cluster", CLUSTER, *client_file(tmp_path, steady))
    with folder.started("apply", "plan.json", "--yes") as applying:
        folder.wait_in_flight(applying, TOPIC)
        for name, content in BROKEN.items():
            (root / "topics.yaml").write_bytes(content)
            assert "KR10" in folder.run("validate", expect=1).out, name
            assert TOPIC in folder.run("status").out, name
            assert "not looked at: the topics that are declared" in folder.run("doctor").out, name
        folder.run("snapshot", "--out", "seen.json")
        folder.run("groups", "list")
        (root / "cluster.yaml").write_text("kind: Cluster\nspec: [\n")
        assert "--client FILE serve instead (KR133)" in folder.run("status", expect=1).err
        assert TOPIC in folder.run("status", *where).out
        shutil.rmtree(root)
        folder.run("cancel", *where)
        out, err = applying.communicate(timeout=HANG)
    assert applying.returncode == STOPPED, out + err
    assert folder.state(TOPIC) == led_by_the_first(BEFORE)
    folder.heal(TOPIC)
