"""Declares the verb `loads`: its options, and what it tells of the samples that it read."""

from typing import TYPE_CHECKING

import click

from reconciler.balance.cli.fail_on import FAIL_ON_HELP, fail_on, tell_failures
from reconciler.balance.cli.spark_job import bucket_of_lake, days_of_lake, spark_job
from reconciler.command.exits import Exit
from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.terminal import tell, write
from reconciler.command.verbs import option, verb
from reconciler.model.gates import Gate

if TYPE_CHECKING:
    from reconciler.balance.model.lake_report import LakeReport
    from reconciler.balance.model.load_report import LoadReport
    from reconciler.balance.workflow.loads import SparkJob

LAKE_HELP = (
    "Bring the lake in this folder, or at this URI, up to date with the samples, and make loads of its days: only days "
    "that have other samples than before are computed. Without --samples, make loads of what it has."
)


@verb(
    "loads",
    outputs=(TEXT, JSON),
    examples="""
        reconciler loads --samples samples --out loads
        reconciler loads --samples prometheus.json --cluster prod-eu --out loads
        reconciler loads --samples snapshots/ --cluster prod-eu --bucket 1h --out loads
        reconciler loads --samples day1.parquet day2.parquet --master spark://spark-1:7077 --out loads
        reconciler loads --samples s3a://lake/samples --out s3a://lake/loads --master spark://spark-1:7077
        reconciler loads --samples samples --lake lake --out loads
        reconciler loads --lake lake --days 7 --cluster prod-eu --out loads
        reconciler plan --cluster prod-eu --loads loads
    """,
)
@option(
    "--samples", metavar="PATH...", multiple=True,
    help="Files, folders, URIs or tables: Parquet, ORC, Avro, CSV or JSON lines with the columns ts, cluster, topic, "
    "partition, bytes_in, bytes_out, messages_in, size_bytes, end_offset; answers of Prometheus to range queries; what "
    "JmxTool prints; snapshots; what collect wrote.",
)  # fmt: skip
@click.argument("more", metavar="", nargs=-1)
@option("--lake", metavar="DIR", help=LAKE_HELP)
@days_of_lake
@option("--out", metavar="DIR", help="Folder, URI or table to write; an older result goes. Needed without --lake.")
@fail_on(FAIL_ON_HELP)
@spark_job("Length of the time buckets whose rates are compared.")
def command(
    asked: Asked, job: "SparkJob", *, lake: str | None, days: int, out: str | None, fail_on: tuple[Gate, ...]
) -> int:
    """Make the loads of partitions from samples, with Spark: one row for each cluster, topic and partition.

    Of each rate the average, 95th percentile and maximum over time buckets, and its `peak`: the rate in the cluster's
    busiest bucket. What is wrong with samples is counted, rule by rule, told, and kept in DIR/_report.json. --cluster
    names what names no cluster, and picks that cluster of what does; with --state, samples of partitions and brokers
    that the snapshot does not have are left out.
    """
    if lake is not None:
        return _of_lake(asked, job, lake, days=days, out=out, gates=fail_on)
    if not job.samples:
        raise click.UsageError("name the samples: --samples PATH...")
    if out is None:
        raise click.UsageError("name the folder to write: --out DIR.")
    from reconciler.balance.workflow.loads import make_loads

    report = make_loads(asked.inputs, job, out)
    return _told(asked, job, report, out, fail_on)


def _of_lake(asked: Asked, job: "SparkJob", lake: str, *, days: int, out: str | None, gates: tuple[Gate, ...]) -> int:
    if not job.samples and out is None:
        raise click.UsageError("name what to do with the lake: --samples PATH... to take, --out DIR to write, or both.")
    if out is None and gates:
        raise click.UsageError("gates are held against loads, so --fail-on needs --out.")
    if asked.inputs.state:
        raise click.UsageError("a lake takes samples of all partitions: --state does not go with --lake.")
    from reconciler.balance.render.as_lake_report import lake_report_lines
    from reconciler.balance.workflow.lake import update_lake

    brought, loads = update_lake(asked.inputs, job, lake, days=days, out=out, bucket_seconds=bucket_of_lake(job))
    tell("\n".join(lake_report_lines(brought, lake)))
    if loads is not None and out is not None:
        return _told(asked, job, loads, out, gates)
    _write(asked, brought)
    return Exit.DONE


def _told(asked: Asked, job: "SparkJob", report: "LoadReport", out: str, gates: tuple[Gate, ...]) -> int:
    """Tell what the samples were, and which gates fail."""
    from reconciler.balance.render.as_load_report import load_report_lines
    from reconciler.balance.workflow.loads import failed_gates
    from reconciler.model.words import counted

    tell("\n".join([*load_report_lines(report), f"Wrote {out}: {counted(report.partitions, 'partition')}."]))
    _write(asked, report)
    return tell_failures(failed_gates(report, gates, job.now, f"{out} is written all the same"))


def _write(asked: Asked, report: "LoadReport | LakeReport") -> None:
    from reconciler.render.as_json import document

    if asked.is_json:
        write(document(report))
