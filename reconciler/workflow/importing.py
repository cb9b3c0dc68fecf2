"""Imports the observed state as desired-state files, with the strongest rules it keeps; a plan after it is empty."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.admin.port import ProgressHook
from reconciler.diff.compare import compare
from reconciler.diff.imported.classes import with_classes
from reconciler.diff.imported.evenness import Counts, are_topics_even, leader_counts, replica_counts, tightest_band
from reconciler.diff.imported.joining import changed_by_a_plan, with_declared_classes
from reconciler.diff.imported.strongest_rules import adopted, elections_wanted, is_undeclared, judged
from reconciler.diff.managed import is_ignored
from reconciler.diff.rules import topic_rules
from reconciler.files.desired_writer import is_writable
from reconciler.files.layout import usual_classes
from reconciler.model.cluster import Cluster
from reconciler.model.desired import CLUSTER_FILE, Balance, BrokerState, Desired, DesiredCluster, Even, Off
from reconciler.model.imported import Adopted, Deviation, Imported
from reconciler.model.problem import UNEVEN, ReconcilerError
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import counted
from reconciler.workflow.cluster_text import client_of, cluster_text
from reconciler.workflow.import_target import (
    NOTHING_WRITTEN,
    OUR_FAULT,
    Target,
    are_schemas_missing,
    changes_for,
    read_back,
    target_of,
    write_changes,
)
from reconciler.workflow.inputs import Inputs, NotNamed, checked_name, cluster_name
from reconciler.workflow.sources import observed_state

NOT_LED, NOT_EMPTY = "KR014", "KR015"
ALSO = ", with or without what was added"
STEPS = 3
"""What is shown as progress once the cluster is read: its rules, its balance, the files read back."""


def import_cluster(inputs: Inputs, *, is_dry: bool = False, progress: ProgressHook | None = None) -> Imported:
    """Declare what a cluster, or a snapshot, shows and nothing declares yet, below the root.

    What is there keeps every byte, and a cluster.yaml that is there says how to reach the cluster. Every rule written
    was judged as a plan judges it, and the files are read and planned before they are in place. `is_dry`: none is
    written.
    """
    if not inputs.cluster and (inputs.state or inputs.is_client_given):
        raise NotNamed(f"name the cluster, which is to be a folder of {inputs.root}, with --cluster, such as prod-eu")
    target = target_of(inputs.root, checked_name(cluster_name(inputs)))
    declared = target.declared
    if declared is None and not (inputs.state or inputs.is_client_given):
        where = f"{target.folder} has no {CLUSTER_FILE}"
        raise NotNamed(f"no cluster to import: {where}; name --bootstrap-server, --client or --state")
    observed = observed_state(inputs, declared, progress)
    base = _as_it_stands(declared or Desired(DesiredCluster(target.cluster)))
    step: ProgressHook = progress or (lambda _what, _done, _total: None)
    step("its rules", 0, STEPS)
    found = adopted(base, observed, is_writable)
    step("its balance", 1, STEPS)
    found, kept = _more(target, found, base, observed) if target.is_begun else _first(target, found, base, observed)
    text = cluster_text(
        target.cluster,
        "the cluster as it is, with the strongest rules it keeps. A plan is empty.",
        cluster_id=observed.cluster_id if observed.cluster_id.isprintable() else None,
        client=client_of(inputs, target.folder),
        balance=kept.balance,
        spans=kept.spans,
        waiting=len(kept.waiting),
    )
    changes, added = changes_for(target, found, None if declared else text)
    step("the files back", 2, STEPS)
    left = _moves_left(read_back(target, changes), observed)
    if left and declared is None:
        raise ReconcilerError(f"{NOTHING_WRITTEN}: a plan would {left}", code=OUR_FAULT)
    if left:
        what = target.folder if target.is_begun else target.folder / CLUSTER_FILE
        also = declared is not None and bool(added) and _moves_left(declared, observed) == left
        message = f"{what} asks for more than the cluster keeps{ALSO if also else ''}: a plan would {left}"
        found = replace(found, deviations=(Deviation(NOT_EMPTY, message), *found.deviations))
    is_lacking = are_schemas_missing(target, changes)
    if not is_dry:
        write_changes(target, changes)
    known = [name for name in observed.topics if not (is_ignored(base, name) or observed.topics[name].is_internal)]
    undeclared = sum(is_undeclared(base, observed, name) for name in known)
    return Imported(
        cluster=target.cluster,
        folder=str(target.folder),
        changes=tuple(changes),
        added=tuple(added),
        source="snapshot" if inputs.state else "cluster",
        adopted=found,
        kept=kept.balance,
        declared=len(known) - undeclared if target.is_begun else None,
        is_dry=is_dry,
        are_schemas_missing=is_lacking,
        ignored=len(observed.topics) - len(known),
        is_cluster_file_kept=declared is not None,
        is_plan_empty=not left,
    )


def _first(target: Target, found: Adopted, base: Desired, observed: Cluster) -> tuple[Adopted, "_Kept"]:
    """Return all topics of a cluster with the classes found, and the balance that they keep."""
    kept = _balance_kept(judged(base, found.topics), observed)
    told = _not_led(kept.waiting, is_kept=target.declared is not None)
    return with_classes(replace(found, deviations=(*told, *found.deviations))), kept


def _more(target: Target, found: Adopted, base: Desired, observed: Cluster) -> tuple[Adopted, "_Kept"]:
    """Return topics that came later, each with the declared class that fits it; of the balance nothing is said."""
    usual = usual_classes(found.topics, target.files)
    joined = with_declared_classes(found, target.classes, usual, changed_by_a_plan(base, observed))
    # Who declares topics without any class goes on so.
    return with_classes(joined, target.classes) if target.classes or not base.topics else joined, _Kept(Balance(), {})


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
    """Return the tightest balance for which nothing moves, and of which no plan warns that it is not reached.

    `even` is the planner's word.
    """
    if not desired.topics:
        return _Kept(Balance(), {})
    replicas, leaders = replica_counts(desired, observed), leader_counts(desired, observed)
    are_replicas_even = _is_kept(desired, observed, Balance(replicas=Even()))
    are_leaders_even = _is_kept(desired, observed, Balance(leaders=Even()))
    kept = Balance(
        replicas=Even() if are_replicas_even else tightest_band(replicas) or Off(),
        leaders=Even() if are_leaders_even else tightest_band(leaders) or Off(),
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


def _is_kept(desired: Desired, observed: Cluster, balance: Balance) -> bool:
    """Whether the planner moves nothing for that balance, and the counts are as even as it asks."""
    from reconciler.planner.place import plan_placement

    asking = replace(desired, cluster=replace(desired.cluster, balance=balance))
    rules = topic_rules(asking, observed)
    placed = plan_placement(asking, observed, rules, compare(asking, observed, rules))
    # Where topics that are left out make the counts uneven, nothing moves for `even`, and each plan would warn of it.
    return not placed.moves and not any(each.code in UNEVEN for each in placed.warnings)


def _span(counts: Counts) -> str:
    found = sorted(count for count, _ in counts)
    if not found:
        return "0"
    return str(found[0]) if found[0] == found[-1] else f"{found[0]} to {found[-1]}"


def _moves_left(desired: Desired, observed: Cluster) -> str:
    """Return in words what a plan of these files, read as ever, would do; nothing for an empty plan."""
    from reconciler.workflow.plan import plan_of

    try:
        # Copies follow their source, which nobody looked at.
        plan = plan_of(replace(desired, mirrors=()), observed)
    except ReconcilerError as error:
        return f"fail: {error}"
    if plan.is_empty:
        return ""
    summary = plan.summary
    does = (
        ("change", len(plan.topic_changes), "topic"),
        ("move", summary.replica_moves, "replica"),
        ("hold", summary.elections, "election"),
    )
    return ", ".join(f"{verb} {counted(many, noun)}" for verb, many, noun in does if many) or "reorder replicas"
