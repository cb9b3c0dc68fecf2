"""`reconciler plan`."""

from typing import TYPE_CHECKING

import click

from reconciler.command.exits import EPILOG, Exit
from reconciler.command.options import JSON, MARKDOWN, TEXT, Asked, asked_for, verb_options
from reconciler.command.terminal import tell, write
from reconciler.command.values import STATISTIC_HELP, STATISTICS
from reconciler.model.loads import Statistic

if TYPE_CHECKING:
    from reconciler.model.what_if import WhatIf
    from reconciler.workflow.plan import LoadsAt, Planned

EXAMPLES = """\b
Examples:
  reconciler plan --cluster prod-eu --out plan.json
  reconciler plan --cluster demo --state snapshot.json --detailed-exitcode
  reconciler plan --only 'orders.*' -o markdown
  reconciler plan --what-if drain=5,add=9@b
  reconciler plan --what-if fail-rack=a --state snapshot.json

"""
WHAT_IF_HELP = (
    "Plan for a state that is supposed: drain=ID, add=ID@RACK, fail-rack=RACK, replicationFactor=TOPIC:N, "
    "partitions=TOPIC:N, several with commas between. Such a plan is never applied."
)


@click.command("plan", epilog=EXAMPLES + EPILOG)
@click.option("--out", metavar="FILE", show_envvar=True, help="Save the plan there, for show and apply.")
@click.option("--only", metavar="PATTERN", multiple=True, show_envvar=True, help="Only topics with such names.")
@click.option("--what-if", metavar="WHAT,...", multiple=True, show_envvar=True, help=WHAT_IF_HELP)
@click.option("--loads", metavar="DIR", show_envvar=True, help="Measured loads, for a balance of disks and network.")
@click.option("--statistic", type=STATISTICS, default="peak", show_default=True, show_envvar=True, help=STATISTIC_HELP)
@click.option("--detailed-exitcode", is_flag=True, show_envvar=True, help="Exit with 2 where anything differs.")
@verb_options(TEXT, JSON, MARKDOWN)
@click.pass_context
def command(
    context: click.Context,
    out: str | None,
    only: tuple[str, ...],
    what_if: tuple[str, ...],
    *,
    loads: str | None,
    statistic: str,
    detailed_exitcode: bool,
) -> int:
    """Make the plan with the least movement that keeps every rule. Nothing in the cluster is changed."""
    asked = asked_for(context)
    from reconciler.workflow.plan import LoadsAt, save_plan

    at = LoadsAt(loads, Statistic(statistic)) if loads is not None else None
    made = _supposed(asked, only, what_if, at) if what_if else _made(asked, only, at)
    if out is not None:
        save_plan(made.plan, out)
    _show(made, asked)
    if made.policies:
        tell(f"Policies asked: {made.policies}.")
    if out is not None:
        tell(f"Saved to {out}. Nothing has been changed{', and apply refuses a supposed plan' if what_if else ''}.")
    if made.plan.violations:
        return Exit.REFUSED
    is_as_declared = made.plan.is_empty and not made.plan.drift
    return Exit.CHANGES if detailed_exitcode and not is_as_declared else Exit.DONE


def _made(asked: Asked, only: tuple[str, ...], loads: "LoadsAt | None") -> "Planned":
    from reconciler.balance.policies.asking import open_judge
    from reconciler.command.progress import reading
    from reconciler.workflow.plan import make_plan

    with reading("planning") as progress:
        return make_plan(asked.inputs, only=only, loads=loads, progress=progress, open_judge=open_judge)


def _supposed(asked: Asked, only: tuple[str, ...], texts: tuple[str, ...], loads: "LoadsAt | None") -> "Planned":
    """Return the plan of what is supposed; where there is none, show what would be at once, and raise why."""
    from reconciler.balance.policies.asking import open_judge
    from reconciler.command.progress import reading
    from reconciler.workflow.what_if import NotASupposition, Unplannable, plan_if, suppositions

    try:
        supposed = suppositions(texts)
    except NotASupposition as error:
        raise click.BadParameter(str(error), param_hint="--what-if") from None
    with reading("planning") as progress:
        outcome = plan_if(asked.inputs, supposed, only=only, loads=loads, progress=progress, open_judge=open_judge)
    if isinstance(outcome, Unplannable):
        _show_supposed(outcome.what_if, asked)
        raise outcome.refusal
    return outcome


def _show_supposed(what_if: "WhatIf", asked: Asked) -> None:
    from reconciler.render.supposed import what_if_lines, what_if_markdown
    from reconciler.workflow.what_if import what_if_json

    if asked.is_json:
        write(what_if_json(what_if))
    elif asked.output == MARKDOWN:
        write(what_if_markdown(what_if))
    else:
        write("\n".join(what_if_lines(what_if)), asked.color)


def _show(made: "Planned", asked: Asked) -> None:
    from reconciler.render import as_markdown, as_text
    from reconciler.workflow.plan import plan_json

    root = asked.inputs.root
    if asked.is_json:
        write(plan_json(made.plan))
        lines = [as_text.totals(made.plan), *as_text.effects(made.plan.topic_changes)]
        lines += as_text.findings(made.plan, root=root)
        tell("\n".join(lines), asked.color)
    elif asked.output == MARKDOWN:
        write(as_markdown.plan(made.plan))
    elif made.plan.is_empty:
        matched = as_text.Matched(made.topics, made.partitions, made.undeclared)
        write(as_text.no_changes(made.plan, matched, root=root), asked.color)
    else:
        write(as_text.plan(made.plan, root=root), asked.color)
