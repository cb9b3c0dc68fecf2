"""`reconciler throttle`."""

import click

from reconciler.command.exits import EPILOG, Exit
from reconciler.command.options import JSON, TEXT, asked_for, refuse_state, verb_options
from reconciler.command.terminal import Teller, write
from reconciler.command.values import RATE

EXAMPLES = """\b
Examples:
  reconciler throttle plan.json 20MiB/s

"""


@click.command("throttle", epilog=EXAMPLES + EPILOG)
@click.argument("plan_path", metavar="PLAN")
@click.argument("rate", metavar="RATE", type=RATE)
@verb_options(TEXT, JSON)
@click.pass_context
def command(context: click.Context, plan_path: str, rate: int) -> int:
    """Change the rate of a running apply, per broker and direction, from any machine, without a stop.

    RATE has a unit, as moves.throttle has: 20MiB/s. It counts until the run ends; an apply that goes on with a run
    that died keeps it. What was there before the run still comes back.
    """
    asked = asked_for(context)
    refuse_state(asked, "throttle")
    from reconciler.command.progress import heartbeat
    from reconciler.render import as_json, as_text
    from reconciler.workflow.throttle import throttle

    with heartbeat():
        done = throttle(asked.inputs, plan_path, rate, notify=Teller())
    form = as_json if asked.is_json else as_text
    write(form.throttled(done.plan.id, str(done.holder), rate, is_taken_up=done.is_taken_up), asked.color)
    return Exit.DONE if done.is_taken_up else Exit.ERROR
