"""Declares `reconciler diff`: shows what differs, without planning."""

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, MARKDOWN, TEXT, Asked, clusters, source_state
from reconciler.command.verbs import option, verb


@verb(
    "diff",
    outputs=(TEXT, JSON, MARKDOWN),
    examples="""
        reconciler diff --cluster prod-eu
        reconciler diff --cluster demo --state snapshot.json --detailed-exitcode -o json
        reconciler diff --cluster prod-eu --against prod-us
    """,
    notes="""
        With --against, exit code 2 of --detailed-exitcode means that a copy is missing, has too few partitions or has
        another value of a config that follows, or that a group would miss records. Records not copied yet do not count.
    """,
)
@source_state
@option("--detailed-exitcode", is_flag=True, help="Exit with 2 where anything differs.")
@option(
    "--against",
    metavar="CLUSTER",
    shell_complete=clusters,
    help="Show the cluster beside another of the root, which it copies from: topics, offsets, and what groups would "
    "read twice or miss if they changed over now.",
)
def command(asked: Asked, *, detailed_exitcode: bool, against: str | None) -> int:
    """Show what differs between desired and observed state, old -> new, without planning.

    With --against, what differs between two clusters of which one copies topics of the other.
    """
    if against is not None:
        return _side_by_side(asked, against, detailed_exitcode=detailed_exitcode)
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


def _side_by_side(asked: Asked, against: str, *, detailed_exitcode: bool) -> int:
    from reconciler.command.progress import reading
    from reconciler.render import as_against, as_json, as_text
    from reconciler.workflow.against import compare_clusters

    with reading("comparing") as progress:
        found = as_against.without_secrets(compare_clusters(asked.inputs, against, progress=progress))
    report = as_against.side_by_side(found)
    asked.write(text=report.text, json=lambda: as_json.document(found), markdown=report.markdown)
    asked.tell(as_text.problems(found.problems, root=asked.inputs.root))
    return Exit.CHANGES if detailed_exitcode and found.is_different else Exit.DONE
