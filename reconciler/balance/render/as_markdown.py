"""A balance report as Markdown, whatever topics, racks and clusters are called made inert."""

from collections.abc import Iterator

from reconciler.balance.model.balance_report import BalanceReport, ClusterBalance
from reconciler.balance.render import tables
from reconciler.balance.render.as_text import sections
from reconciler.render.escape import bullets, code_span, sentence
from reconciler.render.tables import markdown_table


def balance(report: BalanceReport) -> str:
    """Return each cluster under a heading of its own, after one table of several."""
    blocks = ["### reconciler balance", markdown_table(tables.fleet(report))] if len(report.clusters) > 1 else []
    blocks += [block for cluster in report.clusters for block in _cluster(report, cluster)]
    wrong = bullets(tables.defects(report))
    blocks += ["**Samples**", wrong] if wrong else []
    warnings = [*report.warnings, *(warning for cluster in report.clusters for warning in cluster.warnings)]
    blocks += [bullets(f"{each.message} ({each.code})" for each in warnings)] if warnings else []
    return "\n\n".join(blocks) + "\n"


def _cluster(report: BalanceReport, cluster: ClusterBalance) -> Iterator[str]:
    yield f"### reconciler balance · {code_span(cluster.name)}"
    yield sentence(tables.title(cluster).removeprefix(f"{cluster.name}: "))
    yield bullets(tables.findings(report, cluster))
    yield from (markdown_table(section) for section in sections(report, cluster) if section.rows)
