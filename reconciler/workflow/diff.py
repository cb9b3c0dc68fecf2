"""`diff`: what differs between desired and observed state; no planning."""

from dataclasses import dataclass

from reconciler.admin.port import ProgressHook
from reconciler.diff.compare import compare
from reconciler.diff.explain import differences
from reconciler.diff.rules import topic_rules
from reconciler.model.change import Changes, Difference
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import desired_state, observed_state


@dataclass(frozen=True, slots=True)
class Compared:
    """What differs, and each changed field, old -> new."""

    cluster_name: str
    changes: Changes
    fields: tuple[Difference, ...]

    @property
    def has_changes(self) -> bool:
        """Whether anything differs that a plan could put right."""
        return bool(self.changes.topic_changes or self.changes.broken_rules or self.changes.elections)


def find_differences(inputs: Inputs, *, progress: ProgressHook | None = None) -> Compared:
    """Return what differs."""
    desired = desired_state(inputs)
    observed = observed_state(inputs, desired, progress)
    changes = compare(desired, observed, topic_rules(desired, observed))
    return Compared(desired.cluster.name, changes, differences(changes, observed))
