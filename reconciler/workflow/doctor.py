"""Finds what is wrong with a cluster, or with its snapshot, and takes off throttles that runs left behind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from reconciler.admin.port import Admin, ProgressHook
from reconciler.apply.examine import examine
from reconciler.diff.doctor.diagnose import diagnose
from reconciler.model.desired import Desired
from reconciler.model.diagnosis import Diagnosis, Whose
from reconciler.model.plan import Plan
from reconciler.model.problem import ClusterUnavailable, InvalidInput, Refused
from reconciler.model.run import RunResult
from reconciler.model.vitals import Vitals
from reconciler.workflow.inputs import Inputs, cluster_name, cluster_names
from reconciler.workflow.runs import Kept, as_known, known_runs, restored_line, take_off
from reconciler.workflow.saved_plan import plan_named
from reconciler.workflow.sources import client_cautions, cluster_admin, declared_as_far, declared_cluster

NOT_IN_SNAPSHOT = "what a snapshot does not hold: rights, versions of features, strays, lag, the lock, the quorum"
NO_SETTINGS = "static settings of brokers: snapshots hold them since 1.1"


@dataclass(frozen=True, slots=True)
class Visit:
    """A doctor beside one cluster: looks, and takes off what runs left. `name` is None where it is not declared.

    `unread`: what of the declared could not be read.
    """

    name: str | None
    admin: Admin
    inputs: Inputs
    desired: Desired | None
    plan: Plan | None
    unread: tuple[str, ...] = ()

    def look(self, progress: ProgressHook | None = None) -> Diagnosis:
        """Return what is found now."""
        vitals = examine(self.admin, sorted(self.desired.topics) if self.desired is not None else (), progress=progress)
        vitals = replace(vitals, unexamined=(*vitals.unexamined, *self.unread))
        try:
            known = as_known(self._known(), vitals.cluster)
        except (InvalidInput, ClusterUnavailable, Refused) as error:
            known = ()
            vitals = replace(
                vitals, unexamined=(*vitals.unexamined, f"runs that were started here, or elsewhere: {error}")
            )
        of_client = client_cautions(replace(self.inputs, cluster=self.name), self.desired)
        return diagnose(vitals, known, desired=self.desired, of_client=of_client)

    def look_once_unlocked(self, notify: Callable[[str], None]) -> Diagnosis:
        """Return what is found once no run is going on: LockHeld says whose is, a dead one's lock is waited for."""
        self.admin.lock("doctor --fix throttles", waiting=notify).release()
        return self.look()

    def take_off(self) -> tuple[RunResult, ...]:
        """Bring throttles that runs left back to what they were; raises Refused while a run is going on."""
        return take_off(self._known(), self.admin)

    def settle(self) -> bool:
        """Remove the record of a run that died and left nothing; return whether it was looked after.

        Left where it is, it would name a rate as the run's that an operator sets later. Moves in flight need it.
        """
        dead = [one for one in self._known() if one.record is not None]
        with suppress(Refused):
            return bool(dead and take_off(dead, self.admin))
        return False

    def _known(self) -> tuple[Kept, ...]:
        return known_runs(self.inputs, self.name, self.admin, self.plan)


@contextmanager
def visit(inputs: Inputs, plan_path: str | None = None) -> Iterator[Visit]:
    """Yield the doctor of the cluster that is named, or that is reached by what the caller gave."""
    plan, name = _plan_and_name(inputs, plan_path)
    desired, unread = declared_as_far(inputs, name) if name is not None else (None, None)
    with cluster_admin(replace(inputs, cluster=name), desired) as admin:
        yield Visit(name, admin, inputs, desired, plan, (unread,) if unread else ())


def look_at_snapshot(inputs: Inputs, plan_path: str | None = None) -> tuple[str | None, Diagnosis]:
    """Return what can be told from the snapshot that is named, and the cluster's name where it is declared."""
    from reconciler.files.snapshot import read_snapshot

    plan, name = _plan_and_name(inputs, plan_path)
    desired = declared_cluster(inputs, name) if name is not None else None
    cluster = read_snapshot(str(inputs.state))
    known = as_known(known_runs(inputs, name, None, plan), cluster)
    settings = {broker.id: broker.settings for broker in cluster.brokers.values() if broker.settings}
    unexamined = (NOT_IN_SNAPSHOT,) if settings else (NOT_IN_SNAPSHOT, NO_SETTINGS)
    vitals = Vitals(cluster, settings=settings, unexamined=unexamined)
    return name, diagnose(vitals, known, desired=desired, is_snapshot=True)


def to_take_off(found: Diagnosis) -> tuple[str, ...]:
    """Return a line for each throttle that `take_off` would bring back."""
    return tuple(
        restored_line(one.owner, one.key, one.value, one.restored)
        for one in found.throttles
        if one.whose is Whose.LEFTOVER
    )


def _plan_and_name(inputs: Inputs, plan_path: str | None) -> tuple[Plan | None, str | None]:
    plan = plan_named(inputs, plan_path) if plan_path else None
    return plan, plan.cluster_name if plan is not None else _name(inputs)


def _name(inputs: Inputs) -> str | None:
    """Return the cluster that is named, or the only declared one; None where the caller brings a cluster, or a file."""
    if inputs.cluster or not (inputs.is_client_given or inputs.state):
        return cluster_name(inputs)
    names = cluster_names(inputs.root)
    return names[0] if len(names) == 1 and inputs.state else None
