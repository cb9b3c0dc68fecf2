"""`groups advise` as people call it: by figures, against a snapshot, and with figures that make no sense."""

import json
from pathlib import Path

import pytest
from helpers.program.call import Program
from helpers.samples.loads_folder import write_loads

TARGET = ("--target", "100MB/s", "--producer", "10MB/s", "--consumer", "20MB/s")


@pytest.fixture
def state(tmp_path: Path) -> str:
    """Return the file of a snapshot with groups that read orders."""
    partitions = [
        {"partition": number, "leader": 1, "replicas": [1, 2], "isr": [1, 2], "sizes": [100, 100]}
        for number in range(4)
    ]
    member = {"memberId": "m", "subscription": ["orders"], "assignment": {"orders": [0, 1, 2, 3]}}
    shared = [{**member, "memberId": f"s{number}"} for number in range(20)]
    document = {
        "formatVersion": "1.0",
        "clusterId": "x",
        "brokers": [{"id": 1}, {"id": 2}, {"id": 3, "fenced": True}],
        "topics": [{"name": "orders", "configs": {"cleanup.policy": "compact"}, "partitions": partitions}],
        "groups": [
            {"groupId": "billing", "state": "Stable", "protocol": "range", "members": [member]},
            {"groupId": "jobs", "state": "Stable", "type": "share", "protocolType": "share", "members": shared},
        ],
    }
    (tmp_path / "s.json").write_text(json.dumps(document))
    return "s.json"


def test_the_formula_by_figures_alone(reconciler: Program) -> None:
    told = json.loads(reconciler("groups", "advise", *TARGET, "-o", "json").out)
    assert told["partitions"] == 10
    assert told["targetBytesPerSecond"] == 100_000_000
    assert [(need["what"], need["partitions"]) for need in told["needs"]] == [("producers", 10), ("consumers", 5)]
    assert told["existing"] is None


def test_headroom_comes_on_top(reconciler: Program) -> None:
    told = json.loads(reconciler("groups", "advise", *TARGET, "--headroom", "25%", "-o", "json").out)
    assert (told["partitions"], told["headroomPercent"]) == (13, 25.0)


def test_a_topic_is_advised_on_beside_what_it_has(reconciler: Program, state: str) -> None:
    told = reconciler("groups", "advise", "--topic", "orders", "--state", state, *TARGET).out
    assert told.startswith("orders needs 10 partitions; 4 exist, 6 to add.\n")
    assert "  members of group billing  one partition each at least" in told
    assert "What 10 partitions cost on 2 brokers at replicationFactor 2:\n" in told
    assert ["replicas", "on", "each", "broker", "4", "10"] in [line.split() for line in told.split("\n")]
    assert "  outdated: time to elect their leaders one by one, 25 ms: 5 ms each with ZooKeeper" in told
    assert "note: the topic is compacted, so its records have keys" in told


def test_markdown_has_the_same_figures(reconciler: Program, state: str) -> None:
    told = reconciler("groups", "advise", "--topic", "orders", "--state", state, *TARGET, "-o", "markdown").out
    assert told.startswith(
        "### reconciler groups advise · `orders`\n\norders needs 10 partitions; 4 exist, 6 to add.\n"
    )
    assert "| replicas on each broker | 4 | 10 |\n" in told


def test_members_alone_are_a_need(reconciler: Program, state: str) -> None:
    told = reconciler("groups", "advise", "--topic", "orders", "--state", state)
    assert told.out.startswith("orders needs 1 partition; 4 exist: enough.\n")


def test_members_of_a_share_group_ask_for_no_partitions_of_their_own(
    reconciler: Program, state: str, tmp_path: Path
) -> None:
    told = json.loads(reconciler("groups", "advise", "--topic", "orders", "--state", state, "-o", "json").out)
    assert [(need["what"], need["partitions"]) for need in told["needs"]] == [("members of group billing", 1)]
    # They read what is sent to consumers, though: two groups share the 8 MB/s of the busiest partition.
    loads = write_loads(tmp_path / "loads", "prod", {("orders", 0): (4_000_000, 8_000_000)})
    given = ("--topic", "orders", "--state", state, "--cluster", "prod", "--loads", loads, "-o", "json")
    told = json.loads(reconciler("groups", "advise", *given).out)
    assert [need["bytesPerSecondOfOnePartition"] for need in told["needs"] if need["what"] == "consumers"] == [
        4_000_000
    ]


def test_rates_that_are_not_given_come_from_what_was_measured(reconciler: Program, state: str, tmp_path: Path) -> None:
    rates = {("orders", 0): (8_000_000, 30), ("orders", 1): (4_000_000, 40), ("orders", 2): (2_000_000, 9)}
    loads = write_loads(tmp_path / "loads", "prod", rates)
    given = ("--topic", "orders", "--state", state, "--cluster", "prod", "--loads", loads, "-o", "json")
    told = json.loads(reconciler("groups", "advise", *given, "--consumer", "1MB/s", "--headroom", "50%").out)
    assert told["targetBytesPerSecond"] == 14_000_000
    needs = [(need["what"], need["partitions"], need["measured"]) for need in told["needs"]]
    assert needs == [("producers", 3, True), ("consumers", 21, False), ("members of group billing", 1, False)]
    assert told["notes"][0] == "partitions of the topic without a measured rate: 1; it may carry more"
    assert "a measured rate is what one partition has carried" in told["notes"][1]
    average = json.loads(reconciler("groups", "advise", *given, "--statistic", "average").out)
    assert average["targetBytesPerSecond"] == 7_000_000


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 1, "nothing says how much the topic shall carry: give --target, or --consumers"),
        (("--target", "5MiB/s"), 1, "a target alone gives no number"),
        (("--target", "5MiB/s", "--consumers", "5"), 1, "a target alone gives no number"),
        (("--topic", "orders", "--state", "s.json", "--target", "5MiB/s"), 1, "a target alone gives no number"),
        (("--topic", "orders", "--state", "s.json", "--producer", "5MiB/s"), 1, "give --target"),
        (("--consumers", "5", "--headroom", "50%"), 1, "rates and headroom are for that: give --target"),
        (("--topic", "ordrs", "--state", "s.json"), 1, "there is no topic ordrs: did you mean orders?"),
        (("--target", "100"), 64, "'100' is no rate: write a number and a unit, such as 50MiB/s"),
        (("--target", "100MiB"), 64, "is no rate"),
        (("--target", "-5MiB/s"), 64, "is no rate"),
        (("--target", "nan"), 64, "is no rate"),
        (("--producer", "0B/s"), 64, "is too little"),
        (("--headroom", "30"), 64, "is no percentage"),
        (("--headroom", "20000%"), 64, "is more than 10,000%"),
        (("--consumers", "0"), 64, "is not in the range"),
        (("--brokers", "x"), 64, "is not a valid integer"),
        (("--state", "s.json", "--target", "1MiB/s"), 64, "name it with --topic"),
    ],
)
@pytest.mark.usefixtures("state")
def test_figures_that_make_no_sense_are_refused(
    reconciler: Program, arguments: tuple[str, ...], code: int, message: str
) -> None:
    ended = reconciler("groups", "advise", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err
