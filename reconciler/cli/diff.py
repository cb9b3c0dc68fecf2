"""`reconciler diff`."""

import click

from reconciler.command.exits import EPILOG, Exit
from reconciler.command.options import JSON, MARKDOWN, TEXT, asked_for, verb_options
from reconciler.command.terminal import tell, write

EXAMPLES = """\b
Examples:
  reconciler diff --cluster prod-eu
  reconciler diff --cluster demo --state snapshot.json --detailed-exitcode -o json

"""


@click.command("diff", epilog=EXAMPLES + EPILOG)
@click.option("--detailed-exitcode", is_flag=True, show_envvar=True, help="Exit with 2 where anything differs.")
@verb_options(TEXT, JSON, MARKDOWN)
@click.pass_context
def command(context: click.Context, *, detailed_exitcode: bool) -> int:
    """Show what differs between desired and observed state, old -> new, without planning."""
    asked = asked_for(context)
    from reconciler.command.progress import reading
    from reconciler.render import as_json, as_markdown, as_text
    from reconciler.workflow.diff import find_differences

    with reading("comparing") as progress:
        found = find_differences(asked.inputs, progress=progress)
    if asked.is_json:
        write(as_json.changes(found.changes, found.fields))
    elif asked.output == MARKDOWN:
        write(as_markdown.changes(found.changes, found.fields, found.cluster_name))
    else:
        write(as_text.changes(found.changes, found.fields, root=asked.inputs.root), asked.color)
    if found.warnings:
        tell("\n".join(as_text.problems(found.warnings, root=asked.inputs.root)), asked.color)
    return Exit.CHANGES if detailed_exitcode and found.has_changes else Exit.DONE
