"""Makes the report of a balance, in tables: the worst first, before -> after."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from reconciler.balance.model.balance_report import (
    BalanceReport,
    ClusterBalance,
    Load,
    LoadRow,
    Measure,
    RateStatistic,
    Skew,
)
from reconciler.balance.model.load_report import Rule
from reconciler.model.evenness import Evenness
from reconciler.model.words import counted, duration, named_some, number, percent, rate, size
from reconciler.render.escape import bullets, code_span, sentence
from reconciler.render.html_tables import bytes_text, count_text
from reconciler.render.report import Points, Report, Section, Table

MOST_ROWS = 20
_HEADING = "### reconciler balance"
UNKNOWN = "-"
# Kafka's leader.imbalance.per.broker.percentage: above it, its controller elects preferred leaders by itself.
KAFKA_IMBALANCE = 0.1
_DAYS_SHOWN = 3650
_WHOLE_DAYS = 10
_SECONDS_PER_DAY = 86400
_MEASURES = {
    Measure.REPLICAS: "replicas",
    Measure.LEADERS: "leaders",
    Measure.SIZE: "size",
    Measure.IN: "in",
    Measure.OUT: "out",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure of a load: its titles, how it is written, and from where on it alarms."""

    title: str
    """What a page calls it."""
    head: str
    """What it is called above a column of a table, which has less room."""
    of: Callable[[Load], float | None]
    shown: Callable[[float], str]
    is_alarming: Callable[[float], bool] = lambda _value: False
    weighed_by: str = "network"
    """Which weight of a broker its fair share of the figure goes by."""

    def of_row(self, load: Load | None) -> float | None:
        """Return the figure, None where it is not known or there is no load."""
        return self.of(load) if load is not None else None


def _days_text(days: float) -> str:
    if days > _DAYS_SHOWN:
        return "over 10 years"
    return f"{days:.0f} days" if days >= _WHOLE_DAYS else duration(days * _SECONDS_PER_DAY)


REPLICAS = Measured("Replicas", "replicas", lambda load: load.replicas, count_text, weighed_by="replicas")
LEADERS = Measured("Leaders", "leaders", lambda load: load.leaders, count_text, weighed_by="leaders")
SIZE = Measured("Size", "size", lambda load: load.size_bytes, bytes_text, weighed_by="disk")
FREE = Measured("Free", "free", lambda load: load.free_bytes, bytes_text)
GROWTH = Measured("Growth a day", "growth/day", lambda load: load.growth_bytes_per_day, bytes_text)
FULL_IN = Measured("Until full", "full in", lambda load: load.days_until_full, _days_text)
IMBALANCE = Measured(
    "Leader imbalance", "imbalance", lambda load: load.leader_imbalance, percent, lambda value: value > KAFKA_IMBALANCE
)


def balance(report: BalanceReport) -> Report:
    """Return each cluster: how even it is, what deserves a look, its brokers, racks, log dirs, topics, what moves.

    Several clusters stand in one table first, what was wrong with samples last. The worst comes first everywhere.
    Warnings end it in Markdown alone: on a terminal they go to the other stream.
    """
    sections = [Section(parts=(_fleet(report),), markdown=(_HEADING,))] if len(report.clusters) > 1 else []
    warnings = list(report.warnings)
    for cluster in report.clusters:
        facts, findings = _facts(cluster), Points(tuple(_findings(report, cluster)))
        heading = (f"{_HEADING} · {code_span(cluster.name)}", sentence(facts))
        sections.append(Section(f"{cluster.name}: {facts}", (findings,), heading))
        sections += (Section(parts=(table,)) for table in _tables(report, cluster))
        warnings += cluster.warnings
    wrong = tuple(defects(report))
    sections += [Section("Samples", (Points(wrong),), ("**Samples**",))] if wrong else []
    sections.append(Section(markdown=(bullets(f"{each.message} ({each.code})" for each in warnings),)))
    return Report(tuple(sections))


def statistic(report: BalanceReport) -> RateStatistic:
    """Return the figure of a rate that tables show: the percentile where it is known, else the peak, which adds up."""
    return RateStatistic.P95 if report.from_samples else RateStatistic.PEAK


def loads(of: RateStatistic) -> tuple[Measured, ...]:
    """Return what is told of every load, rates as that statistic of them."""
    return (
        REPLICAS,
        LEADERS,
        SIZE,
        Measured("In", f"in {of.value}", lambda load: load.bytes_in.of(of), rate),
        Measured("Out", f"out {of.value}", lambda load: load.bytes_out.of(of), rate),
    )


def defects(report: BalanceReport) -> list[str]:
    """Return what was wrong with the samples: of each rule that was broken its count, and what was done."""
    return [f"{number(count)} {rule.treatment}" for rule in Rule if (count := report.defects.get(rule.value, 0))]


def broker_name(row: LoadRow) -> str:
    """Return the broker's id, and what is special about it."""
    notes = [*([] if row.is_alive else ["not alive"]), *(["to be empty"] if row.capacity == 0 else [])]
    return f"{row.broker} ({', '.join(notes)})" if notes else str(row.broker)


def fullest_first(log_dirs: Iterable[LoadRow]) -> list[LoadRow]:
    """Return the log dirs, those that are full soonest first, then the fullest; after a plan, as that leaves them."""

    def urgency(row: LoadRow) -> tuple[float, float, int, str]:
        load = _last(row)
        days = load.days_until_full if load.days_until_full is not None else float("inf")
        return days, -(load.size_bytes or 0), row.broker or 0, row.log_dir or ""

    return sorted(log_dirs, key=urgency)


def _tables(report: BalanceReport, cluster: ClusterBalance) -> Iterator[Table]:
    """Yield the tables of one cluster that say something."""
    of = statistic(report)
    every = [_evenness(cluster), _brokers(cluster, of), _log_dirs(cluster), _topics(cluster, of), _moved(cluster)]
    every.append(_hours(cluster))
    if any(row.rack is not None for row in cluster.racks):
        every.insert(2, _racks(cluster, of))
    yield from (table for table in every if table.rows)


def _evenness(cluster: ClusterBalance) -> Table:
    """Return one row for each measure that is known: how even it is over the brokers."""
    head = ("over the brokers", "", "max/mean", "variation", "Gini")
    return Table(head, tuple(_skew_row(skew, has_plan=cluster.plan_id is not None) for skew in cluster.skews), left=2)


def _brokers(cluster: ClusterBalance, of: RateStatistic) -> Table:
    """Return the brokers that carry most for their capacity first; after a plan, as that leaves them."""
    figures = [*loads(of), IMBALANCE, FULL_IN]
    head = ("broker", "rack", *(figure.head for figure in figures))
    rows = [(broker_name(row), row.rack or UNKNOWN, *_cells(row, figures, cluster)) for row in worst_first(cluster, of)]
    return _cut(head, rows, left=2)


def _racks(cluster: ClusterBalance, of: RateStatistic) -> Table:
    """Return the racks by name."""
    figures = loads(of)
    rows = [(row.rack or "(none)", *_cells(row, figures, cluster)) for row in cluster.racks]
    return _cut(("rack", *(figure.head for figure in figures)), rows)


def _log_dirs(cluster: ClusterBalance) -> Table:
    """Return the log dirs, those that are full soonest first, then the fullest."""
    figures = (REPLICAS, SIZE, FREE, GROWTH, FULL_IN)
    ordered = fullest_first(cluster.log_dirs)
    rows = [(str(row.broker), row.log_dir or UNKNOWN, *_cells(row, figures, cluster)) for row in ordered]
    return _cut(("broker", "log dir", *(figure.head for figure in figures)), rows, left=2)


def _topics(cluster: ClusterBalance, of: RateStatistic) -> Table:
    """Return the topics with most traffic first."""
    figures = loads(of)
    rows = [(row.topic or "", *_cells(row, figures, cluster)) for row in cluster.topics]
    return _cut(("topic", *(figure.head for figure in figures)), rows, of=cluster.topic_count)


def _moved(cluster: ClusterBalance) -> Table:
    """Return what the plan copies to each broker and takes away from it, most arriving bytes first."""
    head = ("broker", "arriving replicas", "arriving bytes", "leaving replicas", "leaving bytes")
    found = [(row, row.moved) for row in cluster.brokers if row.moved is not None]
    ordered = sorted(found, key=lambda each: (-each[1].arriving_bytes, -each[1].leaving_bytes, each[0].broker or 0))
    rows = [
        (
            broker_name(row),
            number(traffic.arriving_replicas),
            size(traffic.arriving_bytes),
            number(traffic.leaving_replicas),
            size(traffic.leaving_bytes),
        )
        for row, traffic in ordered
        if traffic.arriving_replicas or traffic.leaving_replicas
    ]
    return _cut(head, rows)


def _hours(cluster: ClusterBalance) -> Table:
    """Return the hours of the week, those first that leave most room for moves."""
    ordered = sorted(enumerate(cluster.hours), key=lambda each: (-(each[1].throttle_bytes_per_second or 0), each[0]))
    rows = [
        (
            hour.hour,
            *(
                UNKNOWN if one is None else f"{rate(one.bytes_per_second)} on broker {one.broker}"
                for one in (hour.busiest_in, hour.busiest_out)
            ),
            UNKNOWN if hour.throttle_bytes_per_second is None else rate(hour.throttle_bytes_per_second),
        )
        for _, hour in ordered
    ]
    return _cut(("hour of the week (UTC)", "most in", "most out", "highest throttle"), rows)


def _fleet(report: BalanceReport) -> Table:
    """Return one row a cluster, the most uneven first."""
    of = statistic(report)
    figures = [*loads(of), FULL_IN]
    ways = ((Measure.SIZE, None), (Measure.IN, of), (Measure.OUT, of))
    titles = (f"{_MEASURES[measure]} max/mean" for measure, _ in ways)
    head = ("cluster", "brokers", *(figure.head for figure in figures), *titles)
    rows = [
        (
            cluster.name,
            number(len(cluster.brokers)),
            *_cells(cluster.total, figures, cluster),
            *(_max_over_mean(cluster, measure, way) for measure, way in ways),
        )
        for cluster in sorted(report.clusters, key=lambda one: (-_unevenness(one, ways), one.name))
    ]
    return _cut(head, rows)


def _facts(cluster: ClusterBalance) -> str:
    """Return what was looked at, in one line."""
    parts = [
        counted(len(cluster.brokers), "broker"),
        counted(len(cluster.racks), "rack"),
        counted(cluster.topic_count, "topic"),
        counted(cluster.partition_count, "partition"),
    ]
    if cluster.span is not None:
        span = cluster.span
        parts.append(f"{counted(span.buckets, 'bucket')} of {span.seconds} s, {span.first} to {span.last}")
    parts += [f"before -> after plan {cluster.plan_id}"] if cluster.plan_id is not None else []
    return ", ".join(parts)


def _findings(report: BalanceReport, cluster: ClusterBalance) -> Iterator[str]:
    """Yield what deserves a look: the statistic shown, coverage, imbalance of leaders, disks that fill, what moves."""
    if report.from_samples:
        yield "in and out are 95th percentiles of the sum in each time bucket; followers' traffic is counted"
    else:
        yield "in and out are peaks, in the cluster's busiest bucket: of loads, only averages and peaks add up"
    total = cluster.total.after or cluster.total.before
    if total is not None:
        yield from _coverage(total)
    over = [row.broker for row in cluster.brokers if (_last(row).leader_imbalance or 0) > KAFKA_IMBALANCE]
    if over:
        yield f"leader imbalance is above Kafka's 10% line on {named_some(over, MOST_ROWS)}"
    soonest = _first_full(cluster)
    if soonest is not None:
        row, days = soonest
        where = f"{row.log_dir} of broker {row.broker}" if row.log_dir is not None else f"broker {row.broker}"
        yield f"first full: {where}, in {_days_text(days)}, if it grows on as it did"
    traffic = cluster.total.moved
    if traffic is not None and cluster.plan_id is not None:
        moves = counted(traffic.arriving_replicas, "replica")
        yield f"moved by the plan: {moves}, {size(traffic.arriving_bytes)}"


def _coverage(load: Load) -> Iterator[str]:
    for way, told in (("in", load.bytes_in), ("out", load.bytes_out)):
        if told.coverage is not None and told.coverage < 1 and told.average is not None:
            yield f"{way} is known of {percent(int(told.coverage * 1000) / 1000)} of what it should be"


def _first_full(cluster: ClusterBalance) -> tuple[LoadRow, float] | None:
    rows = cluster.log_dirs if any(_last(row).days_until_full is not None for row in cluster.log_dirs) else ()
    found = [(row, days) for row in rows or cluster.brokers if (days := _last(row).days_until_full) is not None]
    return min(found, key=lambda each: (each[1], each[0].broker or 0, each[0].log_dir or ""), default=None)


def _cells(row: LoadRow, figures: Iterable[Measured], cluster: ClusterBalance) -> Iterator[str]:
    for figure in figures:
        values = [figure.of_row(load) for load in (row.before, row.after)]
        before, after = (UNKNOWN if value is None else figure.shown(value) for value in values)
        yield before if cluster.plan_id is None or before == after else f"{before} -> {after}"


def worst_first(cluster: ClusterBalance, of: RateStatistic) -> list[LoadRow]:
    """Return the brokers by the most that one of its loads is over its share; one that is to be empty has none."""
    figures = loads(of)
    shares: dict[int | None, float] = {}
    for figure in figures:
        values = {row.broker: figure.of(_last(row)) or 0 for row in cluster.brokers}
        weight = {row.broker: row.weights.get(figure.weighed_by, row.capacity or 0) for row in cluster.brokers}
        capacity = sum(weight.values())
        mean = sum(values.values()) / capacity if capacity else 0
        for row in cluster.brokers:
            if weight[row.broker] and mean > 0:
                share = values[row.broker] / weight[row.broker] / mean
                shares[row.broker] = max(shares.get(row.broker, 0), share)
    return sorted(cluster.brokers, key=lambda row: (-round(shares.get(row.broker, 0), 9), row.broker or 0))


def _last(row: LoadRow) -> Load:
    return row.after or row.before or Load()


def _skew_row(skew: Skew, *, has_plan: bool) -> tuple[str, ...]:
    def cell(of: Callable[[Evenness], float]) -> str:
        before, after = (f"{of(each):.3f}" if each is not None else UNKNOWN for each in (skew.before, skew.after))
        return f"{before} -> {after}" if has_plan and before != after else before

    return (
        _MEASURES[skew.measure],
        skew.statistic.value if skew.statistic is not None else "",
        cell(lambda each: each.max_over_mean),
        cell(lambda each: each.coefficient_of_variation),
        cell(lambda each: each.gini),
    )


def _max_over_mean(cluster: ClusterBalance, measure: Measure, of: RateStatistic | None) -> str:
    skew = cluster.skew(measure, of)
    return UNKNOWN if skew is None else _skew_row(skew, has_plan=cluster.plan_id is not None)[2]


def _unevenness(cluster: ClusterBalance, ways: Sequence[tuple[Measure, RateStatistic | None]]) -> float:
    skews = [skew for measure, of in ways if (skew := cluster.skew(measure, of)) is not None]
    even = [skew.after or skew.before for skew in skews]
    return max((each.max_over_mean for each in even if each is not None), default=0.0)


def _cut(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, left: int = 1, of: int = 0) -> Table:
    count = max(of, len(rows))
    if count <= MOST_ROWS:
        return Table(head, tuple(rows), left)
    more = f"… and {number(count - MOST_ROWS)} more; -o json and --out have more of them"
    return Table(head, (*rows[:MOST_ROWS], (more, *[""] * (len(head) - 1))), left)
