"""`reconciler groups lag`."""

from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.verbs import verb
from reconciler.groups.cli.arguments import group_arguments


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
    from reconciler.command.progress import reading
    from reconciler.groups.render import as_state, as_state_json
    from reconciler.groups.workflow.described import groups_seen
    from reconciler.render import as_text

    with reading():
        seen = groups_seen(asked.inputs, group_ids)
    asked.write(
        text=lambda: as_state.lags(seen.groups),
        json=lambda: as_state_json.lags(seen.groups, (*seen.warnings, *seen.of_client)),
    )
    asked.tell(as_text.problems(seen.warnings))
