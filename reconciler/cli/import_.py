"""Declares `reconciler import`: writes a cluster, or another tool's files, as desired state."""

import click

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.terminal import tell, write
from reconciler.command.verbs import option, verb

TOOLS = click.Choice(("strimzi", "jikkou", "topicctl"))
FROM_HELP = "Whose files to read; by default each document says it itself."


@verb(
    "import",
    outputs=(TEXT, JSON),
    examples="""
        reconciler import --cluster prod-eu --bootstrap-server kafka-1:9093 --client client.properties
        reconciler import --cluster prod-eu
        reconciler import --cluster prod-eu --state snapshot.json.gz
        kubectl get kafkatopics -o yaml | reconciler import --cluster prod-eu -
        reconciler import --cluster prod-eu --from topicctl topics/
    """,
)
@click.argument("files", metavar="[FILE]...", nargs=-1)
@option("--from", "tool", type=TOOLS, envvar="RECONCILER_IMPORT_FROM", help=FROM_HELP)
def command(asked: Asked, files: tuple[str, ...], *, tool: str | None) -> int:
    """Write desired-state files: of the cluster (or snapshot) as it is, with the strongest rules that it keeps.

    A plan after it is empty. With FILEs (or folders, - for stdin), of Strimzi's KafkaTopics, Jikkou's or topicctl's
    topics instead. They go below the root (-C), into the folder of the cluster; nothing is ever overwritten.
    """
    if tool and not files:
        raise click.UsageError(f"--from {tool} needs the FILEs to read.")
    if files and asked.inputs.state:
        raise click.UsageError("FILEs are read instead of a cluster: leave --state (RECONCILER_STATE) out.")
    from reconciler.command.progress import reading
    from reconciler.model.imported import ImportReport
    from reconciler.render import as_import
    from reconciler.render.as_json import document
    from reconciler.render.as_text import input_problem

    if files:
        from reconciler.workflow.import_files import import_files

        made = import_files(asked.inputs, files, tool)
    else:
        from reconciler.workflow.importing import import_cluster

        with reading("finding rules") as progress:
            made = import_cluster(asked.inputs, progress=progress)
    if asked.is_json:
        write(document(ImportReport.of(made)))
    tell("\n".join(as_import.summary(made)))
    asked.tell([*as_import.deviations(made), *(f"warning: {input_problem(each)}" for each in made.warnings)])
    return Exit.DONE
