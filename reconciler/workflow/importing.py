"""Imports the observed state as desired-state files, with the strongest rules it keeps; a plan after it is empty."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.admin.port import ProgressHook
from reconciler.diff.compare import compare
from reconciler.diff.imported.classes import with_classes
from reconciler.diff.imported.evenness import (
    Counts,
    are_topics_even,
    leader_counts,
    replica_counts,
    tightest_band,
)
from reconciler.diff.imported.strongest_rules import adopted, elections_wanted
from reconciler.diff.managed import is_ignored
from reconciler.diff.rules import topic_rules
from reconciler.files.desired_writer import is_writable
from reconciler.files.load import load_desired
from reconciler.model.cluster import Cluster
from reconciler.model.desired import CLUSTER_FILE, Balance, BrokerState, Desired, DesiredCluster, Even, Off
from reconciler.model.imported import Deviation, Imported
from reconciler.model.move import Move
from reconciler.model.problem import ReconcilerError
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.import_target import (
    client_of,
    cluster_text,
    desired_texts,
    read_back,
    refuse_declared,
    write_new,
)
from reconciler.workflow.init import schemas_beside
from reconciler.workflow.inputs import Inputs, NotNamed, checked_name, cluster_name
from reconciler.workflow.sources import observed_state

NOT_LED, NOT_EMPTY, OUR_FAULT = "KR014", "KR015", "KR018"
STEPS = 3
"""What is shown as progress once the cluster is read: its rules, its balance, the files read back."""
_OUR_FAULT = "internal error, please report it: nothing was written, as the files would not say what is"


def import_cluster(inputs: Inputs, *, progress: ProgressHook | None = None) -> Imported:
    """Write what a cluster, or a snapshot, shows as desired state below the root; no file that is there is touched.

    A cluster.yaml that is there stays, and says how to reach the cluster. Every rule written was judged as a plan
    judges it, and the files are read and planned before they are in place.
    """
    if not inputs.cluster and (inputs.state or inputs.is_client_given):
        raise NotNamed(f"name the cluster, which is to be a folder of {inputs.root}, with --cluster, such as prod-eu")
    name = checked_name(cluster_name(inputs))
    folder = Path(inputs.root) / name
    base, is_kept = _base(inputs, name, folder)
    observed = observed_state(inputs, base if is_kept else None, progress)
    base = _as_it_stands(base)
    step: ProgressHook = progress or (lambda _what, _done, _total: None)
    step("its rules", 0, STEPS)
    found = adopted(base, observed, is_writable)
    step("its balance", 1, STEPS)
    plain = replace(base, cluster=replace(base.cluster, balance=Balance()), topics=found.topics)
    kept = _balance_kept(plain, observed)
    found = with_classes(replace(found, deviations=(*_not_led(kept.waiting, is_kept=is_kept), *found.deviations)))
    text = cluster_text(
        name,
        "the cluster as it is, with the strongest rules it keeps. A plan is empty.",
        cluster_id=observed.cluster_id if observed.cluster_id.isprintable() else None,
        client=client_of(inputs, folder),
        balance=kept.balance,
        spans=kept.spans,
        waiting=len(kept.waiting),
    )
    texts = desired_texts(None if is_kept else text, found, schemas_beside(inputs.root))
    step("the files back", 2, STEPS)
    left = _moves_left(texts, folder, name, observed)
    if left and not is_kept:
        raise ReconcilerError(f"{_OUR_FAULT}: a plan would {left}", code=OUR_FAULT)
    if left:
        message = f"{folder / CLUSTER_FILE} asks for more than the cluster keeps: a plan would {left}"
        found = replace(found, deviations=(Deviation(NOT_EMPTY, message), *found.deviations))
    return Imported(
        cluster=name,
        folder=str(folder),
        files=write_new(folder, texts),
        source="snapshot" if inputs.state else "cluster",
        adopted=found,
        kept=kept.balance,
        ignored=sum(is_ignored(base, each) or observed.topics[each].is_internal for each in observed.topics),
        is_cluster_file_kept=is_kept,
        is_plan_empty=not left,
    )


def _base(inputs: Inputs, name: str, folder: Path) -> tuple[Desired, bool]:
    """Return what the cluster's own file declares, and whether there is one; the folder must hold nothing else."""
    refuse_declared(folder)
    if (folder / CLUSTER_FILE).is_file():
        return load_desired(Path(inputs.root), name), True
    if not (inputs.state or inputs.is_client_given):
        message = f"no cluster to import: {folder} has no {CLUSTER_FILE}; name --bootstrap-server, --client or --state"
        raise NotNamed(message)
    return Desired(DesiredCluster(name)), False


def _as_it_stands(base: Desired) -> Desired:
    """Return the same with all brokers active: what is to leave one tomorrow stands there today."""
    brokers = {
        each: replace(broker, state=BrokerState.ACTIVE, has_state=broker.is_active_written)
        for each, broker in base.cluster.brokers.items()
    }
    return replace(base, cluster=replace(base.cluster, brokers=brokers))


@dataclass(frozen=True, slots=True)
class _Kept:
    """The balance that a cluster keeps, what is to be said of each measure, and who waits to lead."""

    balance: Balance
    spans: Mapping[str, str]
    waiting: tuple[TopicPartition, ...] = ()


def _balance_kept(desired: Desired, observed: Cluster) -> _Kept:
    """Return the tightest balance for which nothing moves; `even` is the planner's word."""
    if not desired.topics:
        return _Kept(Balance(), {})
    replicas, leaders = replica_counts(desired, observed), leader_counts(desired, observed)
    are_replicas_uneven = _moves(desired, observed, Balance(replicas=Even()))
    are_leaders_uneven = _moves(desired, observed, Balance(leaders=Even()))
    kept = Balance(
        replicas=tightest_band(replicas) or Off() if are_replicas_uneven else Even(),
        leaders=tightest_band(leaders) or Off() if are_leaders_uneven else Even(),
        topics=Even() if are_topics_even(desired, observed, topic_rules(desired, observed)) else Off(),
    )
    spans = {
        "replicas": f"{_span(replicas)} on a broker",
        "leaders": f"{_span(leaders)} led by a broker; order alone, copies nothing",
        "topics": "each topic's replicas and leaders over its brokers",
        "none": f"today a broker holds {_span(replicas)} replicas and leads {_span(leaders)} partitions",
    }
    return _Kept(kept, spans, tuple(elections_wanted(desired, observed)))


def _not_led(waiting: Sequence[TopicPartition], *, is_kept: bool) -> Iterator[Deviation]:
    if waiting:
        one = f"{waiting[0]} is" if len(waiting) == 1 else f"{len(waiting)} partitions ({waiting[0]} and others) are"
        what = "a plan elects it, unless the cluster.yaml that is there says elections: off"
        message = f"{one} not led by the preferred leader: {what if is_kept else 'elections: off is written'}"
        yield Deviation(NOT_LED, message)


def _moves(desired: Desired, observed: Cluster, balance: Balance) -> Sequence[Move]:
    """Return what the planner would move for that balance."""
    from reconciler.planner.place import plan_placement

    asking = replace(desired, cluster=replace(desired.cluster, balance=balance))
    rules = topic_rules(asking, observed)
    return plan_placement(asking, observed, rules, compare(asking, observed, rules)).moves


def _span(counts: Counts) -> str:
    found = sorted(count for count, _ in counts)
    if not found:
        return "0"
    return str(found[0]) if found[0] == found[-1] else f"{found[0]} to {found[-1]}"


def _moves_left(texts: Mapping[str, str], folder: Path, name: str, observed: Cluster) -> str:
    """Return in words what a plan of these files, read as ever, would do; nothing for an empty plan."""
    from reconciler.workflow.plan import plan_of

    desired = read_back(texts, folder, name)
    try:
        plan = plan_of(desired, observed)
    except ReconcilerError as error:
        return f"fail: {error}"
    if plan.is_empty:
        return ""
    summary = plan.summary
    return (
        f"change {len(plan.topic_changes)} topics, move {summary.replica_moves} replicas, "
        f"hold {summary.elections} elections"
    )
