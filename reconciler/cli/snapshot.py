"""Declares `reconciler snapshot`: writes what a live cluster shows."""

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.terminal import tell, write
from reconciler.command.verbs import option, verb


@verb(
    "snapshot",
    outputs=(TEXT, JSON),
    is_live=True,
    examples="""
        reconciler snapshot --cluster prod-eu --out snapshot.json.gz
        reconciler snapshot --bootstrap-server kafka-1:9093 --client client.properties > snapshot.json
    """,
)
@option("--out", metavar="FILE", help="Write it there (.json or .json.gz) instead of stdout.")
def command(asked: Asked, out: str | None) -> int:
    """Write the observed state of a live cluster as JSON; --state reads it. No cluster.yaml is needed."""
    from reconciler.command.progress import reading
    from reconciler.files.snapshot import snapshot_text, write_snapshot
    from reconciler.model.words import counted
    from reconciler.workflow.sources import observed_with_groups

    with reading() as progress:
        cluster = observed_with_groups(asked.inputs, progress=progress)
    if out is None:
        write(snapshot_text(cluster))
        return Exit.DONE
    write_snapshot(cluster, out)
    partitions = sum(len(topic.partitions) for topic in cluster.topics.values())
    tell(
        f"Wrote {out}: cluster {cluster.cluster_id}, {counted(len(cluster.brokers), 'broker')}, "
        f"{counted(len(cluster.topics), 'topic')}, {counted(partitions, 'partition')}."
    )
    return Exit.DONE
