"""Compares desired and observed state without planning, and reads who reads the topics that a plan would grow or cut.

Consumer groups are read only where a topic grows or loses records, because the review of such a plan names its readers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.admin.port import ProgressHook
from reconciler.diff.compare import compare, topic_findings, undeclared_topics
from reconciler.diff.log_dirs import log_dir_differences
from reconciler.diff.min_isr import min_isr_warnings
from reconciler.diff.rules import topic_rules
from reconciler.diff.topic_facts import owner_of
from reconciler.model.change import Changes, DeleteTopic, Difference, class_of
from reconciler.model.cluster import Cluster, Topic
from reconciler.model.desired import Desired
from reconciler.model.effect import EffectClass
from reconciler.model.notice import Whose
from reconciler.model.problem import ClusterUnavailable, MissingRight, Problem, Severity
from reconciler.model.words import MANY, named_some
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.mirrors import with_mirrors
from reconciler.workflow.sources import cluster_admin, desired_state, observed_state

READERS_UNKNOWN = "KR834"
_GRAVE = frozenset({EffectClass.DESTROYS, EffectClass.IRREVERSIBLE})


@dataclass(frozen=True, slots=True)
class Compared:
    """What differs, each changed field, old -> new, and what could not be looked at.

    `undeclared`: the topics that no file declares, managed or not. `owners`: who owns each topic that is spoken of.
    """

    cluster_name: str
    changes: Changes
    fields: tuple[Difference, ...]
    warnings: tuple[Problem, ...] = ()
    undeclared: tuple[Topic, ...] = ()
    owners: Mapping[str, Whose] = field(default_factory=dict)

    @property
    def has_changes(self) -> bool:
        """Whether anything differs, what no plan can put right included."""
        found = self.changes
        return bool(found.topic_changes or found.broken_rules or found.elections or found.stays or found.log_dirs)


def find_differences(inputs: Inputs, *, progress: ProgressHook | None = None) -> Compared:
    """Return what differs."""
    from reconciler.diff.explain import differences  # loads deepdiff, which a plan has no use for

    desired = desired_state(inputs)
    observed = observed_state(inputs, desired, progress)
    desired = with_mirrors(inputs, desired, observed, progress).desired
    observed, unread = with_readers(inputs, desired, observed)
    rules = topic_rules(desired, observed)
    changes = compare(desired, observed, rules)
    drift = (*changes.drift, *min_isr_warnings(rules, observed, changes.topic_changes))
    changes = replace(changes, log_dirs=tuple(log_dir_differences(desired, observed)), drift=drift)
    undeclared = undeclared_topics(desired, observed)
    spoken_of = {*changes.topics, *(topic.name for topic in undeclared)}
    contacts = {owner.name: owner.contact for owner in desired.owners}
    owned = {name: owner for name in sorted(spoken_of) if (owner := owner_of(desired, name)) is not None}
    owners = {name: Whose(owner, contacts.get(owner)) for name, owner in owned.items()}
    fields = differences(changes, observed)
    return Compared(desired.cluster.name, changes, fields, unread, undeclared, owners)


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
