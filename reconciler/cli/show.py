"""`reconciler show`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from reconciler.command.exits import EPILOG, Exit
from reconciler.command.options import HTML, JSON, KAFKA_JSON, MARKDOWN, TEXT, Asked, asked_for, verb_options
from reconciler.command.terminal import tell, write
from reconciler.command.values import NO_LOG_DIR, STATISTIC_HELP, STATISTICS, seal_of, seal_options
from reconciler.model.loads import Statistic
from reconciler.workflow.inputs import Inputs

if TYPE_CHECKING:
    from reconciler.files.plan_file import Seal
    from reconciler.model.plan import Plan

EXAMPLES = """\b
Examples:
  reconciler show plan.json
  reconciler show plan.json -o markdown
  reconciler show plan.json -o html > plan.html
  reconciler show plan.json -o kafka-json --out kafka-files
  reconciler show plan.json --explain orders.events-3
  reconciler show plan.json --prove --state snapshot.json

"""


@click.command("show", epilog=EXAMPLES + EPILOG)
@click.argument("plan_path", metavar="PLAN")
@click.option("--out", metavar="DIR", show_envvar=True, help="Where -o kafka-json writes its files.")
@click.option(
    "--log-dirs",
    "has_log_dirs",
    is_flag=True,
    envvar="RECONCILER_SHOW_LOG_DIRS",
    show_envvar=True,
    help="In these files, name the log dir predicted for each new replica, not any.",
)
@click.option(
    "--prove",
    "is_proof_asked",
    is_flag=True,
    envvar="RECONCILER_SHOW_PROVE",
    show_envvar=True,
    help="Check that no plan is better.",
)
@click.option("--loads", metavar="DIR", show_envvar=True, help="With --prove: the loads that the plan was made with.")
@click.option("--statistic", type=STATISTICS, default="peak", show_default=True, show_envvar=True, help=STATISTIC_HELP)
@seal_options("show")
@click.option("--explain", metavar="TOPIC-PARTITION", show_envvar=True, help="Say why that partition moves as it does.")
@verb_options(TEXT, JSON, MARKDOWN, HTML, KAFKA_JSON)
@click.pass_context
def command(
    context: click.Context,
    plan_path: str,
    out: str | None,
    explain: str | None,
    *,
    digest: str | None,
    verify: str | None,
    signature: str | None,
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
    asked = asked_for(context)
    saved = _Saved(asked.inputs, plan_path, seal_of(plan_path, digest, verify, signature))
    if explain is not None:
        return _explain(asked, saved, explain, is_alone=out is None and not has_log_dirs and not is_proof_asked)
    if is_proof_asked:
        return _prove(asked, saved, loads, Statistic(statistic), has_files=out is not None)
    _refuse_misuse(asked, out, loads, has_log_dirs=has_log_dirs)
    from reconciler.render import as_markdown, as_text
    from reconciler.workflow.show import plan_json, write_kafka_files

    plan = saved.plan()
    if out is not None:
        names = write_kafka_files(plan, out, has_log_dirs=has_log_dirs)
        tell(f"Wrote {len(names)} files to {out}.")
        if has_log_dirs and not plan.predicted_log_dirs:
            tell(NO_LOG_DIR)
        if plan.topic_changes:
            tell(f"warning: {len(plan.topic_changes)} topic changes have no such file; apply does them (KR818)")
    elif asked.is_json:
        write(plan_json(plan))
    elif asked.output == MARKDOWN:
        write(as_markdown.plan(plan))
    elif asked.output == HTML:
        from reconciler.render import as_plan_html

        write(as_plan_html.plan(plan))
    else:
        write(as_text.plan(plan, has_stages=True), asked.color)
    return Exit.DONE


@dataclass(frozen=True, slots=True)
class _Saved:
    """The plan's file, and what says whether it is the one that was reviewed."""

    inputs: Inputs
    path: str
    seal: "Seal"

    def plan(self) -> "Plan":
        """Return the plan."""
        from reconciler.workflow.show import saved_plan

        return saved_plan(self.inputs, self.path, self.seal)


def _refuse_misuse(asked: Asked, out: str | None, loads: str | None, *, has_log_dirs: bool) -> None:
    if loads is not None:
        raise click.UsageError("--loads is for --prove: the plan itself holds all that is shown of it.")
    if (asked.output == KAFKA_JSON) != (out is not None):
        raise click.UsageError("-o kafka-json writes several files: it needs --out DIR, and --out needs it.")
    if has_log_dirs and out is None:
        raise click.UsageError("--log-dirs is for the files of -o kafka-json.")


def _explain(asked: Asked, saved: _Saved, text: str, *, is_alone: bool) -> int:
    if not is_alone or asked.output not in {TEXT, JSON}:
        raise click.UsageError("--explain answers for one partition, as text or -o json; leave all else out.")
    from reconciler.render import explained, explained_json
    from reconciler.workflow.show import explanation_of, topic_partition

    key = topic_partition(text)
    if key is None:
        raise click.BadParameter(f"{text!r} is no TOPIC-PARTITION, such as orders-3.", param_hint="--explain")
    found = explanation_of(saved.plan(), key)
    write(explained_json.explanation(found) if asked.is_json else explained.explanation(found, root=asked.inputs.root))
    return Exit.DONE


def _prove(asked: Asked, saved: _Saved, loads: str | None, statistic: Statistic, *, has_files: bool) -> int:
    if has_files or asked.output not in {TEXT, JSON}:
        raise click.UsageError("--prove gives a verdict, as text or -o json; leave --out and other forms out.")
    if saved.path == "-" and asked.inputs.state == "-":
        raise click.UsageError("stdin holds one file: name the plan or the snapshot.")
    from reconciler.command.progress import reading
    from reconciler.render import as_proof
    from reconciler.workflow.plan import LoadsAt
    from reconciler.workflow.prove import prove_plan

    plan = saved.plan()
    at = LoadsAt(loads, statistic) if loads is not None else None
    with reading("proving") as progress:
        verdict = prove_plan(asked.inputs, plan, loads=at, progress=progress)
    write(as_proof.json(verdict) if asked.is_json else as_proof.text(verdict))
    return Exit.DONE if verdict.is_proved else Exit.ERROR
