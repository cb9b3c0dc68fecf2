"""Gates are held against what a balance tells: coverage and age of each cluster, rules of all samples together."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from helpers.samples.loads_folder import write_loads

from reconciler.balance.model.balance_report import BalanceReport, ClusterBalance, Level, Load, LoadRow, Rate, Span
from reconciler.balance.workflow.balance import failed_gates
from reconciler.model.gates import parse_gate

NOW = datetime(2026, 3, 29, 12, tzinfo=UTC)
SPAN = Span(10, 60, "2026-03-29T00:00:00Z", "2026-03-29T09:00:00Z")


def _cluster(name: str, coverage: float | None) -> ClusterBalance:
    rate = Rate(1.0, coverage=coverage) if coverage is not None else Rate()
    total = LoadRow(Level.CLUSTER, before=Load(bytes_in=rate, bytes_out=Rate(coverage=0.0)))
    return ClusterBalance(name, total, span=SPAN)


REPORT = BalanceReport(
    "samples",
    from_samples=True,
    clusters=(_cluster("a", 0.99), _cluster("b", 0.5), _cluster("c", None)),
    defects={"late": 5, "gap": 0},
    samples=100,
)


def _told(report: BalanceReport, *gates: str, loads: str | None = None) -> list[str]:
    found = failed_gates(report, [parse_gate(gate, ("late", "gap")) for gate in gates], NOW, loads)
    assert all("the report is written all the same" in problem.message for problem in found)
    return [problem.message.partition(": the report")[0] for problem in found]


def test_each_cluster_is_held_against_coverage_and_age() -> None:
    assert _told(REPORT, "coverage<95%") == [
        "b: coverage is 50%, below 95%",
        "c: coverage is not known, so --fail-on 'coverage<95%' cannot be held",
    ]
    assert _told(REPORT, "age>2h") == [f"{name}: age is 3h, above 2h" for name in "abc"]
    assert _told(REPORT, "age>3h") == []


def test_rules_are_held_against_the_samples_of_all_clusters() -> None:
    assert _told(REPORT, "late>4%", "late>5", "gap>0") == ["all clusters: late is 5%, above 4%"]
    assert _told(replace(REPORT, clusters=REPORT.clusters[:1]), "late>4") == ["a: late is 5, above 4"]


def test_loads_are_held_against_what_they_tell_themselves(tmp_path: Path) -> None:
    folder = write_loads(tmp_path / "loads", "a", {("orders", 0): (1, 1)}, coverage=0.6)
    report = replace(REPORT, clusters=REPORT.clusters[:1], from_samples=False, defects={}, samples=0)
    assert _told(report, "coverage<75%", "coverage<60%", "late>1%", loads=folder) == [
        "a: coverage is 60%, below 75%",
        "a: late is not known, so --fail-on 'late>1%' cannot be held",
    ]
