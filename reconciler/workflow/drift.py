"""Keeps the file of figures about drift (`diff --metrics`), and has doctor look at each cluster for it."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from reconciler.files.raw import write_atomically
from reconciler.model.diagnosis import FindingCounts
from reconciler.model.notice import DriftFigures, NoticeOfCluster
from reconciler.render.as_metrics import LAST_COMPARED, drift_metrics, label_of
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.run_metrics import UNWRITTEN


def findings_of(inputs: Inputs) -> FindingCounts:
    """Return how many findings doctor has of the cluster that is meant, or of its snapshot."""
    from reconciler.workflow.doctor import look_at_snapshot, visit

    if inputs.state:
        return look_at_snapshot(inputs)[1].summary
    with visit(inputs) as beside:
        return beside.look().summary


def write_figures(
    path: Path,
    clusters: Iterable[NoticeOfCluster],
    findings: Mapping[str, FindingCounts],
    now: Callable[[], float] = time.time,
) -> None:
    """Replace the file by the figures of these clusters; of one that failed the last success is kept as it stood there.

    Raises ReconcilerError where it cannot be written.
    """
    before, at = _lines(path), now()
    found = [
        DriftFigures(
            one.cluster,
            one.reason is not None,
            one.differences,
            one.undeclared_topics,
            findings.get(one.cluster),
            at if one.reason is None else None,
        )
        for one in clusters
    ]
    kept = (one if not one.is_failed else replace(one, last_success_at=_last(before, one.cluster)) for one in found)
    write_atomically(path, drift_metrics(tuple(kept)).encode(), "file of metrics", UNWRITTEN)


def _lines(path: Path) -> tuple[str, ...]:
    with suppress(OSError, ValueError):
        return tuple(path.read_text("utf-8").splitlines())
    return ()


def _last(lines: Iterable[str], cluster: str) -> float | None:
    """Return when that cluster was last compared, as the file of an earlier call says."""
    head = f"{LAST_COMPARED}{{{label_of(cluster)}}} "
    with suppress(ValueError):
        return next((float(line.removeprefix(head)) for line in lines if line.startswith(head)), None)
    return None
