"""Two clusters stand side by side: topics and copies, what copies lack, and what groups would read twice or miss."""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from cli.mirrored import ROOT, STANDARD, snapshot, topic, write
from cli.test_json_outputs import check
from helpers.program.call import Program
from helpers.program.documents import document

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.model.desired import Desired
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow import against as verb
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import cluster_admin

pytestmark = pytest.mark.long

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
    eu(ended(topic("us.orders", 2), 100, 7), topic(CHECKPOINTS, 1), groups=[group("billing", {"us.orders": {"1": 6}})])
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


def test_what_is_shown_says_where_to_go_on_and_what_it_costs(reconciler: Program, held: Held) -> None:
    us(ended(topic("orders", 1), 120), topic(SYNCS, 1), groups=[group("billing", {"orders": {"0": 110}})])
    eu(ended(topic("us.orders", 1), 100), topic(CHECKPOINTS, 1))
    held["us"] = {SYNCS: [sync("orders", 0, 0, 0), sync("orders", 0, 99, 99)]}
    held["eu"] = {CHECKPOINTS: [mark("billing", "us.orders", 0, 95, 91)]}
    shown = reconciler("diff", "--cluster", "eu", "--against", "us", "--detailed-exitcode")
    assert (shown.code, shown.err) == (0, ""), shown
    for line in (
        "us -> eu: 1 topic by mirror from-us, 0 topics differ",
        "  orders  us.orders  nothing                1                   2          20",
        "Offsets: 0 of 1 partition copied to the end",
        "  us.orders  offset syncs          0  120         100          20",
        "Group billing (Empty on us, not there on eu), changed over now: at most 19 records read twice, none missed",
        "  us.orders  checkpoint          0        110          91          19       0          10",
    ):
        assert line in shown.out.splitlines(), shown.out
    markdown = reconciler("diff", "--cluster", "eu", "--against", "us", "-o", "markdown").out
    assert "### reconciler diff · `eu` against `us` · 0 topics differ" in markdown
    assert "| us.orders | checkpoint | 0 | 110 | 91 | 19 | 0 | 10 |" in markdown


def test_a_copy_that_is_missing_small_or_set_otherwise_differs(reconciler: Program, held: Held) -> None:
    follows, own = {"retention.ms": "8000"}, {"segment.bytes": "1048576", "leader.replication.throttled.replicas": "*"}
    us(
        topic("orders.a", 2),
        topic("orders.b", 2),
        topic("orders.c", 1, follows | own),
        topic("orders.d", 1, own),
        topic("clicks", 1),
        topic(SYNCS, 1),
        topic("heartbeats", 1),
    )
    eu(
        topic("us.orders.b", 1),
        topic("us.orders.c", 1),
        topic("us.orders.d", 3),
        topic("us.orders.gone", 1),
        topic("clicks", 1),
    )
    held["us"] = {SYNCS: []}
    found = compared(reconciler, "--detailed-exitcode", code=2)
    assert {one["copy"]: (one["differs"], one["partitions"], one["copyPartitions"]) for one in found["topics"]} == {
        "us.orders.a": (True, 2, None),
        "us.orders.b": (True, 2, 1),
        "us.orders.c": (True, 1, 1),
        "us.orders.d": (False, 1, 3),
        "us.orders.gone": (False, None, 1),
    }
    assert found["topics"][2]["configs"] == [
        {"copyValue": None, "follows": True, "key": "retention.ms", "value": "8000"},
        {"copyValue": None, "follows": False, "key": "segment.bytes", "value": "1048576"},
    ]
    text = reconciler("diff", "--cluster", "eu", "--against", "us").out
    for words in ("the copy is missing", "partitions  ", "configs that follow", "the topic is gone"):
        assert words in text, text


def test_without_a_mirror_equal_names_are_compared_and_no_offsets(reconciler: Program, held: Held) -> None:
    us(ended(topic("a", 1), 9), topic("b", 1), topic(SYNCS, 1), groups=[group("g", {"a": {"0": 3}})])
    eu(ended(topic("a", 1), 9), topic("c", 1), topic("us.a", 1), mirrors=())
    held["us"] = {SYNCS: [sync("a", 0, 0, 0)]}
    found = compared(reconciler, "--detailed-exitcode", code=2)
    assert [(one["topic"], one["differs"]) for one in found["topics"]] == [
        ("a", False),
        ("b", True),
        ("c", True),
        ("us.a", True),
    ]
    assert [one["code"] for one in found["warnings"]] == ["KR236"]
    (offsets,) = found["topics"][0]["offsets"]
    assert (offsets["lag"], offsets["unknown"]) == (None, "no mirror declares it as a copy")
    (change,) = found["groups"][0]["partitions"]
    assert (change["start"], change["readTwice"], change["unknown"]) == (None, None, "no mirror declares it as a copy")


def test_snapshots_tell_topics_and_ends_and_say_what_they_cannot_tell(reconciler: Program, held: Held) -> None:
    us(ended(topic("orders", 1), 120), topic(SYNCS, 1), groups=[group("billing", {"orders": {"0": 110}})])
    eu(ended(topic("us.orders", 1), 100), topic(CHECKPOINTS, 1))
    held["us"] = {SYNCS: [sync("orders", 0, 99, 99)]}
    held["eu"] = {CHECKPOINTS: [mark("billing", "us.orders", 0, 95, 91)]}
    for name in ("us", "eu"):
        reconciler("snapshot", "--cluster", name, "--out", f"{name}.json")
    # The source is gone: its snapshot and the target's checkpoints still say where the group goes on.
    found = compared(reconciler, "--source-state", "us.json")
    (offsets,), (change,) = found["topics"][0]["offsets"], found["groups"][0]["partitions"]
    why = "us was read from a snapshot, which holds no records"
    assert (offsets["end"], offsets["copyEnd"], offsets["lag"], offsets["unknown"]) == (120, 100, None, why)
    wanted = {"start": 91, "startBy": "checkpoint", "missed": 0, "readTwice": None, "notCopied": None, "unknown": why}
    assert change | wanted == change
    assert [one["code"] for one in found["warnings"]] == ["KR237"]
    # Nor does anybody guess where only the target is a snapshot, or both are.
    found = compared(reconciler, "--state", "eu.json")
    assert found["topics"][0]["offsets"][0]["lag"] == 20
    assert found["groups"][0]["partitions"][0]["start"] == 100
    found = compared(reconciler, "--state", "eu.json", "--source-state", "us=us.json")
    (change,) = found["groups"][0]["partitions"]
    assert (change["start"], change["missed"], change["readTwice"]) == (None, None, None)
    assert [one["code"] for one in found["warnings"]] == ["KR237", "KR237"]


def test_offset_syncs_may_be_kept_on_the_target(reconciler: Program, held: Held) -> None:
    us(ended(topic("orders", 1), 120))
    eu(ended(topic("us.orders", 1), 100), topic(SYNCS_THERE, 1), topic(CHECKPOINTS, 1))
    held["eu"] = {SYNCS_THERE: [sync("orders", 0, 99, 99)], CHECKPOINTS: []}
    found = compared(reconciler)
    assert (found["offsetSyncs"]["cluster"], found["offsetSyncs"]["topic"]) == ("eu", SYNCS_THERE)
    assert found["topics"][0]["offsets"][0]["lag"] == 20


OTHER_WAY = "eu.checkpoints.internal"


@pytest.mark.parametrize(
    ("of_us", "of_eu", "taken"),
    [
        # Both copy from each other, and each keeps its syncs where it copies from.
        ((SYNCS, OTHER_WAY), (SYNCS_THERE, CHECKPOINTS), True),
        # Only eu is copied, to us; by default its syncs are there, and else here.
        ((OTHER_WAY,), (SYNCS_THERE,), False),
        ((SYNCS, OTHER_WAY), (), False),
        # Nobody says which way they tell of.
        ((), (SYNCS_THERE,), False),
        # Both directions may stand in one topic.
        ((OTHER_WAY,), (SYNCS_THERE, CHECKPOINTS), False),
    ],
)
def test_offset_syncs_of_the_other_direction_are_not_taken(
    reconciler: Program, held: Held, of_us: Sequence[str], of_eu: Sequence[str], *, taken: bool
) -> None:
    us(ended(topic("orders", 1), 120), *(topic(name, 1) for name in of_us))
    eu(ended(topic("us.orders", 1), 100), *(topic(name, 1) for name in of_eu))
    held["us"] = {name: [sync("orders", 0, 99, 99)] for name in of_us if name == SYNCS}
    held["eu"] = {name: [sync("orders", 0, 50, 50)] for name in of_eu if name == SYNCS_THERE}
    found = compared(reconciler)
    (offsets,) = found["topics"][0]["offsets"]
    assert (offsets["lag"], offsets["unknown"] is None) == ((20, True) if taken else (None, False))
    assert any("may tell of copying the other way" in one["message"] for one in found["warnings"]) != taken


def test_offset_syncs_of_another_name_are_named_and_not_taken(reconciler: Program, held: Held) -> None:
    us(ended(topic("orders", 1), 120), topic("mm2-offset-syncs.europe.internal", 1))
    eu(ended(topic("us.orders", 1), 100))
    held["us"] = {"mm2-offset-syncs.europe.internal": [sync("orders", 0, 99, 99)]}
    found = compared(reconciler)
    told = [one for one in found["warnings"] if "mm2-offset-syncs.europe.internal of us" in one["message"]]
    assert [one["code"] for one in told] == ["KR237"]
    assert found["topics"][0]["offsets"][0]["lag"] is None


def test_foreign_records_are_counted_and_passed_over(reconciler: Program, held: Held) -> None:
    us(ended(topic("orders", 1), 120), topic(SYNCS, 1))
    eu(ended(topic("us.orders", 1), 100), topic(CHECKPOINTS, 1))
    held["us"] = {SYNCS: [(b"?", b"?"), sync("orders", 0, 99, 99), (None, b"")]}
    held["eu"] = {CHECKPOINTS: []}
    found = compared(reconciler)
    assert (found["offsetSyncs"]["records"], found["offsetSyncs"]["foreign"]) == (1, 2)
    assert [one["code"] for one in found["warnings"]] == ["KR238"]
    assert found["topics"][0]["offsets"][0]["lag"] == 20


def test_a_topic_of_syncs_that_cannot_be_read_to_its_end_is_no_reason_to_wait(reconciler: Program, held: Held) -> None:
    del held
    us(ended(topic("orders", 1), 120), ended(topic(SYNCS, 1), 4))
    eu(ended(topic("us.orders", 1), 100))
    found = compared(reconciler)
    assert "Its leader answers with nothing at offset 0 of 4" in found["offsetSyncs"]["unknown"]
    assert found["topics"][0]["offsets"][0]["unknown"].startswith(f"{SYNCS} of us cannot be read")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--cluster", "eu", "--against", "eu"), 64, "--against names eu, the cluster itself"),
        (("--cluster", "eu", "--against", "uss"), 64, "no cluster of this root; did you mean 'us'?"),
        (("--cluster", "*", "--against", "us"), 64, "--cluster names *, which is no cluster of this root"),
        (("--cluster", "eu", "--against", "us", "--source-state", "eu.json"), 1, "(KR233)"),
        (("--cluster", "eu", "--against", "far"), 1, "far, to compare with, cannot be read"),
    ],
)
def test_what_cannot_be_compared_is_said(
    reconciler: Program, arguments: tuple[str, ...], code: int, words: str
) -> None:
    us(topic("orders", 1))
    eu(topic("us.orders", 1))
    write("far", [])
    (ROOT / "far" / "cluster.yaml").write_text(
        document(
            "Cluster", "far", '{client: {bootstrap.servers: "127.0.0.1:9", socket.connection.setup.timeout.ms: 100}}'
        )
    )
    (ROOT / "us" / "cluster.yaml").write_text(
        document("Cluster", "us", "{clusterId: id-of-us, simulation: state.json}")
    )
    reconciler("snapshot", "--cluster", "eu", "--out", "eu.json")
    ended_so = reconciler("diff", *arguments)
    assert ended_so.code == code, ended_so
    assert words in ended_so.err, ended_so


def test_text_is_cut_where_it_grows_too_long_and_json_has_all(reconciler: Program, held: Held) -> None:
    names = [f"g{number:02}" for number in range(25)]
    us(ended(topic("orders", 60), *range(60)), groups=[group(name, {"orders": {"1": 0}}) for name in names])
    eu(ended(topic("us.orders", 60), *[0] * 60), groups=[group("g24", {"us.orders": {"1": 0}})])
    del held
    text = reconciler("diff", "--cluster", "eu", "--against", "us").out
    assert "… and 9 more; -o json has all" in text
    assert "… and 5 more groups; -o json has all" in text
    assert [one["groupId"] for one in compared(reconciler)["groups"]] == names


def test_secrets_among_configs_are_masked(reconciler: Program, held: Held) -> None:
    del held
    us(topic("orders", 1, {"sink.password": "hunter2"}))
    eu(topic("us.orders", 1, {"sink.password": "hunter3"}))
    for form in ("text", "json", "markdown"):
        shown = reconciler("diff", "--cluster", "eu", "--against", "us", "-o", form)
        assert "sink.password" in shown.out
        assert "hunter" not in shown.out + shown.err
