"""Warns of what growing topics does to keys and to the groups that read them: handed to the plan by its verb."""

from reconciler.groups.assignors.registry import ASSIGNORS
from reconciler.groups.simulate.growth import growth_warnings
from reconciler.model.change import AlterConfigs, CreatePartitions, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.problem import Problem

CLEANUP_POLICY = "cleanup.policy"
COMPACT = "compact"


def warnings_of_growth(observed: Cluster, topic_changes: tuple[TopicChange, ...]) -> tuple[Problem, ...]:
    """Return what growing these topics does to keys and to the groups that read them."""
    growths = [change for change in topic_changes if isinstance(change, CreatePartitions)]
    if not growths:
        return ()
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
