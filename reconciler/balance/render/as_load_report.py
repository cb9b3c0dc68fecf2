"""Writes what was found in samples, as lines for a person."""

from reconciler.balance.model.load_report import ClusterSamples, LoadReport, Rule
from reconciler.model.words import counted, percent
from reconciler.render.escape import visible


def load_report_lines(report: LoadReport) -> list[str]:
    """Return one line for each cluster, one for each rule that samples broke, and one for each note."""
    lines = [visible(f"note: {note}") for note in report.notes]
    for cluster in report.clusters:
        name = "samples of no cluster" if cluster.cluster is None else visible(cluster.cluster)
        lines.append(f"{name}: {_seen(cluster)}")
        lines += [f"  {rule.value}: {count} {rule.treatment}" for rule, count in _broken(cluster)]
    return lines


def _seen(cluster: ClusterSamples) -> str:
    if not cluster.partitions:
        return "none counts"
    peak = f"busiest at {cluster.busiest_bucket}" if cluster.busiest_bucket else "no rate known"
    return (
        f"{counted(cluster.partitions, 'partition')}, {counted(cluster.samples, 'sample')} "
        f"from {cluster.first_bucket} to {cluster.last_bucket}, coverage {_percent(cluster.coverage)}, {peak}"
    )


def _percent(share: float | None) -> str:
    """Return a share in percent, rounded down: 100% says that nothing is missing."""
    return "unknown" if share is None else percent(int(share * 1000) / 1000)


def _broken(cluster: ClusterSamples) -> list[tuple[Rule, int]]:
    return [(rule, cluster.defects.get(rule, 0)) for rule in Rule if cluster.defects.get(rule, 0)]
