"""`reconciler validate`."""

import click

from reconciler.cli.exits import EPILOG, Exit
from reconciler.cli.options import JSON, TEXT, asked_for, verb_options
from reconciler.cli.terminal import tell, write

EXAMPLES = """\b
Examples:
  reconciler validate
  reconciler validate --cluster prod-eu -o json

"""


@click.command("validate", epilog=EXAMPLES + EPILOG)
@verb_options(TEXT, JSON)
@click.pass_context
def command(context: click.Context) -> int:
    """Check the desired state's files: syntax, schema and meaning, every problem at once. No cluster is asked."""
    asked = asked_for(context)
    from reconciler.render import as_json
    from reconciler.render.as_text import input_problem
    from reconciler.render.units import counted
    from reconciler.workflow.validate import validate_files

    found = validate_files(asked.inputs)
    if asked.is_json:
        write(as_json.problems(found.problems))
    else:
        for problem in found.problems:
            write(input_problem(problem, root=asked.inputs.root), asked.color)
    checked = f"{counted(len(found.clusters), 'cluster')}, {counted(found.topics, 'topic')}"
    tell(f"{checked}: {counted(len(found.problems), 'problem') if found.problems else 'no problems'}.")
    return Exit.ERROR if found.problems else Exit.DONE
