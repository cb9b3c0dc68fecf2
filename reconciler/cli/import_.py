"""`reconciler import`."""

from typing import TYPE_CHECKING

import click

from reconciler.command.exits import EPILOG, Exit
from reconciler.command.options import JSON, TEXT, Asked, asked_for, verb_options
from reconciler.command.terminal import tell, write

if TYPE_CHECKING:
    from reconciler.model.imported import Imported

EXAMPLES = """\b
Examples:
  reconciler import --cluster prod-eu --bootstrap-server kafka-1:9093 --client client.properties
  reconciler import --cluster prod-eu
  reconciler import --cluster prod-eu --state snapshot.json.gz
  kubectl get kafkatopics -o yaml | reconciler import --cluster prod-eu -
  reconciler import --cluster prod-eu --from topicctl topics/

"""
TOOLS = click.Choice(("strimzi", "jikkou", "topicctl"))
FROM_HELP = "Whose files to read; by default each document says it itself."


@click.command("import", epilog=EXAMPLES + EPILOG)
@click.argument("files", metavar="[FILE]...", nargs=-1)
@click.option("--from", "tool", type=TOOLS, envvar="RECONCILER_IMPORT_FROM", show_envvar=True, help=FROM_HELP)
@verb_options(TEXT, JSON)
@click.pass_context
def command(context: click.Context, files: tuple[str, ...], *, tool: str | None) -> int:
    """Write desired-state files: of the cluster (or snapshot) as it is, with the strongest rules that it keeps.

    A plan after it is empty. With FILEs (or folders, - for stdin), of Strimzi's KafkaTopics, Jikkou's or topicctl's
    topics instead. They go below the root (-C), into the folder of the cluster; nothing is ever overwritten.
    """
    asked = asked_for(context)
    if tool and not files:
        raise click.UsageError(f"--from {tool} needs the FILEs to read.")
    if files and asked.inputs.state:
        raise click.UsageError("FILEs are read instead of a cluster: leave --state (RECONCILER_STATE) out.")
    from reconciler.render import as_import
    from reconciler.render.as_text import input_problem

    made = _of_files(asked, files, tool) if files else _of_cluster(asked)
    if asked.is_json:
        write(as_import.imported_json(made))
    tell("\n".join(as_import.summary(made)))
    found = [*as_import.deviations(made), *(f"warning: {input_problem(each)}" for each in made.warnings)]
    if found:
        tell("\n".join(found), asked.color)
    return Exit.DONE


def _of_files(asked: Asked, files: tuple[str, ...], tool: str | None) -> "Imported":
    from reconciler.workflow.import_files import import_files

    return import_files(asked.inputs, files, tool)


def _of_cluster(asked: Asked) -> "Imported":
    from reconciler.command.progress import reading
    from reconciler.workflow.importing import import_cluster

    with reading("finding rules") as progress:
        return import_cluster(asked.inputs, progress=progress)
