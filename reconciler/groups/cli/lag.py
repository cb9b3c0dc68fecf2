"""Declares `reconciler groups lag`."""

from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.verbs import verb
from reconciler.groups.cli.arguments import group_arguments, show_groups


@verb(
    "lag",
    outputs=(TEXT, JSON),
    examples="""
        reconciler groups lag billing --cluster prod-eu
        reconciler groups lag --state snapshot.json -o json
    """,
)
@group_arguments
def command(asked: Asked, group_ids: tuple[str, ...]) -> None:
    """Show how far groups are behind, partition by partition: the log end offset less the commit.

    Without a GROUP, all of them. A partition without a commit has no lag, which is not zero.
    """
    from reconciler.groups.model.state import GroupLags
    from reconciler.groups.render import as_state

    show_groups(asked, as_state.lags, GroupLags.of, group_ids)
