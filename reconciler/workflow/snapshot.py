"""`snapshot`: the observed state of a cluster, as a file or as text."""

from reconciler.admin.port import ProgressHook
from reconciler.files.snapshot import snapshot_text, write_snapshot
from reconciler.model.cluster import Cluster
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import cluster_admin, cluster_meant, warn_of_run


def take_snapshot(inputs: Inputs, *, progress: ProgressHook | None = None) -> Cluster:
    """Return what the cluster shows now, consumer groups included; no cluster.yaml is needed with a client given."""
    with cluster_admin(inputs, cluster_meant(inputs)) as admin:
        warn_of_run(admin)
        return admin.observe(has_groups=True, progress=progress)


def save_snapshot(cluster: Cluster, path: str) -> None:
    """Write the snapshot's file."""
    write_snapshot(cluster, path)


def snapshot_json(cluster: Cluster) -> str:
    """Return the snapshot's file as text."""
    return snapshot_text(cluster)
