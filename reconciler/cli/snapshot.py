"""`reconciler snapshot`."""

import click

from reconciler.command.exits import EPILOG, Exit
from reconciler.command.options import JSON, TEXT, asked_for, refuse_state, verb_options
from reconciler.command.terminal import tell, write

EXAMPLES = """\b
Examples:
  reconciler snapshot --cluster prod-eu --out snapshot.json.gz
  reconciler snapshot --bootstrap-server kafka-1:9093 --client client.properties > snapshot.json

"""


@click.command("snapshot", epilog=EXAMPLES + EPILOG)
@click.option("--out", metavar="FILE", show_envvar=True, help="Write it there (.json or .json.gz) instead of stdout.")
@verb_options(TEXT, JSON)
@click.pass_context
def command(context: click.Context, out: str | None) -> int:
    """Write the observed state of a live cluster as JSON; --state reads it. No cluster.yaml is needed."""
    asked = asked_for(context)
    refuse_state(asked, "snapshot")
    from reconciler.command.progress import reading
    from reconciler.model.words import counted
    from reconciler.workflow.snapshot import save_snapshot, snapshot_json, take_snapshot

    with reading() as progress:
        cluster = take_snapshot(asked.inputs, progress=progress)
    if out is None:
        write(snapshot_json(cluster))
        return Exit.DONE
    save_snapshot(cluster, out)
    partitions = sum(len(topic.partitions) for topic in cluster.topics.values())
    tell(
        f"Wrote {out}: cluster {cluster.cluster_id}, {counted(len(cluster.brokers), 'broker')}, "
        f"{counted(len(cluster.topics), 'topic')}, {counted(partitions, 'partition')}."
    )
    return Exit.DONE
