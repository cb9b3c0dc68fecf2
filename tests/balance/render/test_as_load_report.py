from reconciler.balance.model.load_report import ClusterSamples, LoadReport, Rule
from reconciler.balance.render.as_load_report import load_report_lines


def test_the_report_names_each_broken_rule_and_says_all_only_where_it_is_all() -> None:
    one = ClusterSamples(
        "c", 2, 9, "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z", 60, None, 0.99999, {Rule.GAP: 3, Rule.LATE: 0}
    )
    assert load_report_lines(LoadReport(60, (one,), ("a: not used",))) == [
        "note: a: not used",
        "c: 2 partitions, 9 samples from 2026-01-01T00:00:00Z to 2026-01-01T00:05:00Z, coverage 99.9%, no rate known",
        "  gap: 3 time buckets of partitions without a sample: coverage falls, averages leave them out",
    ]
