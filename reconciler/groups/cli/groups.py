"""Declares `reconciler groups`: the verbs for consumer groups, each loaded from its own module when it is called."""

from collections.abc import Mapping

import click

from reconciler.command.exits import EPILOG
from reconciler.command.options import OUTPUTS, verb_options
from reconciler.command.verbs import Verb, VerbGroup

VERBS: Mapping[str, Verb] = {
    "list": Verb(
        "reconciler.groups.cli.list", "Every group: its kind, state, assignor, members, coordinator and total lag."
    ),
    "describe": Verb(
        "reconciler.groups.cli.describe",
        "One group or more: members and what they own, coordinator, lag of each partition.",
    ),
    "lag": Verb("reconciler.groups.cli.lag", "How far each group is behind, partition by partition."),
    "simulate": Verb("reconciler.groups.cli.simulate", "Who would get what, under any assignor, after a change."),
    "advise": Verb("reconciler.groups.cli.advise", "How many partitions a topic needs, against what exists."),
    "reset-offsets": Verb(
        "reconciler.groups.cli.reset_offsets", "Move a group's committed offsets; shows first, acts with --execute."
    ),
    "delete": Verb("reconciler.groups.cli.delete", "Delete groups without members; shows first, acts with --execute."),
}
EXAMPLES = """\b
Examples:
  reconciler groups list --bootstrap-server kafka-1:9092
  reconciler groups describe billing --state snapshot.json
  reconciler groups reset-offsets billing --topic orders --to-datetime 2026-11-20T08:00:00Z

"""


@click.command("groups", cls=VerbGroup, verbs=VERBS, subcommand_metavar="VERB ...", epilog=EXAMPLES + EPILOG)
@verb_options(*OUTPUTS)
def command() -> None:
    """Consumer groups: who reads what, how far behind, and what a change would do."""
