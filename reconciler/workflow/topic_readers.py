"""Reads the consumer groups where a plan grows a topic or removes records, because its review names the readers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from reconciler.diff.compare import topic_findings
from reconciler.diff.rules import topic_rules
from reconciler.model.change import DeleteTopic, class_of
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.model.effect import EffectClass
from reconciler.model.problem import ClusterUnavailable, MissingRight, Problem, Severity
from reconciler.model.words import MANY, named_some
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import cluster_admin

READERS_UNKNOWN = "KR834"
_GRAVE = frozenset({EffectClass.DESTROYS, EffectClass.IRREVERSIBLE})


def with_readers(inputs: Inputs, desired: Desired, observed: Cluster) -> tuple[Cluster, tuple[Problem, ...]]:
    """Return the cluster with its groups where a topic is to grow or to lose records, or a warning of why not.

    A snapshot is taken as it is. A plan needs no right on groups, so a missing one does not stop it.
    """
    if observed.groups or observed.has_groups:
        return observed, ()
    if inputs.state:
        return observed, tuple(_untold(desired, observed))
    changes, _ = topic_findings(desired, observed, topic_rules(desired, observed))
    grave = sorted({change.topic for change in changes if class_of(change) in _GRAVE})
    if not grave:
        return observed, ()
    try:
        with cluster_admin(inputs, desired) as admin:
            return replace(observed, groups=tuple(admin.groups().values()), has_groups=True), ()
    except (MissingRight, ClusterUnavailable) as error:
        return observed, (_unknown(grave, str(error)),)


def _untold(desired: Desired, observed: Cluster) -> Iterator[Problem]:
    """Yield a warning where nobody knows who reads what would be deleted without a document of its own."""
    policy = desired.cluster.topics
    if policy.is_all_managed and policy.is_delete_allowed:
        changes, _ = topic_findings(desired, observed, topic_rules(desired, observed))
        doomed = [change.topic for change in changes if isinstance(change, DeleteTopic) and not change.is_declared]
        if doomed:
            yield _unknown(doomed, "the snapshot holds no groups; apply looks before it deletes what is not declared")


def _unknown(topics: Sequence[str], why: str) -> Problem:
    message = f"which groups read {named_some(topics, MANY)}, to be grown or to lose records, is not known: {why}"
    return Problem(READERS_UNKNOWN, message, None, Severity.WARNING)
