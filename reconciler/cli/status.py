"""Declares `reconciler status`: shows where a run stands, once or until it has ended."""

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.terminal import Teller, write
from reconciler.command.verbs import option, verb
from reconciler.model.problem import ClusterUnavailable

if TYPE_CHECKING:
    from reconciler.model.status import Status
    from reconciler.workflow.status import Watched

EVERY_SECONDS = 3


@verb(
    "status",
    outputs=(TEXT, JSON),
    is_live=True,
    examples="""
        reconciler status --cluster prod-eu --watch
        reconciler status plan.json -o json
        reconciler status --cluster '*'
    """,
)
@click.argument("plan_path", metavar="[PLAN]", required=False)
@option("--watch", is_flag=True, help=f"Look every {EVERY_SECONDS} s until the run has ended.")
def command(asked: Asked, plan_path: str | None, *, watch: bool) -> int:
    """Show where the run on a cluster stands, its throttles, and which brokers are safe to stop.

    Changes nothing: what an ended run left it names, with the command that takes it off.
    Of many moves in flight it shows the slowest, of throttles how many; with -v all of them, as -o json does.
    With --watch, a terminal shows the newest look; elsewhere each one that differs is printed, with -o json each on a
    line of its own.
    """
    from reconciler.render import as_json
    from reconciler.workflow.status import watched

    if asked.inputs.are_several_named:
        if watch or plan_path:
            raise click.UsageError("With several clusters, PLAN and --watch are not taken: name one cluster.")
        return _several(asked)
    with watched(asked.inputs, plan_path) as run:
        if not watch:
            seen = next(_looks(run))
            write(_shown(seen, asked), asked.color)
        elif asked.is_json:
            for seen in _looks(run):
                write(as_json.line(seen))
                sys.stdout.flush()
        elif sys.stdout.isatty():
            _redraw(run, asked)
        else:
            _print_what_differs(run, asked)
    return Exit.DONE


def _several(asked: Asked) -> int:
    """Look once at each of several clusters by itself."""
    from reconciler.command.several import of_each, tell_failed
    from reconciler.model.status import StatusesReport
    from reconciler.render import as_json, as_several, as_status
    from reconciler.workflow.status import look_at_run

    each = of_each(asked, look_at_run)
    found = tuple(each.made.values())
    summary = each.summary(lambda seen: (as_status.in_short(seen).rstrip("."), Exit.DONE))
    asked.write(
        text=lambda: as_several.text((as_status.status(one, has_all=asked.verbosity > 0) for one in found), summary),
        json=lambda: as_json.document(StatusesReport(found, each.reasons, summary)),
    )
    return tell_failed(asked, each.failed)


def _shown(seen: "Status", asked: Asked) -> str:
    from reconciler.render import as_json, as_status

    if asked.is_json:
        return as_json.document(seen)
    return as_status.status(seen, has_all=asked.verbosity > 0)


def _looks(run: "Watched") -> Iterator["Status"]:
    """Yield look after look until the run has ended; a cluster that does not answer is told of, and asked again."""
    told = Teller()
    seen: Status | None = run.look()
    while seen is not None:
        yield seen
        if seen.has_ended:
            return
        seen = None
        while seen is None:
            time.sleep(EVERY_SECONDS)
            try:
                seen = run.look()
            except ClusterUnavailable as error:
                told.once(f"warning: {error} ({error.code})")


def _print_what_differs(run: "Watched", asked: Asked) -> None:
    before = ""
    for seen in _looks(run):
        text = _shown(seen, asked)
        if text != before:
            write(f"{'' if not before else chr(10)}{seen.time:%Y-%m-%d %H:%M:%S} UTC\n{text}", asked.color)
            sys.stdout.flush()
        before = text


def _redraw(run: "Watched", asked: Asked) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    # What is larger than the terminal is cut while it changes, and whole at the end.
    with Live(console=Console(), auto_refresh=False, vertical_overflow="ellipsis") as shown:
        for seen in _looks(run):
            shown.update(Text(_shown(seen, asked).rstrip("\n")), refresh=True)
