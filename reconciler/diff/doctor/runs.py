"""Findings of what is in flight: whose it is, whether it can end, and runs that never told their end."""

from collections.abc import Iterator, Mapping, Sequence

from reconciler.model.diagnosis import Finding, KnownRun
from reconciler.model.problem import Severity
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import Vitals
from reconciler.model.words import counted, few, labelled

Flights = Mapping[TopicPartition, tuple[int, ...]]


def findings(vitals: Vitals, known: Sequence[KnownRun]) -> Iterator[Finding]:
    """Yield what is in flight and wrong, or not ours; `known` are the runs known here, the latest first."""
    flights = {key: one.target_replicas for key, one in vitals.cluster.partitions() if one.is_reassigning}
    owners = {key: _owner(key, target, known) for key, target in flights.items()}
    if vitals.locked_by is not None:
        text = f"the cluster is locked by {vitals.locked_by}: a run is going on"
        yield Finding("KR663", Severity.NOTE, text, "reconciler status --watch follows it")
    yield from _foreign({key: target for key, target in flights.items() if owners[key] is None})
    yield from _endless(vitals, flights)
    for run in known:
        ours = tuple(key for key, owner in owners.items() if owner is not None and owner.plan_id == run.plan_id)
        if vitals.locked_by is None and (run.is_open or ours):
            yield _left_by(run, ours)
        if run.unrestored and not (vitals.locked_by is not None and run.is_open):
            yield _unrestored(run)


def _owner(key: TopicPartition, target: tuple[int, ...], known: Sequence[KnownRun]) -> KnownRun | None:
    return next((run for run in known if target in run.targets.get(key, ())), None)


def _foreign(flights: Flights) -> Iterator[Finding]:
    if flights:
        told = [f"{key} to {list(target)}" for key, target in sorted(flights.items())]
        yield Finding(
            "KR660",
            Severity.WARNING,
            f"{counted(len(flights), 'reassignment')} in flight that no plan known here asked for: {few(told)}",
            "let it end, or see who started it: apply never touches it, and refuses a plan that moves the same",
            partitions=tuple(sorted(flights)),
        )


def _endless(vitals: Vitals, flights: Flights) -> Iterator[Finding]:
    waiting: dict[int, list[TopicPartition]] = {}
    for key, target in sorted(flights.items()):
        for broker in target:
            if not vitals.cluster.is_alive(broker):
                waiting.setdefault(broker, []).append(key)
    for broker, keys in sorted(waiting.items()):
        yield Finding(
            "KR661",
            Severity.ERROR,
            f"{counted(len(keys), 'reassignment')} cannot end: broker {broker} is not alive: {few(keys)}",
            "start the broker, or take them back: reconciler cancel, or kafka-reassign-partitions --cancel",
            brokers=(broker,),
            partitions=tuple(keys),
        )


def _left_by(run: KnownRun, ours: tuple[TopicPartition, ...]) -> Finding:
    moving = f"; {counted(len(ours), 'move')} in flight: {few(ours)}" if ours else ""
    by = f", started by {run.by}" if run.by else ""
    open_since = f"has not told its end (it began {run.began}{by})"
    what = open_since if run.is_open else "has ended, but not all of its moves"
    return Finding(
        "KR662",
        Severity.WARNING,
        f"the run of plan {run.plan_id} {what}: it crashed, or goes on elsewhere{moving}",
        "if it does not go on: apply the plan again to finish it, or reconciler cancel to take it back",
        partitions=ours,
    )


def _unrestored(run: KnownRun) -> Finding:
    return Finding(
        "KR673",
        Severity.WARNING,
        f"{labelled('broker', run.unrestored)} may keep a throttle rate of the run of plan {run.plan_id}, and cannot "
        "be asked",
        "start it; then status, the next apply, or doctor --fix throttles takes the rate off",
        brokers=run.unrestored,
    )
