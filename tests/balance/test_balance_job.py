"""`balance` from files to report: two clusters, a plan, samples and loads, every form of output."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from helpers.samples.load_oracle import Row
from helpers.samples.sample_tables import PATTERN, START, STRANGE, write_parquet
from jsonschema import Draft7Validator

from reconciler.balance.model.balance_report import (
    BalanceReport,
    ClusterBalance,
    Level,
    LoadRow,
    Measure,
    RateStatistic,
)
from reconciler.balance.render import as_html, as_tables
from reconciler.balance.workflow.balance import make_balance
from reconciler.balance.workflow.loads import SparkJob, make_loads
from reconciler.files.plan_file import write_plan
from reconciler.files.schema_check import schema_folder
from reconciler.files.snapshot import read_snapshot, write_snapshot
from reconciler.model.cluster import LogDir
from reconciler.render.as_json import document
from reconciler.workflow.demo import write_demo
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.plan import make_plan

pytestmark = pytest.mark.usefixtures("spark")
NOW = datetime(2026, 4, 1, tzinfo=UTC)
BUCKETS = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the demo, snapshots of it and of another cluster, samples of both, and a plan.

    The other cluster is as Kafka before 3.3 tells it: what its disks hold and have free is not known.
    """
    home = tmp_path_factory.mktemp("balance") / STRANGE
    write_demo(str(home / "root"))
    snapshot = read_snapshot(home / "root" / "demo" / "snapshot.json")
    few = {name: snapshot.topics[name] for name in sorted(snapshot.topics)[:3]}
    write_snapshot(snapshot, home / "snapshots" / "demo.json")
    bare = {
        one: replace(broker, log_dirs=tuple(LogDir(each.path) for each in broker.log_dirs))
        for one, broker in snapshot.brokers.items()
    }
    far = replace(snapshot, cluster_id="other", brokers=bare, topics=few)
    write_snapshot(far, home / "snapshots" / "far.json")
    random = Random(3)
    rows = [
        Row(
            START + 60 * bucket, name, key.topic, key.partition,
            random.randrange(10**6) / 8, random.randrange(10**6) / 8, None, 1000 * (bucket + 1), None,
        )
        for name, cluster in (("demo", snapshot), ("far", far))
        for key, _ in cluster.partitions()
        for bucket in range(BUCKETS)
    ]  # fmt: skip
    write_parquet(home / "samples" / "part-0.parquet", rows)
    write_plan(make_plan(Inputs(str(home / "root"), "demo")).plan, str(home / "plan.json"))
    return home


def _balance(
    folder: Path, *, cluster: str = "*", out: str | None = None, samples: tuple[str, ...] = (), loads: str | None = None
) -> BalanceReport:
    state = str(folder / "snapshots") if cluster == "*" else str(folder / "snapshots" / f"{cluster}.json")
    plans = (str(folder / "plan.json"),) if cluster != "far" else ()
    inputs = Inputs(str(folder / "root"), cluster, state)
    return make_balance(inputs, SparkJob(NOW, samples), loads=loads, plans=plans, out=out)


def _by_name(rows: tuple[LoadRow, ...]) -> dict[tuple[object, ...], LoadRow]:
    return {(row.broker, row.rack, row.log_dir, row.topic): row for row in rows}


def test_samples_and_loads_tell_the_same_average_and_peak_and_every_form_shows_them(folder: Path) -> None:
    from pyarrow import parquet

    samples = (str(folder / "samples"),)
    report = _balance(folder, samples=samples, out=str(folder / PATTERN / "tables"))
    demo, far = report.clusters
    assert (demo.name, far.name, demo.topic_count, far.topic_count) == ("demo", "far", 41, 3)
    assert (far.plan_id, far.total.after, len(far.brokers)) == (None, None, 6)
    assert demo.span == far.span
    assert demo.total.moved is not None
    assert (demo.total.moved.arriving_replicas, demo.total.moved.leaving_replicas) == (14, 2)

    text = document(report)
    schema = json.loads((schema_folder() / "balance.json").read_text("utf-8"))
    assert list(Draft7Validator(schema).iter_errors(json.loads(text))) == []
    shown = as_tables.balance(report).text()
    assert "before -> after plan" in shown
    assert shown.index("cluster") < shown.index("demo: 6 brokers, 3 racks, 41 topics")
    assert "### reconciler balance · `demo`" in as_tables.balance(report).markdown()

    written = parquet.read_table(folder / PATTERN / "tables" / "figures").to_pylist()
    of_topics = [row for row in written if (row["level"], row["cluster"]) == ("topic", "demo")]
    assert {row["topic"] for row in of_topics if row["side"] == "after"} == {row.topic for row in demo.topics}
    assert all(row["broker"] is None and row["rack"] is None for row in of_topics)
    assert len(parquet.read_table(folder / PATTERN / "tables" / "evenness")) > 0
    _assert_no_disk_is_said_to_fill(report, far)

    make_loads(Inputs(str(folder / "root")), SparkJob(NOW, samples), str(folder / PATTERN / "loads"))
    summed = _balance(folder, loads=str(folder / PATTERN / "loads"))
    assert not summed.from_samples
    for one, other in zip(report.clusters, summed.clusters, strict=True):
        for rows, sums in ((one.brokers, other.brokers), (one.racks, other.racks), (one.topics, other.topics)):
            _assert_alike(_by_name(rows), _by_name(sums))
        _assert_alike(_by_name(one.log_dirs), _by_name(other.log_dirs))
        _assert_alike(_by_name((one.total,)), _by_name((other.total,)))
        assert one.skew(Measure.SIZE) == other.skew(Measure.SIZE)
        assert other.skew(Measure.IN, RateStatistic.P95) is None
        assert other.skew(Measure.IN, RateStatistic.PEAK) is not None


def _assert_no_disk_is_said_to_fill(report: BalanceReport, far: ClusterBalance) -> None:
    """All of it grows, but nothing says where it ends: null in JSON, `-` in tables, no word in the findings."""
    rows = (far.total, *far.brokers, *far.racks, *far.log_dirs, *far.topics)
    loads = [row.before for row in rows if row.before is not None and row.before.replicas]
    assert {row.level for row in rows} == set(Level)
    assert all((load.growth_bytes_per_day or 0) > 0 for load in loads)
    assert {(load.total_bytes, load.free_bytes, load.days_until_full) for load in loads} == {(None, None, None)}
    alone = replace(report, clusters=(far,))
    told = json.loads(document(alone))
    assert '"daysUntilFull": null' in json.dumps(told)
    assert not re.search(r'"daysUntilFull": [^n]', json.dumps(told))
    for shown in (as_tables.balance(alone).text(), as_tables.balance(alone).markdown()):
        assert "full in" in shown
        assert "first full" not in shown
        assert not re.search(r"\b0 s\b|\d days", shown)
    page = as_html.balance(alone)
    assert "Until full" in page
    assert not re.search(r">\s*0 s\s*<|\d days", page)


def _assert_alike(rows: dict[tuple[object, ...], LoadRow], sums: dict[tuple[object, ...], LoadRow]) -> None:
    assert rows.keys() == sums.keys()
    for key, row in rows.items():
        for load, other in ((row.before, sums[key].before), (row.after, sums[key].after)):
            if load is None or other is None:
                assert load is other
                continue
            for rate, summed in ((load.bytes_in, other.bytes_in), (load.bytes_out, other.bytes_out)):
                _assert_near(summed.average, rate.average)
                _assert_near(summed.peak, rate.peak)
                _assert_near(summed.coverage, rate.coverage)
                assert summed.p95 is None
            _assert_near(other.growth_bytes_per_day, load.growth_bytes_per_day)
            same = ("replicas", "leaders", "preferred_leaders", "size_bytes", "total_bytes", "free_bytes")
            assert [getattr(load, name) for name in same] == [getattr(other, name) for name in same]


def _assert_near(one: float | None, other: float | None) -> None:
    """Rates of a partition are means of doubles before they are summed as whole thousandths."""
    assert (one is None) == (other is None)
    assert one is None or one == pytest.approx(other, rel=1e-6, abs=0.01)


def test_an_empty_plan_leaves_everything_as_it_is_and_samples_of_others_are_told(tmp_path: Path) -> None:
    root = str(tmp_path / "root")
    write_demo(root)
    made = make_plan(Inputs(root, "demo")).plan
    write_plan(replace(made, stages=(), topic_changes=(), predicted_log_dirs={}), str(tmp_path / "empty.json"))
    strangers = [Row(START, "elsewhere", "orders.events", 0, 1.0, 1.0, None, 5, None)]
    write_parquet(tmp_path / "samples" / "part-0.parquet", strangers)
    job, plans = SparkJob(NOW, (str(tmp_path / "samples"),)), (str(tmp_path / "empty.json"),)
    (demo,) = make_balance(Inputs(root, "demo"), job, plans=plans).clusters
    assert demo.plan_id is not None
    rows = [demo.total, *demo.brokers, *demo.racks, *demo.log_dirs, *demo.topics]
    assert all(row.before == row.after for row in rows)
    assert {row.level for row in rows} == set(Level)
    assert all(skew.before == skew.after for skew in demo.skews)
    assert [each.code for each in demo.warnings] == ["KR261"]
    assert demo.total.before is not None
    assert (demo.total.before.bytes_in.average, demo.span) == (None, None)
