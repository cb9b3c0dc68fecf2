"""Declares `reconciler groups list`."""

from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.verbs import verb
from reconciler.groups.cli.arguments import show_groups


@verb(
    "list",
    outputs=(TEXT, JSON),
    examples="""
        reconciler groups list --cluster prod-eu
        reconciler groups list --state snapshot.json -o json
    """,
)
def command(asked: Asked) -> None:
    """List every group that this user may see, of a cluster or a snapshot."""
    from reconciler.groups.model.state import GroupList
    from reconciler.groups.render import as_state

    show_groups(asked, as_state.overview, GroupList.of)
