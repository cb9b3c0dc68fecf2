"""Policies in a plan, from files to exit code; without any, nothing of Spark is loaded."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from balance.policies.watched_room import Watched, descendants, is_there
from helpers.program.call import Program, modules_loaded_by
from helpers.samples.loads_folder import write_loads
from helpers.waiting import wait_for

from reconciler.balance.policies import asking
from reconciler.balance.policies.asking import Room, policy_room
from reconciler.workflow.init import EXAMPLE_POLICIES

REFUSED = 3
CLUSTER = """\
apiVersion: reconciler/v1
kind: Cluster
metadata: {name: prod}
spec:
  brokers: [{id: 3, capacity: 2}]
---
apiVersion: reconciler/v1
kind: Topic
metadata: {name: orders, labels: {tier: gold}}
spec: {replicationFactor: 2}
"""
RACKS = {1: "a", 2: "a", 3: "b"}


@dataclass(frozen=True)
class Setup:
    """A cluster of three brokers in two racks whose one topic gets a second replica."""

    root: Path
    program: Program

    def policy(self, name: str, text: str) -> None:
        file = self.root / "prod" / "policies" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def plan(self, *options: str, expect: int) -> Mapping[str, Any]:
        ended = self.program(*self.command, "-o", "json", *options)
        assert ended.code == expect, ended.err
        made: Mapping[str, Any] = json.loads(ended.out)
        return made

    def violations(self, *options: str) -> list[str]:
        return [each["message"] for each in self.plan(*options, expect=REFUSED)["violations"]]

    def error(self) -> str:
        ended = self.program(*self.command)
        assert ended.code == 1, ended.err
        return ended.err.strip().splitlines()[-1]

    @property
    def command(self) -> tuple[str, ...]:
        return ("-C", str(self.root), "plan", "--state", str(self.root / "snapshot.json"))


@pytest.fixture
def prod(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Setup:
    partitions = [
        {"partition": number, "leader": 1, "replicas": [1], "isr": [1], "sizes": [1000 * (number + 1)]}
        for number in range(30)
    ]
    topic = {"name": "orders", "configs": {"min.insync.replicas": "2"}, "partitions": partitions}
    brokers = [{"id": number, "rack": rack} for number, rack in RACKS.items()]
    snapshot = {"formatVersion": "1.0", "clusterId": "c", "brokers": brokers, "topics": [topic]}
    (tmp_path / "snapshot.json").write_text(json.dumps(snapshot))
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "cluster.yaml").write_text(CLUSTER)
    return Setup(tmp_path, Program(capsys))


@pytest.mark.long
def test_without_policies_a_plan_loads_nothing_of_spark(prod: Setup) -> None:
    loaded = modules_loaded_by(*prod.command)
    assert "click" in loaded
    assert not loaded & {"pyspark", "py4j", "pyarrow", "pandas"}


def test_a_policy_is_never_left_out_where_spark_is_missing(prod: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    prod.policy("one.sql", "SELECT 1 WHERE false")
    prod.policy("two.sql", "SELECT 1 WHERE false")
    monkeypatch.setattr("reconciler.balance.policies.asking.find_spec", lambda _name: None)
    told = prod.error()
    assert "the policy prod/policies/one.sql (and 1 more) is asked by Spark, which is not installed" in told
    assert "pip install 'WHEEL[spark]'" in told
    assert "KR013" in told


def test_nor_where_java_is_missing(prod: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    prod.policy("one.sql", "SELECT 1 WHERE false")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "Java is missing" in prod.error()


def test_what_is_no_query_stops_the_plan_before_spark_starts(prod: Setup) -> None:
    prod.policy("drop.sql", "\nDROP TABLE topics")
    assert "prod/policies/drop.sql:2:1: a policy only asks: begin it with SELECT or WITH, not with DROP" in prod.error()


def test_validate_tells_what_is_no_query_with_all_else_that_is_wrong(prod: Setup) -> None:
    prod.policy("drop.sql", "DROP TABLE topics")
    cluster = prod.root / "prod" / "cluster.yaml"
    cluster.write_text(cluster.read_text().replace("capacity", "capacty"))
    ended = prod.program("-C", str(prod.root), "validate")
    assert ended.code == 1
    told = ended.out + ended.err
    assert "did you mean 'capacity'" in told
    assert "prod/policies/drop.sql:1:1: a policy only asks" in told
    assert "KR182" in told


@pytest.fixture
def room(one_room: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all plans of a test ask in one room, which takes seconds to open."""
    monkeypatch.setattr("reconciler.balance.policies.asking.policy_room", lambda _environ: nullcontext(one_room.room))


@pytest.mark.spark
@pytest.mark.usefixtures("room")
def test_each_row_is_a_violation_in_the_order_of_its_columns(prod: Setup) -> None:
    prod.policy(
        "a.sql", "-- No partition is odd.\nSELECT topic, partition FROM planned_replicas WHERE partition IN (11, 9, 1)"
    )
    prod.policy("b.sql", "SELECT 'hear this' AS message, NULL AS n, 1 AS n, map('k', 1) AS m")
    assert prod.violations() == [
        *(f"No partition is odd: topic orders, partition {number}" for number in (1, 1, 9, 9, 11, 11)),
        "policy b: hear this, n unknown, n 1, m {k -> 1}",
    ]


@pytest.mark.spark
@pytest.mark.usefixtures("room")
def test_a_policy_that_holds_changes_nothing_in_the_plan(prod: Setup) -> None:
    without = prod.plan(expect=0)
    prod.policy("a.sql", "SELECT * FROM planned_replicas WHERE broker = 99")
    assert prod.plan(expect=0) == without
    assert "Policies asked: 1." in prod.program(*prod.command).err


@pytest.mark.spark
@pytest.mark.usefixtures("room")
def test_many_rows_are_told_by_their_number_and_the_same_each_time(prod: Setup) -> None:
    prod.policy("a.sql", "SELECT partition FROM planned_replicas")
    told = prod.violations()
    assert prod.violations() == told
    assert told[:2] == ["policy a: partition 0", "policy a: partition 0"]
    assert len(told) == 21
    assert told[-1] == "policy a: 40 more rows"


@pytest.mark.spark
@pytest.mark.usefixtures("room")
def test_a_plan_that_breaks_a_policy_is_shown_but_not_applied(prod: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(prod.root)
    prod.policy("a.sql", "-- Nobody moves\nSELECT count(*) AS moves, sum(bytes) AS bytes FROM moves")
    out = str(prod.root / "plan.json")
    ended = prod.program(*prod.command, "--out", out)
    assert ended.code == REFUSED
    line = "violation: Nobody moves: moves 30, bytes 465000 (KR430, "
    assert f"{line}{prod.root}/prod/policies/a.sql:2)" in ended.out
    cluster = prod.root / "prod" / "cluster.yaml"
    (prod.root / "prod" / "snapshot.json").write_text((prod.root / "snapshot.json").read_text())
    cluster.write_text(cluster.read_text().replace("spec:\n", "spec:\n  simulation: snapshot.json\n", 1))
    applied = prod.program("-C", str(prod.root), "apply", out, "--yes")
    assert applied.code == REFUSED
    assert "Nobody moves: moves 30, bytes 465000" in applied.err


@pytest.mark.spark
def test_a_policy_that_takes_too_much_is_told_and_ended_with_all_its_processes(
    prod: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms: dict[Path, list[int]] = {}

    @contextmanager
    def watched(environ: Mapping[str, str]) -> Iterator[Room]:
        with policy_room(environ) as room:
            rooms[room._folder] = list(descendants(room._process.pid))
            yield room

    monkeypatch.setattr("reconciler.balance.policies.asking.policy_room", watched)
    prod.policy("a.sql", "SELECT 1 WHERE false")
    prod.policy("b.sql", "SELECT array_max(sequence(1L, 500000000L))")
    told = prod.error()
    assert "b.sql:1:1: this policy was not answered: Spark ended over it, most likely for want of memory" in told
    assert "KR184" in told
    ((folder, started),) = rooms.items()
    wait_for(lambda: not any(map(is_there, started)), "the end of the room")
    assert not folder.exists()


WRONG = (
    ("SELECT\n  topc FROM topics", 2, "with name `topc` cannot be resolved. Did you mean"),
    ("SELECT topic\nFRM topics", 2, "Syntax error at or near 'topics'"),
    ("WITH a AS (SELECT 1)\nINSERT INTO topics SELECT * FROM a", 2, "Syntax error at or near 'INSERT'"),
    ("SELECT\n 1 / (partition - 3) FROM moves", 2, "Division by zero"),
    ("SELECT 1 /* never ended", 1, "unclosed bracketed comment"),
)

CLOSED = (
    ("SELECT 1\nFROM nowhere", 2, "a policy asks only the plan's tables, and none is called `nowhere`"),
    (
        "SELECT *\nFROM csv.`/etc/hosts`",
        2,
        "a policy asks only the plan's tables, and none is called `csv`.`/etc/hosts`",
    ),
    (
        "SELECT\n\n java_method('java.lang.System', 'exit', 1)",
        3,
        "a policy cannot call java_method(): it has arithmetic",
    ),
    ("SELECT 1,\n cuont(*) FROM topics", 2, "aggregates and windows (did you mean count?)"),
    ("SELECT *\n FROM topics\n TABLESAMPLE (5 PERCENT)", 1, "get the same answer: Sample leaves it to chance"),
    ("SELECT rand()", 1, "the same plan must always get the same answer: rand() leaves it to chance"),
    ("SELECT Current_Date AS today", 1, "the same plan must always get the same answer: CurrentDate asks the clock"),
    (
        "SELECT 1 WHERE timestamp 'now' > NULL",
        1,
        "the same plan must always get the same answer: as a date or time, a text like 'now'",
    ),
    ("SELECT current_user", 1, "a policy is a plain query over the plan's tables: CurrentUser is none of that"),
)


@pytest.mark.spark
@pytest.mark.usefixtures("room")
def test_what_spark_cannot_or_a_policy_may_not_ask_is_told_at_its_line_in_one_sentence(prod: Setup) -> None:
    for number, (text, _, _) in enumerate((*WRONG, *CLOSED)):
        prod.policy(f"{number:02}.sql", text)
    ended = prod.program(*prod.command)
    assert ended.code == 1
    told = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    for number, ((_, line, sentence), said) in enumerate(zip((*WRONG, *CLOSED), told, strict=True)):
        code, why = ("KR183", "Spark cannot ask this policy: ") if number < len(WRONG) else ("KR185", "")
        assert said.startswith(f"error: {prod.root}/prod/policies/{number:02}.sql:{line}:1: {why}")
        assert sentence in said
        assert "SQLSTATE" not in said
        assert code in said


@pytest.mark.spark
@pytest.mark.usefixtures("room")
def test_loads_are_there_with_all_their_columns_where_they_are_given(prod: Setup) -> None:
    prod.policy("a.sql", "SELECT count(*) AS rows, sum(bytes_in_peak) AS peak, max(coverage) AS coverage FROM loads")
    assert prod.violations() == ["policy a: rows 0, peak unknown, coverage unknown"]
    rates = {("orders", number): (100 + number, 0) for number in range(30)}
    folder = write_loads(prod.root / "loads", "prod", rates)
    assert prod.violations("--loads", folder) == ["policy a: rows 30, peak 3435.0, coverage unknown"]


@pytest.mark.spark
@pytest.mark.usefixtures("room")
def test_a_supposed_plan_is_asked_too(prod: Setup) -> None:
    prod.policy("a.sql", "SELECT broker, rack, state FROM brokers WHERE state = 'draining' OR broker = 9")
    told = prod.violations("--what-if", "drain=2,add=9@c")
    assert told == ["policy a: broker 2, rack a, state draining", "policy a: broker 9, rack c, state active"]


@pytest.mark.spark
@pytest.mark.usefixtures("room")
def test_the_shipped_policies_find_what_they_say(prod: Setup) -> None:
    for name, text in EXAMPLE_POLICIES.items():
        prod.policy(Path(name).name, text)
    told = prod.violations()
    minimum = "A topic has more replicas than min.insync.replicas"
    assert told[0] == f"{minimum}: topic orders, replication_factor 2, min_insync_replicas 2"
    tier = "A partition of tier gold stands in three racks, one of tier silver in two"
    assert told[1] == f"{tier}: topic orders, partition 0, tier gold, racks 2"
    share = "No topic holds more than 40 % of a broker's bytes"
    assert told[-1].startswith(f"{share}: broker ")
    assert told[-1].endswith("topic orders, percent 100.0")


def test_a_pyspark_on_pythonpath_has_the_version_that_it_tells_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_no_package(_name: str) -> str:
        raise PackageNotFoundError

    known = asking._installed()
    monkeypatch.setattr(asking, "version", of_no_package)
    assert asking._installed() == known
