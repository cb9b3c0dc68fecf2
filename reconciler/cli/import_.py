"""Declares `reconciler import`: writes a cluster, or another tool's files, as desired state."""

import click

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.terminal import tell, write
from reconciler.command.verbs import option, verb

TOOLS = click.Choice(("strimzi", "jikkou", "topicctl", "terraform", "kafka-json"))
FROM_HELP = (
    "Whose files to read; by default each document says it itself. terraform: a state, or what terraform show -json "
    "prints. kafka-json: what kafka-reassign-partitions takes."
)


@verb(
    "import",
    outputs=(TEXT, JSON),
    examples="""
        reconciler import --cluster prod-eu --bootstrap-server kafka-1:9093 --client client.properties
        reconciler import --cluster prod-eu
        reconciler import --cluster prod-eu --dry-run
        reconciler import --cluster prod-eu --state snapshot.json.gz
        kubectl get kafkatopics -o yaml | reconciler import --cluster prod-eu -
        terraform show -json | reconciler import --cluster prod-eu -
        reconciler import --cluster prod-eu --from topicctl topics/
    """,
)
@click.argument("files", metavar="[FILE]...", nargs=-1)
@option("--from", "tool", type=TOOLS, envvar="RECONCILER_IMPORT_FROM", help=FROM_HELP)
@option("--dry-run", is_flag=True, help="Show what would be written as a diff, and write nothing.")
def command(asked: Asked, files: tuple[str, ...], *, tool: str | None, dry_run: bool) -> int:
    """Write desired-state files: of the cluster (or snapshot) as it is, with the strongest rules that it keeps.

    A plan after it is empty. With FILEs (or folders, - for stdin), of Strimzi's KafkaTopics, Jikkou's or topicctl's
    topics, Terraform's state, or what kafka-reassign-partitions takes, instead. They go below the root (-C), into the
    folder of the cluster. What is declared there stays as it is, byte for byte: only topics that nothing declares are
    added, each to the file and class of those named alike. Again: nothing is left to add.
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

        made = import_files(asked.inputs, files, tool, is_dry=dry_run)
    else:
        from reconciler.workflow.importing import import_cluster

        with reading("finding rules") as progress:
            made = import_cluster(asked.inputs, is_dry=dry_run, progress=progress)
    if asked.is_json:
        write(document(ImportReport.of(made)))
    elif dry_run:
        write(as_import.as_diff(made))
    tell("\n".join(as_import.summary(made)))
    asked.tell([*as_import.deviations(made), *(f"warning: {input_problem(each)}" for each in made.warnings)])
    return Exit.DONE
