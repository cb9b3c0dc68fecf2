"""Shows what came of several clusters: what each has to tell, and one table of all of them."""

from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.several import ClusterOutcome
from reconciler.model.words import counted
from reconciler.render.escape import code_span, sentence
from reconciler.render.report import Report, Section, Table


def text(shown: Iterable[str], summary: Sequence[ClusterOutcome]) -> str:
    """Return the blocks, and the table below them."""
    return "\n".join([*shown, table(summary).text()])


def markdown(verb: str, shown: Mapping[str, str], failed: Mapping[str, str], summary: Sequence[ClusterOutcome]) -> str:
    """Return one comment: the table first, then each cluster, and why those that failed did."""
    blocks = {
        name: f"### reconciler {verb} · {code_span(name)} · failed\n\n{sentence(why)}\n" for name, why in failed.items()
    }
    blocks |= shown
    return "\n".join([table(summary).markdown(), *(blocks[one.cluster] for one in summary)])


def table(summary: Sequence[ClusterOutcome]) -> Report:
    """Return a row a cluster: its name, what came of it, and its exit code."""
    rows = tuple((one.cluster, one.result, str(one.exit_code)) for one in summary)
    return Report(
        (Section(f"{counted(len(rows), 'cluster')}:", (Table(("cluster", "result", "exit"), rows, left=2),)),)
    )
