"""Tells what each budget buys: points along the curve from the plan that mends alone to the whole one, and its knee."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from reconciler.model.budget import CurvePoint, CurveReport, Way
from reconciler.model.columns import Ints
from reconciler.model.desired import DesiredCluster
from reconciler.planner.budget import Curve, imbalance
from reconciler.planner.placement_task import PlacementTask

POINTS = 20
"""So many steps of bytes the curve has about."""
DIGITS = 6


def curve_of(task: PlacementTask, cluster: DesiredCluster) -> CurveReport:
    """Return the curve of these partitions; every point is a plan that `--budget` makes."""
    curve = Curve(task, cluster.balance)
    tables = curve.points(POINTS)
    first, last = tables[0], tables[-1]
    rate = cluster.moves.throttle_bytes_per_second
    points = []
    for table in tables:
        of_table = {name: imbalance(task, targets, table) for name, targets in curve.asked}
        ways = [
            Way(name, imbalance(task, targets, first), of_table[name], imbalance(task, targets, last))
            for name, targets in curve.asked
        ]
        share = _share(ways)
        seconds = None if rate is None else -(-curve.busiest(table) // rate)
        points.append(
            CurvePoint(curve.copied_by(table), seconds, round(float(share), DIGITS), _over_mean(task, table), of_table)
        )
    return CurveReport(cluster.name, rate, points[0].bytes, points[-1].bytes, _knee(points), tuple(points))


def _share(ways: Sequence[Way]) -> Fraction:
    """Return how much of the way is gone: what is balanced later counts once all before it is whole."""
    share = Fraction(0)
    for way in ways:
        share += max(way.share, Fraction(0))
        if way.share < 1:
            break
    return share / len(ways) if ways else Fraction(1)


def _over_mean(task: PlacementTask, table: Ints) -> float:
    counts, capacity = task.base + task.counts(table), task.eligible.capacity["replicas"]
    if not counts.sum():
        return 1.0
    return round(float((counts / capacity).max() * capacity.sum() / counts.sum()), DIGITS)


def _knee(points: Sequence[CurvePoint]) -> int:
    """Return the bytes of the point that is farthest above the straight line from the first to the last."""
    span = points[-1].bytes - points[0].bytes
    above = [point.share - (point.bytes - points[0].bytes) / span if span else 0.0 for point in points]
    return points[int(np.argmax(np.round(above, DIGITS)))].bytes
