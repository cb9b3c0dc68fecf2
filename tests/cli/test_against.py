"""Two clusters stand side by side: topics and copies, what copies lack, and what groups would read twice or miss."""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from cli.mirrored import STANDARD, document, snapshot, topic, write
from cli.test_json_outputs import check
from helpers.program.call import Program

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.model.desired import Desired
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow import against as verb
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import cluster_admin

FROM_US = document("Mirror", "from-us", '{source: us, topics: ["orders*"], config: [retention.ms]}')
SYNCS, SYNCS_THERE, CHECKPOINTS = (
    "mm2-offset-syncs.eu.internal",
    "mm2-offset-syncs.us.internal",
    "us.checkpoints.internal",
)
Record = tuple[bytes | None, bytes]


def text(words: str) -> bytes:
    return struct.pack(">h", len(words.encode())) + words.encode()


def sync(name: str, partition: int, upstream: int, downstream: int) -> Record:
    """Return a record as Kafka's OffsetSync writes it."""
    return text(name) + struct.pack(">i", partition), struct.pack(">qq", upstream, downstream)


def mark(group: str, name: str, partition: int, upstream: int, downstream: int) -> Record:
    """Return a record as Kafka's Checkpoint writes it."""
    return text(group) + text(name) + struct.pack(">i", partition), struct.pack(">hqq", 0, upstream, downstream) + text(
        ""
    )


def ended(one: dict[str, Any], *ends: int) -> dict[str, Any]:
    """Return the topic with these end offsets."""
    partitions = [each | {"endOffset": end} for each, end in zip(one["partitions"], ends, strict=True)]
    return one | {"partitions": partitions}


def group(name: str, offsets: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    return {"groupId": name, "state": "Empty", "members": [], "offsets": offsets}


def us(*topics: dict[str, Any], groups: Sequence[dict[str, Any]] = ()) -> None:
    _write("us", topics, groups)


def eu(*topics: dict[str, Any], mirrors: Sequence[str] = (FROM_US,), groups: Sequence[dict[str, Any]] = ()) -> None:
    _write("eu", topics, groups, STANDARD, *mirrors)


def _write(name: str, topics: Sequence[dict[str, Any]], groups: Sequence[dict[str, Any]], *documents: str) -> None:
    folder = write(name, topics, *documents)
    (folder / "state.json").write_text(json.dumps(snapshot(name, topics) | {"groups": list(groups)}), "utf-8")


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, list[Record]]]:
    """Return what records the simulated clusters hold, by cluster and topic, to be filled."""
    records: dict[str, dict[str, list[Record]]] = {}

    @contextmanager
    def opened(inputs: Inputs, desired: Desired | None) -> Iterator[object]:
        with cluster_admin(inputs, desired) as admin:
            assert isinstance(admin, SimulatedAdmin)
            assert desired is not None
            for name, listed in records.get(desired.cluster.name, {}).items():
                key = TopicPartition(name, 0)
                admin.keys[key], admin.values[key] = [one for one, _ in listed], [value for _, value in listed]
            yield admin

    monkeypatch.setattr(verb, "cluster_admin", opened)
    return records


def compared(reconciler: Program, *more: str, code: int = 0) -> dict[str, Any]:
    found = reconciler("diff", "--cluster", "eu", "--against", "us", "-o", "json", *more)
    assert found.code == code, found
    check("against", found.out)
    read: dict[str, Any] = json.loads(found.out)
    return read


Held = dict[str, dict[str, list[Record]]]


def test_a_group_that_changes_over_knows_what_it_reads_twice_and_what_is_not_copied_yet(
    reconciler: Program, held: Held
) -> None:
    us(
        ended(topic("orders", 2), 120, 7),
        topic("clicks", 1),
        topic(SYNCS, 1),
        groups=[group("billing", {"orders": {"0": 110, "1": 5}, "clicks": {"0": 3}})],
    )
    eu(
        ended(topic("us.orders", 2), 100, 7),
        topic(CHECKPOINTS, 1),
        groups=[group("billing", {"us.orders": {"1": 6}})],
    )
    held["us"] = {
        SYNCS: [sync("orders", 0, 0, 0), sync("orders", 0, 99, 99), sync("orders", 1, 0, 0), sync("orders", 1, 6, 6)]
    }
    held["eu"] = {CHECKPOINTS: [mark("billing", "us.orders", 0, 90, 81), mark("billing", "us.orders", 0, 95, 91)]}
    found = compared(reconciler)
    (orders,) = found["topics"]
    assert [(one["lag"], one["lagAtMost"], one["lagBy"]) for one in orders["offsets"]] == [
        (20, 20, "offsetSyncs"),
        (0, 0, "offsetSyncs"),
    ]
    (billing,) = found["groups"]
    first, second = billing["partitions"]
    # 110 of 120 are read and 100 copied: the copy's 91 to 99 are read again, and 10 that are to come.
    wanted = {"start": 91, "startBy": "checkpoint", "bySyncs": 100, "positionLow": 100, "positionHigh": 100}
    assert first | wanted | {"readTwice": 19, "missed": 0, "notCopied": 10, "unknown": None} == first
    # The group has committed 6 on the target, and the record at 5 is unread.
    assert second | {"start": 6, "startBy": "committed", "missed": 1, "readTwice": 0, "notCopied": 0} == second
    assert found["differs"]
    assert reconciler("diff", "--cluster", "eu", "--against", "us", "--detailed-exitcode").code == 2
