"""Declares `reconciler apply`: asks, runs a saved plan, and says how it ended and what is left."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.command.exits import Exit, exit_of
from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.stopping import Ended, Terminated, ending_in_order
from reconciler.command.terminal import Teller, is_confirmed, require_answers, tell
from reconciler.command.values import DURATION, NO_LOG_DIR, digest_option
from reconciler.command.verbs import option, verb
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import RunEnded, RunProgress

if TYPE_CHECKING:
    from reconciler.workflow.run_metrics import MetricsFile

LOG_DIRS_HELP = "Have new replicas made in the log dirs that the plan predicts, not where Kafka likes."
METRICS_HELP = "Keep the run's figures in that Prometheus text file (*.prom, one a cluster); a dry run writes none."


@verb(
    "apply",
    outputs=(TEXT, JSON),
    is_live=True,
    examples="""
        reconciler apply plan.json
        reconciler apply plan.json --dry-run
        reconciler apply plan.json --yes --max-duration 4h
        reconciler apply plan.json --yes --metrics /var/lib/node_exporter/reconciler-prod-eu.prom
    """,
)
@click.argument("plan_path", metavar="PLAN")
@option("--yes", is_flag=True, help="Do not ask; needed where nobody can be asked.")
@option("--dry-run", is_flag=True, help="Check everything and list the steps; change nothing.")
@option("--max-duration", type=DURATION, metavar="TIME", help="Begin no move after that long.")
@option("--log-dirs", is_flag=True, help=LOG_DIRS_HELP)
@digest_option("apply")
@option("--metrics", metavar="FILE", help=METRICS_HELP)
def command(
    asked: Asked,
    plan_path: str,
    max_duration: timedelta | None,
    metrics: str | None,
    *,
    digest: str | None,
    yes: bool,
    dry_run: bool,
    log_dirs: bool,
) -> int:
    """Run a saved plan, move for move, or refuse it. Run it again to resume: the cluster says what is left."""
    from reconciler.admin.waits import waiting_for
    from reconciler.command.progress import running, working
    from reconciler.render import as_json, as_text
    from reconciler.render.escape import visible
    from reconciler.workflow.apply import apply_plan, plan_again, plan_to_apply

    with waiting_for("the plan to be read and checked"):
        plan = plan_to_apply(asked.inputs, plan_path, digest)
    if not (yes or dry_run or _is_wanted(plan, asked)):
        tell("Nothing has been changed.")
        return Exit.STOPPED
    if log_dirs and not plan.predicted_log_dirs:
        tell(NO_LOG_DIR)
    if yes and not dry_run:
        asked.tell(as_text.effects(plan.topic_changes))
    started = time.monotonic()
    told = Teller()
    again = "apply again, or cancel,"
    with (
        _measured(None if dry_run else metrics, plan) as figures,
        ending_in_order(told, again) as stop,
        running(plan.cluster_name) as shown,
        working(),
    ):

        def progress(seen: RunProgress) -> None:
            shown(seen)
            figures.progress(seen)

        applied = apply_plan(
            asked.inputs,
            plan,
            is_dry_run=dry_run,
            is_asked_again=digest is not None,
            has_log_dirs=log_dirs,
            max_duration=max_duration,
            should_stop=stop.reason,
            progress=progress,
            notify=told,
        )
        code = Exit.STOPPED if applied.result.has_undecided else Exit.DONE
        figures.end(code, applied.result)
    seconds = time.monotonic() - started
    if dry_run:
        asked.tell(as_text.effects(plan.topic_changes))
        asked.write(
            text=lambda: "\n".join(map(visible, applied.result.messages)) or "Nothing is left to do.",
            json=lambda: as_json.document(applied.result),
        )
        tell("Dry run: nothing has been changed.")
        return Exit.DONE
    asked.write(
        text=lambda: as_text.result(applied.result, simulated_in=seconds if applied.is_simulated else None),
        json=lambda: as_json.document(applied.result),
    )
    with waiting_for("a new plan, to see what is left"):
        left = plan_again(asked.inputs, plan)
    if left is not None:
        tell(f"Planning again: {_in_a_line(left)}")
    return code


def _is_wanted(plan: Plan, asked: Asked) -> bool:
    """Return whether somebody who was shown the plan says yes to it; an empty one needs no answer."""
    from reconciler.render import as_text

    if plan.is_empty:
        return True
    require_answers("review the plan with show")
    asked.tell([as_text.plan(plan, root=asked.inputs.root, has_stages=asked.verbosity > 0)])
    return is_confirmed(f"Apply plan {plan.id} to {plan.cluster_name} ({plan.cluster_id})?")


def _in_a_line(plan: Plan) -> str:
    from reconciler.render import as_text

    if not plan.is_empty:
        return as_text.totals(plan)
    stays = as_text.nothing_planned(plan)
    return f"{stays[0].lower()}{stays[1:]}." if plan.drift else "no changes."


@contextmanager
def _measured(path: str | None, plan: Plan) -> Iterator["MetricsFile"]:
    """Yield what keeps the file of metrics, if there is a path; whatever ends the run has its exit code written."""
    from reconciler.workflow.run_metrics import MetricsFile

    figures = MetricsFile(Path(path) if path is not None else None, plan, tell)
    figures.begin()
    try:
        yield figures
    except Ended as ended:
        figures.end(ended.code, ended.result)
        raise
    except ReconcilerError as error:
        figures.end(exit_of(error), error.result if isinstance(error, RunEnded) else None)
        raise
    except KeyboardInterrupt:
        figures.end(Exit.INTERRUPTED)
        raise
    except Terminated:
        figures.end(Exit.TERMINATED)
        raise
    except BaseException:
        figures.end(Exit.ERROR)
        raise
