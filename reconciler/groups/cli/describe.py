"""`reconciler groups describe`."""

from reconciler.command.options import JSON, TEXT, Asked
from reconciler.command.verbs import option, verb
from reconciler.groups.cli.arguments import group_arguments


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
    from reconciler.command.progress import reading
    from reconciler.groups.render import as_state, as_state_json
    from reconciler.groups.workflow.described import groups_seen
    from reconciler.render import as_text

    with reading():
        seen = groups_seen(asked.inputs, group_ids, plan_path=plan)
    asked.write(
        text=lambda: as_state.described(seen.groups),
        json=lambda: as_state_json.described(seen.groups, (*seen.warnings, *seen.of_client)),
    )
    asked.tell(as_text.problems(seen.warnings))
