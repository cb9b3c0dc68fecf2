"""`diff`: what differs between desired and observed state; no planning."""

from dataclasses import dataclass

from reconciler.admin.port import ProgressHook
from reconciler.diff.compare import compare
from reconciler.diff.explain import differences
from reconciler.diff.rules import topic_rules
from reconciler.model.change import Changes, Difference
from reconciler.model.problem import Problem
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import desired_state, observed_state
from reconciler.workflow.topic_readers import with_readers


@dataclass(frozen=True, slots=True)
class Compared:
    """What differs, each changed field, old -> new, and what could not be looked at."""

    cluster_name: str
    changes: Changes
    fields: tuple[Difference, ...]
    warnings: tuple[Problem, ...] = ()

    @property
    def has_changes(self) -> bool:
        """Whether anything differs, what no plan can put right included."""
        found = self.changes
        return bool(found.topic_changes or found.broken_rules or found.elections or found.stays)


def find_differences(inputs: Inputs, *, progress: ProgressHook | None = None) -> Compared:
    """Return what differs."""
    desired = desired_state(inputs)
    observed = observed_state(inputs, desired, progress)
    observed, unread = with_readers(inputs, desired, observed)
    changes = compare(desired, observed, topic_rules(desired, observed))
    return Compared(desired.cluster.name, changes, differences(changes, observed), unread)
