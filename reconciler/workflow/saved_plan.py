"""Reads a saved plan, writes it as files for Kafka's own tools, and proves it for the state that it was made from."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.admin.port import ProgressHook
from reconciler.files.plan_file import read_plan
from reconciler.files.raw import write_atomically
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.model.loads import Loads
from reconciler.model.plan import Plan, Verdict
from reconciler.model.problem import ReconcilerError, Refused, StalePlan
from reconciler.model.stage import ReassignStage
from reconciler.model.words import listed
from reconciler.render import as_kafka_json
from reconciler.workflow.inputs import Inputs, NotNamed
from reconciler.workflow.mirrors import with_mirrors
from reconciler.workflow.sources import desired_state, observed_state

if TYPE_CHECKING:
    from reconciler.workflow.plan import LoadsAt

NOT_WRITTEN = "KR216"
OTHER_FILES = "KR505"
OTHER_CLUSTER = "KR506"
MOVED_ON = "KR507"
A_ROLLBACK = "KR509"


def plan_named(inputs: Inputs, path: str, reviewed_digest: str | None = None) -> Plan:
    """Return the plan in that file, which says itself for which cluster it is.

    Raises InvalidInput where it was changed or cut short, Refused if its digest is not the reviewed one, NotNamed where
    another cluster is named too: nobody can tell which of the two is meant.
    """
    plan = read_plan(path, reviewed_digest)
    if inputs.cluster and inputs.cluster != plan.cluster_name:
        raise NotNamed(
            f"the plan is for {plan.cluster_name}, and --cluster (RECONCILER_CLUSTER) names {inputs.cluster}: "
            "name the right plan, or leave --cluster out, as a plan says itself what it is for"
        )
    return plan


def refuse_supposed(plan: Plan, what: str) -> None:
    """Raise Refused where the plan supposes something: nobody can run what is not so."""
    if plan.what_if is not None:
        supposed = ", ".join(plan.what_if.suppositions)
        message = (
            f"this plan supposes {supposed}: it shows what would be, and {what}. "
            "Make it so in the desired state or in the cluster, then plan again without --what-if"
        )
        raise Refused(message, code="KR424")


def write_kafka_files(plan: Plan, folder: str, *, has_log_dirs: bool = False) -> tuple[str, ...]:
    """Write the files for Kafka's own tools, one set a stage, and return their names in the order of use.

    With `has_log_dirs`, they name the log dir predicted for each new replica. Raises Refused where the plan is of a
    supposed state.
    """
    refuse_supposed(plan, "has no files for Kafka's tools")
    files = as_kafka_json.plan_files(plan, has_log_dirs=has_log_dirs)
    for name, text in files.items():
        write_atomically(Path(folder) / name, text.encode(), "file for Kafka's tools", NOT_WRITTEN)
    return tuple(files)


def prove_plan(
    inputs: Inputs, plan: Plan, *, loads: "LoadsAt | None" = None, progress: ProgressHook | None = None
) -> Verdict:
    """Return whether no plan is better than this one, for the files and the cluster, or snapshot, that are named.

    The cluster is by default the plan's; `loads` are those that it was made with. Raises StalePlan where files, cluster
    or the partitions that the plan moves are no longer those that it was made from.
    """
    if plan.source.rolls_back:
        message = f"this plan goes back to what plan {plan.source.rolls_back} found, not to a desired state"
        raise ReconcilerError(f"{message}: no other lists would do, so there is nothing to prove", code=A_ROLLBACK)
    inputs = replace(inputs, cluster=inputs.cluster or plan.cluster_name)
    desired = desired_state(inputs)
    if desired.digest != plan.source.desired_digest:
        made = f"commit {plan.source.commit}" if plan.source.commit else "other files"
        message = f"{inputs.root}/{inputs.cluster} is not what the plan was made from ({made})"
        raise StalePlan(f"{message}: check that out, or plan again", code=OTHER_FILES)
    observed = observed_state(inputs, desired, progress)
    mirrored = with_mirrors(inputs, desired, observed, progress)
    desired = mirrored.desired
    then = {each.cluster: each.digest for each in plan.source.mirrors}
    changed = [now.cluster for now in mirrored.sources if then.get(now.cluster) != now.digest]
    if changed:
        message = f"{listed(changed)}, which mirrors copy from, is not what the plan was made from"
        raise StalePlan(f"{message}: name its snapshot with --source-state, or plan again", code=OTHER_FILES)
    return verdict_on(plan, desired, observed, loads.read(inputs) if loads is not None else None)


def verdict_on(plan: Plan, desired: Desired, observed: Cluster, loads: Loads | None = None) -> Verdict:
    """Return whether the plan is proved for these states; a function of its arguments alone."""
    from reconciler.proof.check import prove

    if observed.cluster_id != plan.cluster_id:
        message = f"the plan is for cluster {plan.cluster_id}, and this is {observed.cluster_id}"
        raise StalePlan(f"{message}: name the right cluster or snapshot", code=OTHER_CLUSTER)
    is_same = observed.observed_at is not None and observed.observed_at == plan.source.observed_at
    if not is_same:
        _refuse_moved_on(plan, observed)
    desired, observed = _supposed(plan, desired, observed)
    verdict = prove(plan, desired, observed, loads)
    return verdict if is_same else replace(verdict, notes=(*verdict.notes, _seen_at(plan, observed)))


def _refuse_moved_on(plan: Plan, observed: Cluster) -> None:
    changed = list(_changed(plan, observed))
    if changed:
        others = f" and {len(changed) - 1} others" if len(changed) > 1 else ""
        message = f"the cluster is no longer as the plan saw it: {changed[0]}{others}"
        raise StalePlan(f"{message}. Name the snapshot that it was made from, or plan again", code=MOVED_ON)


def _changed(plan: Plan, observed: Cluster) -> Iterator[str]:
    """Yield what is no longer where the plan begins, partition by partition."""
    seen = set()
    for stage in plan.stages:
        for move in stage.moves if isinstance(stage, ReassignStage) else ():
            key = move.topic_partition
            if key in seen:
                continue
            seen.add(key)
            partition = observed.partition(key)
            if partition is None:
                yield f"{key} does not exist"
            elif partition.target_replicas != move.from_replicas:
                now = list(partition.target_replicas)
                yield f"{key} is on brokers {now}, and the plan begins with {list(move.from_replicas)}"


def _supposed(plan: Plan, desired: Desired, observed: Cluster) -> tuple[Desired, Cluster]:
    """Return the states that a plan of a supposed state is for."""
    if plan.what_if is None:
        return desired, observed
    from reconciler.diff.what_if import suppose, suppositions

    at = suppose(desired, observed, suppositions(plan.what_if.suppositions))
    return at.desired, at.observed


def _seen_at(plan: Plan, observed: Cluster) -> str:
    then, now = plan.source.observed_at or "an unknown time", observed.observed_at or "an unknown time"
    return f"Note: the plan was made from what was seen at {then}; this check is of {now}."
