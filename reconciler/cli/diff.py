"""Declares `reconciler diff`: shows what differs, without planning."""

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, MARKDOWN, TEXT, Asked, source_state
from reconciler.command.verbs import option, verb


@verb(
    "diff",
    outputs=(TEXT, JSON, MARKDOWN),
    examples="""
        reconciler diff --cluster prod-eu
        reconciler diff --cluster demo --state snapshot.json --detailed-exitcode -o json
    """,
)
@source_state
@option("--detailed-exitcode", is_flag=True, help="Exit with 2 where anything differs.")
def command(asked: Asked, *, detailed_exitcode: bool) -> int:
    """Show what differs between desired and observed state, old -> new, without planning."""
    from reconciler.command.progress import reading
    from reconciler.render import as_json, as_markdown, as_text
    from reconciler.workflow.diff import find_differences

    with reading("comparing") as progress:
        found = find_differences(asked.inputs, progress=progress)
    asked.write(
        text=lambda: asked.folded(as_text.changes(found.changes, found.fields, root=asked.inputs.root)),
        json=lambda: as_json.changes(found.changes, found.fields),
        markdown=lambda: as_markdown.changes(found.changes, found.fields, found.cluster_name),
    )
    asked.tell(as_text.problems(found.warnings, root=asked.inputs.root))
    return Exit.CHANGES if detailed_exitcode and found.has_changes else Exit.DONE
