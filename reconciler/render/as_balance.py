"""A balance report as text for a terminal."""

from collections.abc import Iterator

from reconciler.model.balance_report import BalanceReport, ClusterBalance
from reconciler.render import balance_tables
from reconciler.render.as_groups import table
from reconciler.render.escape import visible
from reconciler.render.groups_tables import Table


def balance(report: BalanceReport) -> str:
    """Return each cluster: how even it is, what deserves a look, its brokers, racks, log dirs, topics, what moves.

    Several clusters stand in one table first, what was wrong with samples last. The worst comes first everywhere.
    """
    blocks = [table(balance_tables.fleet(report))] if len(report.clusters) > 1 else []
    blocks += [list(_cluster(report, cluster)) for cluster in report.clusters]
    wrong = [f"  {each}" for each in balance_tables.defects(report)]
    blocks += [["Samples", *wrong]] if wrong else []
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def sections(report: BalanceReport, cluster: ClusterBalance) -> Iterator[Table]:
    """Yield the tables of one cluster that say something."""
    of = balance_tables.statistic(report)
    yield balance_tables.evenness(cluster)
    yield balance_tables.brokers(cluster, of)
    if any(row.rack is not None for row in cluster.racks):
        yield balance_tables.racks(cluster, of)
    yield balance_tables.log_dirs(cluster)
    yield balance_tables.topics(cluster, of)
    yield balance_tables.moved(cluster)


def _cluster(report: BalanceReport, cluster: ClusterBalance) -> Iterator[str]:
    yield visible(balance_tables.title(cluster))
    yield from (f"  {visible(finding)}" for finding in balance_tables.findings(report, cluster))
    for section in sections(report, cluster):
        if section.rows:
            yield ""
            yield from table(section)
