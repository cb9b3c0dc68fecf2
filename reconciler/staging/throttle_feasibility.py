"""Checks whether a throttle lets a stage end: what producers write into partitions on the move passes it too."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest

from reconciler.model.cluster import Cluster
from reconciler.model.desired import MovePolicy
from reconciler.model.loads import Loads
from reconciler.model.problem import Problem, Severity, warning
from reconciler.model.stage import ReassignStage, Stage
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import few, rate
from reconciler.staging.estimate import served_moves

TOO_SLOW, NOT_MEASURED = "KR414", "KR828"


def throttle_violations(
    stages: Sequence[Stage], observed: Cluster, policy: MovePolicy, loads: Loads
) -> tuple[Problem, ...]:
    """Return a violation for each stage that could never end: a broker must take in, or send, what its throttle allows.

    A new replica is held back until it is in sync, and so is what is written meanwhile (Kafka's documentation,
    "Limiting bandwidth usage during data migration"). Only measured rates count.
    """
    sources = {id(move): source for move, source in served_moves(stages, observed)}
    return tuple(
        problem
        for stage in stages
        if isinstance(stage, ReassignStage) and stage.throttle_bytes_per_second is not None
        for problem in _of_stage(stage, stage.throttle_bytes_per_second, sources, policy, loads)
    )


def throttle_warnings(stages: Sequence[Stage], policy: MovePolicy, loads: Loads) -> tuple[Problem, ...]:
    """Return a warning where partitions are copied under a throttle whose rates the loads do not have."""
    throttled = [s for s in stages if isinstance(s, ReassignStage) and s.throttle_bytes_per_second is not None]
    copied = sorted({move.topic_partition for stage in throttled for move in stage.moves if move.added})
    unknown = [str(key) for key in copied if _bytes_in(loads, key) is None]
    if not unknown:
        return ()
    names = few(unknown)
    message = (
        f"what producers write into {len(unknown)} of {len(copied)} partitions to copy is not measured ({names}): a"
        " throttle at or below it would never let them end; apply tells it when they come no closer"
    )
    return (warning(NOT_MEASURED, message, policy.at.get("throttle")),)


def _of_stage(
    stage: ReassignStage, throttle: int, sources: Mapping[int, int | None], policy: MovePolicy, loads: Loads
) -> Iterator[Problem]:
    incoming: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for move in stage.moves:
        # Kafka throttles no replica that is in sync (KIP-73): only what new ones fetch passes the throttle.
        written = _bytes_in(loads, move.topic_partition) or 0
        source = sources.get(id(move))
        for broker in move.added:
            incoming["take in", broker].append(written)
        if source is not None:
            incoming["send", source] += [written] * len(move.added)
    # So many of them are in flight at once, and these may be the busiest.
    at_once = {slot: sum(nlargest(policy.per_broker, rates)) for slot, rates in incoming.items()}
    worst = max(at_once.items(), key=lambda item: (item[1], item[0]), default=None)
    if worst is not None and worst[1] >= throttle:
        (verb, broker), needed = worst
        message = (
            f"stage {stage.number} would never end: beside the copy, broker {broker} has to {verb} {rate(needed)}"
            f" ({needed} bytes a second) that producers write into the partitions on the move, and moves.throttle is"
            f" {rate(throttle)}: raise it, or let fewer replicas move at once (moves.perBroker)"
        )
        yield Problem(TOO_SLOW, message, policy.at.get("throttle"), Severity.VIOLATION)


def _bytes_in(loads: Loads, key: TopicPartition) -> int | None:
    return loads.of[key].bytes_in if key in loads.of else None
