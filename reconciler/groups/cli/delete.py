"""Declares `reconciler groups delete`."""

import click

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.terminal import tell, write
from reconciler.command.verbs import option, verb
from reconciler.groups.cli.arguments import group_arguments


@verb(
    "delete",
    outputs=(TEXT, JSON),
    is_live=True,
    examples="""
        reconciler groups delete billing --cluster prod-eu
        reconciler groups delete billing audit --cluster prod-eu --execute
    """,
)
@group_arguments
@option("--execute", is_flag=True, help="Delete them; without it they are only shown.")
def command(asked: Asked, group_ids: tuple[str, ...], *, execute: bool) -> int:
    """Delete groups and their committed offsets. Shows first; a group with members is refused (exit 3)."""
    if not group_ids:
        raise click.UsageError("name the groups to delete.")
    from reconciler.groups.render.as_state import deletions
    from reconciler.groups.workflow.delete import delete_groups, refusal
    from reconciler.render.as_json import document

    outcome = delete_groups(asked.inputs, group_ids, is_executed=execute)
    if asked.is_json:
        write(document(outcome))
    else:
        write(deletions(outcome.groups, is_done=outcome.is_done).text(), asked.color)
    refused = refusal(outcome)
    if refused is not None:
        raise refused
    if not outcome.is_done:
        tell("Nothing has been deleted: give --execute to delete them.")
    return Exit.ERROR if outcome.is_partial else Exit.DONE
