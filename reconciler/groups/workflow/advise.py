"""`groups advise`: how many partitions a topic needs, by figures alone or against what a cluster has."""

from collections.abc import Iterable
from difflib import get_close_matches

from reconciler.admin.port import ProgressHook
from reconciler.groups.advice import Measured, Wanted, advise
from reconciler.groups.model.advice import Advice, Existing
from reconciler.groups.simulate.live import is_assigned, present_members
from reconciler.groups.workflow.loads import LoadsFolder, loads_of, measured_topic
from reconciler.model.cluster import Cluster, Group, Topic
from reconciler.model.problem import InvalidInput, Problem
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import cluster_admin, cluster_meant, observed_state

NO_TOPIC, TOO_LITTLE = "KR944", "KR945"
SEGMENT_BYTES, CLEANUP_POLICY, COMPACT = "segment.bytes", "cleanup.policy", "compact"


def advise_by_figures(wanted: Wanted) -> Advice:
    """Return the advice for a topic that is only thought of; InvalidInput where the figures say nothing."""
    _refuse_too_little(wanted, Measured(), has_members=bool(wanted.consumers))
    return advise(wanted)


def advise_topic(
    inputs: Inputs, name: str, wanted: Wanted, *, loads: LoadsFolder | None = None, progress: ProgressHook | None = None
) -> Advice:
    """Return the advice for a topic of the cluster or snapshot, beside what exists; InvalidInput for an unknown one."""
    cluster = _observed(inputs, progress)
    topic = cluster.topics.get(name)
    if topic is None:
        near = get_close_matches(name, cluster.topics, n=1)
        hint = f"did you mean {near[0]}?" if near else "check the name"
        raise InvalidInput([Problem(NO_TOPIC, f"there is no topic {name}: {hint}")])
    existing = existing_topic(cluster, topic)
    measured = Measured()
    if loads is not None:
        measured = measured_topic(loads_of(inputs, loads), existing, len(_readers(cluster.groups, name)))
    _refuse_too_little(wanted, measured, has_members=bool(wanted.consumers or existing.groups))
    return advise(wanted, existing, measured)


def existing_topic(cluster: Cluster, topic: Topic) -> Existing:
    """Return what is there of that topic, of the cluster around it, and of the groups that read it."""
    alive = [broker for broker in cluster.brokers if cluster.is_alive(broker)]
    sizes = [partition.bytes_to_copy for partition in topic.partitions]
    segment = topic.configs.get(SEGMENT_BYTES, "")
    return Existing(
        topic.name,
        len(topic.partitions),
        max((len(partition.target_replicas) for partition in topic.partitions), default=0),
        max(len(alive), 1),
        sum(len(each.partitions) for each in cluster.topics.values()),
        sum(len(partition.target_replicas) for _, partition in cluster.partitions()),
        COMPACT in topic.configs.get(CLEANUP_POLICY, ""),
        sum(size for size in sizes if size is not None) if None not in sizes else None,
        int(segment) if segment.isdigit() else None,
        _readers([group for group in cluster.groups if is_assigned(group)], topic.name),
    )


def _readers(groups: Iterable[Group], topic: str) -> dict[str, int]:
    """Return how many members of each group subscribe to the topic, without the groups of which none does."""
    counts = {
        group.group_id: sum(topic in member.subscription for member in present_members(group)) for group in groups
    }
    return {group_id: count for group_id, count in counts.items() if count}


def _observed(inputs: Inputs, progress: ProgressHook | None) -> Cluster:
    if inputs.state:
        return observed_state(inputs, None, progress)
    with cluster_admin(inputs, cluster_meant(inputs)) as admin:
        return admin.observe(has_groups=True, progress=progress)


def _refuse_too_little(wanted: Wanted, measured: Measured, *, has_members: bool) -> None:
    """Refuse figures of which no number follows; those that are given are never left out without a word."""
    has_target = bool(wanted.target or measured.target)
    message = ""
    if has_target and not (wanted.producer or wanted.consumer or measured.producer or measured.consumer):
        message = (
            "a target alone gives no number: measure what ONE partition takes in and what one consumer reads from it "
            "(kafka-producer-perf-test, kafka-consumer-perf-test on a topic of one partition), and give --producer and "
            "--consumer"
        )
    elif not has_target and (wanted.producer or wanted.consumer or wanted.headroom):
        message = "nothing says how much the topic shall carry, and rates and headroom are for that: give --target"
    elif not has_target and not has_members:
        message = "nothing says how much the topic shall carry: give --target, or --consumers"
    if message:
        raise InvalidInput([Problem(TOO_LITTLE, message)])
