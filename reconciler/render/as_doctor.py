"""Makes the report of what a doctor found: the gravest first, each with what to do next; then which broker may stop."""

from collections.abc import Iterator, Sequence

from reconciler.model.diagnosis import Diagnosis, Finding, FoundThrottle, NeededRight, Whose
from reconciler.model.problem import Severity
from reconciler.model.starting import Start
from reconciler.model.vitals import LACKABLE
from reconciler.model.words import counted, named_some, number, size
from reconciler.render.facts import quorum_line, start_lines
from reconciler.render.report import Report, Section

MOST_THROTTLES = 20
ADMINISTERS = "Alter on the cluster, which moves take, also creates ACLs, sets passwords and unregisters brokers"
_WHOSE = {
    Whose.RUN: "of the run of plan {plan}",
    Whose.LEFTOVER: "left by the run of plan {plan}",
    Whose.RECORDED: "left by the run of plan {plan}, as only its record in the cluster says",
    Whose.UNDECIDED: "of a run, or of somebody else",
    Whose.OTHER: "",
}


def doctor(found: Diagnosis, name: str | None) -> Report:
    """Return everything that was found."""
    return Report(
        (
            Section(_head(found, name)),
            *map(Section, _versions(found)),
            *map(Section, [quorum_line(found.quorum)] if found.quorum is not None else []),
            *map(Section, _rights(found.rights)),
            *map(_finding, found.findings),
            *map(Section, _throttles(found.throttles)),
            *_start(found.start),
            *map(Section, _stopping(found)),
            *(Section(f"not looked at: {what}") for what in found.unexamined),
            Section(verdict(found)),
        ),
        is_dense=True,
    )


def _head(found: Diagnosis, name: str | None) -> str:
    shown = name or found.cluster_id
    release = f"Kafka {found.kafka_version}" if found.kafka_version else "Kafka of an unknown release"
    counts = (counted(found.brokers, "broker"), counted(found.topics, "topic"), counted(found.partitions, "partition"))
    when = f", as of {found.observed_at}" if found.is_snapshot and found.observed_at else ""
    return f"{shown}: {release}, {', '.join(counts)}{when}."


def _versions(found: Diagnosis) -> Iterator[str]:
    features = found.features
    if features is None:
        return
    can = [
        ("moves that cannot change a replication factor (KIP-860)", features.has_factor_guard),
        ("consumer groups of KIP-848", features.has_consumer_groups),
    ]
    levels = ", ".join(f"{name} {level}" for name, level in features.finalized.items())
    yield "offers: " + "; ".join(f"{what}: {'yes' if there else 'no'}" for what, there in can)
    if levels:
        yield f"features: {levels}"
    if features.lacking:
        yield "not taken by these brokers: " + "; ".join(f"{name} ({LACKABLE[name]})" for name in features.lacking)


def _rights(needed: tuple[NeededRight, ...] | None) -> Iterator[str]:
    if needed is None:
        return
    there = [f"{one.operation} on {one.resource}" for one in needed if one.is_granted]
    if len(there) == len(needed):
        yield f"rights: all {number(len(needed))} that the verbs need; {ADMINISTERS}"
    else:
        yield f"rights: {number(len(there))} of {number(len(needed))}: {', '.join(there) or 'none'}"


def _finding(finding: Finding) -> Section:
    behind = [
        f"{size(finding.bytes_behind)} behind" if finding.bytes_behind is not None else "",
        f"{counted(finding.records_behind, 'record')} behind" if finding.records_behind else "",
        f"{size(finding.bytes_on_disk)} on disk" if finding.bytes_on_disk is not None else "",
    ]
    amounts = ", ".join(filter(None, behind))
    tail = f" ({amounts})" if amounts else ""
    next_step = (f"next: {finding.next}",) if finding.next else ()
    return Section(f"{finding.severity}: {finding.message}{tail} ({finding.code})", next_step)


def _throttles(throttles: Sequence[FoundThrottle]) -> Iterator[str]:
    yield from (_throttle(one) for one in throttles[:MOST_THROTTLES])
    if len(throttles) > MOST_THROTTLES:
        yield f"and {counted(len(throttles) - MOST_THROTTLES, 'throttle')} more: -o json has all"


def _throttle(one: FoundThrottle) -> str:
    whose = _WHOSE[one.whose].format(plan=one.plan_id or "")
    return f"throttle on {one}{f', {whose}' if whose else ''}"


def undecided_lines(undecided: Sequence[FoundThrottle]) -> list[str]:
    """Return a line for each value that a run or an operator may have set, and that was not touched."""
    head = "Not touched, as nothing shows whether a run or somebody else set it:"
    hint = "With the plan of the run at hand: reconciler doctor PLAN --fix throttles."
    hint += " What nobody wants: kafka-configs --alter --delete-config."
    return [head, *(f"  ? {one}" for one in undecided), hint]


def _start(order: Sequence[Start]) -> Iterator[Section]:
    lines = start_lines(order)
    if lines:
        yield Section(lines[0], tuple(line.strip() for line in lines[1:]))


def _stopping(found: Diagnosis) -> Iterator[str]:
    yield f"safe to stop, one at a time: {', '.join(map(str, found.safe_to_stop)) or 'none'}"
    for broker, keys in found.blocking.items():
        yield f"not safe to stop: {broker} ({named_some(keys)} would go under min ISR, or offline)"


def verdict(found: Diagnosis) -> str:
    """Return how many findings there are, by their weight."""
    counts = [counted(found.count(each), each.value) for each in (Severity.ERROR, Severity.WARNING, Severity.NOTE)]
    return f"{', '.join(counts)}." if found.findings else "Nothing is wrong."
