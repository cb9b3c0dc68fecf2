"""Turns the tables of a history into the report's values: a row a broker, a row a period, and ten causes a scope."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reconciler.balance.model.balance_report import Measure
from reconciler.balance.model.history import (
    HOURS_A_DAY,
    HOURS_A_WEEK,
    Carried,
    Cause,
    Changed,
    Changes,
    Contribution,
    History,
    Placement,
    Shift,
    SkewAt,
    SlowBroker,
    Slowness,
    Step,
)
from reconciler.balance.spark.history import Times
from reconciler.balance.spark.history_changes import MOST_CAUSES
from reconciler.balance.spark.history_job import HistoryTables
from reconciler.balance.spark.history_slow import MOST_SCORE
from reconciler.balance.spark.normalise import HOUR, MICROS, MILLI, iso
from reconciler.balance.spark.replica_load import NO_BROKER
from reconciler.model.evenness import Evenness

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

# What brokers measure of themselves differs a little from what is summed of their partitions.
_LEAST_SHARE_LED = 0.01
_FIELD = {
    Measure.REPLICAS.value: "replicas",
    Measure.SIZE.value: "size_bytes",
    Measure.IN.value: "bytes_in",
    Measure.OUT.value: "bytes_out",
}


@dataclass(frozen=True, slots=True)
class _Moved:
    """What is told of one cluster's changes: by scope and topic, by broker, by new leaders, by moved replicas."""

    scopes: Sequence["Row"]
    brokers: Sequence["Row"]
    leaders: Sequence["Row"]
    replicas: Sequence["Row"]


def collected_history(tables: HistoryTables) -> Mapping[str, History]:
    """Return the history of each cluster that has samples."""
    week, series = (_carried(table) for table in (tables.week, tables.series))
    skews = _skews(tables.skews.collect())
    moved = tuple(map(_by_cluster, (tables.changes, tables.brokers, tables.placed, tables.moved)))
    slow = _by_cluster(tables.slow)
    return {
        name: History(
            step=Step.DAY if times.unit == HOURS_A_DAY else Step.HOUR,
            periods=tuple(iso((times.origin + at) * times.unit * HOUR) for at in range(times.periods)),
            hours_of_week=week.get(name, ()),
            series=series.get(name, ()),
            skews=skews.get(name, ()),
            changes=_changes(times, _Moved(*(rows[name] for rows in moved))),
            has_broker_samples=tables.slow is not None,
            slow_brokers=tuple(_slow(row) for row in sorted(slow[name], key=lambda row: (row.broker, row.since))),
        )
        for name, times in tables.times.items()
    }


def _by_cluster(table: "DataFrame | None") -> dict[str, list["Row"]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in table.collect() if table is not None else ():
        found[row.cluster].append(row)
    return found


def _carried(table: "DataFrame") -> Mapping[str, tuple[Carried, ...]]:
    found: dict[str, dict[int, Carried]] = defaultdict(dict)
    for row in table.collect():
        broker = None if row.broker == NO_BROKER else row.broker
        found[row.cluster][row.broker] = Carried(broker, tuple(row["in"]), tuple(row["out"]))
    return {name: tuple(each for _, each in sorted(brokers.items())) for name, brokers in found.items()}


def _skews(rows: Iterable["Row"]) -> Mapping[str, tuple[SkewAt, ...]]:
    found: dict[str, dict[tuple[int, str], SkewAt]] = defaultdict(dict)
    for row in rows:
        placement = Placement(row.placement)
        told = found[row.cluster].get((row.at, placement), SkewAt(row.at, placement))
        even = Evenness(row.max_over_mean, row.coefficient_of_variation, row.gini)
        # `replace` takes names it cannot check: they are fields of SkewAt.
        found[row.cluster][row.at, placement] = replace(told, **{_FIELD[row.measure]: even})  # type: ignore[arg-type]
    # Today's stands before that of then.
    return {
        name: tuple(told[key] for key in sorted(told, key=lambda key: (key[0], key[1] != Placement.TODAY)))
        for name, told in found.items()
    }


def _changes(times: Times, moved: _Moved) -> Changes | None:
    if times.start is None or times.middle is None or times.end is None or not moved.scopes:
        return None
    heads = sorted((row for row in moved.scopes if row.place == 0), key=lambda row: row["rank"])
    others = (*_leaders(heads[0], moved.leaders), *_replicas(moved.replicas))
    scopes = []
    for head in heads:
        causes = [row for row in moved.scopes if row.place > 0 and row.broker == head.broker]
        scopes.append(_changed(head, sorted(causes, key=lambda row: row.place), others))
    return Changes(
        start=iso(times.start * HOUR),
        middle=iso(times.middle * HOUR),
        end=iso(times.end * HOUR),
        is_by_week=times.end - times.middle == HOURS_A_WEEK,
        of=tuple(scopes),
        brokers=tuple(_broker(row) for row in sorted(moved.brokers, key=lambda row: row.place)),
    )


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A cause, and how many bytes a second (or, without rates, bytes) it moves."""

    cause: Contribution
    weight: int


def _changed(head: "Row", topics: Sequence["Row"], others: Sequence[_Weighed]) -> Changed:
    broker = None if head.broker == NO_BROKER else head.broker
    concerned = [each for each in others if broker is None or broker in {each.cause.from_broker, each.cause.to_broker}]
    each = [*(_Weighed(_topic(row), _weight(row)) for row in topics), *concerned]
    total = max((row.total for row in topics), default=0) + sum(one.weight for one in concerned)
    ordered = sorted(each, key=lambda one: (-one.weight, *_order(one.cause)))[:MOST_CAUSES]
    causes = (replace(one.cause, share=round(one.weight / total, 6) if total else 0.0) for one in ordered)
    return Changed(broker, _shift(head, "in"), _shift(head, "out"), _shift(head, "size"), tuple(causes))


def _order(cause: Contribution) -> tuple[int, str, int, int]:
    heft = abs(cause.size_bytes.change) if cause.size_bytes is not None else 0
    return -heft, cause.topic or "", cause.from_broker or 0, cause.to_broker or 0


def _topic(row: "Row") -> Contribution:
    return Contribution(
        Cause.TOPIC,
        row.topic,
        is_new=row.is_new,
        bytes_in=_shift(row, "in"),
        bytes_out=_shift(row, "out"),
        size_bytes=_shift(row, "size"),
    )


def _broker(row: "Row") -> Contribution:
    return Contribution(
        Cause.BROKER,
        broker=row.broker,
        bytes_in=_shift(row, "in"),
        bytes_out=_shift(row, "out"),
        size_bytes=_shift(row, "size"),
        share=round(_weight(row) / row.total, 6) if row.total else 0.0,
    )


def _weight(row: "Row") -> int:
    changes = ((row[f"{way}_earlier"], row[f"{way}_later"]) for way in ("in", "out"))
    return sum(abs(after - before) for before, after in changes if before is not None and after is not None)


def _shift(row: "Row", measure: str) -> Shift | None:
    before, after = row[f"{measure}_earlier"], row[f"{measure}_later"]
    if before is None or after is None:
        return None
    return Shift(before, after) if measure == "size" else Shift(_whole(before), _whole(after))


def _leaders(head: "Row", rows: Iterable["Row"]) -> Iterator[_Weighed]:
    """Yield what leaders carry that another broker led before: who lost most is paired with who won most."""
    led, sent = head.lead_in_later or 0, head.lead_out_later or 0
    fetched = max((head.out_later or 0) - sent, 0)
    least = _LEAST_SHARE_LED * (led + sent)
    changed = {row.broker: (row.lead_in or 0, row.lead_out or 0) for row in rows}
    left = {broker: -sum(change) for broker, change in changed.items() if sum(change) < -least}
    come = {broker: sum(change) for broker, change in changed.items() if sum(change) > least}
    for loser, winner, amount in _paired(left, come):
        share_in = amount * abs(changed[loser][0]) // (abs(changed[loser][0]) + abs(changed[loser][1]))
        # Both brokers change by it, and by what followers fetch from the new leader.
        followed = share_in * fetched // led if led else 0
        cause = Contribution(
            Cause.LEADERSHIP,
            from_broker=loser,
            to_broker=winner,
            bytes_in=Shift(0, _whole(share_in)),
            bytes_out=Shift(0, _whole(amount - share_in)),
        )
        yield _Weighed(cause, 2 * (amount - share_in + followed))


def _paired(left: Mapping[int, int], come: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    losers, winners = (
        sorted(([amount, -broker] for broker, amount in each.items()), reverse=True) for each in (left, come)
    )
    while losers and winners:
        amount = min(losers[0][0], winners[0][0])
        yield -losers[0][1], -winners[0][1], amount
        for each in (losers, winners):
            each[0][0] -= amount
            if each[0][0] == 0:
                each.pop(0)


def _replicas(rows: Iterable["Row"]) -> Iterator[_Weighed]:
    for row in sorted(rows, key=lambda row: (row.from_broker, row.to_broker)):
        cause = Contribution(
            Cause.REPLICAS,
            from_broker=row.from_broker,
            to_broker=row.to_broker,
            bytes_in=Shift(0, _whole(row["in"])),
            size_bytes=Shift(0, row["size"]),
        )
        yield _Weighed(cause, 2 * row["in"])


def _slow(row: "Row") -> SlowBroker:
    return SlowBroker(
        broker=row.broker,
        slowness=Slowness.PERSISTENT if row.score >= MOST_SCORE else Slowness.RECENT,
        since=iso(row.since * MICROS),
        until=None if row.until is None else iso(row.until * MICROS),
        score=row.score,
        flush_ms=row.flush,
        peers_ms=row.peers,
        bytes_in=round(row.bytes),
    )


def _whole(milli: int) -> int:
    return (milli + MILLI // 2) // MILLI
