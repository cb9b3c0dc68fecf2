"""`reconciler plan`."""

from typing import TYPE_CHECKING

import click

from reconciler.cli.exits import EPILOG, Exit
from reconciler.cli.options import JSON, MARKDOWN, TEXT, Asked, asked_for, verb_options
from reconciler.cli.terminal import tell, write

if TYPE_CHECKING:
    from reconciler.workflow.plan import Planned

EXAMPLES = """\b
Examples:
  reconciler plan --cluster prod-eu --out plan.json
  reconciler plan --cluster demo --state snapshot.json --detailed-exitcode
  reconciler plan --only 'orders.*' -o markdown

"""


@click.command("plan", epilog=EXAMPLES + EPILOG)
@click.option("--out", metavar="FILE", show_envvar=True, help="Save the plan there, for show and apply.")
@click.option("--only", metavar="PATTERN", multiple=True, show_envvar=True, help="Only topics with such names.")
@click.option("--detailed-exitcode", is_flag=True, show_envvar=True, help="Exit with 2 where there are changes.")
@verb_options(TEXT, JSON, MARKDOWN)
@click.pass_context
def command(context: click.Context, out: str | None, only: tuple[str, ...], *, detailed_exitcode: bool) -> int:
    """Make the plan with the least movement that keeps every rule. Nothing in the cluster is changed."""
    asked = asked_for(context)
    from reconciler.cli.progress import reading
    from reconciler.workflow.plan import make_plan, save_plan

    with reading() as progress:
        made = make_plan(asked.inputs, only=only, progress=progress)
    if out is not None:
        save_plan(made.plan, out)
    _show(made, asked)
    if out is not None:
        tell(f"Saved to {out}. Nothing has been changed.")
    if made.plan.violations:
        return Exit.REFUSED
    return Exit.CHANGES if detailed_exitcode and not made.plan.is_empty else Exit.DONE


def _show(made: "Planned", asked: Asked) -> None:
    from reconciler.render import as_markdown, as_text
    from reconciler.workflow.plan import plan_json

    root = asked.inputs.root
    if asked.is_json:
        write(plan_json(made.plan))
        tell("\n".join([as_text.totals(made.plan), *as_text.findings(made.plan, root=root)]), asked.color)
    elif asked.output == MARKDOWN:
        write(as_markdown.plan(made.plan))
    elif made.plan.is_empty:
        write(as_text.no_changes(made.plan, made.topics, made.partitions, root=root), asked.color)
    else:
        write(as_text.plan(made.plan, root=root), asked.color)
