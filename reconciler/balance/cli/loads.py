"""Declares the verb `loads`: its options, and what it tells of the samples that it read."""

from typing import TYPE_CHECKING

import click

from reconciler.balance.cli.fail_on import FAIL_ON_HELP, fail_on, tell_failures
from reconciler.balance.cli.spark_job import spark_job
from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.terminal import tell, write
from reconciler.command.verbs import option, verb
from reconciler.model.gates import Gate

if TYPE_CHECKING:
    from reconciler.balance.workflow.loads import SparkJob


@verb(
    "loads",
    outputs=(TEXT, JSON),
    examples="""
        reconciler loads --samples samples --out loads
        reconciler loads --samples prometheus.json --cluster prod-eu --out loads
        reconciler loads --samples snapshots/ --cluster prod-eu --bucket 1h --out loads
        reconciler loads --samples day1.parquet day2.parquet --master spark://spark-1:7077 --out loads
        reconciler loads --samples s3a://lake/samples --out s3a://lake/loads --master spark://spark-1:7077
        reconciler plan --cluster prod-eu --loads loads
    """,
)
@option(
    "--samples", metavar="PATH...", multiple=True,
    help="Files, folders, URIs or tables: Parquet, CSV or JSON lines with the columns ts, cluster, topic, "
    "partition, bytes_in, bytes_out, messages_in, size_bytes, end_offset; answers of Prometheus to range queries; "
    "snapshots; what collect wrote.",
)  # fmt: skip
@click.argument("more", metavar="", nargs=-1)
@option("--out", metavar="DIR", help="Folder, URI or table to write; an older result goes.")
@fail_on(FAIL_ON_HELP)
@spark_job("Length of the time buckets whose rates are compared.")
def command(asked: Asked, job: "SparkJob", *, out: str | None, fail_on: tuple[Gate, ...]) -> int:
    """Make the loads of partitions from samples, with Spark: one row for each cluster, topic and partition.

    A row has the average, 95th percentile and maximum of each rate over time buckets, and its `peak`: the rate in the
    cluster's busiest bucket. The defects of samples are counted by rule, printed, and kept in DIR/_report.json.
    --cluster is the cluster of samples that name none, and selects the samples of that cluster. With --state, samples
    of partitions that the snapshot does not have are left out.
    """
    if not job.samples:
        raise click.UsageError("name the samples: --samples PATH...")
    if out is None:
        raise click.UsageError("name the folder to write: --out DIR.")
    from reconciler.balance.render.as_load_report import load_report_lines
    from reconciler.balance.workflow.loads import failed_gates, make_loads
    from reconciler.model.words import counted
    from reconciler.render.as_json import document

    report = make_loads(asked.inputs, job, out)
    tell("\n".join([*load_report_lines(report), f"Wrote {out}: {counted(report.partitions, 'partition')}."]))
    if asked.is_json:
        write(document(report))
    return tell_failures(failed_gates(report, fail_on, job.now, f"{out} is written all the same"))
