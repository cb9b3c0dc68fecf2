"""Declares `reconciler groups describe`."""

from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.verbs import option, verb
from reconciler.groups.cli.arguments import group_arguments, show_groups


@verb(
    "describe",
    outputs=(TEXT, JSON),
    examples="""
        reconciler groups describe billing --cluster prod-eu
        reconciler groups describe --state snapshot.json
        reconciler groups describe --plan plan.json
    """,
)
@group_arguments
@option("--plan", metavar="PLAN", help="Show who coordinates once it has run.")
def command(asked: Asked, group_ids: tuple[str, ...], plan: str | None) -> None:
    """Show groups: state, assignor, coordinator, members with what they own, and the lag of each partition.

    Without a GROUP, all of them. A dash is what is not known: a partition without a commit has no lag.
    """
    from reconciler.groups.model.state import GroupDescriptions
    from reconciler.groups.render import as_state

    show_groups(asked, as_state.described, GroupDescriptions.of, group_ids, plan)
