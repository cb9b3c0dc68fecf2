"""A balance report for people: worst first, what moved, and names that do no harm."""

from dataclasses import replace

from reconciler.balance.model.balance_report import (
    BalanceReport,
    ClusterBalance,
    Level,
    Load,
    LoadRow,
    Measure,
    Rate,
    RateStatistic,
    Skew,
    Traffic,
)
from reconciler.balance.render import as_tables
from reconciler.model.evenness import Evenness

GIB = 1 << 30


def _load(size: int, rate: float, days: float | None = None, imbalance: float | None = None) -> Load:
    rates = Rate(rate, rate, rate, rate, 1.0)
    return Load(
        10, 5, 5, size, rates, rates, growth_bytes_per_day=1.0, days_until_full=days, leader_imbalance=imbalance
    )


def _broker(number: int, before: Load, after: Load | None = None, arriving: int = 0) -> LoadRow:
    moved = None if after is None else Traffic(arriving, arriving * GIB, 0, 0)
    return LoadRow(Level.BROKER, broker=number, rack="a", capacity=1, before=before, after=after, moved=moved)


def _report(*brokers: LoadRow, plan: str | None = None, name: str = "prod", peak: float = 2.0) -> BalanceReport:
    after = _load(3 * GIB, 3000.0) if plan else None
    total = LoadRow(
        Level.CLUSTER,
        before=_load(3 * GIB, 3000.0),
        after=after,
        moved=Traffic(2, 2 * GIB, 2, 2 * GIB) if plan else None,
    )
    even = Evenness(peak, 0.5, 0.25)
    skews = (Skew(Measure.IN, RateStatistic.P95, even, Evenness(1.0, 0.0, 0.0) if plan else None),)
    cluster = ClusterBalance(name, total, brokers, skews=skews, plan_id=plan, partition_count=7)
    return BalanceReport("samples", from_samples=True, clusters=(cluster,))


def test_the_broker_that_carries_most_stands_first_and_what_is_over_a_line_is_said() -> None:
    text = as_tables.balance(_report(_broker(1, _load(GIB, 100.0)), _broker(2, _load(GIB, 900.0, 12.4, 0.5)))).text()
    lines = [line.split()[0] for line in text.splitlines() if " a " in line]
    assert lines == ["2", "1"]
    assert "leader imbalance is above Kafka's 10% line on 2" in text
    assert "first full: broker 2, in 12 days, if it grows on as it did" in text
    assert "95th percentiles of the sum in each time bucket" in text
    assert "->" not in text


def test_with_a_plan_each_figure_shows_before_and_after_and_what_moves_is_listed() -> None:
    brokers = (_broker(1, _load(GIB, 1024.0), _load(2 * GIB, 2048.0), arriving=2), _broker(2, _load(GIB, 1.0)))
    text = as_tables.balance(_report(*brokers, plan="9b21e07c")).text()
    assert "before -> after plan 9b21e07c" in text
    assert "1.0 GiB -> 2.0 GiB" in text
    assert "1 KiB/s -> 2 KiB/s" in text
    assert "2.000 -> 1.000" in text
    assert "moved by the plan: 2 replicas, 2.0 GiB" in text
    assert text.rstrip().splitlines()[-1].split() == ["1", "2", "2.0", "GiB", "0", "0", "B"]


def test_several_clusters_are_compared_in_one_table_the_most_uneven_first() -> None:
    calm, skewed = (_report(name=name, peak=peak).clusters[0] for name, peak in (("calm", 1.1), ("skewed", 3.0)))
    text = as_tables.balance(replace(_report(), clusters=(calm, skewed))).text()
    first = [line.split()[0] for line in text.splitlines()[:3]]
    assert first == ["cluster", "skewed", "calm"]


def test_of_loads_peaks_are_told_and_said_to_be() -> None:
    report = replace(_report(_broker(1, _load(GIB, 100.0))), from_samples=False)
    text = as_tables.balance(report).text()
    assert "in peak" in text
    assert "only averages and peaks add up" in text
