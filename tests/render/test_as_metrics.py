"""The text of the metrics: what Prometheus' parser reads, and what its linter asks for."""

import re

from prometheus_client.parser import text_string_to_metric_families

from reconciler.model.run import RunMetrics
from reconciler.render.as_metrics import metrics

NASTY = 'prod "eu"\\\nreconciler_run_exit_code{cluster="x"} 0'
FULL = RunMetrics(
    cluster_name=NASTY,
    plan_id="0123abcd",
    started_at=1.5,
    updated_at=2.25,
    stages=3,
    moves=4,
    total_bytes=2**60 + 1,
    estimated_seconds=5,
    warnings=6,
    stage=1,
    bytes_per_second=7.25,
    stage_seconds_left=8.0,
    throttle_bytes_per_second=9,
    exit_code=5,
    last_success_at=1795272990.212,
)
UNITS = {"bytes", "seconds"}
OTHER_UNITS = re.compile(
    r"_(bits|kilobytes|megabytes|gibibytes|milliseconds|ms|minutes|hours|days|percent|kb|mb|gb|sec|s)(_|$)"
)


def test_names_of_others_stay_within_their_label() -> None:
    families = list(text_string_to_metric_families(metrics(FULL)))
    labels = [sample.labels for family in families for sample in family.samples]
    assert {each["cluster"] for each in labels} == {NASTY}
    assert [each["plan"] for each in labels if "plan" in each] == ["0123abcd"]
    assert all(len(family.samples) == 1 for family in families)


def test_it_keeps_the_rules_of_prometheus_linter() -> None:
    text = metrics(FULL)
    assert text.endswith("\n")
    families = list(text_string_to_metric_families(text))
    assert len(families) == text.count("# HELP ") == text.count("# TYPE ") == 19
    for family in families:
        assert re.fullmatch(r"reconciler_run_[a-z]+(_[a-z]+)*", family.name)
        assert family.documentation
        assert family.type == "gauge"
        # Of gauges the linter refuses what counters, histograms and summaries are named, types, and other units.
        assert not re.search(r"_(total|count|sum|bucket|info_total|gauge|counter)$", family.name)
        assert not OTHER_UNITS.search(family.name)


def test_large_numbers_and_moments_are_exact() -> None:
    lines = metrics(FULL).splitlines()
    assert any(line.endswith(f" {2**60 + 1}") for line in lines)
    assert any(line.endswith(" 1795272990.212") for line in lines)
