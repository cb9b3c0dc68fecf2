"""Warns where a plan cannot be as asked: a balance that stays short of it, a limit, racks that are not known.

Which rule forbids more, and which limit would do, is found by trying: the counts are made even once more without it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from reconciler.diff.rules import TopicRules
from reconciler.model.change import CreatePartitions, CreateTopic, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.columns import Ints
from reconciler.model.desired import Balance, BalanceTarget, Off, Spread, Within
from reconciler.model.move import Move
from reconciler.model.problem import OVERFULL_BROKER, UNEVEN_LEADERS, UNEVEN_REPLICAS, Location, Problem, warning
from reconciler.model.words import counted, labelled, listed, size
from reconciler.planner.objectives import NEXT_WHOLE, CountTargets, band, eligible_by_topic, evened_by_class
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.rows import Rows, classes

UNWRITTEN_SPREAD = (
    "no topic writes placement.racks, but a partition that moves is not spread worse over the racks than now, and a new"
    " one is spread over them; that forbids more"
)


def tightness_warnings(balance: Balance, task: PlacementTask, held: Ints, leader: Ints) -> Iterator[Problem]:
    """Yield a warning for each balance that the rules keep from its target, with these replicas and leaders placed."""
    eligible = task.eligible
    if not task.partitions:
        return
    counts = task.base + np.bincount(held[held >= 0], minlength=len(eligible.ids))
    if not _is_reached(counts, eligible.capacity["replicas"], balance.replicas):
        message = f"replicas per broker end at {_span(counts)}: {_forbidding(task)}"
        yield warning(UNEVEN_REPLICAS, message, balance.at.get("replicas"))
    leading = task.led + np.bincount(leader, minlength=len(eligible.ids))
    if not _is_reached(leading, eligible.capacity["leaders"], balance.leaders):
        message = f"preferred leaders per broker end at {_span(leading)}: the replicas' places allow no better"
        yield warning(UNEVEN_LEADERS, message, balance.at.get("leaders"))
    if not isinstance(balance.topics, Off):
        yield from _uneven_topics(balance, task, held)


def _uneven_topics(balance: Balance, task: PlacementTask, held: Ints) -> Iterator[Problem]:
    """Yield a warning where topics stay further from their shares over the brokers than asked."""
    count = task.base_of_topic.copy()
    row, place = np.nonzero(held >= 0)
    np.add.at(count, (task.topic[row], held[row, place]), 1)
    uneven = []
    for number, may_hold in enumerate(eligible_by_topic(task)):
        counts, capacity = count[number, may_hold], task.eligible.capacity["replicas"][may_hold]
        if not _is_reached(counts, capacity, balance.topics):
            uneven.append((int(counts.max()), -(-int(counts.sum()) // len(counts)), task.topics[number]))
    if uneven:
        most, share, name = max(uneven, key=lambda each: (each[0] - each[1], each[2]))
        topics = "1 topic ends" if len(uneven) == 1 else f"{len(uneven)} topics end"
        message = (
            f"{topics} less even over the brokers than asked, {name} with {most} replicas on one broker where {share} "
            "would be its share: racks, brokers named for it, or the balance of all replicas forbid more"
        )
        yield warning("KR805", message, balance.at.get("topics"))


def _is_reached(counts: Ints, capacity: Ints, target: BalanceTarget) -> bool:
    if isinstance(target, Off) or not len(counts):
        return True
    low, high = band(int(counts.sum()), capacity, target if isinstance(target, Within) else NEXT_WHOLE)
    return bool(((low <= counts) & (counts <= high)).all())


def _forbidding(task: PlacementTask) -> str:
    """Return, in words, the first rule without which the counts could be more even."""
    picked, _, count = classes(task.rule_classes.rows, task.rule_class, np.zeros_like(task.topic))
    without_racks = replace(
        picked, low=np.zeros_like(picked.low), high=np.broadcast_to(picked.need[:, None], picked.high.shape)
    )
    without_brokers = replace(without_racks, allowed=np.ones_like(picked.allowed))
    targets = CountTargets(task.base, task.eligible.capacity["replicas"])

    def unevenness(rules: Rows, most: Ints | None = task.most) -> int:
        return targets.imbalance(evened_by_class(rules, count, targets, most))

    now = unevenness(picked)
    if task.spread is not None:
        return "limits.replicasPerBroker forbids more"
    if task.most is not None and unevenness(picked, None) < now:
        return "limits.replicasPerBroker forbids more"
    if unevenness(without_racks) < now:
        return "placement.racks forbids more" if _is_spread_asked_for(task) else UNWRITTEN_SPREAD
    if unevenness(without_brokers) < now:
        return "placement.brokers, racks.only or a cordoned broker forbids more"
    return "replicas that may not move, or too few of them, forbid more"


def _is_spread_asked_for(task: PlacementTask) -> bool:
    """Whether a topic's documents write a rule of racks that can bind, beside the spread of what nobody wrote."""
    placements = (rules.declared.placement for rules in task.partitions.rules if rules.declared is not None)
    return any(each.racks_replicas or each.racks_spread not in {None, Spread.IGNORE} for each in placements)


def _span(counts: Ints) -> str:
    return f"{int(counts.min())} to {int(counts.max())}"


def is_crowded(task: PlacementTask) -> bool:
    """Whether the limit on each broker leaves some replica no place, with racks spread as written or preferred."""
    some = np.flatnonzero(task.need > 0)
    if task.eligible.most is None or not len(some):
        return False
    rules, _, count = classes(task.rule_classes.rows, task.rule_class[some], np.zeros_like(some))
    return bool(_above(task, rules, count, task.eligible.most).any())


def crowded_brokers(task: PlacementTask, at: Location | None) -> Iterator[Problem]:
    """Yield the conflict where the limit on each broker, written at that place, leaves some replica no place."""
    limit, classes_ = task.eligible.most, task.rule_classes
    rows, some = classes_.rows, np.flatnonzero(task.need > 0)
    if limit is None or not len(some):
        return
    # A spread that is only preferred is no reason.
    is_strict = classes_.is_strict[:, None]
    rows = replace(rows, low=np.where(is_strict, rows.low, 0), high=np.where(is_strict, rows.high, rows.need[:, None]))
    rules, _, count = classes(rows, task.rule_class[some], np.zeros_like(some))
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


def rackless_brokers(
    observed: Cluster, rules: Mapping[str, TopicRules], moves: Iterable[Move], topic_changes: Iterable[TopicChange]
) -> Iterator[Problem]:
    """Yield a warning if data is placed by a rule of racks while some brokers have none, and others have one."""
    nowhere = {broker_id for broker_id, broker in observed.brokers.items() if not broker.rack}
    if not nowhere or len(nowhere) == len(observed.brokers):
        return
    asking = {name for name, rule in rules.items() if rule.has_rackless and rule.spread is not Spread.IGNORE}
    barring = {name for name, rule in rules.items() if rule.declared and rule.declared.placement.racks_only is not None}
    copying = [
        move
        for move in moves
        if move.added
        and (
            (name := move.topic_partition.topic) in asking or (name in barring and not nowhere.isdisjoint(move.removed))
        )
    ]
    new = sum(
        len(change.assignment)
        for change in topic_changes
        if isinstance(change, CreateTopic | CreatePartitions) and change.topic in asking
    )
    placed = [f"{counted(len(copying), 'partition')} ({size(sum(move.bytes for move in copying))})"] if copying else []
    placed += [counted(new, "new partition")] if new else []
    if placed:
        message = (
            f"{labelled('broker', sorted(nowhere))} in no rack, while others have one: the plan counts such a broker "
            f"in no rack, and places {listed(placed)} by rules of racks. "
            "Set broker.rack and restart it before that runs"
        )
        yield warning("KR807", message)


def _above(task: PlacementTask, rules: Rows, count: Ints, limit: int) -> Ints:
    """Return by how much each broker is above that limit where all together are least so, for what can be moved."""
    most = np.maximum(limit - task.base, 0)
    targets = CountTargets(np.zeros_like(most), np.ones_like(most), band=(np.zeros_like(most), most))
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
        yield warning(OVERFULL_BROKER, message, at)
