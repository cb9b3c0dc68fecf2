"""The page of `balance`: one file with its own style and charts, that asks for nothing and runs nothing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from reconciler.balance.model.balance_report import (
    BalanceReport,
    ClusterBalance,
    Load,
    LoadRow,
    Measure,
    Rate,
    RateStatistic,
    Skew,
)
from reconciler.balance.render.tables import KAFKA_IMBALANCE, defects, statistic
from reconciler.model.evenness import Evenness
from reconciler.model.words import counted, duration, number
from reconciler.render.escape import visible
from reconciler.render.html_charts import Chart, Member, chart
from reconciler.render.html_pages import Section, Tile, digest, rendered, text_of
from reconciler.render.html_tables import (
    UNKNOWN,
    Cell,
    Datum,
    Figure,
    Table,
    bytes_text,
    count_text,
    data_cell,
    figure_cell,
    name_cell,
    pair_cell,
    rate_text,
    share_text,
    text_cell,
)

NOT_THERE = "none"
SOON_DAYS, _DAYS_SHOWN = 14, 3650
TOPICS_SHOWN, LOG_DIRS_SHOWN, BROKERS_SHOWN = 20, 20, 30
_STATISTIC_WORDS = {
    RateStatistic.AVERAGE: "average",
    RateStatistic.P95: "95th percentile of the time buckets",
    RateStatistic.MAXIMUM: "maximum of the time buckets",
    RateStatistic.PEAK: "rate in the cluster's busiest time bucket",
}
_MEASURE_WORDS = {
    Measure.REPLICAS: "Replicas",
    Measure.LEADERS: "Leaders",
    Measure.SIZE: "Size",
    Measure.IN: "In",
    Measure.OUT: "Out",
}
_IMBALANCE_WORDS = (
    "Leader imbalance: of the partitions that prefer a broker, the share that it does not lead. Above 10% Kafka gives "
    "leaders back by itself, unless auto.leader.rebalance.enable is off."
)
_BINARY, _DECIMAL = 1024.0, 10.0
_SIZE, _IN = 2, 3  # among the measures


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure of a load, its title, how it is written, and from where on it alarms."""

    title: str
    of: Callable[[Load], Figure]
    shown: Callable[[float], str]
    is_alarming: Callable[[float], bool] = lambda _value: False


@dataclass(frozen=True, slots=True)
class ClusterPage:
    """One cluster on the page."""

    anchor: str
    name: str
    facts: tuple[str, ...]
    tiles: tuple[Tile, ...]
    sections: tuple[Section, ...]
    warnings: tuple[str, ...]


def balance(report: BalanceReport) -> str:
    """Return the whole page; whatever names and messages hold is only text on it."""
    pages = tuple(_page(index, each, report) for index, each in enumerate(report.clusters, start=1))
    style = text_of("balance.css")
    return rendered(
        "balance.html.j2",
        title=f"Balance of {', '.join(page.name for page in pages) or 'no cluster'}",
        source=visible(report.source),
        style=style,
        style_hash=digest(style),
        fleet=_fleet(report, pages) if len(pages) > 1 else None,
        pages=pages,
        statistic=_STATISTIC_WORDS[statistic(report)],
        has_plan=report.has_plan,
        defects=tuple(defects(report)),
        warnings=tuple(f"{visible(each.message)} ({each.code})" for each in report.warnings),
    )


def _page(index: int, cluster: ClusterBalance, report: BalanceReport) -> ClusterPage:
    of = statistic(report)
    has_plan = cluster.plan_id is not None
    return ClusterPage(
        anchor=f"cluster-{index}",
        name=visible(cluster.name),
        facts=tuple(_facts(cluster)),
        tiles=tuple(_tiles(cluster, of, has_plan=has_plan)),
        sections=tuple(
            section
            for section in (
                _brokers(cluster, of, has_plan=has_plan),
                _racks(cluster, of, has_plan=has_plan),
                _log_dirs(cluster, has_plan=has_plan),
                _topics(cluster, of, has_plan=has_plan),
                _evenness(cluster, has_plan=has_plan),
            )
            if section.charts or section.tables
        ),
        warnings=tuple(f"{visible(each.message)} ({each.code})" for each in cluster.warnings),
    )


def _facts(cluster: ClusterBalance) -> Iterator[str]:
    yield counted(len(cluster.brokers), "broker")
    yield counted(cluster.topic_count, "topic")
    yield counted(cluster.partition_count, "partition")
    if cluster.cluster_id is not None:
        yield f"cluster id {visible(cluster.cluster_id)}"
    if cluster.observed_at is not None:
        yield f"observed {visible(cluster.observed_at)}"
    if cluster.span is not None:
        span = cluster.span
        buckets = counted(span.buckets, "bucket")
        yield f"samples {visible(span.first)} to {visible(span.last)}, {buckets} of {duration(span.seconds)}"
    if cluster.plan_id is not None:
        yield f"before and after plan {visible(cluster.plan_id)}"


def _tiles(cluster: ClusterBalance, of: RateStatistic, *, has_plan: bool) -> Iterator[Tile]:
    for measured in (*measures(of), DAYS):
        yield Tile(measured.title, figures(cluster.total, measured, has_plan=has_plan))
    moved = cluster.total.moved
    if moved is not None:
        yield Tile("Copied by the plan", figure_cell(moved.arriving_bytes, bytes_text))


def _brokers(cluster: ClusterBalance, of: RateStatistic, *, has_plan: bool) -> Section:
    every = measures(of)
    charts = (
        *(_chart_of(cluster.brokers, each, has_plan=has_plan) for each in every[:5]),
        _imbalance_chart(cluster, has_plan=has_plan),
    )
    rows = [((_broker_name(row), _rack_name(row.rack)), row) for row in cluster.brokers]
    table = load_table(
        "Each broker's load, the followers' traffic counted.",
        ("Broker", "Rack"),
        rows,
        (*every, DAYS, IMBALANCE),
        has_plan=has_plan,
        shown=BROKERS_SHOWN,
    )
    drawn = tuple(each for each in charts if each is not None)
    return Section("Brokers", drawn, (_with_moves(table, cluster),) if rows else (), _IMBALANCE_WORDS)


def _with_moves(table: Table, cluster: ClusterBalance) -> Table:
    """Return the brokers' table with what a plan copies to and from each."""
    if not any(row.moved for row in cluster.brokers):
        return table
    cells = [
        (
            figure_cell(row.moved.arriving_bytes if row.moved else None, bytes_text),
            figure_cell(row.moved.leaving_bytes if row.moved else None, bytes_text),
        )
        for row in cluster.brokers
    ]
    rows = tuple((*row, *more) for row, more in zip(table.rows, cells, strict=True))
    return replace(table, heads=(*table.heads, "Arrives", "Leaves"), rows=rows)


def _imbalance_chart(cluster: ClusterBalance, *, has_plan: bool) -> Chart | None:
    over = [row for row in cluster.brokers if (_last(row, IMBALANCE, has_plan=has_plan) or 0) > KAFKA_IMBALANCE]
    return chart(
        "Leader imbalance by broker",
        f"{counted(len(over), 'broker')} above the 10% line{' after the plan' if has_plan else ''}.",
        _members(cluster.brokers, IMBALANCE, has_plan=has_plan),
        IMBALANCE.shown,
        line=("10%", KAFKA_IMBALANCE),
        is_limit=True,
    )


def _racks(cluster: ClusterBalance, of: RateStatistic, *, has_plan: bool) -> Section:
    if not any(row.rack is not None for row in cluster.racks):
        return Section("Racks")
    every = measures(of)
    rows = [((_rack_name(row.rack),), row) for row in cluster.racks]
    table = load_table("Each rack's load.", ("Rack",), rows, (*every, DAYS), has_plan=has_plan)
    return Section("Racks", tables=(_with_shares(table, cluster.racks, every, has_plan=has_plan),))


def _log_dirs(cluster: ClusterBalance, *, has_plan: bool) -> Section:
    measured = (
        Measured("Replicas", lambda load: load.replicas, count_text),
        Measured("Size", lambda load: load.size_bytes, bytes_text),
        FREE,
        CAPACITY,
        Measured("Growth a day", lambda load: load.growth_bytes_per_day, bytes_text),
        DAYS,
    )

    def urgency(row: LoadRow) -> tuple[float, float, int, str]:
        days = _last(row, DAYS, has_plan=has_plan)
        held = _last(row, measured[1], has_plan=has_plan) or 0
        return (float("inf") if days is None else days, -held, row.broker or 0, row.log_dir or "")

    ordered = sorted(cluster.log_dirs, key=urgency)
    rows = [((_broker_name(row), row.log_dir or ""), row) for row in ordered]
    table = load_table(
        "Each log dir, the one that is full soonest first. The bar is what is used of it.",
        ("Broker", "Log dir"),
        rows,
        measured,
        has_plan=has_plan,
        shown=LOG_DIRS_SHOWN,
    )
    used = [_used(each.after if has_plan else each.before) for each in ordered]
    return Section("Log dirs", tables=(_with_bars(table, FREE, used),) if ordered else ())


def _topics(cluster: ClusterBalance, of: RateStatistic, *, has_plan: bool) -> Section:
    if not cluster.topics:
        return Section("Topics")
    every = measures(of)
    rows = [((row.topic or "",), row) for row in cluster.topics]
    note = (
        "" if cluster.topic_count <= len(rows) else f"The first {number(len(rows))} of {number(cluster.topic_count)}."
    )
    table = load_table(
        "Topics by their traffic, the greatest first.",
        ("Topic",),
        rows,
        every,
        has_plan=has_plan,
        shown=TOPICS_SHOWN,
        note=note,
    )
    shared = _with_shares(table, cluster.topics, every, has_plan=has_plan, total=cluster.total)
    return Section("Topics", tables=(shared,))


def _with_shares(
    table: Table, rows: Sequence[LoadRow], every: Sequence[Measured], *, has_plan: bool, total: LoadRow | None = None
) -> Table:
    """Return the table with a bar for each row's share of what all take in, or of all bytes where that is unknown."""
    for measured in (every[_IN], every[_SIZE]):
        values = [_last(row, measured, has_plan=has_plan) for row in rows]
        told = _last(total, measured, has_plan=has_plan) if total is not None else None
        whole = told if told is not None else sum(value for value in values if value is not None)
        if whole:
            shared = _with_bars(table, measured, [None if value is None else value / whole for value in values])
            caption = f"{table.caption} The bar is the share of the column {measured.title}."
            return replace(shared, caption=caption)
    return table


def _with_bars(table: Table, measured: Measured, shares: Sequence[float | None]) -> Table:
    """Return the table with a bar of that share in each row's column of the measure."""
    column = table.heads.index(measured.title)
    rows = (
        (*row[:column], replace(row[column], share=share), *row[column + 1 :])
        for row, share in zip(table.rows, shares, strict=True)
    )
    return replace(table, rows=tuple(rows))


def _evenness(cluster: ClusterBalance, *, has_plan: bool) -> Section:
    rows = tuple(_skew_row(skew, has_plan=has_plan) for skew in cluster.skews)
    table = Table(
        "How even each measure is over the brokers, by capacity: 1, 0 and 0 where all carry the same.",
        ("Measure", "Figure", "Maximum over mean", "Coefficient of variation", "Gini"),
        rows,
        len(rows),
    )
    return Section("Evenness", tables=(table,) if rows else ())


def _skew_row(skew: Skew, *, has_plan: bool) -> tuple[Cell, ...]:
    def pair(field: str) -> Cell:
        return pair_cell(_even(skew.before, field), _even(skew.after, field), plain_text, has_plan=has_plan)

    return (
        name_cell(_MEASURE_WORDS[skew.measure]),
        text_cell(skew.statistic.value if skew.statistic is not None else ""),
        pair("max_over_mean"),
        pair("coefficient_of_variation"),
        pair("gini"),
    )


def _even(even: Evenness | None, field: str) -> float | None:
    if even is None:
        return None
    value: float = getattr(even, field)
    return value


def _chart_of(rows: Sequence[LoadRow], measured: Measured, *, has_plan: bool) -> Chart | None:
    members = _members(rows, measured, has_plan=has_plan)
    known = [value for each in members if (value := each.after if has_plan else each.before) is not None]
    if not known:
        return None
    mean = sum(known) / len(known)
    is_weighted = len({row.capacity for row in rows}) > 1
    is_bytes = measured.title not in {"Replicas", "Leaders"}
    when = " after the plan" if has_plan else ""
    return chart(
        f"{measured.title} by broker",
        f"From {measured.shown(min(known))} to {measured.shown(max(known))}{when}, mean {measured.shown(mean)}.",
        members,
        measured.shown,
        line=None if is_weighted else ("mean", mean),
        step_of=_BINARY if is_bytes else _DECIMAL,
    )


def _members(rows: Sequence[LoadRow], measured: Measured, *, has_plan: bool) -> list[Member]:
    found = []
    for row in rows:
        texts = [datum.text for datum in figures(row, measured, has_plan=has_plan).data]
        found.append(
            Member(
                label=str(row.broker),
                words=f"broker {_broker_name(row)}: {' → '.join(texts)}",
                before=_of(row.before, measured),
                after=_of(row.after, measured) if has_plan else None,
            )
        )
    return found


def _of(load: Load | None, measured: Measured) -> float | None:
    return measured.of(load) if load is not None else None


def _last(row: LoadRow, measured: Measured, *, has_plan: bool) -> float | None:
    return _of(row.after if has_plan else row.before, measured)


def _used(load: Load | None) -> float | None:
    if load is None or not load.total_bytes or load.free_bytes is None:
        return None
    return 1 - load.free_bytes / load.total_bytes


def _broker_name(row: LoadRow) -> str:
    notes = [*([] if row.is_alive else ["not alive"]), *(["to be empty"] if row.capacity == 0 else [])]
    return f"{row.broker} ({', '.join(notes)})" if notes else f"{row.broker}"


def _rack_name(rack: str | None) -> str:
    return "(no rack)" if rack is None else rack


def _fleet(report: BalanceReport, pages: Sequence[ClusterPage]) -> tuple[Table, tuple[str, ...]]:
    """Return the clusters' own table, and the anchor of each row."""
    every = measures(statistic(report))
    rows = [
        ((cluster.name, count_text(len(cluster.brokers))), cluster.total, cluster.plan_id is not None)
        for cluster in report.clusters
    ]
    tables = [
        load_table("", ("Cluster", "Brokers"), [(names, row)], (*every, DAYS), has_plan=has) for names, row, has in rows
    ]
    table = replace(tables[0], caption="All clusters.", rows=tuple(row for one in tables for row in one.rows))
    return replace(table, shown=len(rows)), tuple(page.anchor for page in pages)


def days_text(value: float) -> str:
    """Return days, `0.4 days` not being none; beyond ten years nobody knows."""
    if value > _DAYS_SHOWN:
        return "over 10 years"
    return f"{value:,.0f} days" if value >= 10 else f"{value:.1f} days"  # noqa: PLR2004 - as many digits as mean something


def rate_of(rate: Callable[[Load], Rate], statistic: RateStatistic) -> Callable[[Load], Figure]:
    """Return what reads that figure of a rate."""
    return lambda load: rate(load).of(statistic)


def measures(statistic: RateStatistic) -> tuple[Measured, ...]:
    """Return what is told of every load, with that figure of its rates."""
    return (
        Measured("Replicas", lambda load: load.replicas, count_text),
        Measured("Leaders", lambda load: load.leaders, count_text),
        Measured("Size", lambda load: load.size_bytes, bytes_text),
        Measured("In", rate_of(lambda load: load.bytes_in, statistic), rate_text),
        Measured("Out", rate_of(lambda load: load.bytes_out, statistic), rate_text),
        Measured("Growth a day", lambda load: load.growth_bytes_per_day, bytes_text),
    )


IMBALANCE = Measured(
    "Leader imbalance", lambda load: load.leader_imbalance, share_text, lambda value: value > KAFKA_IMBALANCE
)
DAYS = Measured("Until full", lambda load: load.days_until_full, days_text, lambda value: value < SOON_DAYS)
CAPACITY = Measured("Capacity", lambda load: load.total_bytes, bytes_text)
FREE = Measured("Free", lambda load: load.free_bytes, bytes_text)


def figures(row: LoadRow, measured: Measured, *, has_plan: bool) -> Cell:
    """Return a figure of a row: one datum, or two where there is a plan and they read differently."""
    return data_cell(_datum(row.before, measured), _datum(row.after, measured), has_plan=has_plan)


def load_table(
    caption: str,
    names: Sequence[str],
    rows: Iterable[tuple[Sequence[str], LoadRow]],
    measured: Sequence[Measured],
    *,
    has_plan: bool,
    shown: int = 0,
    note: str = "",
) -> Table:
    """Return a table of loads: the columns that name a row, then its figures."""
    made = tuple(
        (
            name_cell(first[0]),
            *(text_cell(other) for other in first[1:]),
            *(figures(row, each, has_plan=has_plan) for each in measured),
        )
        for first, row in rows
    )
    return Table(caption, (*names, *(each.title for each in measured)), made, shown or len(made), note)


def plain_text(value: float) -> str:
    """Return a measure of evenness."""
    return f"{value:.3f}"


def _datum(load: Load | None, measured: Measured) -> Datum:
    if load is None:
        return Datum(None, NOT_THERE)
    value = measured.of(load)
    if value is None:
        return Datum(None, UNKNOWN)
    return Datum(value, measured.shown(value), is_alarming=measured.is_alarming(value))
