"""Balance reports of any size, drawn with a seed, for those who show them."""

from collections.abc import Sequence
from random import Random

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
    Span,
    Traffic,
)
from reconciler.model.evenness import evenness

MIB, GIB = 1024**2, 1024**3


def drawn_report(
    *sizes: int, has_plan: bool = True, from_samples: bool = True, seed: int = 1, names: Sequence[str] = ()
) -> BalanceReport:
    """Return a report of one cluster for each number of brokers."""
    random = Random(seed)
    clusters = tuple(
        _cluster(
            random, names[index] if names else f"prod-{index + 1}", brokers, has_plan=has_plan, is_p95=from_samples
        )
        for index, brokers in enumerate(sizes)
    )
    return BalanceReport("samples in /data/samples", from_samples, clusters, {"duplicate": 12, "gap": 3_400})


def _cluster(random: Random, name: str, brokers: int, *, has_plan: bool, is_p95: bool) -> ClusterBalance:
    heat = [random.lognormvariate(0, 0.5) for _ in range(brokers)]
    rows = []
    for index in range(brokers):
        before = _load(random, heat[index], imbalance=random.choice([0.0, 0.0, 0.03, 0.08, 0.24]), is_p95=is_p95)
        after = _load(random, 0.9 + 0.2 * random.random(), imbalance=0.0, is_p95=is_p95) if has_plan else None
        moved = Traffic(3, random.randrange(GIB), 2, random.randrange(GIB)) if has_plan else None
        rows.append(
            LoadRow(Level.BROKER, index + 1, "abc"[index % 3], before=before, after=after, moved=moved, capacity=1)
        )
    log_dirs = tuple(
        LoadRow(Level.LOG_DIR, row.broker, log_dir=path, before=row.before, after=row.after)
        for row in rows
        for path in ("/var/lib/kafka/d1", "/var/lib/kafka/d2")
    )
    racks = tuple(LoadRow(Level.RACK, rack=rack, before=rows[0].before, after=rows[0].after) for rack in "abc")
    topics = tuple(
        LoadRow(Level.TOPIC, topic=f"team-{number % 7}.topic-{number}", before=load, after=load if has_plan else None)
        for number in range(60)
        if (load := _load(random, 20 / (number + 1), imbalance=None, is_p95=is_p95))
    )
    skews = tuple(
        Skew(measure, statistic, evenness((value, 1) for value in heat), evenness([(1.0, 1)] * 2) if has_plan else None)
        for measure, statistic in (
            (Measure.REPLICAS, None),
            (Measure.SIZE, None),
            (Measure.IN, RateStatistic.P95),
            (Measure.OUT, RateStatistic.P95),
        )
    )
    return ClusterBalance(
        name,
        LoadRow(
            Level.CLUSTER,
            before=_load(random, float(brokers), imbalance=0.07, is_p95=is_p95),
            after=_load(random, float(brokers), imbalance=0.0, is_p95=is_p95) if has_plan else None,
            moved=Traffic(30, 77 * GIB, 30, 70 * GIB) if has_plan else None,
        ),
        brokers=tuple(rows),
        racks=racks,
        log_dirs=log_dirs,
        topics=topics,
        topic_count=412,
        partition_count=brokers * 500,
        skews=skews,
        span=Span(1440, 60, "2026-11-20T00:00:00Z", "2026-11-20T23:59:00Z") if is_p95 else None,
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        observed_at="2026-11-21T14:02:11Z",
        plan_id="9b21e07c" if has_plan else None,
    )


def _load(random: Random, heat: float, *, imbalance: float | None, is_p95: bool) -> Load:
    def rate(mean: float) -> Rate:
        if not is_p95:
            return Rate(average=mean, peak=mean * 1.3, coverage=0.99)
        return Rate(mean, mean * 1.6 + random.random(), mean * 2.1, mean * 1.5, 0.99)

    size = int(heat * 800 * GIB)
    return Load(
        replicas=int(heat * 1500),
        leaders=int(heat * 500),
        preferred_leaders=500,
        size_bytes=size,
        bytes_in=rate(heat * 40 * MIB),
        bytes_out=rate(heat * 90 * MIB) if random.random() < 0.95 else Rate(),
        growth_bytes_per_day=heat * 12.5 * GIB * random.choice([1, 1, -0.2]),
        total_bytes=4 * 1024 * GIB,
        free_bytes=max(0, 4 * 1024 * GIB - size),
        days_until_full=random.choice([None, 3.4, 18.25, 140.9, 1203.0]),
        leader_imbalance=imbalance,
    )
