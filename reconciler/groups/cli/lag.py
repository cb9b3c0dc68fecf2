"""`reconciler groups lag`."""

import click

from reconciler.command.exits import EPILOG, Exit
from reconciler.command.options import JSON, TEXT, asked_for, verb_options
from reconciler.command.terminal import tell, write
from reconciler.groups.cli.arguments import group_arguments

EXAMPLES = """\b
Examples:
  reconciler groups lag billing --cluster prod-eu
  reconciler groups lag --state snapshot.json -o json

"""


@click.command("lag", epilog=EXAMPLES + EPILOG)
@group_arguments
@verb_options(TEXT, JSON)
@click.pass_context
def command(context: click.Context, group_ids: tuple[str, ...]) -> int:
    """Show how far groups are behind, partition by partition: the log end offset less the commit.

    Without a GROUP, all of them. A partition without a commit has no lag, which is not zero.
    """
    asked = asked_for(context)
    from reconciler.command.progress import reading
    from reconciler.groups.render import as_state, as_state_json
    from reconciler.groups.workflow.described import groups_seen
    from reconciler.render import as_text

    with reading():
        seen = groups_seen(asked.inputs, group_ids)
    if asked.is_json:
        write(as_state_json.lags(seen.groups, (*seen.warnings, *seen.of_client)))
    else:
        write(as_state.lags(seen.groups))
    tell_lines = as_text.problems(seen.warnings)
    if tell_lines:
        tell("\n".join(tell_lines), asked.color)
    return Exit.DONE
