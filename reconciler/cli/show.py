"""Declares `reconciler show`: shows, explains or proves a saved plan, or writes it for Kafka's tools."""

from typing import TYPE_CHECKING

import click

from reconciler.command.exits import Exit
from reconciler.command.options import HTML, JSON, KAFKA_JSON, MARKDOWN, TEXT, Asked, source_state
from reconciler.command.terminal import tell, write
from reconciler.command.values import INSIDE_THROTTLE, NO_LOG_DIR, STATISTIC_HELP, STATISTICS, digest_option
from reconciler.command.verbs import option, verb
from reconciler.model.loads import Statistic

if TYPE_CHECKING:
    from reconciler.model.plan import Plan

MOST_DIGITS = 10
"""Of a partition's number, which Kafka keeps in 32 bits."""


@verb(
    "show",
    outputs=(TEXT, JSON, MARKDOWN, HTML, KAFKA_JSON),
    examples="""
        reconciler show plan.json
        reconciler show plan.json -o markdown
        reconciler show plan.json -o html > plan.html
        reconciler show plan.json -o kafka-json --out kafka-files
        reconciler show plan.json --explain orders.events-3
        reconciler show plan.json --prove --state snapshot.json
    """,
)
@click.argument("plan_path", metavar="PLAN")
@option("--out", metavar="DIR", help="Where -o kafka-json writes its files.")
@option(
    "--log-dirs",
    "has_log_dirs",
    is_flag=True,
    envvar="RECONCILER_SHOW_LOG_DIRS",
    help="In these files, name the log dir predicted for each new replica, not any.",
)
@option("--prove", "is_proof_asked", is_flag=True, envvar="RECONCILER_SHOW_PROVE", help="Check that no plan is better.")
@source_state
@option("--loads", metavar="DIR", help="With --prove: the loads that the plan was made with.")
@option("--statistic", type=STATISTICS, default="peak", show_default=True, help=STATISTIC_HELP)
@digest_option("show")
@option("--explain", metavar="TOPIC-PARTITION", help="Say why that partition moves as it does.")
def command(
    asked: Asked,
    plan_path: str,
    out: str | None,
    explain: str | None,
    *,
    digest: str | None,
    has_log_dirs: bool,
    is_proof_asked: bool,
    loads: str | None,
    statistic: str,
) -> int:
    """Show a saved plan (- for stdin), stage by stage, in any form.

    With -o kafka-json, files for kafka-reassign-partitions, its rollback, and kafka-leader-election, one a stage.
    With -o html, one page with pictures, which asks for nothing.
    With --prove, whether its own prices prove, for the desired and the observed state, that no plan is better. With
    --explain, why one partition moves: what asks for it, why these brokers, why nothing cheaper; from the plan alone.
    """
    if explain is not None:
        if out is not None or has_log_dirs or is_proof_asked or asked.output not in {TEXT, JSON}:
            raise click.UsageError("--explain answers for one partition, as text or -o json; leave all else out.")
        return _explain(asked, plan_path, digest, explain)
    if is_proof_asked:
        if out is not None or asked.output not in {TEXT, JSON}:
            raise click.UsageError("--prove gives a verdict, as text or -o json; leave --out and other forms out.")
        if plan_path == asked.inputs.state == "-":
            raise click.UsageError("stdin holds one file: name the plan or the snapshot.")
        return _prove(asked, plan_path, digest, loads, Statistic(statistic))
    if loads is not None:
        raise click.UsageError("--loads is for --prove: the plan itself holds all that is shown of it.")
    if (asked.output == KAFKA_JSON) != (out is not None):
        raise click.UsageError("-o kafka-json writes several files: it needs --out DIR, and --out needs it.")
    if has_log_dirs and out is None:
        raise click.UsageError("--log-dirs is for the files of -o kafka-json.")
    from reconciler.workflow.saved_plan import plan_named

    plan = plan_named(asked.inputs, plan_path, digest)
    if out is not None:
        _write_kafka_files(plan, out, has_log_dirs=has_log_dirs)
    else:
        _show(asked, plan)
    return Exit.DONE


def _show(asked: Asked, plan: "Plan") -> None:
    from reconciler.files.plan_file import plan_text
    from reconciler.render import as_markdown, as_text

    def page() -> str:
        from reconciler.render import as_plan_html

        return as_plan_html.plan(plan)

    asked.write(
        text=lambda: asked.folded(as_text.plan(plan, has_stages=True)),
        json=lambda: plan_text(plan),
        markdown=lambda: as_markdown.plan(plan),
        html=page,
    )


def _write_kafka_files(plan: "Plan", folder: str, *, has_log_dirs: bool) -> None:
    from reconciler.workflow.saved_plan import write_kafka_files

    names = write_kafka_files(plan, folder, has_log_dirs=has_log_dirs)
    tell(f"Wrote {len(names)} files to {folder}.")
    if has_log_dirs and not plan.predicted_log_dirs:
        tell(NO_LOG_DIR)
    if plan.summary.dir_moves:
        tell(INSIDE_THROTTLE)
    if plan.topic_changes:
        tell(f"warning: {len(plan.topic_changes)} topic changes have no such file; apply does them (KR818)")


def _explain(asked: Asked, plan_path: str, digest: str | None, text: str) -> int:
    from reconciler.model.topic_partition import TopicPartition
    from reconciler.planner.explain import explain
    from reconciler.render.as_json import document
    from reconciler.render.explained import explanation
    from reconciler.workflow.saved_plan import plan_named

    topic, _, number = text.rpartition("-")
    if not (topic and number.isascii() and number.isdigit() and len(number) <= MOST_DIGITS):
        raise click.BadParameter(f"{text!r} is no TOPIC-PARTITION, such as orders-3.", param_hint="--explain")
    found = explain(plan_named(asked.inputs, plan_path, digest), TopicPartition(topic, int(number)))
    root = asked.inputs.root
    write(document(found) if asked.is_json else explanation(found, root=root))
    return Exit.DONE


def _prove(asked: Asked, plan_path: str, digest: str | None, loads: str | None, statistic: Statistic) -> int:
    from reconciler.command.progress import reading
    from reconciler.render import as_json, as_proof
    from reconciler.workflow.plan import LoadsAt
    from reconciler.workflow.saved_plan import plan_named, prove_plan

    plan = plan_named(asked.inputs, plan_path, digest)
    at = LoadsAt(loads, statistic) if loads is not None else None
    with reading("proving") as progress:
        verdict = prove_plan(asked.inputs, plan, loads=at, progress=progress)
    write(as_json.document(verdict) if asked.is_json else as_proof.text(verdict))
    return Exit.DONE if verdict.is_proved else Exit.ERROR
