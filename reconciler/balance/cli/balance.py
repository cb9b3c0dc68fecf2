"""`reconciler balance`."""

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from reconciler.command.exits import EPILOG, Exit
from reconciler.command.options import HTML, JSON, MARKDOWN, TEXT, Asked, asked_for, verb_options
from reconciler.command.terminal import tell, write
from reconciler.command.values import DURATION

if TYPE_CHECKING:
    from reconciler.balance.model.balance_report import BalanceReport

EXAMPLES = """\b
Examples:
  reconciler balance --samples samples --cluster prod-eu --state snapshot.json
  reconciler balance --loads loads --cluster prod-eu --plan plan.json
  reconciler balance --samples samples --cluster '*' --out balance-tables
  reconciler balance --samples samples --plan plan.json -o html > balance.html
  reconciler balance --samples /lake/samples --master spark://spark-1:7077 -o json

"""
PLAN_HELP = "Compare with the state that this plan reaches; with --cluster '*' one for each of several clusters."


@click.command("balance", epilog=EXAMPLES + EPILOG)
@click.option("--samples", metavar="PATH...", multiple=True, show_envvar=True, help="Files or folders, as loads reads.")
@click.argument("more", metavar="", nargs=-1)
@click.option("--loads", metavar="DIR", show_envvar=True, help="What loads wrote: averages and peaks, no percentiles.")
@click.option("--plan", metavar="FILE", multiple=True, show_envvar=True, help=PLAN_HELP)
@click.option("--out", metavar="DIR", show_envvar=True, help="Write the tables there too, as Parquet, all topics in.")
@click.option(
    "--bucket", type=DURATION, default="60s", show_default=True, show_envvar=True,
    help="Length of the time buckets in which loads are summed.",
)  # fmt: skip
@click.option(
    "--master", metavar="URL", show_envvar=True, help="Spark master [default: spark-submit's, else local[*]]."
)
@click.option("--driver-memory", metavar="SIZE", show_envvar=True, help="Memory of Spark's driver, such as 4g.")
@verb_options(TEXT, JSON, MARKDOWN, HTML)
@click.pass_context
def command(
    context: click.Context,
    samples: tuple[str, ...],
    more: tuple[str, ...],
    plan: tuple[str, ...],
    *,
    loads: str | None,
    out: str | None,
    bucket: timedelta,
    master: str | None,
    driver_memory: str | None,
) -> int:
    """Show who carries what, with Spark: each broker, rack, log dir and topic, and how even the brokers are.

    A broker's percentile is that of its sum in each time bucket, followers' traffic counted. With --plan, everything
    before and after it. --cluster '*' compares all clusters of the root, or with --state DIR those of which that folder
    holds a snapshot, NAME.json.
    """
    asked = asked_for(context)
    if bool(samples) == (loads is not None):
        raise click.UsageError("name what was measured: either --samples PATH... or --loads DIR.")
    if more and not samples:
        raise click.UsageError(f"{more[0]} is no option; paths follow --samples.")
    if bucket < timedelta(seconds=1):
        raise click.UsageError("--bucket must be at least 1s.")
    import sys
    from datetime import UTC, datetime

    from reconciler.balance.workflow.balance import BalanceAsked, make_balance
    from reconciler.command.progress import reading
    from reconciler.render.as_text import problems

    with reading() as progress:
        report = make_balance(
            asked.inputs,
            BalanceAsked(
                datetime.now(UTC), (*samples, *more), loads, plan, out, int(bucket.total_seconds()),
                master, driver_memory, has_progress=sys.stderr.isatty(),
            ),
            progress=progress,
        )  # fmt: skip
    _show(report, asked)
    warnings = [*report.warnings, *(warning for cluster in report.clusters for warning in cluster.warnings)]
    if warnings:
        tell("\n".join(problems(warnings)), asked.color)
    if out is not None:
        tell(f"Wrote {out}.")
    return Exit.DONE


def _show(report: "BalanceReport", asked: Asked) -> None:
    from reconciler.balance.render import as_json, as_markdown, as_text

    if asked.is_json:
        write(as_json.balance(report))
    elif asked.output == MARKDOWN:
        write(as_markdown.balance(report))
    elif asked.output == HTML:
        from reconciler.balance.render import as_html

        write(as_html.balance(report))
    else:
        write(as_text.balance(report), asked.color)
