"""Computes the tables and charts of a plan's page."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from reconciler.model.desired import BrokerState
from reconciler.model.grounds import BrokerGround
from reconciler.model.plan import BrokerShare, Plan, PriceLevel
from reconciler.model.stage import ReassignStage
from reconciler.model.words import counted, duration, number, percent, rate
from reconciler.render.escape import visible
from reconciler.render.facts import estimate, least_movement, over_least, place, stage_title, throttle
from reconciler.render.html_charts import BINARY, DECIMAL, Chart, Member, chart
from reconciler.render.html_pages import Section
from reconciler.render.html_tables import (
    Cell,
    Datum,
    Table,
    bytes_text,
    count_text,
    datum,
    figure_cell,
    name_cell,
    pair_cell,
    text_cell,
)
from reconciler.render.plan_figures import BrokerFigures, StageFigures, disks, rack_spread, racks, topics
from reconciler.render.rows import gravest_first, plan_rows

BROKERS_SHOWN, STAGES_SHOWN, TOPICS_SHOWN, DISKS_SHOWN, CHANGES_SHOWN = 30, 25, 20, 10, 40
_ARROW = "→"
_THINNEST = 0.006
"""Of a bar's width: what can still be seen."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure of a broker's share, its title, how it is written, and what the steps of its axis are powers of."""

    title: str
    of: Callable[[BrokerShare], int | None]
    shown: Callable[[float], str]
    step_of: float = BINARY


_MEASURES = (
    Measured("Replicas", lambda share: share.replicas, count_text, DECIMAL),
    Measured("Preferred leaders", lambda share: share.leaders, count_text, DECIMAL),
    Measured("Data", lambda share: share.bytes, bytes_text),
    Measured("In", lambda share: share.bytes_in_per_second, rate),
    Measured("Out", lambda share: share.bytes_out_per_second, rate),
    Measured("In from producers", lambda share: share.leader_bytes_in_per_second, rate),
)


def changes(reviewed: Plan) -> Table:
    """Return what changes and why, what is for good first."""
    rows = [
        (
            text_cell(each.sign),
            name_cell(each.subject),
            text_cell(each.what),
            Cell(data=(Datum(each.bytes, visible(each.effect)),)),
            text_cell(each.kind),
            text_cell(place(each.at)),
        )
        for each in gravest_first(plan_rows(reviewed, arrow=_ARROW, is_whole=True))
    ]
    heads = ("", "Topic", "Change", "Takes", "Kind", "Asked for by")
    return Table("One row a change; a row without a topic is of the whole cluster.", heads, tuple(rows), CHANGES_SHOWN)


def stage_table(staged: Sequence[StageFigures]) -> Table:
    """Return the stages, each with a bar for when it runs within the whole."""
    whole = sum(each.seconds for each in staged)
    rows = tuple(_stage_row(each, whole) for each in staged)
    heads = ("Stage", "Does", "Starts after", "Takes", "Data", "Replicas copied", "Most data to one broker")
    caption = "Stages run one after the other; the bar is when, within the whole."
    return Table(caption, heads, rows, STAGES_SHOWN)


def _stage_row(each: StageFigures, whole: int) -> tuple[Cell, ...]:
    start = figure_cell(each.start_seconds, duration)
    if whole:
        share = max(each.seconds / whole, _THINNEST)
        start = replace(start, share=share, offset=min(each.start_seconds / whole, 1 - share))
    busiest = Cell(data=(Datum(0, "none"),))
    if each.busiest is not None:
        text = (
            f"{bytes_text(each.most_arriving_bytes)} (broker {each.busiest}, {counted(each.most_arriving, 'replica')})"
        )
        busiest = Cell(data=(Datum(each.most_arriving_bytes, text),))
    return (
        name_cell(str(each.stage.number)),
        text_cell(_does(each)),
        start,
        figure_cell(each.seconds, duration),
        figure_cell(each.bytes, bytes_text),
        figure_cell(each.copies, count_text),
        busiest,
    )


def _does(each: StageFigures) -> str:
    """Return what a stage is for, without the figures that stand beside it."""
    if not isinstance(each.stage, ReassignStage):
        return stage_title(each.stage)
    reasons = sorted({str(move.reason) for move in each.stage.moves})
    return f"{counted(len(each.stage.moves), 'partition')}: {', '.join(reasons)}"


def sections(reviewed: Plan, shares: Sequence[BrokerFigures]) -> Iterator[Section]:
    """Yield brokers, racks and disks, and topics, with their pictures."""
    drawn = [_chart(reviewed, shares, each) for each in _MEASURES]
    drawn += [_disk_chart(shares), _arrivals(shares)]
    yield Section("Brokers, before and after", tuple(filter(None, drawn)), _broker_tables(reviewed, shares))
    yield Section("Racks and disks at the worst moment", (), (*_rack_tables(reviewed), *_disk_tables(reviewed)))
    yield Section("What moves, by topic", (), _topic_tables(reviewed))


def _chart(reviewed: Plan, shares: Sequence[BrokerFigures], measured: Measured) -> Chart | None:
    members = [
        Member(
            label=str(each.broker_id),
            words=f"broker {_broker_name(reviewed, each)}: {_told(each, measured)}",
            before=_of(each.before, measured),
            after=_of(each.after, measured),
        )
        for each in shares
    ]
    known = [each.after for each in members if each.after is not None]
    if not known or not any(known):
        return None
    mean = sum(known) / len(known)
    low, high = measured.shown(min(known)), measured.shown(max(known))
    span = f"{low} on each after the plan" if low == high else f"From {low} to {high} after the plan"
    is_plain = all(
        ground.capacity == 1 and not ground.weights and ground.state is BrokerState.ACTIVE
        for ground in _grounds(reviewed)
    )
    return chart(
        f"{measured.title} by broker",
        f"{span}, mean {measured.shown(mean)}." if is_plain and low != high else f"{span}.",
        members,
        measured.shown,
        line=("mean", mean) if is_plain else None,
        step_of=measured.step_of,
    )


def _disk_chart(shares: Sequence[BrokerFigures]) -> Chart | None:
    members = [
        Member(
            label=str(each.broker_id),
            words=f"broker {each.broker_id}: {_disk_words(each)} at the worst moment",
            before=each.disk.share if each.disk else None,
        )
        for each in shares
    ]
    known = [each.before for each in members if each.before is not None]
    if not known:
        return None
    summary = f"Up to {percent(max(known))} full at the worst moment of the run."
    return chart("Fullest disk by broker", summary, members, percent, line=("full", 1.0), is_limit=True)


def _arrivals(shares: Sequence[BrokerFigures]) -> Chart | None:
    members = [
        Member(
            label=str(each.broker_id),
            words=f"broker {each.broker_id}: {counted(each.arriving, 'replica')}, {bytes_text(each.arriving_bytes)}",
            before=float(each.arriving_bytes),
        )
        for each in shares
    ]
    most = max((each.arriving_bytes for each in shares), default=0)
    if not most:
        return None
    count = sum(each.arriving > 0 for each in shares)
    summary = f"{counted(count, 'broker')} take in data, up to {bytes_text(most)}."
    return chart("Copied to each broker", summary, members, bytes_text, step_of=BINARY)


def _broker_tables(reviewed: Plan, shares: Sequence[BrokerFigures]) -> tuple[Table, ...]:
    if not shares:
        return ()
    told = [each for each in _MEASURES if any(_of(share.after, each) is not None for share in shares)]
    rows = tuple(
        (
            name_cell(_broker_name(reviewed, each)),
            text_cell(each.rack or "(no rack)"),
            *(_pair(each.before, each.after, measured) for measured in told),
            figure_cell(each.arriving, count_text),
            figure_cell(each.arriving_bytes, bytes_text),
            figure_cell(each.leaving, count_text),
            figure_cell(reviewed.disk_peak.get(each.broker_id), bytes_text),
        )
        for each in shares
    )
    heads = (
        "Broker",
        "Rack",
        *(measured.title for measured in told),
        "Replicas arrive",
        "Data arrives",
        "Replicas leave",
        "Most data at once",
    )
    caption = "Each broker before and after; the most data at once is that of the run's worst moment."
    return (Table(caption, heads, rows, BROKERS_SHOWN),)


def _rack_tables(reviewed: Plan) -> tuple[Table, ...]:
    found, spread = racks(reviewed), rack_spread(reviewed)
    if not found:
        return ()
    told = [each for each in _MEASURES if any(_of(rack.after, each) is not None for rack in found)]
    rows = tuple(
        (
            name_cell(each.rack or "(no rack)"),
            figure_cell(each.brokers, count_text),
            *(_pair(each.before, each.after, measured) for measured in told),
            figure_cell(each.arriving_bytes, bytes_text),
        )
        for each in found
    )
    caption = "Each rack before and after."
    if spread is not None:
        caption += (
            f" Partitions that move and stand on fewer racks than they could: {number(spread.before)} before,"
            f" {number(spread.worst)} at the worst moment, {number(spread.after)} after."
        )
    heads = ("Rack", "Brokers", *(measured.title for measured in told), "Data arrives")
    return (Table(caption, heads, rows, len(rows)),)


def _disk_tables(reviewed: Plan) -> tuple[Table, ...]:
    found = disks(reviewed)
    if not found:
        return ()
    rows = tuple(
        (
            name_cell(str(each.broker_id)),
            text_cell(f"{each.path or '(all)'}{', predicted' if each.is_predicted else ''}"),
            figure_cell(each.peak_bytes, bytes_text),
            figure_cell(each.total_bytes, bytes_text),
            replace(figure_cell(each.share, percent), share=min(each.share, 1.0)),
        )
        for each in found
    )
    heads = ("Broker", "Log dir", "Most in it at once", "Holds", "Full")
    caption = "Each disk at the worst moment of the run, the fullest first."
    return (Table(caption, heads, rows, DISKS_SHOWN),)


def _topic_tables(reviewed: Plan) -> tuple[Table, ...]:
    found = topics(reviewed)
    if not found:
        return ()
    most = max(each.bytes for each in found)
    rows = tuple(
        (
            name_cell(each.topic),
            figure_cell(each.partitions, count_text),
            figure_cell(each.copies, count_text),
            replace(_data_cell(each.bytes, is_known=each.is_size_known), share=each.bytes / most if most else None),
            text_cell(", ".join(each.reasons)),
        )
        for each in found
    )
    heads = ("Topic", "Partitions", "Replicas copied", "Data", "Why")
    return (
        Table(
            "Topics by what is copied of them, the most first; the bar compares with the first.",
            heads,
            rows,
            TOPICS_SHOWN,
        ),
    )


def proof(reviewed: Plan) -> Table:
    """Return each objective's value, the bound that the plan's prices prove, and the gap between both."""
    told = reviewed.proof
    levels = told.levels or (PriceLevel(told.objective, told.value, told.lower_bound),)
    rows = tuple(
        (
            name_cell(each.objective),
            figure_cell(each.value, lambda value: f"{value:,.0f}"),
            figure_cell(each.lower_bound, lambda value: f"{value:,.0f}"),
            figure_cell(_gap(each), percent),
        )
        for each in levels
    )
    claim = least_movement(reviewed)
    caption = "; ".join(filter(None, (claim, _compared(reviewed))))
    checked = "" if reviewed.source.rolls_back else "; show --prove checks it"
    note = (
        f"Each objective is least among the plans that are best in those above it, leaders for these replicas{checked}."
    )
    return Table(
        f"{caption[:1].upper()}{caption[1:]}." if caption else "",
        ("Objective", "Plan", "Least possible", "Gap"),
        rows,
        len(rows),
        note,
    )


def _gap(level: PriceLevel) -> float:
    gap = level.value - level.lower_bound
    return gap / level.value if gap and level.value else 0.0


def _compared(reviewed: Plan) -> str:
    told = over_least(reviewed)
    return f"{estimate(reviewed.summary.estimated_seconds)} {throttle(reviewed)}, {told}" if told else ""


def _data_cell(count: int, *, is_known: bool) -> Cell:
    return Cell(data=(Datum(count, bytes_text(count) if is_known else f"at least {bytes_text(count)}"),))


def _pair(before: BrokerShare | None, after: BrokerShare | None, measured: Measured) -> Cell:
    return pair_cell(_of(before, measured), _of(after, measured), measured.shown, has_plan=True)


def _told(each: BrokerFigures, measured: Measured) -> str:
    texts = [datum(_of(share, measured), measured.shown).text for share in (each.before, each.after)]
    return f" {_ARROW} ".join(dict.fromkeys(texts))


def _of(share: BrokerShare | None, measured: Measured) -> int | None:
    return measured.of(share) if share is not None else None


def _disk_words(each: BrokerFigures) -> str:
    if each.disk is None:
        return "unknown"
    return f"{percent(each.disk.share)}{f' of {visible(each.disk.path)}' if each.disk.path else ''}"


def _broker_name(reviewed: Plan, each: BrokerFigures) -> str:
    ground = reviewed.grounds.brokers.get(each.broker_id)
    if ground is None:
        return str(each.broker_id)
    notes = [] if ground.is_alive else ["not alive"]
    notes += [] if ground.state is BrokerState.ACTIVE else [str(ground.state)]
    notes += [f"capacity {ground.capacity}"] if ground.capacity != 1 else []
    notes += [f"capacity for {measure} {weight}" for measure, weight in sorted(ground.weights.items())]
    return f"{each.broker_id} ({', '.join(notes)})" if notes else str(each.broker_id)


def _grounds(reviewed: Plan) -> Iterator[BrokerGround]:
    yield from reviewed.grounds.brokers.values()
