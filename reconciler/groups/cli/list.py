"""Declares `reconciler groups list`."""

from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.verbs import option, verb
from reconciler.groups.cli.arguments import show_groups


@verb(
    "list",
    outputs=(TEXT, JSON),
    examples="""
        reconciler groups list --cluster prod-eu
        reconciler groups list --topic orders --cluster prod-eu
        reconciler groups list --state snapshot.json -o json
    """,
)
@option("--topic", metavar="TOPIC", help="Only groups that read this topic or have read it, each with its lag there.")
def command(asked: Asked, topic: str | None) -> None:
    """List every group that this user may see, of a cluster or a snapshot.

    With --topic, those with a member that subscribes to it, or with committed offsets of it.
    """
    from reconciler.groups.model.state import GroupList
    from reconciler.groups.render import as_state

    show_groups(asked, as_state.overview, GroupList.of, topic=topic)
