"""`reconciler groups list`."""

from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.verbs import verb


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
    from reconciler.command.progress import reading
    from reconciler.groups.render import as_state, as_state_json
    from reconciler.groups.workflow.described import groups_seen
    from reconciler.render import as_text

    with reading():
        seen = groups_seen(asked.inputs)
    asked.write(
        text=lambda: as_state.overview(seen.groups),
        json=lambda: as_state_json.overview(seen.groups, (*seen.warnings, *seen.of_client)),
    )
    asked.tell(as_text.problems(seen.warnings))
