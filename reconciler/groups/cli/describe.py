"""`reconciler groups describe`."""

import click

from reconciler.command.exits import EPILOG, Exit
from reconciler.command.options import JSON, TEXT, asked_for, verb_options
from reconciler.command.terminal import tell, write
from reconciler.groups.cli.arguments import group_arguments

EXAMPLES = """\b
Examples:
  reconciler groups describe billing --cluster prod-eu
  reconciler groups describe --state snapshot.json
  reconciler groups describe --plan plan.json

"""


@click.command("describe", epilog=EXAMPLES + EPILOG)
@group_arguments
@click.option("--plan", metavar="PLAN", show_envvar=True, help="Show who coordinates once it has run.")
@verb_options(TEXT, JSON)
@click.pass_context
def command(context: click.Context, group_ids: tuple[str, ...], plan: str | None) -> int:
    """Show groups: state, assignor, coordinator, members with what they own, and the lag of each partition.

    Without a GROUP, all of them. A dash is what is not known: a partition without a commit has no lag.
    """
    asked = asked_for(context)
    from reconciler.command.progress import reading
    from reconciler.groups.render import as_state, as_state_json
    from reconciler.groups.workflow.described import groups_seen
    from reconciler.render import as_text

    with reading():
        seen = groups_seen(asked.inputs, group_ids, plan_path=plan)
    if asked.is_json:
        write(as_state_json.described(seen.groups, (*seen.warnings, *seen.of_client)))
    else:
        write(as_state.described(seen.groups))
    tell_lines = as_text.problems(seen.warnings)
    if tell_lines:
        tell("\n".join(tell_lines), asked.color)
    return Exit.DONE
