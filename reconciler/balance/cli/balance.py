"""Declares the verb `balance`: its options, and which form of the report goes to stdout."""

from typing import TYPE_CHECKING

import click

from reconciler.balance.cli.fail_on import FAIL_ON_HELP, fail_on, tell_failures
from reconciler.balance.cli.spark_job import spark_job
from reconciler.command.options import HTML, JSON, MARKDOWN, TEXT, Asked
from reconciler.command.terminal import tell, write
from reconciler.command.values import RATE, SHARE
from reconciler.command.verbs import option, verb
from reconciler.model.gates import Gate

if TYPE_CHECKING:
    from reconciler.balance.model.balance_report import BalanceReport
    from reconciler.balance.workflow.loads import SparkJob

PLAN_HELP = "Compare with the state that this plan reaches; with --cluster '*' one for each of several clusters."

HEADROOM_HELP = (
    "Tell each hour of the week: the busiest brokers, and the highest throttle that keeps each broker within so much "
    "(80%) of --network, else of the most that it was seen to carry."
)


@verb(
    "balance",
    outputs=(TEXT, JSON, MARKDOWN, HTML),
    examples="""
        reconciler balance --samples samples --cluster prod-eu --state snapshot.json
        reconciler balance --loads loads --cluster prod-eu --plan plan.json
        reconciler balance --samples samples --cluster '*' --out balance-tables
        reconciler balance --samples samples --plan plan.json -o html > balance.html
        reconciler balance --samples samples --headroom 80% --network 125MiB/s
        reconciler balance --samples /data/samples --master spark://spark-1:7077 -o json
    """,
)
@option("--samples", metavar="PATH...", multiple=True, help="Files, folders, URIs or tables, as loads reads.")
@click.argument("more", metavar="", nargs=-1)
@option("--loads", metavar="DIR", help="What loads wrote: averages and peaks, no percentiles.")
@option("--plan", metavar="FILE", multiple=True, help=PLAN_HELP)
@option("--out", metavar="DIR", help="Folder, URI or table to write the tables to, all topics in.")
@option("--headroom", metavar="SHARE", type=SHARE, help=HEADROOM_HELP)
@option("--network", metavar="RATE", type=RATE, help="With --headroom: what a broker's network carries each way.")
@fail_on(FAIL_ON_HELP)
@spark_job("Length of the time buckets in which loads are summed.")
def command(
    asked: Asked,
    job: "SparkJob",
    plan: tuple[str, ...],
    *,
    loads: str | None,
    out: str | None,
    headroom: float | None,
    network: int | None,
    fail_on: tuple[Gate, ...],
) -> int:
    """Show who carries what, with Spark: each broker, rack, log dir and topic, and how even the brokers are.

    A broker's percentile is that of its sum in each time bucket, followers' traffic counted. With --plan, everything
    before and after it. --cluster '*' compares all clusters of the root, or with --state DIR those of which that folder
    holds a snapshot, NAME.json.
    """
    if bool(job.samples) == (loads is not None):
        raise click.UsageError("name what was measured: either --samples PATH... or --loads DIR.")
    if (loads or headroom is None) and (headroom or network):
        raise click.UsageError("--headroom tells hours of the week, so it needs --samples; --network belongs to it.")
    from reconciler.balance.model.balance_report import Headroom
    from reconciler.balance.workflow.balance import failed_gates, make_balance
    from reconciler.command.progress import reading
    from reconciler.render.as_text import problems

    with reading() as progress:
        left = Headroom(headroom, network) if headroom is not None else None
        report = make_balance(asked.inputs, job, loads=loads, plans=plan, out=out, headroom=left, progress=progress)
    _show(report, asked)
    warnings = [*report.warnings, *(warning for cluster in report.clusters for warning in cluster.warnings)]
    if warnings:
        tell("\n".join(problems(warnings)), asked.color)
    if out is not None:
        tell(f"Wrote {out}.")
    return tell_failures(failed_gates(report, fail_on, job.now, loads))


def _show(report: "BalanceReport", asked: Asked) -> None:
    from reconciler.balance.render import as_tables
    from reconciler.render.as_json import document

    if asked.is_json:
        write(document(report))
    elif asked.output == MARKDOWN:
        write(as_tables.balance(report).markdown())
    elif asked.output == HTML:
        from reconciler.balance.render import as_html

        write(as_html.balance(report))
    else:
        write(as_tables.balance(report).text(), asked.color)
