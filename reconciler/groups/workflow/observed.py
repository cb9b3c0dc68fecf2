"""Consumer groups, and as much of the cluster around them as tells what their members can own."""

from collections.abc import Collection, Iterable

from reconciler.admin.port import Admin
from reconciler.model.cluster import Cluster, Group
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import cluster_admin, cluster_meant, observed_state


def observed_groups(inputs: Inputs, group_ids: Collection[str] = (), topics: Collection[str] = ()) -> Cluster:
    """Return these groups, or all, with the brokers and the topics that they read, and `topics` where they exist.

    Of a snapshot that is the whole; of a live cluster neither configs nor sizes, nor topics that nobody asked for.
    """
    if inputs.state:
        return observed_state(inputs, None)
    with cluster_admin(inputs, cluster_meant(inputs)) as admin:
        groups = tuple(admin.groups(group_ids or None).values())
        return _around(admin, groups, topics)


def _around(admin: Admin, groups: Iterable[Group], topics: Collection[str]) -> Cluster:
    """Return the cluster as far as these groups go."""
    found = tuple(groups)
    names = {name for group in found for member in group.members for name in (*member.subscription, *member.assignment)}
    return Cluster(
        admin.cluster_id(),
        dict(sorted(admin.brokers().items())),
        dict(sorted(admin.topics({*names, *topics}).items())),
        found,
    )
