"""`doctor` on a cluster with mirrors: copies that lack or are small, loops, sources that cannot be read, snapshots."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli.mirrored import ROOT, STANDARD, snapshot, topic, write
from cli.test_against import Record, ended, sync
from helpers.program.call import Program
from helpers.program.documents import document

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.model.desired import Desired
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow import mirrors
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import cluster_admin

pytestmark = pytest.mark.long

FROM_US = document("Mirror", "from-us", '{source: us, topics: ["orders*"]}')
OWN = ("mm2-offset-syncs.eu.internal", "heartbeats", "us.checkpoints.internal")
CODES = {"KR114", "KR232", "KR233", "KR690", "KR691", "KR692", "KR693"}


def us(*topics: str) -> None:
    write("us", [*(topic(name, 3) for name in topics), *(topic(name, 1) for name in OWN)])


def eu(*documents: str, partitions: int = 3) -> None:
    write("eu", [topic("us.orders", partitions), *(topic(name, 1) for name in OWN)], STANDARD, *documents)


def told(reconciler: Program, *options: str) -> dict[str, str]:
    """Return what doctor says of mirrors, by code; it ends well, as all of that are warnings."""
    found = reconciler("doctor", "--cluster", "eu", "-o", "json", *options)
    assert found.code == 0, found
    report = json.loads(found.out)
    of_mirrors = [each for each in report["findings"] if each["code"] in CODES]
    assert {each["severity"] for each in of_mirrors} <= {"warning"}
    return {each["code"]: each["message"] for each in of_mirrors}


def test_copies_that_lack_and_those_that_are_small_are_told(reconciler: Program) -> None:
    us("orders", "orders.new", "clicks")
    eu(FROM_US, partitions=2)
    assert told(reconciler) == {
        "KR690": "1 copy of topics of us not there: us.orders.new",
        "KR691": "1 copy of topics of us with fewer partitions than their topics: us.orders has 2, orders 3",
    }
    text = reconciler("doctor", "--cluster", "eu").out
    assert "not looked at: whether copies of topics of us stand still" in text


def test_a_source_that_cannot_be_read_is_told_and_hides_nothing_else(reconciler: Program) -> None:
    us("orders")
    eu(FROM_US, document("Mirror", "from-asia", '{source: asia, topics: ["x"]}'))
    write("asia", [topic("x", 1)])
    (ROOT / "us" / "state.json").unlink()
    found = told(reconciler)
    assert found.keys() == {"KR232", "KR690"}
    assert found["KR232"].startswith("mirror from-us copies from us, which cannot be read: ")
    assert found["KR232"].endswith("or name a snapshot of us with --source-state FILE (eu/topics.yaml:9)")
    assert found["KR690"] == "1 copy of topics of asia not there: asia.x"


def test_mirrors_are_looked_at_whatever_is_wrong_with_other_files(reconciler: Program) -> None:
    us("orders", "orders.new")
    eu(FROM_US, document("Topic", "own", "{partitions: x}"))
    assert told(reconciler).keys() == {"KR690"}
    (ROOT / "eu" / "broken.yaml").write_text("a: [", "utf-8")
    assert told(reconciler).keys() == {"KR690"}


def test_a_loop_is_told_by_the_files_of_both(reconciler: Program) -> None:
    same = '{{source: {}, topics: ["*"], rename: "{{topic}}"}}'
    write("us", [topic("orders", 3)], STANDARD, document("Mirror", "from-eu", same.format("eu")))
    write("eu", [topic("orders", 3)], STANDARD, document("Mirror", "from-us", same.format("us")))
    assert "mirror from-us copies topics in a loop, us -> eu -> us, with from-eu (" in told(reconciler)["KR114"]


def test_a_snapshot_stands_in_for_the_source_and_for_both(reconciler: Program) -> None:
    us("orders")
    eu(FROM_US)
    Path("us.json").write_text(json.dumps(snapshot("us", [topic("orders", 5)])), "utf-8")
    small = "1 copy of topics of us with fewer partitions than their topics: us.orders has 3, orders 5"
    assert told(reconciler, "--source-state", "us.json") == {"KR691": small}
    state = ("--state", str(ROOT / "eu" / "state.json"))
    assert told(reconciler, *state, "--source-state", "us=us.json") == {"KR691": small}
    assert told(reconciler, *state) == {}
    text = reconciler("doctor", "--cluster", "eu", *state).out
    assert "not looked at: copies of topics of us: name a snapshot of it with --source-state" in text


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[Record]:
    """Return the offset syncs that the simulated source holds, to be filled."""
    held: list[Record] = []

    @contextmanager
    def opened(inputs: Inputs, desired: Desired | None) -> Iterator[object]:
        with cluster_admin(inputs, desired) as admin:
            assert isinstance(admin, SimulatedAdmin)
            key = TopicPartition(OWN[0], 0)
            admin.keys[key], admin.values[key] = [one for one, _ in held], [value for _, value in held]
            yield admin

    monkeypatch.setattr(mirrors, "cluster_admin", opened)
    return held


def test_a_topic_that_ends_before_what_was_copied_was_made_again(syncs: list[Record], reconciler: Program) -> None:
    write("us", [ended(topic("orders", 2), 120, 9), *(topic(name, 1) for name in OWN[:2])])
    write("eu", [ended(topic("us.orders", 2), 130, 9)], STANDARD, FROM_US)
    syncs += [sync("orders", 0, 5000, 3), sync("orders", 0, 7, 9), sync("orders", 0, 120, 129), sync("x", 1, 99, 1)]
    told_of = "1 partition of topics of us made again, or robbed of records: "
    told_of += "orders-0 ends at 120, and its record 120 was copied to us.orders-0"
    assert told(reconciler) == {"KR693": told_of}
    # Where eu is copied to us, too, the offset syncs may be of that.
    back = topic("eu.checkpoints.internal", 1)
    write("us", [ended(topic("orders", 2), 120, 9), back, *(topic(name, 1) for name in OWN[:2])])
    assert told(reconciler) == {}
    text = reconciler("doctor", "--cluster", "eu").out
    assert "not looked at: whether topics of us were made again: offset syncs may be of the other way" in text
