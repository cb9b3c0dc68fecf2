"""A law of staging: repairs first, then draining, then rules, then balance."""

from collections import Counter
from collections.abc import Collection, Sequence

from staging.drawn import Case

from reconciler.model.desired import BrokerState
from reconciler.model.move import Move, Reason
from reconciler.model.stage import ReassignStage


def urgency(case: Case, move: Move, held: Sequence[int], isr: Collection[int]) -> int:
    """Return how soon a step should go: repairs by their in-sync replicas, then draining, then rules, then balance."""
    if case.dead.intersection(move.removed):
        return len(set(isr).intersection(held) - case.dead)
    draining = {
        number for number, broker in case.wanted.cluster.brokers.items() if broker.state is BrokerState.DRAINING
    }
    if draining.intersection(move.removed) or move.reason is Reason.DRAINING:
        return 100
    if move.reason in (Reason.BALANCE, Reason.LEADERS):
        return 300
    return 50 if move.reason is Reason.DEAD_BROKER else 200


def no_move_waits_for_a_less_urgent_one(case: Case) -> None:
    """A step that a stage had room for, but for less urgent ones, is in it.

    Told apart are disks, which may forbid it or another step of its partition, and steps between the same brokers,
    which wait for each other. A step that follows a less urgent one of its partition is no more urgent: what was to be
    repaired is repaired by then.
    """
    stages = [stage for stage in case.staged().stages if isinstance(stage, ReassignStage)]
    partition = dict(case.observed.partitions())
    ranks: dict[Move, int] = {}
    highest: dict[tuple[str, int], int] = {}
    for move in (move for stage in stages for move in stage.moves):
        seen = partition[move.topic_partition]
        own = urgency(case, move, seen.replicas, seen.isr)
        ranks[move] = max(own, highest.get(move.topic_partition, 0))
        if not move.is_reorder:
            highest[move.topic_partition] = ranks[move]
    added = {move.topic_partition: move.added for move in case.moves}
    ready_at: dict[int, list[Move]] = {number: [] for number in range(len(stages))}
    last = {move.topic_partition: -1 for stage in stages for move in stage.moves}
    for number, stage in enumerate(stages):
        for move in stage.moves:
            for waited in range(last[move.topic_partition] + 1, number):
                ready_at[waited].append(move)
            last[move.topic_partition] = number
    for number, waiting in ready_at.items():
        is_copying = any(move.added for move in stages[number].moves)
        alike = Counter((frozenset(move.added), frozenset(move.removed)) for move in waiting)
        for move in waiting if is_copying else []:
            is_alone = alike[frozenset(move.added), frozenset(move.removed)] == 1
            is_forbidden = is_disk_known(case, added[move.topic_partition]) or has_several_dirs(case, move.removed)
            if move.added and is_alone and not is_forbidden:
                stage, rank = stages[number], ranks[move]
                as_urgent = [one for one in stage.moves if one.is_reorder or ranks[one] <= rank]
                is_full = len(as_urgent) >= case.policy.per_stage
                assert is_full or len(as_urgent) == len(stage.moves), (stage.number, move)


def is_disk_known(case: Case, brokers: Collection[int]) -> bool:
    return any(case.observed.brokers[number].log_dirs for number in brokers)


def has_several_dirs(case: Case, brokers: Collection[int]) -> bool:
    """Whether what leaves one of these may draw other replicas to the dir that it leaves."""
    return any(len(case.observed.brokers[number].log_dirs) > 1 for number in brokers)
