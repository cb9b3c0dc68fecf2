"""Writes what a run brought into a lake, as lines for a person."""

from itertools import groupby

from reconciler.balance.model.lake_report import LakeReport, MadeDay
from reconciler.model.words import counted
from reconciler.render.escape import visible


def lake_report_lines(report: LakeReport, lake: str) -> list[str]:
    """Return one line for each note, one for the lake, and one for each cluster of which days were made."""
    lines = [visible(f"note: {note}") for note in report.notes]
    taken, days = counted(report.taken, "file"), counted(report.days, "day")
    made = f"{counted(len(report.made), 'day')} made" if report.made else "no day to make"
    lines.append(f"{visible(lake)}: {taken} taken, {made}, {days} in all")
    return [*lines, *(_of_cluster(name, list(days)) for name, days in groupby(report.made, lambda day: day.cluster))]


def _of_cluster(name: str | None, days: list[MadeDay]) -> str:
    dates = [day.date or "samples without a day" for day in days]
    told = ", ".join(dates) if len(dates) <= _FEW else f"{counted(len(dates), 'day')} from {dates[0]} to {dates[-1]}"
    return f"  {'samples of no cluster' if name is None else visible(name)}: {told}"


_FEW = 5
