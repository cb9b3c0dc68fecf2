"""Declares the verb `collect`: its options, and the line that it tells for each round."""

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.terminal import tell, write
from reconciler.command.values import DURATION
from reconciler.command.verbs import option, verb
from reconciler.render.escape import visible

if TYPE_CHECKING:
    from reconciler.balance.workflow.collect import Collected

DEFAULT_EVERY = timedelta(seconds=60)


@verb(
    "collect",
    outputs=(TEXT, JSON),
    is_live=True,
    examples="""
        reconciler collect --cluster prod-eu --out samples
        reconciler collect --cluster prod-eu --out samples --every 60s --for 24h
        reconciler collect --bootstrap-server kafka-1:9093 --client client.properties --out samples --every 5m
        reconciler collect --cluster prod-eu --out samples --every 60s --prometheus http://prometheus:9090
    """,
)
@option("--out", metavar="DIR", required=True, help="Folder of the samples; kept and added to.")
@option("--once", is_flag=True, help="One round, now: so without --every and --for.")
@option("--every", type=DURATION, metavar="TIME", help="A round every so often [default: 60s].")
@option(
    "--for",
    "length",
    type=DURATION,
    metavar="TIME",
    envvar="RECONCILER_COLLECT_FOR",
    help="How long [default: no end].",
)
@option("--prometheus", metavar="URL", help="Ask this Prometheus for the rates of topics in each round.")
@option("--prometheus-match", metavar="MATCHERS", help="Labels that pick the cluster there: 'cluster=\"prod-eu\"'.")
@option("--metrics-client", metavar="FILE", help="Properties for it: username, password, bearer.token and more.")
def command(
    asked: Asked,
    out: str,
    every: timedelta | None,
    length: timedelta | None,
    *,
    once: bool,
    prometheus: str | None,
    prometheus_match: str | None,
    metrics_client: str | None,
) -> int:
    """Sample a live cluster into Parquet for loads: sizes on disk, leaders, end offsets.

    Without --every and --for one round, with --every alone until it is stopped. Each round is kept as soon as it is
    taken, so stopping it at any time loses nothing; running it again, or twice at once, adds to the same folder.
    With -o json stdout has one object a line, for each round.

    With --prometheus partitions have their share of their topic's bytes in and out. The file of --metrics-client may
    hold username, password, bearer.token, ssl.ca.location and header.NAME, with secrets as ${env:NAME} or
    ${file:/path}.
    """
    if once and (every or length):
        raise click.UsageError("--once is one round: leave --every and --for out, or leave --once out.")
    if every is not None and not every:
        raise click.UsageError("--every 0s would never end: name the time from one round to the next, such as 60s.")
    if prometheus_match and not prometheus:
        raise click.UsageError("--prometheus-match belongs to --prometheus URL.")
    if metrics_client and not prometheus:
        raise click.UsageError("--metrics-client belongs to --prometheus URL.")
    from reconciler.balance.workflow.collect import ONCE, Schedule, collect
    from reconciler.balance.workflow.exporters import exporters_named

    schedule = ONCE if every is None and length is None else Schedule(every or DEFAULT_EVERY, length)
    exporters = exporters_named(asked.inputs, prometheus, prometheus_match, metrics_client)
    told = _Told(out, is_json=asked.is_json)
    try:
        collect(asked.inputs, out, schedule, told.round, exporters)
    finally:
        told.end()
    return Exit.DONE


class _Told:
    """Tells a line a round; a warning once, for as long as it holds; and what was written in the end."""

    def __init__(self, out: str, *, is_json: bool) -> None:
        self._out, self._is_json = visible(out), is_json
        self._warned: frozenset[str] = frozenset()
        self._rounds = self._missed = self._rows = 0

    def round(self, done: "Collected") -> None:
        """Tell of one round."""
        from reconciler.model.words import counted
        from reconciler.render.as_json import line

        if self._is_json:
            write(line(done))
        if done.written is None:
            self._missed += 1
            tell(f"warning: {done.moment}  nothing sampled: {visible(done.failed or '')}", "auto")
            return
        self._rounds += 1
        self._rows += done.written.partitions
        rows = f"{counted(done.written.partitions, 'partition')}, {counted(done.written.replicas, 'replica')}"
        tell(f"{done.moment}  {visible(done.cluster)}: {rows}")
        for each in done.untold:
            if each not in self._warned:
                tell(f"warning: {visible(each)}", "auto")
        self._warned = frozenset(done.untold)

    def end(self) -> None:
        """Tell what was written, however it ended."""
        from reconciler.model.words import counted

        if self._rounds:
            missed = f", {counted(self._missed, 'round')} without an answer" if self._missed else ""
            rows = f"{counted(self._rows, 'sample')} in {counted(self._rounds, 'round')}"
            tell(f"Wrote {self._out}: {rows}{missed}. Loads of partitions:  reconciler loads --samples {self._out}")
