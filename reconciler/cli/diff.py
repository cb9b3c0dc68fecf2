"""Declares `reconciler diff`: shows what differs, without planning."""

from functools import partial
from typing import TYPE_CHECKING

import click

from reconciler.command.exits import Exit
from reconciler.command.notices import WHEN, Notices, notices
from reconciler.command.options import JSON, MARKDOWN, TEXT, Asked, clusters, source_state
from reconciler.command.verbs import option, verb
from reconciler.model.notice import FORMS
from reconciler.model.problem import ReconcilerError
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
        reconciler diff --cluster '*' --notify '${env:SLACK_URL}' --metrics drift.prom
    """,
    notes="""
        One message tells of all clusters. Where nobody takes it within three tries, or the metrics cannot be written,
        the exit code is 1.

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
@option(
    "--notify",
    metavar="URL",
    help="Tell a webhook what differs, and which topics no file declares. The URL is a secret: give it in the "
    "variable, or as ${env:NAME} or ${file:/path}.",
)
@option(
    "--notify-as", type=click.Choice(FORMS), help="Form of the message [default: slack for Slack's hosts, else json]."
)
@option(
    "--notify-on",
    type=click.Choice(WHEN),
    help="When to tell: of differences and topics that no file declares [default: drift], of differences alone, or "
    "always. A cluster that cannot be looked at is told in any case.",
)
@option(
    "--metrics",
    metavar="FILE",
    help="Keep figures of each cluster, and of what doctor finds, in a file for Prometheus' node exporter.",
)
def command(
    asked: Asked,
    *,
    detailed_exitcode: bool,
    against: str | None,
    notify: str | None,
    notify_as: str | None,
    notify_on: str | None,
    metrics: str | None,
) -> int:
    """Show what differs between desired and observed state, old -> new, without planning.

    With --against, what differs between two clusters of which one copies topics of the other.
    """
    if against is not None:
        if notify or metrics:
            raise click.UsageError("--against shows two clusters side by side: it takes no --notify and no --metrics.")
        return _side_by_side(asked, against, detailed_exitcode=detailed_exitcode)
    told = notices(asked, notify, form=notify_as, when=notify_on, metrics=metrics)
    if asked.inputs.are_several_named:
        return _several(asked, told, is_detailed=detailed_exitcode)
    return _one(asked, told, is_detailed=detailed_exitcode)


def _one(asked: Asked, told: Notices, *, is_detailed: bool) -> int:
    """Compare the one cluster that is meant."""
    from reconciler.command.several import OfEach, worst
    from reconciler.render import as_json, as_markdown, as_text
    from reconciler.workflow.inputs import cluster_name

    name = cluster_name(asked.inputs)
    try:
        found = _look(told, asked.inputs)
    except ReconcilerError as error:
        told.tell_failure(name, error)
        raise
    each = OfEach({name: found}, {}, (name,))
    summary = each.summary(partial(_outcome, is_detailed=is_detailed))
    text_of = partial(as_text.changes, root=asked.inputs.root, is_whole=asked.verbosity > 0)
    asked.write(
        text=lambda: asked.folded(text_of(found.changes, found.fields)),
        json=lambda: as_json.changes(found.changes, found.fields),
        markdown=lambda: as_markdown.changes(found.changes, found.fields, found.cluster_name),
    )
    asked.tell(as_text.problems(found.warnings, root=asked.inputs.root))
    return worst([*(Exit(one.exit_code) for one in summary), told.tell_all(each, summary)])


def _look(told: Notices, inputs: Inputs) -> "Compared":
    from reconciler.command.progress import reading
    from reconciler.workflow.diff import find_differences

    with reading("comparing") as progress:
        found = find_differences(inputs, progress=progress)
        told.examine(inputs, found.cluster_name)
    return found


def _outcome(found: "Compared", *, is_detailed: bool) -> tuple[str, Exit]:
    from reconciler.render.rows import differences_counted

    code = Exit.CHANGES if is_detailed and found.has_changes else Exit.DONE
    return differences_counted(found.changes, found.fields), code


def _several(asked: Asked, told: Notices, *, is_detailed: bool) -> int:
    """Compare each of several clusters by itself; a comment has room for each alike."""
    from reconciler.command.several import of_each, tell_failed, tell_of, worst
    from reconciler.model.change import DiffOfCluster, DiffsReport
    from reconciler.render import as_json, as_markdown, as_several, as_text
    from reconciler.render.escape import visible

    each = of_each(asked, partial(_look, told))
    text_of = partial(as_text.changes, root=asked.inputs.root, is_whole=asked.verbosity > 0)
    made, limit = each.made, as_markdown.LIMIT // (len(each.names) + 1)
    summary = each.summary(partial(_outcome, is_detailed=is_detailed))

    def report() -> DiffsReport:
        found = (DiffOfCluster(name, as_json.masked_report(one.changes, one.fields)) for name, one in made.items())
        return DiffsReport(tuple(found), each.reasons, summary)

    asked.write(
        text=lambda: asked.folded(
            as_several.text(
                (f"{visible(name)}\n{text_of(one.changes, one.fields)}" for name, one in made.items()),
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
    code = tell_failed(asked, each.failed, (one.exit_code for one in summary))
    return worst([code, told.tell_all(each, summary)])


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
