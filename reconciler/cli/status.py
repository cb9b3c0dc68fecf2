"""`reconciler status`."""

import time

import click

from reconciler.cli.exits import EPILOG, Exit
from reconciler.cli.options import JSON, TEXT, asked_for, refuse_state, verb_options
from reconciler.cli.terminal import write

EVERY_SECONDS = 5
EXAMPLES = """\b
Examples:
  reconciler status --cluster prod-eu --watch
  reconciler status plan.json -o json

"""


@click.command("status", epilog=EXAMPLES + EPILOG)
@click.argument("plan_path", metavar="[PLAN]", required=False)
@click.option("--watch", is_flag=True, show_envvar=True, help=f"Look every {EVERY_SECONDS} s until the run has ended.")
@verb_options(TEXT, JSON)
@click.pass_context
def command(context: click.Context, plan_path: str | None, *, watch: bool) -> int:
    """Show where the run on a cluster stands, its throttles, and which brokers are safe to stop. Changes nothing."""
    asked = asked_for(context)
    refuse_state(asked, "status")
    from reconciler.render import as_json, as_text
    from reconciler.workflow.status import look_at_run

    seen = look_at_run(asked.inputs, plan_path)
    shown = as_json.status if asked.is_json else as_text.status
    write(shown(seen.status, seen.cluster_name), asked.color)
    while watch and seen.status.stage is not None:
        time.sleep(EVERY_SECONDS)
        seen = look_at_run(asked.inputs, plan_path, previous=seen)
        write(shown(seen.status, seen.cluster_name), asked.color)
    return Exit.DONE
