"""`groups list`, `describe` and `lag`: groups as they are, of a live cluster or a snapshot; nothing is changed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from difflib import get_close_matches

from reconciler.admin.port import LATEST, Admin
from reconciler.groups.model.simulation import Member
from reconciler.groups.model.state import GroupState, partition_lags
from reconciler.groups.simulate.live import labels
from reconciler.model.cluster import Cluster, Group, Topic
from reconciler.model.coordinator import OFFSETS_TOPIC, coordination, coordinator_changes
from reconciler.model.plan import Plan
from reconciler.model.problem import InvalidInput, MissingRight, Problem, Severity
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import named_some
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.saved_plan import plan_named
from reconciler.workflow.sources import client_cautions, cluster_admin, cluster_meant
from reconciler.workflow.topics import no_such_topics

NO_SUCH_GROUP = "KR910"
HIDDEN_TOPICS = "KR911"
HIDDEN_GROUPS = "KR613"
OTHER_CLUSTER = "KR912"
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class GroupsSeen:
    """Groups as they are, by id, and what could not be seen of them.

    `of_client`: what the client properties leave open; who connected has told it already.
    """

    groups: tuple[GroupState, ...]
    warnings: tuple[Problem, ...] = ()
    of_client: tuple[Problem, ...] = ()


def groups_seen(
    inputs: Inputs, group_ids: Sequence[str] = (), *, plan_path: str | None = None, topic: str | None = None
) -> GroupsSeen:
    """Return these groups, or all; with a plan, which of them get another coordinator by it.

    With a topic, those that read it or have read it, with their lag there alone. Raises InvalidInput that names every
    group which does not exist, or the topic.
    """
    plan = plan_named(inputs, plan_path) if plan_path else None
    observed, warnings = _observed(inputs, group_ids)
    _refuse_unknown(group_ids, observed)
    after = _coordinators_after(plan, observed) if plan is not None else {}
    wanted = set(group_ids)
    states = [_state(group, observed, after) for group in observed.groups if not wanted or group.group_id in wanted]
    if topic is not None:
        states = [_of_topic(each, topic) for each in states if topic in each.group.topics]
        _refuse_unknown_topic(inputs, topic, observed, is_read=bool(states))
    of_client = () if inputs.state else client_cautions(inputs, cluster_meant(inputs))
    return GroupsSeen(tuple(states), tuple(warnings), of_client)


def groups_admin(inputs: Inputs) -> AbstractContextManager[Admin]:
    """Return the cluster to talk to; no cluster.yaml is needed with a client given."""
    return cluster_admin(inputs, cluster_meant(inputs))


def visible_topics(admin: Admin, names: Collection[str]) -> tuple[dict[str, Topic], tuple[str, ...]]:
    """Return those of the topics that exist, and the names of those that this user may not describe."""
    if not names:
        return {}, ()
    ordered = sorted(names)
    try:
        return dict(admin.topics(ordered)), ()
    except MissingRight:
        if len(ordered) == 1:
            return {}, (ordered[0],)
    half = len(ordered) // 2
    found, hidden = visible_topics(admin, ordered[:half])
    more, more_hidden = visible_topics(admin, ordered[half:])
    return found | more, hidden + more_hidden


def visible_groups(admin: Admin) -> tuple[Mapping[str, Group], Problem | None]:
    """Return the groups that this user may describe, with one warning of all others; raises MissingRight for none."""
    try:
        return admin.groups(), None
    except MissingRight as error:
        found = admin.groups(but=error.names)
        if not found:
            raise
        return found, Problem(HIDDEN_GROUPS, f"some groups are left out. {error}", severity=Severity.WARNING)


def hidden_topics(names: Sequence[str]) -> Problem:
    """Return the warning that these topics may not be described."""
    message = f"what is read of topic {named_some(names)} is not known: this user lacks the right Describe on it"
    return Problem(HIDDEN_TOPICS, message, severity=Severity.WARNING)


def no_such_groups(missing: Iterable[str], known: Collection[str]) -> InvalidInput:
    """Return the error that names each group which does not exist, with the nearest that does."""
    problems = []
    for group_id in missing:
        near = get_close_matches(group_id, sorted(known), n=1)
        hint = f"did you mean {near[0]}?" if near else "`groups list` shows those that there are"
        problems.append(Problem(NO_SUCH_GROUP, f"there is no group {group_id}, or this user may not see it: {hint}"))
    return InvalidInput(problems)


def _observed(inputs: Inputs, group_ids: Sequence[str]) -> tuple[Cluster, list[Problem]]:
    if inputs.state:
        from reconciler.files.snapshot import read_snapshot

        return read_snapshot(inputs.state), []
    with groups_admin(inputs) as admin:
        return observe_groups(admin, group_ids)


def observe_groups(admin: Admin, group_ids: Sequence[str]) -> tuple[Cluster, list[Problem]]:
    """Return what the cluster shows of these groups or all, of the topics that they read, and of their coordinators."""
    groups, hidden_ids = (admin.groups(group_ids), None) if group_ids else visible_groups(admin)
    if set(group_ids) - groups.keys():
        raise no_such_groups(sorted(set(group_ids) - groups.keys()), visible_groups(admin)[0])
    keys = {key for group in groups.values() for key in _partitions(group)}
    topics, hidden = visible_topics(admin, {key.topic for key in keys} | {OFFSETS_TOPIC})
    ends = admin.log_offsets([key for key in keys if key.topic in topics], LATEST)
    cluster = Cluster(
        admin.cluster_id(),
        dict(admin.brokers()),
        {name: _with_ends(topics[name], ends) for name in sorted(topics)},
        tuple(groups[group_id] for group_id in sorted(groups)),
    )
    # Without that topic only the number of a group's partition is missing, which is told by its absence.
    unseen = [name for name in hidden if name != OFFSETS_TOPIC]
    return cluster, [*([hidden_ids] if hidden_ids else []), *([hidden_topics(unseen)] if unseen else [])]


def _partitions(group: Group) -> set[TopicPartition]:
    return {each.topic_partition for each in partition_lags(group, {})}


def _with_ends(topic: Topic, ends: Mapping[TopicPartition, int | None]) -> Topic:
    partitions = (
        replace(partition, end_offset=ends.get(TopicPartition(topic.name, partition.partition)))
        for partition in topic.partitions
    )
    return replace(topic, partitions=tuple(partitions))


def _refuse_unknown(group_ids: Sequence[str], observed: Cluster) -> None:
    known = {group.group_id for group in observed.groups}
    missing = [group_id for group_id in dict.fromkeys(group_ids) if group_id not in known]
    if missing:
        raise no_such_groups(missing, known)


def _of_topic(seen: GroupState, topic: str) -> GroupState:
    return replace(seen, lags=tuple(each for each in seen.lags if each.topic_partition.topic == topic))


def _refuse_unknown_topic(inputs: Inputs, topic: str, observed: Cluster, *, is_read: bool) -> None:
    """Raise InvalidInput where nobody reads that topic because there is none: of a live cluster few were looked at."""
    if is_read or topic in observed.topics:
        return
    if not inputs.state:
        with groups_admin(inputs) as admin:
            if visible_topics(admin, [topic])[0]:
                return
    raise no_such_topics({topic: None}, [observed])


def _coordinators_after(plan: Plan, observed: Cluster) -> Mapping[str, int | None]:
    _refuse_other_cluster(plan, observed)
    return {change.group_id: change.to_broker for change in coordinator_changes(plan.stages, observed)}


def _refuse_other_cluster(plan: Plan, observed: Cluster) -> None:
    if plan.cluster_id != observed.cluster_id:
        message = (
            f"the plan {plan.id} is of cluster {plan.cluster_id}, and these groups are of {observed.cluster_id}: "
            "name the right plan or cluster"
        )
        raise InvalidInput([Problem(OTHER_CLUSTER, message)])


def _state(group: Group, observed: Cluster, after: Mapping[str, int | None]) -> GroupState:
    ends = {
        key: partition.end_offset
        for key in _partitions(group)
        if (partition := observed.partition(key)) is not None and partition.end_offset is not None
    }
    place = coordination(group.group_id, observed)
    if group.coordinator is None and place is not None:
        group = replace(group, coordinator=place.broker)
    broker = observed.brokers.get(group.coordinator) if group.coordinator is not None else None
    next_one = after.get(group.group_id)
    return GroupState(
        group,
        partition_lags(group, ends),
        place.partition if place is not None else None,
        place.broker if place is not None else None,
        f"{broker.host}:{broker.port}" if broker is not None and broker.host is not None else None,
        next_one if next_one != group.coordinator else None,
        labels(group, [Member(each.member_id, (), each.instance_id) for each in group.members]),
    )
