"""A balance report as text for a terminal."""

from collections.abc import Iterator

from reconciler.balance.model.balance_report import BalanceReport, ClusterBalance
from reconciler.balance.render import tables
from reconciler.render.escape import visible
from reconciler.render.tables import Table, text_table


def balance(report: BalanceReport) -> str:
    """Return each cluster: how even it is, what deserves a look, its brokers, racks, log dirs, topics, what moves.

    Several clusters stand in one table first, what was wrong with samples last. The worst comes first everywhere.
    """
    blocks = [text_table(tables.fleet(report))] if len(report.clusters) > 1 else []
    blocks += [list(_cluster(report, cluster)) for cluster in report.clusters]
    wrong = [f"  {each}" for each in tables.defects(report)]
    blocks += [["Samples", *wrong]] if wrong else []
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def sections(report: BalanceReport, cluster: ClusterBalance) -> Iterator[Table]:
    """Yield the tables of one cluster that say something."""
    of = tables.statistic(report)
    yield tables.evenness(cluster)
    yield tables.brokers(cluster, of)
    if any(row.rack is not None for row in cluster.racks):
        yield tables.racks(cluster, of)
    yield tables.log_dirs(cluster)
    yield tables.topics(cluster, of)
    yield tables.moved(cluster)


def _cluster(report: BalanceReport, cluster: ClusterBalance) -> Iterator[str]:
    yield visible(tables.title(cluster))
    yield from (f"  {visible(finding)}" for finding in tables.findings(report, cluster))
    for section in sections(report, cluster):
        if section.rows:
            yield ""
            yield from text_table(section)
