"""The quick reader against the strict one: what it takes, the strict one reads as the same cluster; else it doubts."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.files import quick_snapshot
from reconciler.files.quick_snapshot import parse_quickly
from reconciler.files.snapshot import read_snapshot, snapshot_text
from reconciler.model.cluster import Broker, Cluster, Group, LogDir, Partition, Topic
from reconciler.model.partition_table import Rows
from reconciler.model.problem import InvalidInput

WHOLE = Cluster(
    "a:b",
    {1: Broker(1, "a:1", log_dirs=(LogDir("/d:1", 10, 7),)), 2: Broker(2), 3: Broker(3)},
    {
        "a": Topic(
            "a",
            (
                Partition(0, 1, (1, 2, 3), (3, 1), (), (3,), (5, None, 7), ("/d:1", None, "C:/d:2"), 42),
                Partition(1, None, (2,), (), elr=(2,), last_known_elr=(2,), untiered_bytes=0),
                Partition(2, 3, (3, 1), (3, 1), (1,), (), (0, 2**63 - 1), elr=()),
            ),
            configs={"follower.replication.throttled.replicas": "0:1,1:2"},
        ),
        "b": Topic("b", (Partition(0, 1, (1,), (1,)),), topic_id="x", is_internal=True),
        "c": Topic("c"),
    },
    (Group("g", offsets={"a": {0: 1}}),),
)
PLAIN = Cluster("p", {}, {"t": Topic("t", tuple(Partition(n, 1, (1, 2), (1, 2), sizes=(5, 5)) for n in range(12)))})
WRONG: tuple[Any, ...] = (None, True, 0, 1, 9, 1.0, -1, 2**63, 2**70, "", "a:b", "{", [], {}, [1], [1, 1], [None], [9])
MUTANTS = 400


Read = Cluster | str | None
"""What a reader makes of a snapshot: its cluster, else what it says is wrong; None where the quick reader doubts."""


def _read(path: Path) -> Read:
    try:
        return read_snapshot(path)
    except InvalidInput as error:
        return str(error)


@pytest.fixture
def strictly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], Read]:
    def read(content: bytes) -> Read:
        (tmp_path / "snapshot.json").write_bytes(content)
        with monkeypatch.context() as patched:
            patched.setattr(quick_snapshot, "parse_quickly", lambda _content: None)
            return _read(tmp_path / "snapshot.json")

    return read


@pytest.fixture
def quickly(tmp_path: Path) -> Callable[[bytes], Read]:
    def read(content: bytes) -> Read:
        (tmp_path / "snapshot.json").write_bytes(content)
        return None if parse_quickly(content) is None else _read(tmp_path / "snapshot.json")

    return read


def test_a_key_that_stands_twice_is_doubted_where_there_are_no_topics() -> None:
    content = b'{"formatVersion": "1.0", "clusterId": "c", "brokers": [], "brokers": []}'
    assert parse_quickly(content) is None


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:  # noqa: ANN401 # any JSON value
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        found.append((value, key))
        _places(value[key], found)
    return found


def _mutated(document: Any, chance: random.Random) -> str:  # noqa: ANN401 # any JSON value
    """Return the text of the document with one slip in it: in a value, a member or the text itself."""
    holder, key = chance.choice(_places(document, []))
    kind = chance.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = chance.choice(WRONG)
    elif kind == 2 and isinstance(holder, list):
        chance.shuffle(holder)
    elif kind == 3 and isinstance(holder, dict):
        holder[chance.choice((key, "more", "elr", "leader"))] = chance.choice((holder[key], *WRONG))
    text = json.dumps(document, indent=chance.choice((None, 1)))
    if kind == 4:
        # A member that stands twice, its colon hidden in the text of another or not.
        pair = chance.choice(('"leader": 1', '"sizes": [5, 5]', '"isr": [1]', '"x": 1', '"name": "a\\u003ab"'))
        at = chance.choice([place for place, letter in enumerate(text) if letter == "{"])
        text = f"{text[: at + 1]}{pair}, {text[at + 1 :]}"
    elif kind == 5:
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice('0":,[]{}\\ 1eE.-/') + text[at + chance.randrange(2) :]
    return text


@pytest.mark.parametrize("cluster", [WHOLE, PLAIN, Cluster("none")], ids=["whole", "plain", "none"])
def test_what_is_written_is_read_quickly_and_the_same(
    cluster: Cluster, quickly: Callable[[bytes], Read], strictly: Callable[[bytes], Read]
) -> None:
    content = snapshot_text(cluster).encode()
    quick = quickly(content)
    assert quick == cluster == strictly(content)
    assert isinstance(quick, Cluster)
    assert all(isinstance(topic.partitions, Rows) for topic in quick.topics.values())
    assert snapshot_text(quick).encode() == content


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_a_snapshot_with_a_slip_is_left_to_the_strict_reader_or_told_as_it_tells_it(
    seed: int, quickly: Callable[[bytes], Read], strictly: Callable[[bytes], Read]
) -> None:
    chance = random.Random(seed)
    documents = [json.loads(snapshot_text(cluster)) for cluster in (WHOLE, PLAIN)]
    taken = 0
    for _ in range(MUTANTS):
        content = _mutated(json.loads(json.dumps(chance.choice(documents))), chance).encode()
        quick = quickly(content)
        if quick is not None:
            taken += 1
            assert strictly(content) == quick, content.decode()
    assert 0 < taken < MUTANTS


def test_a_member_that_stands_twice_is_seen_though_both_say_the_same(quickly: Callable[[bytes], Read]) -> None:
    text = snapshot_text(PLAIN)
    assert quickly(text.encode()) is not None
    for member in ('"leader": 1', '"partition": 3', '"sizes": [5, 5]'):
        assert quickly(text.replace(member, f"{member}, {member}", 1).encode()) is None
    assert quickly(text.replace('"clusterId": "p"', '"clusterId": "a\\u003ab"').encode()) is None
