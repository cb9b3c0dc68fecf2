"""`reconciler cancel`."""

import click

from reconciler.cli.exits import EPILOG, Exit
from reconciler.cli.options import JSON, TEXT, asked_for, refuse_state, verb_options
from reconciler.cli.terminal import write

EXAMPLES = """\b
Examples:
  reconciler cancel --cluster prod-eu
  reconciler cancel plan.json

"""


@click.command("cancel", epilog=EXAMPLES + EPILOG)
@click.argument("plan_path", metavar="[PLAN]", required=False)
@verb_options(TEXT, JSON)
@click.pass_context
def command(context: click.Context, plan_path: str | None) -> int:
    """Stop a run: moves in flight go back to their ordered replicas and leaders, throttles to what they were.

    PLAN is needed only where the run was started on another machine.
    """
    asked = asked_for(context)
    refuse_state(asked, "cancel")
    from reconciler.render import as_json, as_text
    from reconciler.workflow.cancel import cancel

    ended = cancel(asked.inputs, plan_path)
    write(as_json.result(ended) if asked.is_json else as_text.result(ended), asked.color)
    return Exit.DONE
