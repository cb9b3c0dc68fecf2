"""Cruise Control's metrics: records of the real reporter, decoded as its own code does, and read on.

`data/cruise_control_records.txt`: two reports of a broker of Kafka 4.3, as its reporter wrote them, each record beside
what `MetricSerde.fromBytes(...).toString()` says of it.
"""

import json
import re
from base64 import b64decode
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from helpers.clusters.small_cluster import small_cluster
from pyarrow import parquet

from reconciler.admin.port import EARLIEST, Admin, Records
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.balance.model.cruise_control import Metric, Reports, decoded
from reconciler.balance.workflow import collect as verb
from reconciler.balance.workflow.collect import Collected, collect
from reconciler.balance.workflow.cruise_control import CruiseControl
from reconciler.model.problem import ClusterUnavailable, InvalidInput
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.inputs import Inputs

DATA = Path(__file__).parents[1] / "data" / "cruise_control_records.txt"
RECORDS = [line.split(" ", 1) for line in DATA.read_text().splitlines()]
TOPIC = "__CruiseControlMetrics"
PARTITIONS = tuple(f"{topic}-{number}: 1,2" for topic in ("orders", "clicks", TOPIC) for number in range(3))
MEASURES = {
    "ALL_TOPIC_BYTES_IN": "bytes_in",
    "ALL_TOPIC_BYTES_OUT": "bytes_out",
    "ALL_TOPIC_REPLICATION_BYTES_IN": "replication_bytes_in",
    "BROKER_CPU_UTIL": "cpu",
    "BROKER_PRODUCE_TOTAL_TIME_MS_999TH": "produce_ms",
    "BROKER_CONSUMER_FETCH_TOTAL_TIME_MS_999TH": "fetch_consumer_ms",
    "BROKER_FOLLOWER_FETCH_TOTAL_TIME_MS_999TH": "fetch_follower_ms",
    "BROKER_LOG_FLUSH_TIME_MS_999TH": "log_flush_ms",
    "TOPIC_BYTES_IN": "bytes_in",
    "TOPIC_BYTES_OUT": "bytes_out",
    "TOPIC_MESSAGES_IN_PER_SEC": "messages_in",
    "PARTITION_SIZE": "size_bytes",
}


def shown(text: str) -> dict[str, str]:
    """Return the fields of what the reporter's own code says of a record."""
    _, kind, *fields = text.strip("[]").split(",")
    return {"kind": kind, **dict(field.split("=", 1) for field in fields)}


def test_records_are_decoded_as_the_reporters_own_code_does() -> None:
    for record, text in RECORDS:
        expected = shown(text)
        found = decoded(b64decode(record))
        measure = MEASURES.get(expected["kind"])
        if measure is None or expected.get("partition", "").startswith("__cluster_metadata"):
            assert found is None, text
            continue
        topic, _, number = expected.get("partition", "").rpartition("-")
        assert found is not None
        assert found._replace(value=round(found.value, 3)) == Metric(
            int(expected["time"]),
            int(expected["brokerId"]),
            measure,
            float(expected["value"]),
            topic or expected.get("topic", ""),
            int(number) if number else -1,
        )


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (b"", "is cut short or no metric"),
        (b64decode(RECORDS[0][0])[:-1], "is cut short or no metric"),
        (b64decode(RECORDS[0][0]) + b"\0", "has bytes behind its figure"),
        (pack(">bbbqid", 0, 1, 0, 1, 1, 1.0), "is of form 0, version 1"),
        (pack(">bbbqid", 7, 0, 0, 1, 1, 1.0), "is of form 7, version 0"),
        (pack(">bbbqii", 1, 0, 2, 1, 1, -5), "is cut short or no metric"),
        (pack(">bbbqii", 1, 0, 2, 1, 1, 2) + b"\xff\xff" + pack(">d", 1.0), "is cut short or no metric"),
    ],
)
def test_what_is_no_metric_is_told(record: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        decoded(record)


@pytest.mark.parametrize(("type_", "value"), [(0, float("nan")), (0, -1.0), (63, 1.0), (99, 1.0)])
def test_a_figure_that_samples_do_not_have_is_passed_over(type_: int, value: float) -> None:
    assert decoded(pack(">bbbqid", 0, 0, type_, 1, 1, value)) is None


def reach(monkeypatch: pytest.MonkeyPatch, admin: Admin) -> Inputs:
    @contextmanager
    def opened(_inputs: Inputs, _desired: object) -> Iterator[Admin]:
        yield admin

    monkeypatch.setattr(verb, "cluster_admin", opened)
    return Inputs(bootstrap_server="k:9092")


def reporting(*lines: str) -> SimulatedAdmin:
    """Return a cluster some minutes after the reports."""
    return SimulatedAdmin(replace(small_cluster(*(lines or PARTITIONS)), observed_at="2026-11-26T07:30:00Z"))


def report(number: int) -> list[bytes]:
    """Return the records of the first or second report."""
    times = sorted({shown(text)["time"] for _, text in RECORDS})
    return [b64decode(record) for record, text in RECORDS if shown(text)["time"] == times[number]]


def write(admin: SimulatedAdmin, records: list[bytes]) -> None:
    """Let the reporter write, spread over the partitions of its topic."""
    for place, record in enumerate(records):
        admin.values.setdefault(TopicPartition(TOPIC, place % 3), []).append(record)


def rows(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("cluster=*/date=2026-11-26/*.parquet"))
    found = [row for file in files for row in parquet.read_table(file, partitioning=None).to_pylist()]
    return sorted(found, key=lambda row: (row["ts"], row.get("broker", 0), row.get("topic"), row.get("partition")))


def shares() -> dict[tuple[str, int], tuple[float, float | None, float]]:
    """Return what each partition should have of the second report, by what it grew by."""
    figures = [shown(text) for _, text in RECORDS]
    first, second = sorted({each["time"] for each in figures})
    sizes = {
        (each["time"], each["partition"]): float(each["value"]) for each in figures if each["kind"] == "PARTITION_SIZE"
    }
    latest = [each for each in figures if each["time"] == second and "topic" in each]
    rates = {(each["kind"], each["topic"]): float(each["value"]) for each in latest}
    found = {}
    for topic in ("orders", "clicks"):
        grown = [sizes[second, f"{topic}-{number}"] - sizes[first, f"{topic}-{number}"] for number in range(3)]
        for number in range(3):
            share = grown[number] / sum(grown)
            bytes_out = rates.get(("TOPIC_BYTES_OUT", topic))
            found[topic, number] = (
                rates["TOPIC_BYTES_IN", topic] * share,
                None if bytes_out is None else bytes_out * share,
                rates["TOPIC_MESSAGES_IN_PER_SEC", topic] * share,
            )
    return found


def test_reports_become_samples_of_partitions_replicas_and_brokers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = reporting()
    write(admin, [*report(0), b"\0\0", *report(1)])
    told: list[Collected] = []
    collect(reach(monkeypatch, admin), str(tmp_path), verb.ONCE, told.append, CruiseControl())
    assert (told[0].partitions, told[0].replicas, told[0].brokers) == (12, 12, 2)
    left_out = [re.sub(r"-\d ", "-N ", each) for each in told[0].untold]
    assert left_out == [f"a record of {TOPIC}-N is cut short or no metric: left out"]
    partitions = rows(tmp_path)
    assert {row["ts"] for row in partitions[:6]} == {datetime(2026, 11, 26, 7, 22, 17, 692_000, tzinfo=UTC)}
    assert {(row["bytes_in"], row["estimated"]) for row in partitions[:6]} == {(None, False)}
    for row in partitions[6:]:
        bytes_in, bytes_out, messages_in = shares()[row["topic"], row["partition"]]
        assert row["bytes_in"] == pytest.approx(bytes_in, rel=1e-6)
        assert row["bytes_out"] == (None if bytes_out is None else pytest.approx(bytes_out, rel=1e-6))
        assert row["messages_in"] == pytest.approx(messages_in, rel=1e-4)
        assert row["estimated"] is True
    sizes = {(row["topic"], row["partition"]): row["size_bytes"] for row in partitions[6:]}
    assert sizes["orders", 0] == 522291
    brokers = rows(tmp_path / "_brokers")
    found = [(row["broker"], round(row["cpu"], 3), row["produce_ms"], round(row["bytes_out"], 3)) for row in brokers]
    assert found == [(1, 0.048, 252.0, 0.0), (1, 0.033, 252.0, 11246.009)]
    replicas = rows(tmp_path / "_replicas")
    assert {(row["broker"], row["log_dir"], row["is_future"]) for row in replicas} == {(1, None, False)}


def test_another_run_goes_on_where_the_last_one_ended_and_knows_what_grew_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = reporting()
    told: list[Collected] = []
    first, second = report(0), report(1)
    # The second report is half written, and young: it is left for the next run.
    admin.cluster = replace(admin.cluster, observed_at="2026-11-26T07:22:50Z")
    young = SimulatedAdmin(admin.cluster)
    young.values = admin.values
    write(admin, first)
    write(admin, second[:12])
    collect(reach(monkeypatch, young), str(tmp_path), verb.ONCE, told.append, CruiseControl())
    assert [each.partitions for each in told] == [6]
    state = json.loads(next(tmp_path.glob("_cruise_control/cluster=*/read.json")).read_text())
    # Before the report that was told, whose sizes the next one is compared with, and before what is open.
    assert state["positions"] == {"0": 2, "1": 0, "2": 1}
    write(admin, second[12:])
    later = reporting()
    later.values = admin.values
    inputs = reach(monkeypatch, later)
    for _ in range(2):
        collect(inputs, str(tmp_path), verb.ONCE, told.append, CruiseControl())
    assert [each.partitions for each in told] == [6, 6, 0]
    found = {(row["topic"], row["partition"]): row["bytes_in"] for row in rows(tmp_path) if row["bytes_in"] is not None}
    assert found == {key: pytest.approx(rates[0], rel=1e-6) for key, rates in shares().items()}


def test_long_histories_are_read_in_parts_and_no_report_is_torn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.admin.simulated.RECORDS_AT_ONCE", 4)
    monkeypatch.setattr("reconciler.balance.workflow.cruise_control.ROWS_AT_ONCE", 1)
    admin = reporting()
    write(admin, report(0))
    # One partition of the topic is far ahead of the others.
    admin.values[TopicPartition(TOPIC, 0)] += report(1)
    told: list[Collected] = []
    collect(reach(monkeypatch, admin), str(tmp_path), verb.ONCE, told.append, CruiseControl())
    assert told[0].partitions == 12
    assert len([row for row in rows(tmp_path) if row["bytes_in"] is not None]) == 6


def test_a_round_ends_while_brokers_write_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = reporting()
    admin.cluster = replace(admin.cluster, observed_at="2026-11-26T07:20:00Z")
    early = SimulatedAdmin(admin.cluster)
    records, rounds = early.records, []
    write(early, report(0))

    def written_on(positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Records]:
        rounds.append(positions)
        assert len(rounds) < 10, "the round never ends"
        write(early, report(0))
        return records(positions)

    monkeypatch.setattr(early, "records", written_on)
    collect(reach(monkeypatch, early), str(tmp_path), verb.ONCE, lambda _: None, CruiseControl())
    assert len(rounds) == 1


def answering(monkeypatch: pytest.MonkeyPatch, answers: Callable[[int], bool]) -> SimulatedAdmin:
    """Return a cluster with both reports, in which leaders tell the offsets of those partitions only."""
    admin = reporting()
    write(admin, [*report(0), *report(1)])
    offsets = admin.log_offsets
    monkeypatch.setattr(
        admin, "log_offsets", lambda keys, at: offsets([key for key in keys if answers(key.partition)], at)
    )
    return admin


def test_a_round_that_fails_leaves_its_reports_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = reporting()
    told: list[Collected] = []
    every = timedelta(minutes=1)
    records, asked = admin.records, []

    def tell(each: Collected) -> None:
        if not told:
            write(admin, [*report(0), *report(1)])
        told.append(each)

    def broken_off(positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Records]:
        asked.append(positions)
        # The second round has read the first report and a part of the other, and then the cluster is gone.
        if len(asked) == 2:
            raise ClusterUnavailable("gone")
        return records(positions)

    monkeypatch.setattr(admin, "records", broken_off)
    monkeypatch.setattr("reconciler.admin.simulated.RECORDS_AT_ONCE", 12)
    monkeypatch.setattr("reconciler.balance.workflow.cruise_control.WHOLE_AFTER_SECONDS", 0)
    collect(reach(monkeypatch, admin), str(tmp_path), verb.Schedule(every, 2 * every), tell, CruiseControl())
    assert [each.partitions for each in told] == [0, None, 12]
    assert len(rows(tmp_path)) == 12


def test_a_partition_whose_leader_is_silent_at_first_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Collected] = []
    admin = answering(monkeypatch, lambda partition: partition > 0 or bool(told))
    schedule = verb.Schedule(timedelta(minutes=1), timedelta(minutes=1))
    collect(reach(monkeypatch, admin), str(tmp_path), schedule, told.append, CruiseControl())
    assert [each.untold for each in told] == [
        (f"{TOPIC}-0 has no leader that answers: its records are read later",),
        (),
    ]
    state = json.loads(next(tmp_path.glob("_cruise_control/cluster=*/read.json")).read_text())
    assert set(state["positions"]) == {"0", "1", "2"}
    # A part of each report lay in that partition, so reports waited for it.
    assert [each.partitions for each in told] == [0, 12]


def test_reports_do_not_wait_for_ever_for_a_partition_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Collected] = []
    admin = answering(monkeypatch, lambda partition: partition > 0)
    schedule = verb.Schedule(timedelta(minutes=1), timedelta(minutes=5))
    collect(reach(monkeypatch, admin), str(tmp_path), schedule, told.append, CruiseControl())
    assert [bool(each.partitions) for each in told] == [False, False, False, True, False, False]


def test_partitions_that_are_added_while_collect_runs_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = reporting()
    told: list[Collected] = []

    def tell(each: Collected) -> None:
        if not told:
            added = small_cluster(*PARTITIONS, f"{TOPIC}-3: 1,2")
            admin.cluster = replace(admin.cluster, topics=added.topics)
            admin.values[TopicPartition(TOPIC, 3)] = [*report(0), *report(1)]
        told.append(each)

    schedule = verb.Schedule(timedelta(minutes=1), timedelta(minutes=1))
    collect(reach(monkeypatch, admin), str(tmp_path), schedule, tell, CruiseControl())
    assert [each.partitions for each in told] == [0, 12]


def test_a_broker_that_is_gone_is_not_read_again_for_ever() -> None:
    reports = Reports()
    hour = 3_600_000
    reports.add([(0, Metric(hour, 1, "cpu", 0.5)), (5, Metric(hour, 2, "cpu", 0.5))], 0)
    assert len(reports.whole({}, 2 * hour)) == 2
    assert reports.read_again_from({0: 6}) == {0: 0}
    reports.add([(9, Metric(2 * hour, 2, "cpu", 0.5))], 0)
    assert len(reports.whole({}, 3 * hour)) == 1
    assert reports.read_again_from({0: 10}) == {0: 9}


def test_a_topic_that_is_not_there_and_a_broken_state_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = reach(monkeypatch, reporting("orders-0: 1,2"))
    for topic, name in ((None, f"{TOPIC} and no topic strimzi.cruisecontrol.metrics"), ("mine", "mine")):
        with pytest.raises(InvalidInput, match=f"there is no topic {name}, or this user may not see it") as refused:
            collect(inputs, str(tmp_path), verb.ONCE, lambda _: None, CruiseControl(topic))
        assert refused.value.problems[0].code == "KR446"
    state = tmp_path / "_cruise_control" / "cluster=simulated" / "read.json"
    state.parent.mkdir(parents=True)
    state.write_text("{}")
    with pytest.raises(InvalidInput, match=r"read\.json: does not say how far") as refused:
        collect(reach(monkeypatch, reporting()), str(tmp_path), verb.ONCE, lambda _: None, CruiseControl())
    assert refused.value.problems[0].code == "KR447"


def test_what_is_read_at_first_begins_as_far_back_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = reporting()
    asked: list[int] = []
    offsets = admin.log_offsets

    def noted(keys: Collection[TopicPartition], at: int) -> Mapping[TopicPartition, int | None]:
        asked.append(at)
        return offsets(keys, at)

    monkeypatch.setattr(admin, "log_offsets", noted)
    collect(
        reach(monkeypatch, admin), str(tmp_path), verb.ONCE, lambda _: None, CruiseControl(since=timedelta(minutes=5))
    )
    state = next(tmp_path.glob("_cruise_control/cluster=*/read.json"))
    state.write_text(state.read_text().replace(TOPIC, "another"))
    collect(
        reach(monkeypatch, admin), str(tmp_path), verb.ONCE, lambda _: None, CruiseControl(since=timedelta(minutes=5))
    )
    assert EARLIEST not in asked
    assert asked[0] == int(datetime(2026, 11, 26, 7, 25, tzinfo=UTC).timestamp() * 1000)
