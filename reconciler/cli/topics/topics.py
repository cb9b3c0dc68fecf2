"""Declares `reconciler topics`: the verbs that look at topics, each loaded from its own module when it is called."""

from collections.abc import Mapping

import click

from reconciler.command.exits import EPILOG
from reconciler.command.options import OUTPUTS, verb_options
from reconciler.command.verbs import Verb, VerbGroup

VERBS: Mapping[str, Verb] = {
    "list": Verb(
        "reconciler.cli.topics.list", "Every topic: partitions, size, who declares, owns and reads it, how it grows."
    ),
    "describe": Verb(
        "reconciler.cli.topics.describe",
        "Topics as kafka-topics --describe prints them, and what else is known of them.",
    ),
    "key": Verb(
        "reconciler.cli.topics.key", "Which partition a key goes to, and what share of keys moves when a topic grows."
    ),
}
EXAMPLES = """\b
Examples:
  reconciler topics list --cluster prod-eu
  reconciler topics describe orders --bootstrap-server kafka-1:9092
  reconciler topics key orders customer-42 --partitions 24 --state snapshot.json

"""


@click.command("topics", cls=VerbGroup, verbs=VERBS, subcommand_metavar="VERB ...", epilog=EXAMPLES + EPILOG)
@verb_options(*OUTPUTS)
def command() -> None:
    """Topics: as Kafka shows them, and who declares, owns and reads them, how large, growing or idle."""
