"""Declares `reconciler diff`: shows what differs, without planning."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, MARKDOWN, TEXT, Asked, clusters, source_state
from reconciler.command.verbs import option, verb
from reconciler.workflow.inputs import Inputs

if TYPE_CHECKING:
    from reconciler.workflow.diff import Compared


@verb(
    "diff",
    outputs=(TEXT, JSON, MARKDOWN),
    examples="""
        reconciler diff --cluster prod-eu
        reconciler diff --cluster demo --state snapshot.json --detailed-exitcode -o json
        reconciler diff --cluster prod-eu --against prod-us
        reconciler diff --cluster 'environment=prod' -o markdown
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
    from reconciler.render import as_json, as_markdown, as_text

    if asked.inputs.are_several_named:
        return _several(asked, partial(_exit_of, is_detailed=detailed_exitcode))
    found = _look(asked.inputs)
    asked.write(
        text=lambda: asked.folded(as_text.changes(found.changes, found.fields, root=asked.inputs.root)),
        json=lambda: as_json.changes(found.changes, found.fields),
        markdown=lambda: as_markdown.changes(found.changes, found.fields, found.cluster_name),
    )
    asked.tell(as_text.problems(found.warnings, root=asked.inputs.root))
    return _exit_of(found, is_detailed=detailed_exitcode)


def _look(inputs: Inputs) -> "Compared":
    from reconciler.command.progress import reading
    from reconciler.workflow.diff import find_differences

    with reading("comparing") as progress:
        return find_differences(inputs, progress=progress)


def _exit_of(found: "Compared", *, is_detailed: bool) -> Exit:
    return Exit.CHANGES if is_detailed and found.has_changes else Exit.DONE


def _several(asked: Asked, exit_of: Callable[["Compared"], Exit]) -> int:
    """Compare each of several clusters by itself; a comment has room for each alike."""
    from reconciler.command.several import of_each, tell_failed, tell_of
    from reconciler.model.change import DiffOfCluster, DiffsReport
    from reconciler.render import as_json, as_markdown, as_several, as_text
    from reconciler.render.escape import visible
    from reconciler.render.rows import differences_counted

    each = of_each(asked, _look)
    made, limit = each.made, as_markdown.LIMIT // (len(each.names) + 1)
    summary = each.summary(lambda one: (differences_counted(one.changes, one.fields), exit_of(one)))

    def report() -> DiffsReport:
        found = (DiffOfCluster(name, as_json.masked_report(one.changes, one.fields)) for name, one in made.items())
        return DiffsReport(tuple(found), each.reasons, summary)

    asked.write(
        text=lambda: asked.folded(
            as_several.text(
                (
                    f"{visible(name)}\n{as_text.changes(one.changes, one.fields, root=asked.inputs.root)}"
                    for name, one in made.items()
                ),
                summary,
            )
        ),
        json=lambda: as_json.document(report()),
        markdown=lambda: as_several.markdown(
            "diff",
            {name: as_markdown.changes(one.changes, one.fields, name, limit=limit) for name, one in made.items()},
            each.reasons,
            summary,
        ),
    )
    for name, one in made.items():
        tell_of(asked, name, one.warnings)
    return tell_failed(asked, each.failed, (one.exit_code for one in summary))


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
