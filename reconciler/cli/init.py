"""Declares `reconciler init`: writes a layout to fill in, or the demo."""

import click

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.terminal import tell, write
from reconciler.command.verbs import option, verb


@verb(
    "init",
    outputs=(TEXT, JSON),
    examples="""
        reconciler init --demo
        reconciler init --cluster prod-eu
    """,
)
@click.argument("folder", metavar="[DIR]", required=False)
@option("--demo", is_flag=True, help="Write a simulated cluster with its desired state.")
def command(asked: Asked, folder: str | None, *, demo: bool) -> int:
    """Write a commented layout into DIR, by default the root (-C); nothing is ever overwritten."""
    from reconciler.render.as_json import document
    from reconciler.workflow.demo import write_demo
    from reconciler.workflow.init import write_layout

    root = folder or asked.inputs.root
    written = (write_demo if demo else write_layout)(root, asked.inputs.cluster)
    if asked.is_json:
        write(document(written))
    elif written.cluster is None:
        tell(f"Wrote {written.folder}: {', '.join(written.files)}. Put in how to reach your cluster, then:")
        tell(f"  {_again('plan', root, written.name)}")
    else:
        seen = written.cluster
        racks = len({broker.rack for broker in seen.brokers.values()})
        partitions = sum(len(topic.partitions) for topic in seen.topics.values())
        tell(
            f"Wrote {written.folder}: {len(seen.brokers)} simulated brokers, {racks} racks, {len(seen.topics)} topics, "
            f"{partitions} partitions. Some things are wrong on purpose:  {_again('plan', root, written.name)}"
        )
    return Exit.DONE


def _again(verb: str, root: str, name: str) -> str:
    from reconciler.workflow.inputs import DEFAULT_ROOT

    where = "" if root == DEFAULT_ROOT else f" -C {root}"
    return f"reconciler {verb}{where} --cluster {name}"
