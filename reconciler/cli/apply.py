"""`reconciler apply`."""

import time
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from reconciler.cli.run_metrics import METRICS_HELP, measured
from reconciler.command.exits import EPILOG, Exit
from reconciler.command.options import JSON, TEXT, Asked, asked_for, refuse_state, verb_options
from reconciler.command.stopping import stopping
from reconciler.command.terminal import Teller, is_interactive, tell, write
from reconciler.command.values import DURATION, NO_LOG_DIR, seal_of, seal_options
from reconciler.model.plan import Plan
from reconciler.model.run import RunEnded, RunResult

if TYPE_CHECKING:
    from reconciler.workflow.apply import Applied

EXAMPLES = """\b
Examples:
  reconciler apply plan.json
  reconciler apply plan.json --dry-run
  reconciler apply plan.json --yes --max-duration 4h
  reconciler apply plan.json --yes --verify plans.pub
  reconciler apply plan.json --yes --metrics /var/lib/node_exporter/reconciler-prod-eu.prom

"""
LOG_DIRS_HELP = "Have new replicas made in the log dirs that the plan predicts, not where Kafka likes."


@click.command("apply", epilog=EXAMPLES + EPILOG)
@click.argument("plan_path", metavar="PLAN")
@click.option("--yes", is_flag=True, show_envvar=True, help="Do not ask; needed where nobody can be asked.")
@click.option("--dry-run", is_flag=True, show_envvar=True, help="Check everything and list the steps; change nothing.")
@click.option("--max-duration", type=DURATION, metavar="TIME", show_envvar=True, help="Begin no stage after that long.")
@click.option("--log-dirs", is_flag=True, show_envvar=True, help=LOG_DIRS_HELP)
@seal_options("apply")
@click.option("--metrics", metavar="FILE", show_envvar=True, help=METRICS_HELP)
@verb_options(TEXT, JSON)
@click.pass_context
def command(
    context: click.Context,
    plan_path: str,
    max_duration: timedelta | None,
    metrics: str | None,
    *,
    digest: str | None,
    verify: str | None,
    signature: str | None,
    yes: bool,
    dry_run: bool,
    log_dirs: bool,
) -> int:
    """Run a saved plan, move for move, or refuse it. Run it again to resume: the cluster says what is left."""
    asked = asked_for(context)
    refuse_state(asked, "apply")
    from reconciler.admin.waits import waiting_for
    from reconciler.command.progress import heartbeat, running
    from reconciler.workflow.apply import apply_plan, plan_to_apply

    with heartbeat(), waiting_for("the plan to be read and checked"):
        plan = plan_to_apply(asked.inputs, plan_path, seal_of(plan_path, digest, verify, signature))
    if not (yes or dry_run) and not _is_confirmed(plan, asked):
        tell("Nothing has been changed.")
        return Exit.STOPPED
    if log_dirs and not plan.predicted_log_dirs:
        tell(NO_LOG_DIR)
    if yes and not dry_run:
        _tell_effects(plan, asked)
    started = time.monotonic()
    told = Teller()
    path = None if dry_run else metrics
    with measured(path, plan, tell) as run, stopping() as stop, running(plan.cluster_name) as progress, heartbeat():
        try:
            applied = apply_plan(
                asked.inputs,
                plan,
                is_dry_run=dry_run,
                has_log_dirs=log_dirs,
                max_duration=max_duration,
                should_stop=stop.reason,
                progress=run.also(progress),
                notify=told,
            )
            run.end(Exit.DONE, applied.result)
        except (RunEnded, KeyboardInterrupt) as error:
            if stop.exit is None:
                raise
            run.end(stop.exit, error.result if isinstance(error, RunEnded) else None)
            told.once(str(error) or "Ended without waiting: run apply again, or cancel, to put things in order.")
            return stop.exit
    if dry_run:
        _tell_effects(plan, asked)
        _tell_steps(applied.result, asked)
        return Exit.DONE
    _tell_result(applied, asked, time.monotonic() - started)
    _tell_what_is_left(plan, asked)
    return Exit.DONE


def _is_confirmed(plan: Plan, asked: Asked) -> bool:
    from reconciler.render import as_text

    if plan.is_empty:
        return True
    if not is_interactive():
        raise click.UsageError("nobody can be asked here: review the plan with show, then give --yes.")
    tell(as_text.plan(plan, root=asked.inputs.root), asked.color)
    return click.confirm(f"Apply plan {plan.id} to {plan.cluster_name} ({plan.cluster_id})?", err=True)


def _tell_effects(plan: Plan, asked: Asked) -> None:
    """Say what the plan destroys, and what else its changes may cost."""
    from reconciler.render import as_text

    told = as_text.effects(plan.topic_changes)
    if told:
        tell("\n".join(told), asked.color)


def _tell_steps(ended: RunResult, asked: Asked) -> None:
    from reconciler.render import as_json
    from reconciler.render.escape import visible

    told = "\n".join(map(visible, ended.messages)) or "Nothing is left to do."
    write(as_json.result(ended) if asked.is_json else told)
    tell("Dry run: nothing has been changed.")


def _tell_result(applied: "Applied", asked: Asked, seconds: float) -> None:
    from reconciler.render import as_json, as_text

    if asked.is_json:
        write(as_json.result(applied.result))
    else:
        simulated_in = seconds if applied.is_simulated else None
        write(as_text.result(applied.result, simulated_in=simulated_in), asked.color)


def _tell_what_is_left(plan: Plan, asked: Asked) -> None:
    from reconciler.admin.waits import waiting_for
    from reconciler.command.progress import heartbeat
    from reconciler.workflow.apply import plan_again

    with heartbeat(), waiting_for("a new plan, to see what is left"):
        again = plan_again(asked.inputs, plan)
    if again is not None:
        tell(f"Planning again: {_told(again)}")


def _told(plan: Plan) -> str:
    """Return a plan in one line."""
    from reconciler.render import as_text

    if not plan.is_empty:
        return as_text.totals(plan)
    stays = as_text.nothing_planned(plan)
    return f"{stays[0].lower()}{stays[1:]}." if plan.drift else "no changes."
