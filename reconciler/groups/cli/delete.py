"""`reconciler groups delete`."""

import click

from reconciler.command.exits import EPILOG, Exit
from reconciler.command.options import JSON, TEXT, asked_for, refuse_state, verb_options
from reconciler.command.terminal import tell, write
from reconciler.groups.cli.arguments import group_arguments

EXAMPLES = """\b
Examples:
  reconciler groups delete billing --cluster prod-eu
  reconciler groups delete billing audit --cluster prod-eu --execute

"""


@click.command("delete", epilog=EXAMPLES + EPILOG)
@group_arguments
@click.option("--execute", is_flag=True, show_envvar=True, help="Delete them; without it they are only shown.")
@verb_options(TEXT, JSON)
@click.pass_context
def command(context: click.Context, group_ids: tuple[str, ...], *, execute: bool) -> int:
    """Delete groups and their committed offsets. Shows first; a group with members is refused (exit 3)."""
    asked = asked_for(context)
    refuse_state(asked, "groups delete")
    if not group_ids:
        raise click.UsageError("name the groups to delete.")
    from reconciler.groups.render import as_state, as_state_json
    from reconciler.groups.workflow.delete import delete_groups, refusal

    outcome = delete_groups(asked.inputs, group_ids, is_executed=execute)
    shown = as_state_json.deletions if asked.is_json else as_state.deletions
    write(shown(outcome.groups, is_done=outcome.is_done), asked.color)
    refused = refusal(outcome)
    if refused is not None:
        raise refused
    if not outcome.is_done:
        tell("Nothing has been deleted: give --execute to delete them.")
    return Exit.ERROR if outcome.is_partial else Exit.DONE
