"""Reads the clusters that `balance` compares, as they are and as plans would leave them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.admin.port import ProgressHook
from reconciler.diff.capacities import foreign_told, weights_told
from reconciler.files.paths import is_folder, is_there
from reconciler.model.cluster import Cluster, Partition
from reconciler.model.desired import BrokerState, Desired
from reconciler.model.move import Move
from reconciler.model.plan import Plan
from reconciler.model.problem import InvalidInput, Problem, ReconcilerError, Severity, StalePlan
from reconciler.model.stage import ReassignStage, TopicsStage
from reconciler.model.what_if import SetPartitions, SetReplicationFactor
from reconciler.workflow.inputs import EVERY, Inputs, NotNamed, cluster_name, cluster_names
from reconciler.workflow.sources import declared, observed_state

if TYPE_CHECKING:
    from reconciler.balance.files.assignment_table import Side
    from reconciler.model.topic_partition import TopicPartition

SNAPSHOT_NAMES = ("{}.json", "{}.json.gz")
OTHER_PLAN = "KR265"
UNREAD = "KR266"
MOVED_ON = "KR508"
_EMPTY = {BrokerState.DRAINING, BrokerState.ABSENT}


@dataclass(frozen=True, slots=True)
class ObservedCluster:
    """A cluster, under the name that its samples have; what is declared of it, and the plan for it, if any."""

    name: str
    cluster: Cluster
    desired: Desired | None = None
    plan: Plan | None = None

    @property
    def capacities(self) -> dict[int, int]:
        """The weights of the brokers that differ from 1; 0 for one that is declared to end empty."""
        brokers = self.desired.cluster.brokers.values() if self.desired is not None else ()
        return {broker.id: 0 if broker.state in _EMPTY else broker.capacity for broker in brokers}

    @property
    def weights(self) -> Mapping[int, Mapping[str, int]]:
        """The weights that differ from a broker's capacity, by measure; those of disks by their size included."""
        if self.desired is None:
            return {}
        told = weights_told(self.desired, self.cluster)
        return {broker_id: each for broker_id, each in told.items() if self.capacities.get(broker_id, 1)}

    @property
    def foreign(self) -> Mapping[int, int]:
        """What else lies on brokers' disks, where these weigh by their size."""
        return {} if self.desired is None else foreign_told(self.desired, self.cluster)


def observed_clusters(
    inputs: Inputs, plans: Sequence[Plan], progress: ProgressHook | None = None
) -> tuple[tuple[ObservedCluster, ...], tuple[Problem, ...]]:
    """Return the clusters by name, each with its plan, and a warning for each that does not answer.

    With the name `*`, all clusters of the root; the state is then a folder that holds a snapshot of each, NAME.json or
    NAME.json.gz. Raises what a single cluster raises, or the first reason where of many none answers.
    """
    if inputs.cluster != EVERY:
        found = (_one(inputs, plans, progress),)
        return _with_plans(found, plans), ()
    observed, warnings = [], []
    reasons: list[ReconcilerError] = []
    for name in _names(inputs):
        try:
            observed.append(_one(replace(inputs, cluster=name, state=_snapshot_of(inputs, name)), plans, progress))
        except ReconcilerError as error:
            reasons.append(error)
            message = f"{name} is left out: {str(error).partition(chr(10))[0]}"
            warnings.append(Problem(UNREAD, message, severity=Severity.WARNING))
    if not observed:
        raise reasons[0]
    return _with_plans(tuple(observed), plans), tuple(warnings)


def sides_of(observed: Sequence[ObservedCluster]) -> "tuple[Side, ...]":
    """Return each cluster as it is and, where it has a plan, as that leaves it."""
    from reconciler.balance.files.assignment_table import AFTER, Side

    before = [Side(one.name, one.cluster) for one in observed]
    planned = [(one, one.plan) for one in observed if one.plan is not None]
    after = [Side(one.name, reached(one, plan), AFTER, plan.new_log_dirs) for one, plan in planned]
    return (*before, *after)


def reached(observed: ObservedCluster, plan: Plan) -> Cluster:
    """Return the cluster once the plan has run; raises StalePlan where partitions are not where it looks for them."""
    from reconciler.simulate.reach import reach, reach_all
    from reconciler.simulate.storage import with_metadata

    cluster = _supposed(observed, plan)
    astray = list(_astray(plan, cluster))
    if astray:
        others = f" and {len(astray) - 1} others" if len(astray) > 1 else ""
        message = f"the cluster is no longer as the plan {plan.id} saw it: {astray[0]}{others}"
        raise StalePlan(f"{message}. Name the snapshot that it was made from, or plan again", code=MOVED_ON)
    touched = {key: state for step in reach_all(cluster, plan) for key, state in step.items()}
    for stage in plan.stages:
        if isinstance(stage, TopicsStage):
            cluster = reach(cluster, stage, plan.topic_changes)
    return with_metadata(cluster, {key: state for key, state in touched.items() if state is not None})


def _one(inputs: Inputs, plans: Sequence[Plan], progress: ProgressHook | None) -> ObservedCluster:
    """Return the cluster that is named, or the only one, or the plan's; else it goes by its id."""
    if inputs.cluster is None and len(plans) == 1:
        inputs = replace(inputs, cluster=plans[0].cluster_name)
    try:
        name = cluster_name(inputs)
    except NotNamed:
        if not inputs.state and not inputs.is_client_given:
            raise
        cluster = observed_state(inputs, None, progress)
        return ObservedCluster(cluster.cluster_id, cluster)
    desired = declared(inputs, name)
    return ObservedCluster(name, observed_state(inputs, desired, progress), desired)


def _names(inputs: Inputs) -> tuple[str, ...]:
    """Return the clusters of the root, or those that the folder of snapshots holds."""
    if inputs.state and is_folder(inputs.state):
        files = (path.name for path in Path(inputs.state).iterdir())
        names = tuple(sorted({name.removesuffix(".gz").removesuffix(".json") for name in files if ".json" in name}))
        if not names:
            raise NotNamed(f"--state {inputs.state} holds no snapshot: with --cluster '*' it is a folder of NAME.json")
        return names
    if inputs.state:
        raise NotNamed(
            f"--state {inputs.state} is no folder: with --cluster '*' it is one that holds NAME.json of each"
        )
    names = cluster_names(inputs.root)
    if not names:
        raise NotNamed(
            f"{inputs.root} holds no cluster: name the right folder with -C, or one of snapshots with --state"
        )
    return names


def _snapshot_of(inputs: Inputs, name: str) -> str | None:
    if not inputs.state:
        return None
    paths = [Path(inputs.state) / pattern.format(name) for pattern in SNAPSHOT_NAMES]
    return str(next((path for path in paths if is_there(path)), paths[0]))


def _with_plans(observed: Sequence[ObservedCluster], plans: Sequence[Plan]) -> tuple[ObservedCluster, ...]:
    problems = []
    by_id: dict[str, Plan] = {}
    known = {one.cluster.cluster_id: one.name for one in observed}
    for plan in plans:
        if plan.cluster_id not in known:
            message = f"the plan {plan.id} is for cluster {plan.cluster_id}, and not for {', '.join(known.values())}"
            problems.append(Problem(OTHER_PLAN, f"{message}: name its cluster, or that cluster's snapshot"))
        elif plan.cluster_id in by_id:
            other = by_id[plan.cluster_id].id
            problems.append(Problem(OTHER_PLAN, f"{plan.id} and {other} are two plans for one cluster: name one"))
        by_id[plan.cluster_id] = plan
    if problems:
        raise InvalidInput(problems)
    return tuple(replace(one, plan=by_id.get(one.cluster.cluster_id)) for one in observed)


def _supposed(observed: ObservedCluster, plan: Plan) -> Cluster:
    """Return the state that a plan is for: what is observed or, of a supposed one, what it supposes."""
    if plan.what_if is None:
        return observed.cluster
    if observed.desired is None:
        raise NotNamed(f"the plan {plan.id} supposes a state of {plan.cluster_name}: name its root with -C")
    from reconciler.diff.what_if import suppose, suppositions

    # Those of topics change what is declared, and may be of a copy that the plan makes, which no file declares.
    of_cluster = [
        one
        for one in suppositions(plan.what_if.suppositions)
        if not isinstance(one, SetReplicationFactor | SetPartitions)
    ]
    return suppose(observed.desired, observed.cluster, of_cluster).observed


def _astray(plan: Plan, cluster: Cluster) -> Iterator[str]:
    """Yield the partitions that stand neither where the plan finds them nor where any of its moves puts them."""
    wanted: dict[TopicPartition, list[tuple[int, ...]]] = {}
    for move in _moves(plan):
        wanted.setdefault(move.topic_partition, [move.from_replicas]).append(move.to_replicas)
    for key, places in wanted.items():
        partition: Partition | None = cluster.partition(key)
        if partition is None:
            yield f"{key} does not exist"
        elif partition.target_replicas not in places:
            yield f"{key} is on brokers {list(partition.target_replicas)}, and the plan begins with {list(places[0])}"


def _moves(plan: Plan) -> Iterator[Move]:
    for stage in plan.stages:
        if isinstance(stage, ReassignStage):
            yield from stage.moves
