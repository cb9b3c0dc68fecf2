"""Refuses what no placement within `limits.replicasPerBroker` holds, with the least limit that would do."""

from collections.abc import Iterator

import numpy as np

from reconciler.model.columns import Ints
from reconciler.model.problem import OVERFULL_BROKER, Location, Problem, Severity
from reconciler.model.words import labelled
from reconciler.planner.objectives import CountTargets, evened_by_class
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.rows import Rows, classes


def crowded_brokers(task: PlacementTask, at: Location | None) -> Iterator[Problem]:
    """Yield the conflict where the limit on each broker, written at that place, leaves some replica no place."""
    limit = task.eligible.most
    some = np.flatnonzero(task.need > 0)
    if limit is None or not len(some):
        return
    rules, _, count = classes(task.rule_classes.rows, task.rule_class[some], np.zeros_like(some))
    over = _above(task, rules, count, limit)
    if not over.any():
        return
    total, room = int(task.need.sum()), int(np.maximum(limit - task.base, 0).sum())
    if total > room:
        left = f"{total} replicas are to be placed, and the {len(over)} brokers that take any have room for {room}"
    else:
        left = f"racks, and who may hold what, leave {int(over.sum())} of {total} replicas without a place"
    enough, short = int(task.base.max()) + total, limit
    while enough - short > 1:
        middle = (enough + short) // 2
        enough, short = (enough, middle) if _above(task, rules, count, middle).any() else (middle, short)
    message = (
        f"no placement keeps limits.replicasPerBroker: {limit}{f' ({at})' if at else ''}: {left}. "
        f"Raise it to {enough}, add a broker, or lower a replicationFactor."
    )
    yield Problem("KR361", message, at)


def _above(task: PlacementTask, rules: Rows, count: Ints, limit: int) -> Ints:
    """Return by how much each broker is above that limit where all together are least so, for what can be moved."""
    most = np.maximum(limit - task.base, 0)
    targets = CountTargets(np.zeros_like(most), np.ones_like(most), low=np.zeros_like(most), high=most)
    counts = sum(evened_by_class(rules, count, targets).counts(are_cells=False))
    above: Ints = np.maximum(counts - most, 0)
    return above


def overfull_brokers(task: PlacementTask, at: Location | None) -> Iterator[Problem]:
    """Yield a warning of brokers that hold more than the limit allows already of what no plan may move."""
    limit = task.eligible.most
    full = np.flatnonzero(task.base > limit).tolist() if limit is not None else []
    if full:
        worst = max(full, key=lambda column: (int(task.base[column]), -column))
        message = (
            f"{labelled('broker', [task.eligible.ids[column] for column in full])}: more replicas may not be moved "
            f"than the {limit} that limits.replicasPerBroker allows (broker {task.eligible.ids[worst]}: "
            f"{int(task.base[worst])}): their topics are undeclared, protected, assigned or left out. All others leave"
        )
        yield Problem(OVERFULL_BROKER, message, at, Severity.WARNING)
