"""Writes what each budget buys: a table as text and Markdown, and one page with a chart."""

from collections.abc import Iterator

from reconciler.model.budget import CurvePoint, CurveReport
from reconciler.model.words import duration, number, percent, rate, size
from reconciler.render.escape import visible
from reconciler.render.html_charts import Chart, Member, chart
from reconciler.render.html_pages import digest, rendered, text_of
from reconciler.render.html_tables import Cell, Table, bytes_text, figure_cell, name_cell, text_cell
from reconciler.render.markdown_parts import row
from reconciler.render.markdown_parts import table as markdown_table

_KNEE = "knee"


def text(curve: CurveReport) -> str:
    """Return a line for each plan of the curve, and where it bends."""
    cells = [heads(curve), *(_cells(curve, point) for point in curve.points)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(cells[0]))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join([*lines, *(f"{told}." for told in _facts(curve))]) + "\n"


def markdown(curve: CurveReport) -> str:
    """Return the same as a table."""
    rows = [row(list(_cells(curve, point))) for point in curve.points]
    columns = heads(curve)
    table = markdown_table(columns, rows, right=tuple(range(len(columns) - 1)))
    return "\n\n".join([table, *(f"{told}." for told in _facts(curve))]) + "\n"


def html(curve: CurveReport) -> str:
    """Return one page with the chart, which asks for nothing."""
    style = text_of("page.css")
    return rendered(
        "curve.html.j2",
        title=f"What a budget buys on {visible(curve.cluster_name)}",
        facts=tuple(_facts(curve)),
        chart=_chart(curve),
        table=_table(curve),
        style=style,
        style_hash=digest(style),
    )


def heads(curve: CurveReport) -> tuple[str, ...]:
    """Return the names of the columns."""
    measures = tuple(curve.points[0].imbalance) if curve.points else ()
    return ("budget", "time", "of the way", "max/mean", *measures, "")


def _cells(curve: CurveReport, point: CurvePoint) -> tuple[str, ...]:
    return (
        size(point.bytes),
        "-" if point.seconds is None else duration(point.seconds),
        _way(point),
        f"{point.max_over_mean:.3f}",
        *(number(value) for value in point.imbalance.values()),
        _KNEE if point.bytes == curve.knee_bytes else "",
    )


def _way(point: CurvePoint) -> str:
    """Return the share of the way in whole percents, rounded down: 100% is the whole of it."""
    return f"{int(point.share * 100)}%"


def _facts(curve: CurveReport) -> Iterator[str]:
    yield f"Mending the rules alone copies {size(curve.mended_bytes)}, the whole plan {size(curve.whole_bytes)}"
    knee = next((point for point in curve.points if point.bytes == curve.knee_bytes), None)
    if knee is not None and curve.mended_bytes < curve.knee_bytes < curve.whole_bytes:
        yield f"The curve bends at {size(knee.bytes)}: {_way(knee)} of the way for {_part(curve, knee)} of the bytes"
    if curve.throttle_bytes_per_second is None:
        yield "Without moves.throttle nobody knows how long it takes"
    else:
        yield f"Times are those of the busiest broker at {rate(curve.throttle_bytes_per_second)}"


def _part(curve: CurveReport, point: CurvePoint) -> str:
    return percent((point.bytes - curve.mended_bytes) / (curve.whole_bytes - curve.mended_bytes), 2)


def _chart(curve: CurveReport) -> Chart | None:
    members = [
        Member(size(point.bytes), f"{size(point.bytes)}: {_way(point)} of the way", point.share * 100)
        for point in curve.points
    ]
    summary = "how much of the way to the whole balance so many bytes bring"
    return chart("Of the way", summary, members, lambda value: f"{value:.0f}%")


def _table(curve: CurveReport) -> Table:
    rows = tuple(
        (
            figure_cell(point.bytes, bytes_text),
            figure_cell(point.seconds, duration),
            figure_cell(point.share, lambda share: f"{int(share * 100)}%"),
            figure_cell(point.max_over_mean, lambda value: f"{value:.3f}"),
            *(figure_cell(value, lambda count: number(int(count))) for value in point.imbalance.values()),
            _note(curve, point),
        )
        for point in curve.points
    )
    return Table("Each line is a plan that --budget makes.", heads(curve), rows, len(rows))


def _note(curve: CurveReport, point: CurvePoint) -> Cell:
    return name_cell(_KNEE) if point.bytes == curve.knee_bytes else text_cell("")
