"""`reconciler groups list`."""

import click

from reconciler.command.exits import EPILOG, Exit
from reconciler.command.options import JSON, TEXT, asked_for, verb_options
from reconciler.command.terminal import tell, write

EXAMPLES = """\b
Examples:
  reconciler groups list --cluster prod-eu
  reconciler groups list --state snapshot.json -o json

"""


@click.command("list", epilog=EXAMPLES + EPILOG)
@verb_options(TEXT, JSON)
@click.pass_context
def command(context: click.Context) -> int:
    """List every group that this user may see, of a cluster or a snapshot."""
    asked = asked_for(context)
    from reconciler.command.progress import reading
    from reconciler.groups.render import as_state, as_state_json
    from reconciler.groups.workflow.described import groups_seen
    from reconciler.render import as_text

    with reading():
        seen = groups_seen(asked.inputs)
    if asked.is_json:
        write(as_state_json.overview(seen.groups, (*seen.warnings, *seen.of_client)))
    else:
        write(as_state.overview(seen.groups))
    tell_lines = as_text.problems(seen.warnings)
    if tell_lines:
        tell("\n".join(tell_lines), asked.color)
    return Exit.DONE
