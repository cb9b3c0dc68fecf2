"""Who reads a topic that a plan grows or takes records from: read when it does, told as warnings of the plan."""

from dataclasses import replace

from reconciler.diff.compare import topic_findings
from reconciler.diff.rules import topic_rules
from reconciler.model.change import AlterConfigs, CreatePartitions, TopicChange, class_of
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.model.effect import EffectClass
from reconciler.model.problem import ClusterUnavailable, MissingRight, Problem, Severity
from reconciler.staging.problems import some
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import cluster_admin

CLEANUP_POLICY = "cleanup.policy"
COMPACT = "compact"
READERS_UNKNOWN = "KR834"
_GRAVE = frozenset({EffectClass.DESTROYS, EffectClass.IRREVERSIBLE})


def with_readers(inputs: Inputs, desired: Desired, observed: Cluster) -> tuple[Cluster, tuple[Problem, ...]]:
    """Return the cluster with its groups where a topic is to grow or to lose records, or a warning of why not.

    A snapshot is taken as it is. A plan needs no right on groups, so a missing one does not stop it.
    """
    if inputs.state or observed.groups or observed.has_groups:
        return observed, ()
    changes, _ = topic_findings(desired, observed, topic_rules(desired, observed))
    grave = sorted({change.topic for change in changes if class_of(change) in _GRAVE})
    if not grave:
        return observed, ()
    try:
        with cluster_admin(inputs, desired) as admin:
            return replace(observed, groups=tuple(admin.groups().values()), has_groups=True), ()
    except (MissingRight, ClusterUnavailable) as error:
        message = f"which groups read {some(grave)}, to be grown or to lose records, is not known: {error}"
        return observed, (Problem(READERS_UNKNOWN, message, None, Severity.WARNING),)


def warnings_of_growth(observed: Cluster, topic_changes: tuple[TopicChange, ...]) -> tuple[Problem, ...]:
    """Return what growing these topics does to keys and to the groups that read them."""
    growths = [change for change in topic_changes if isinstance(change, CreatePartitions)]
    if not growths:
        return ()
    from reconciler.groups.growth import growth_warnings
    from reconciler.groups.registry import ASSIGNORS

    return growth_warnings(observed, growths, ASSIGNORS, _compacted(observed, growths, topic_changes))


def _compacted(
    observed: Cluster, growths: list[CreatePartitions], topic_changes: tuple[TopicChange, ...]
) -> frozenset[str]:
    """Return which of them are compacted now or will be."""
    will_be = {
        change.topic
        for change in topic_changes
        if isinstance(change, AlterConfigs) and COMPACT in change.set.get(CLEANUP_POLICY, "")
    }
    are = {
        growth.topic for growth in growths if COMPACT in observed.topics[growth.topic].configs.get(CLEANUP_POLICY, "")
    }
    return frozenset(will_be | are)
