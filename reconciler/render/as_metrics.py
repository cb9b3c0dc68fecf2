"""Writes a run, or drift, in Prometheus' text format (0.0.4), which the node exporter's textfile collector reads.

Every series has the cluster as its label, `reconciler_run_info` alone the plan: a new plan ends one series, not all.
"""

from collections.abc import Iterator, Sequence

from reconciler.model.notice import DriftFigures
from reconciler.model.run import RunMetrics

LAST_SUCCESS = "reconciler_run_last_success_timestamp_seconds"
LAST_COMPARED = "reconciler_diff_last_success_timestamp_seconds"
Number = int | float | None
_HEAD = 2
"""Lines of a metric before its samples."""


def metrics(seen: RunMetrics) -> str:
    """Return the file's text: for each metric HELP, TYPE and one sample; where the value is not known, nothing."""
    cluster = label_of(seen.cluster_name)
    lines = [*_metric("reconciler_run_info", "Which plan runs, or ran last; always 1.", _with_plan(cluster, seen), 1)]
    for name, text, value in _values(seen):
        if value is not None:
            lines += _metric(name, text, cluster, value)
    return "\n".join(lines) + "\n"


def drift_metrics(clusters: Sequence[DriftFigures]) -> str:
    """Return the file's text: for each metric HELP, TYPE and a sample for each cluster of which the value is known."""
    metrics: dict[str, list[str]] = {}
    for one in clusters:
        for name, text, value in _drift_values(one):
            head = [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
            lines = metrics.setdefault(name, head)
            lines += [] if value is None else [f"{name}{{{label_of(one.cluster)}}} {_number(value)}"]
    known = (lines for lines in metrics.values() if len(lines) > _HEAD)
    return "".join(f"{line}\n" for lines in known for line in lines)


def label_of(cluster: str) -> str:
    """Return the label of a cluster's series."""
    return f'cluster="{_escaped(cluster)}"'


def _drift_values(seen: DriftFigures) -> Iterator[tuple[str, str, Number]]:
    diff, found = "reconciler_diff", seen.findings
    yield (
        f"{diff}_failed",
        "Whether the cluster could not be compared; the other figures are then absent.",
        int(seen.is_failed),
    )
    text = "Differences between the cluster and its files, those that no plan mends included."
    yield f"{diff}_differences", text, seen.differences
    text = "Topics that no file declares, managed or not, without internal and ignored ones."
    yield f"{diff}_undeclared_topics", text, seen.undeclared_topics
    for severity, text in (("errors", "Errors"), ("warnings", "Warnings"), ("notes", "Notes")):
        count = None if found is None else getattr(found, severity)
        yield f"reconciler_doctor_{severity}", f"{text} that doctor finds; absent where it could not look.", count
    yield LAST_COMPARED, "When the cluster was last compared; kept when a later try fails.", seen.last_success_at


def _values(seen: RunMetrics) -> Iterator[tuple[str, str, Number]]:
    run = "reconciler_run"
    yield f"{run}_active", "Whether the run goes on; 1 in an old file is a run that was killed.", int(seen.is_active)
    yield f"{run}_started_timestamp_seconds", "When the run, or this part of it, began.", seen.started_at
    yield f"{run}_updated_timestamp_seconds", "When the run was last looked at.", seen.updated_at
    yield f"{run}_stages", "Stages of the plan.", seen.stages
    yield f"{run}_stage", "The stage at work, from 1; 0 before the first that copies data.", seen.stage
    yield f"{run}_stages_done", "Stages that are done, those of earlier parts of the run included.", seen.stages_done
    yield f"{run}_moves", "Moves of partitions in all stages.", seen.moves
    yield f"{run}_moves_done", "Moves whose replicas are in order and in sync.", seen.done_moves
    yield f"{run}_bytes", "Bytes to copy between brokers in all stages.", seen.total_bytes
    yield f"{run}_copied_bytes", "Bytes copied so far.", seen.copied_bytes
    yield f"{run}_copied_bytes_per_second", "Rate of copying over the last minute.", seen.bytes_per_second
    text = "The throttle of the stage at work, per broker and direction; absent without one."
    yield f"{run}_throttle_bytes_per_second", text, seen.throttle_bytes_per_second
    yield f"{run}_estimated_seconds", "What the plan estimates for all stages.", seen.estimated_seconds
    yield f"{run}_stage_remaining_seconds", "Time left for the stage at work, as it goes.", seen.stage_seconds_left
    yield f"{run}_warnings", "Warnings of the plan.", seen.warnings
    text = "Throttles that could not be put back when the run ended."
    yield f"{run}_leftover_throttles", text, seen.leftover_throttles
    text = "How apply ended: 0 done, 1 error, 3 refused, 4 stale plan, 5 stopped with work left; absent while it runs."
    yield f"{run}_exit_code", text, seen.exit_code
    yield LAST_SUCCESS, "When a run of this cluster was last done; kept when a later one fails.", seen.last_success_at


def _metric(name: str, text: str, labels: str, value: float) -> tuple[str, str, str]:
    return f"# HELP {name} {text}", f"# TYPE {name} gauge", f"{name}{{{labels}}} {_number(value)}"


def _with_plan(cluster: str, seen: RunMetrics) -> str:
    return f'{cluster},plan="{_escaped(seen.plan_id)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"
