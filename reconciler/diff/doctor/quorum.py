"""Findings of the metadata quorum: controllers that are behind, and brokers that do not know the newest metadata."""

from collections.abc import Iterator, Sequence

from reconciler.model.cluster import Cluster
from reconciler.model.diagnosis import Finding
from reconciler.model.problem import Severity
from reconciler.model.vitals import Quorum, QuorumMember
from reconciler.model.words import counted, labelled

LATE_MS = 30_000
"""An idle controller writes at least each 5 s what its followers fetch at once: who is so late does not follow."""


def findings(quorum: Quorum | None, cluster: Cluster) -> Iterator[Finding]:
    """Yield who does not follow the active controller; a broker that is dead is told elsewhere."""
    if quorum is None:
        return
    late = [one for one in quorum.voters if _is_late(one)]
    if late:
        ids = [one.id for one in late]
        spare = (len(quorum.voters) - 1) // 2 - len(late)
        left = f"{counted(spare, 'controller')} more may fail" if spare > 0 else "none more may fail"
        yield Finding(
            "KR637",
            Severity.WARNING,
            f"{_controllers(ids)} of the quorum {_ids(quorum.voters)} not following it: {_behind(late)}",
            f"start it, or see to its disk and network; until then {left} before nothing can be changed any more",
            brokers=tuple(ids),
        )
    slow = [one for one in quorum.observers if _is_late(one) and cluster.is_alive(one.id)]
    if slow:
        ids = [one.id for one in slow]
        yield Finding(
            "KR638",
            Severity.WARNING,
            f"{labelled('broker', ids)} not up to date with the cluster's metadata: {_behind(slow)}",
            "see to its disk and network; what it tells of topics and leaders is old until then",
            brokers=tuple(ids),
        )


def _is_late(one: QuorumMember) -> bool:
    return one.behind_ms is None or one.behind_ms >= LATE_MS


def _controllers(ids: Sequence[int]) -> str:
    return labelled("controller", ids)


def _ids(members: Sequence[QuorumMember]) -> str:
    return ", ".join(str(one.id) for one in members)


def _behind(members: Sequence[QuorumMember]) -> str:
    times = [one.behind_ms for one in members]
    known = [one for one in times if one is not None]
    if len(known) < len(times):
        return "not heard of since the active controller began"
    records = max((one.behind_records or 0 for one in members), default=0)
    return f"{max(known) // 1000:,} s and {counted(records, 'record')} behind"
