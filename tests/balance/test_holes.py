"""Figures of samples with holes are those of the truth, and nothing moves on clusters that are even in truth."""

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from balance.clusters import assigned
from helpers.samples.lossy_traces import BROKERS, Form, Trace, trace, write_traces

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.balance.spark.loads_job import SampleTask, run_loads
from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.files.loads import read_loads
from reconciler.model.desired import Balance, Desired, DesiredCluster, Off, Within
from reconciler.planner.place import plan_placement
from reconciler.render.as_json import document

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

NOW = datetime(2026, 6, 1, tzinfo=UTC)
NEAR = 0.02


def _differences(spark: "SparkSession", traces: list[Trace], form: Form, folder: Path) -> list[str]:
    """Return what is not as it should be, in words: no figure of a broker, and no move."""
    write_traces(folder / "in", traces)
    task = SampleTask(find_sample_files([str(folder / "in")]).files, form.step, NOW)
    run_loads(spark, task, str(folder / "loads"), document)
    wrong = [told for one in traces for told in _moves(one, folder / "loads")]
    rows = {(row.cluster, row.broker): row for row in _brokers(spark, traces, task)}
    return [*wrong, *(told for one in traces for told in _figures(one, rows))]


def _brokers(spark: "SparkSession", traces: list[Trace], task: SampleTask) -> "list[Row]":
    from functools import partial

    from reconciler.balance.spark.balance_job import balance_of_samples, rows_of_buckets, rows_of_samples

    tables = assigned(spark, {one.name: one.cluster for one in traces})
    rows, in_need = rows_of_samples(spark, task), partial(rows_of_buckets, spark, task)
    assert rows is not None
    with balance_of_samples(tables, rows, task.bucket_seconds, in_need=in_need) as balance:
        return [row for row in balance.figures.collect() if row.level == "broker"]


def _figures(one: Trace, rows: "dict[tuple[str, int], Row]") -> list[str]:
    ways = ("in",) if one.loss == "election" else ("in", "out")
    found = []
    for way in ways:
        truth = one.carried(way)
        for broker in range(BROKERS):
            row, told = rows[one.name, broker + 1], truth[broker]
            for what, want in (("average", told.mean()), ("p95", np.percentile(told, 95))):
                share = row[f"{way}_{what}"] / want - 1
                if abs(share) > NEAR:
                    found.append(f"{one.name}: {way} {what} of broker {broker + 1} is off by {share:.2%}")
    return found


def _moves(one: Trace, folder: Path) -> list[str]:
    loads = read_loads(str(folder), one.name)
    within = Within(Fraction(1, 10))
    out = Off() if one.loss == "election" else within
    balance = Balance(disk=within, network_in=within, network_out=out)
    desired = Desired(DesiredCluster(one.name, balance=balance))
    rules = topic_rules(desired, one.cluster)
    placed = plan_placement(desired, one.cluster, rules, compare(desired, one.cluster, rules), loads=loads)
    return [f"{one.name}: {len(placed.moves)} moves"] if placed.moves else []


@pytest.mark.deep  # one missed scrape is tried each time, in test_missed_scrape.py
def test_brokers_are_near_the_truth_and_nothing_moves_under_every_kind_of_loss(
    spark: "SparkSession", tmp_path: Path
) -> None:
    form = Form(days=3, step=1200)
    assert _differences(spark, [trace(3000 + seed, form) for seed in range(4)], form, tmp_path) == []


@pytest.mark.deep
@pytest.mark.parametrize(("first", "form"), [(1000, Form(days=3, step=600)), (2000, Form(days=15, step=1800))])
def test_and_so_they_are_under_two_hundred_patterns_of_loss(
    spark: "SparkSession", tmp_path: Path, first: int, form: Form
) -> None:
    traces = [trace(first + seed, form) for seed in range(100)]
    assert _differences(spark, traces, form, tmp_path) == []
