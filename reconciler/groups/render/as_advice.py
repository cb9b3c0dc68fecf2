"""Makes the report of advice on a topic's partitions."""

from collections.abc import Iterator

from reconciler.groups.model.advice import Advice, Cost, Need
from reconciler.model.words import counted, number, percent, rate, size
from reconciler.render.escape import code_span
from reconciler.render.report import Points, Report, Section, Table


def advised(advice: Advice) -> Report:
    """Return the advice in one line, who asks for it, what it costs, and what to keep in mind."""
    topic = f" · {code_span(advice.existing.topic)}" if advice.existing else ""
    return Report(
        (
            Section(markdown=(f"### reconciler groups advise{topic}",)),
            Section(_headline(advice), (_needs(advice),)),
            Section(_where(advice), (_costs(advice),)),
            Section(parts=(Points(tuple(_rules(advice)), advice.notes),)),
        )
    )


def _headline(advice: Advice) -> str:
    """Return the advice in one sentence: `orders: 18 partitions; 12 exist, so 6 to add. ...`."""
    existing = advice.existing
    told = counted(advice.partitions, "partition")
    if existing is not None:
        missing = advice.partitions - existing.partitions
        verdict = (
            f"{existing.partitions} exist, {missing} to add" if missing > 0 else f"{existing.partitions} exist: enough"
        )
        told = f"{existing.topic} needs {told}; {verdict}"
    even = advice.even_partitions
    if even is None or even == advice.partitions or (existing is not None and advice.partitions <= existing.partitions):
        return f"{told}."
    return f"{told}; {even} would let each of {counted(advice.brokers or 1, 'broker')} lead as many."


def _needs(advice: Advice) -> Table:
    return Table(
        ("asked for by", "because", "partitions"),
        tuple((need.what, _because(advice, need), number(need.partitions)) for need in advice.needs),
        left=2,
    )


def _because(advice: Advice, need: Need) -> str:
    if need.rate is None or advice.target is None:
        return "one partition each at least"
    headroom = f" and {percent(advice.headroom_percent / 100)} headroom" if advice.headroom_percent else ""
    measured = " or more (measured)" if need.is_measured else ""
    return f"{rate(advice.target)}{headroom} at {rate(need.rate)}{measured} for one partition"


def _where(advice: Advice) -> str:
    brokers = f" on {counted(advice.brokers, 'broker')}" if advice.brokers else ""
    there = advice.existing.partitions if advice.existing else 0
    partitions = counted(max(advice.partitions, there), "partition")
    return f"What {partitions} cost{brokers} at replicationFactor {advice.replication_factor}:"


def _costs(advice: Advice) -> Table:
    has_now = advice.existing is not None
    rows = tuple(
        (cost.name, *((_figure(cost, cost.now),) if has_now else ()), _figure(cost, cost.after))
        for cost in advice.costs
        if not cost.is_outdated
    )
    return Table(("", *(("now",) if has_now else ()), "then"), rows)


def _rules(advice: Advice) -> Iterator[str]:
    """Yield where each figure comes from; what no longer holds is said to be so, with the figure that it would give."""
    for cost in advice.costs:
        if not cost.is_outdated:
            yield f"{cost.name}: {cost.what} ({cost.source})"
    for cost in advice.costs:
        if cost.is_outdated:
            yield f"outdated: {cost.name}, {_figure(cost, cost.after)}: {cost.what} ({cost.source})"


def _figure(cost: Cost, value: int | None) -> str:
    if value is None:
        return "-"
    if cost.unit == "bytes":
        return size(value)
    return f"{number(value)} {cost.unit}".rstrip()
