"""Declares `reconciler throttle`: gives a running apply another rate."""

import click

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.terminal import Teller
from reconciler.command.values import RATE
from reconciler.command.verbs import verb


@verb("throttle", outputs=(TEXT, JSON), is_live=True, examples="reconciler throttle plan.json 20MiB/s")
@click.argument("plan_path", metavar="PLAN")
@click.argument("rate", metavar="RATE", type=RATE)
def command(asked: Asked, plan_path: str, rate: int) -> int:
    """Change the rate of a running apply, per broker and direction, from any machine, without a stop.

    RATE has a unit, as moves.throttle has: 20MiB/s. It counts until the run ends; an apply that goes on with a run
    that died keeps it. What was there before the run still comes back.
    """
    from reconciler.command.progress import working
    from reconciler.render import as_json, as_text
    from reconciler.workflow.apply import throttle

    with working():
        done = throttle(asked.inputs, plan_path, rate, notify=Teller())
    asked.write(text=lambda: as_text.throttled(done), json=lambda: as_json.document(done))
    return Exit.DONE if done.is_taken_up else Exit.ERROR
