"""`reconciler groups`: the verbs for consumer groups, each loaded from its own module when it is called."""

from collections.abc import Mapping
from typing import ClassVar

import click

from reconciler.cli.exits import EPILOG
from reconciler.cli.group import VerbGroup
from reconciler.cli.options import OUTPUTS, verb_options

GROUP_VERBS = {
    "list": "Every group: its kind, state, assignor, members, coordinator and total lag.",
    "describe": "One group or more: members and what they own, coordinator, lag of each partition.",
    "lag": "How far each group is behind, partition by partition.",
    "simulate": "Who would get what, under any assignor, after a change.",
    "advise": "How many partitions a topic needs, against what exists.",
    "reset-offsets": "Move a group's committed offsets; shows first, acts with --execute.",
    "delete": "Delete groups without members; shows first, acts with --execute.",
}
EXAMPLES = """\b
Examples:
  reconciler groups list --bootstrap-server kafka-1:9092
  reconciler groups describe billing --state snapshot.json
  reconciler groups reset-offsets billing --topic orders --to-datetime 2026-11-20T08:00:00Z

"""


class GroupVerbs(VerbGroup):
    """The verbs of `groups`."""

    verbs: ClassVar[Mapping[str, str]] = GROUP_VERBS
    module_prefix: ClassVar[str] = "reconciler.cli.groups_"


@click.command("groups", cls=GroupVerbs, subcommand_metavar="VERB ...", epilog=EXAMPLES + EPILOG)
@verb_options(*OUTPUTS)
def command() -> None:
    """Consumer groups: who reads what, how far behind, and what a change would do."""
