"""Makes the page of `balance`: one file with its own style and charts, that asks for nothing and runs nothing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from reconciler.balance.model.balance_report import (
    BalanceReport,
    ClusterBalance,
    Load,
    LoadRow,
    Measure,
    RateStatistic,
    Skew,
)
from reconciler.balance.render.as_tables import (
    FREE,
    FULL_IN,
    GROWTH,
    IMBALANCE,
    KAFKA_IMBALANCE,
    LEADERS,
    REPLICAS,
    SIZE,
    Measured,
    broker_name,
    defects,
    fullest_first,
    loads,
    statistic,
)
from reconciler.model.evenness import Evenness
from reconciler.model.words import counted, duration, number
from reconciler.render.escape import visible
from reconciler.render.html_charts import BINARY, DECIMAL, Chart, Member, chart
from reconciler.render.html_pages import Section, Tile, digest, rendered, text_of
from reconciler.render.html_tables import (
    UNKNOWN,
    Cell,
    Datum,
    Table,
    bytes_text,
    count_text,
    data_cell,
    figure_cell,
    name_cell,
    pair_cell,
    text_cell,
)

NOT_THERE = "none"
SOON_DAYS = 14  # a disk that is full within two weeks alarms: more hardware takes as long
_DAYS_SHOWN = 3650
TOPICS_SHOWN, LOG_DIRS_SHOWN, BROKERS_SHOWN = 20, 20, 30  # rows that stand open; the rest unfolds
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


def days_text(value: float) -> str:
    """Return days, `0.4 days` not being none; beyond ten years nobody knows."""
    if value > _DAYS_SHOWN:
        return "over 10 years"
    return f"{value:,.0f} days" if value >= 10 else f"{value:.1f} days"  # noqa: PLR2004 - as many digits as mean something


DAYS = replace(FULL_IN, shown=days_text, is_alarming=lambda value: value < SOON_DAYS)
CAPACITY = Measured("Capacity", "capacity", lambda load: load.total_bytes, bytes_text)


@dataclass(frozen=True, slots=True)
class ClusterPage:
    """One cluster on the page; its properties are what the template reads."""

    cluster: ClusterBalance
    of: RateStatistic
    """Which figure of a rate is shown."""
    anchor: str

    @property
    def name(self) -> str:
        """The cluster's name."""
        return visible(self.cluster.name)

    @property
    def facts(self) -> Iterator[str]:
        """What was looked at."""
        cluster = self.cluster
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

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is not known."""
        return tuple(f"{visible(each.message)} ({each.code})" for each in self.cluster.warnings)

    @property
    def tiles(self) -> Iterator[Tile]:
        """The whole cluster's figures, large."""
        total = self.cluster.total
        for measured in (*self.measures, DAYS):
            yield Tile(measured.title, self.cell(total, measured))
        if total.moved is not None:
            yield Tile("Copied by the plan", figure_cell(total.moved.arriving_bytes, bytes_text))

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections that say something."""
        every = (self._brokers(), self._racks(), self._log_dirs(), self._topics(), self._evenness())
        return tuple(section for section in every if section.charts or section.tables)

    def cell(self, row: LoadRow, measured: Measured) -> Cell:
        """Return a figure of a row: one datum, or two where there is a plan and they read differently."""
        return data_cell(_datum(measured, row.before), _datum(measured, row.after), has_plan=self._has_plan)

    @property
    def _has_plan(self) -> bool:
        return self.cluster.plan_id is not None

    @property
    def measures(self) -> tuple[Measured, ...]:
        """What is told of every load."""
        return (*loads(self.of), GROWTH)

    def _brokers(self) -> Section:
        every = self.measures
        brokers = self.cluster.brokers
        drawn = (*(self._chart(each) for each in every if each is not GROWTH), self._imbalance_chart())
        charts = tuple(each for each in drawn if each is not None)
        if not brokers:
            return Section("Brokers", charts, note=_IMBALANCE_WORDS)
        names = [(broker_name(row), _rack_name(row.rack)) for row in brokers]
        caption = "Each broker's load, the followers' traffic counted."
        table = self._table(caption, ("Broker", "Rack"), names, brokers, (*every, DAYS, IMBALANCE), shown=BROKERS_SHOWN)
        if any(row.moved for row in brokers):
            rows = tuple(
                (
                    *cells,
                    figure_cell(row.moved.arriving_bytes if row.moved else None, bytes_text),
                    figure_cell(row.moved.leaving_bytes if row.moved else None, bytes_text),
                )
                for cells, row in zip(table.rows, brokers, strict=True)
            )
            table = replace(table, heads=(*table.heads, "Arrives", "Leaves"), rows=rows)
        return Section("Brokers", charts, (table,), _IMBALANCE_WORDS)

    def _racks(self) -> Section:
        racks = self.cluster.racks
        if not any(row.rack is not None for row in racks):
            return Section("Racks")
        names = [(_rack_name(row.rack),) for row in racks]
        table = self._table("Each rack's load.", ("Rack",), names, racks, (*self.measures, DAYS))
        return Section("Racks", tables=(self._with_shares(table, racks),))

    def _log_dirs(self) -> Section:
        ordered = fullest_first(self.cluster.log_dirs)
        if not ordered:
            return Section("Log dirs")
        names = [(broker_name(row), row.log_dir or "") for row in ordered]
        caption = "Each log dir, the one that is full soonest first. The bar is what is used of it."
        measured = (REPLICAS, SIZE, FREE, CAPACITY, GROWTH, DAYS)
        table = self._table(caption, ("Broker", "Log dir"), names, ordered, measured, shown=LOG_DIRS_SHOWN)
        used = [_used(self._last(row)) for row in ordered]
        return Section("Log dirs", tables=(_with_bars(table, FREE, used),))

    def _topics(self) -> Section:
        topics, count = self.cluster.topics, self.cluster.topic_count
        if not topics:
            return Section("Topics")
        names = [(row.topic or "",) for row in topics]
        caption = "Topics by their traffic, the greatest first."
        table = self._table(caption, ("Topic",), names, topics, self.measures, shown=TOPICS_SHOWN)
        if count > len(topics):
            table = replace(table, note=f"The first {number(len(topics))} of {number(count)}.")
        return Section("Topics", tables=(self._with_shares(table, topics, self.cluster.total),))

    def _evenness(self) -> Section:
        rows = tuple(self._skew_cells(skew) for skew in self.cluster.skews)
        table = Table(
            "How even each measure is over the brokers, by capacity: 1, 0 and 0 where all carry the same.",
            ("Measure", "Figure", "Maximum over mean", "Coefficient of variation", "Gini"),
            rows,
            len(rows),
        )
        return Section("Evenness", tables=(table,) if rows else ())

    def _skew_cells(self, skew: Skew) -> tuple[Cell, ...]:
        def pair(of: Callable[[Evenness], float]) -> Cell:
            before, after = (None if even is None else of(even) for even in (skew.before, skew.after))
            return pair_cell(before, after, lambda value: f"{value:.3f}", has_plan=self._has_plan)

        return (
            name_cell(_MEASURE_WORDS[skew.measure]),
            text_cell(skew.statistic.value if skew.statistic is not None else ""),
            pair(lambda even: even.max_over_mean),
            pair(lambda even: even.coefficient_of_variation),
            pair(lambda even: even.gini),
        )

    def _table(
        self,
        caption: str,
        heads: Sequence[str],
        names: Iterable[Sequence[str]],
        rows: Sequence[LoadRow],
        measured: Sequence[Measured],
        *,
        shown: int = 0,
    ) -> Table:
        """Return a table of loads: the columns that name a row, then its figures."""
        made = tuple(
            (name_cell(first), *map(text_cell, others), *(self.cell(row, each) for each in measured))
            for (first, *others), row in zip(names, rows, strict=True)
        )
        return Table(caption, (*heads, *(each.title for each in measured)), made, shown or len(made))

    def _with_shares(self, table: Table, rows: Sequence[LoadRow], total: LoadRow | None = None) -> Table:
        """Return the table with a bar for each row's share of what all take in, or of all bytes if that is unknown."""
        for measured in (self.measures[3], SIZE):
            values = [measured.of_row(self._last(row)) for row in rows]
            told = measured.of_row(self._last(total)) if total is not None else None
            whole = told if told is not None else sum(value for value in values if value is not None)
            if whole:
                shared = _with_bars(table, measured, [None if value is None else value / whole for value in values])
                return replace(shared, caption=f"{table.caption} The bar is the share of the column {measured.title}.")
        return table

    def _chart(self, measured: Measured) -> Chart | None:
        members = self._members(measured)
        known = [value for each in members if (value := each.after if self._has_plan else each.before) is not None]
        if not known:
            return None
        mean, shown = sum(known) / len(known), measured.shown
        is_weighted = len({row.capacity for row in self.cluster.brokers}) > 1 or any(
            row.weights for row in self.cluster.brokers
        )
        return chart(
            f"{measured.title} by broker",
            f"From {shown(min(known))} to {shown(max(known))}{self._when}, mean {shown(mean)}.",
            members,
            shown,
            line=None if is_weighted else ("mean", mean),
            step_of=DECIMAL if measured in {REPLICAS, LEADERS} else BINARY,
        )

    def _imbalance_chart(self) -> Chart | None:
        shares = (IMBALANCE.of_row(self._last(row)) or 0 for row in self.cluster.brokers)
        over = sum(share > KAFKA_IMBALANCE for share in shares)
        return chart(
            "Leader imbalance by broker",
            f"{counted(over, 'broker')} above the 10% line{self._when}.",
            self._members(IMBALANCE),
            IMBALANCE.shown,
            line=("10%", KAFKA_IMBALANCE),
            is_limit=True,
        )

    def _members(self, measured: Measured) -> list[Member]:
        return [
            Member(
                label=str(row.broker),
                words=f"broker {broker_name(row)}: {' → '.join(each.text for each in self.cell(row, measured).data)}",
                before=measured.of_row(row.before),
                after=measured.of_row(row.after) if self._has_plan else None,
            )
            for row in self.cluster.brokers
        ]

    @property
    def _when(self) -> str:
        return " after the plan" if self._has_plan else ""

    def _last(self, row: LoadRow) -> Load | None:
        """Return the load that the plan leaves or, without a plan, the load there is."""
        return row.after if self._has_plan else row.before


def balance(report: BalanceReport) -> str:
    """Return the whole page; whatever names and messages hold is only text on it."""
    of = statistic(report)
    pages = [ClusterPage(each, of, f"cluster-{index}") for index, each in enumerate(report.clusters, start=1)]
    style = text_of("page.css")
    return rendered(
        "balance.html.j2",
        __package__,
        title=f"Balance of {', '.join(page.name for page in pages) or 'no cluster'}",
        source=visible(report.source),
        style=style,
        style_hash=digest(style),
        fleet=_fleet(pages) if len(pages) > 1 else None,
        pages=pages,
        statistic=_STATISTIC_WORDS[of],
        has_plan=report.has_plan,
        defects=tuple(defects(report)),
        warnings=tuple(f"{visible(each.message)} ({each.code})" for each in report.warnings),
    )


def _fleet(pages: Sequence[ClusterPage]) -> tuple[Table, tuple[str, ...]]:
    """Return the clusters' own table, and the anchor of each row."""
    measured = (*pages[0].measures, DAYS)
    rows = tuple(
        (
            name_cell(page.cluster.name),
            text_cell(count_text(len(page.cluster.brokers))),
            *(page.cell(page.cluster.total, each) for each in measured),
        )
        for page in pages
    )
    heads = ("Cluster", "Brokers", *(each.title for each in measured))
    return Table("All clusters.", heads, rows, len(rows)), tuple(page.anchor for page in pages)


def _with_bars(table: Table, measured: Measured, shares: Sequence[float | None]) -> Table:
    """Return the table with a bar of that share in each row's column of the measure."""
    column = table.heads.index(measured.title)
    rows = (
        (*row[:column], replace(row[column], share=share), *row[column + 1 :])
        for row, share in zip(table.rows, shares, strict=True)
    )
    return replace(table, rows=tuple(rows))


def _datum(measured: Measured, load: Load | None) -> Datum:
    """Return the figure with its text."""
    value = measured.of_row(load)
    if value is None:
        return Datum(None, NOT_THERE if load is None else UNKNOWN)
    return Datum(value, measured.shown(value), is_alarming=measured.is_alarming(value))


def _used(load: Load | None) -> float | None:
    if load is None or not load.total_bytes or load.free_bytes is None:
        return None
    return 1 - load.free_bytes / load.total_bytes


def _rack_name(rack: str | None) -> str:
    return "(no rack)" if rack is None else rack
