"""Runs `groups simulate`: who would own what, in a scenario file or in the groups of a cluster after a change."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from reconciler.admin.port import Admin
from reconciler.groups.assignors.registry import ASSIGNORS
from reconciler.groups.files.scenario import Scenarios, read_scenarios
from reconciler.groups.model.simulation import Comparison, Outcome, Scenario
from reconciler.groups.simulate.change import GroupChange
from reconciler.groups.simulate.compare import compare
from reconciler.groups.simulate.live import is_assigned
from reconciler.groups.simulate.simulation import (
    TOPIC_ORDER_UNKNOWN,
    is_topic_order_unknown,
    sensitive_from_step,
    simulate,
)
from reconciler.groups.workflow.assignors import assignors_named
from reconciler.groups.workflow.loads import LoadsFolder, loads_of, read_by_one_group
from reconciler.model.assignment import Assignor
from reconciler.model.cluster import CLASSIC, Cluster, Group
from reconciler.model.problem import InvalidInput, Problem
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import counted
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import cluster_admin, cluster_meant, observed_state

NO_GROUP = "KR943"


@dataclass(frozen=True, slots=True)
class Simulated:
    """One scenario and what it comes to: assignor -> one outcome a step; `doubts`: what Kafka may have otherwise."""

    scenario: Scenario
    outcomes: Mapping[str, tuple[Outcome, ...]]
    doubts: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The scenario by its id: `scenario g051: 4 steps`."""
        name = "scenario" if not self.scenario.scenario_id else f"scenario {self.scenario.scenario_id}"
        return f"{name}: {counted(len(self.scenario.steps), 'step')}"

    @property
    def changes(self) -> tuple[tuple[str, ...], ...]:
        """What happens at each step, in the file's own words."""
        return tuple(step.changes for step in self.scenario.steps)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of real groups: which (none: every one with members), what changes, under which assignors."""

    group_ids: tuple[str, ...] = ()
    change: GroupChange = field(default_factory=GroupChange)
    assignors: tuple[str, ...] = ()
    loads: LoadsFolder | None = None


def run_scenarios(path: str, names: Sequence[str] = ()) -> tuple[Scenarios, tuple[Simulated, ...]]:
    """Return the scenarios of that file, and what each comes to under these assignors, by default all that ship."""
    chosen = assignors_named(names)
    read = read_scenarios(path)
    return read, tuple(_simulated(scenario, chosen) for scenario in read.scenarios)


def compare_groups(inputs: Inputs, question: Question) -> tuple[Comparison, ...]:
    """Return each group now and after the change, under each assignor.

    Raises InvalidInput for a group that is not there and for a change that cannot be.
    """
    chosen = assignors_named(question.assignors)
    cluster = observed_groups(inputs, question.group_ids, _named_topics(question.change))
    groups = _chosen_groups(cluster, question)
    loads = read_by_one_group(loads_of(inputs, question.loads)) if question.loads is not None else None
    if len(groups) != 1:
        _refuse_member_changes(question.change, len(groups))
    return tuple(_compared(cluster, group, question.change, chosen, loads) for group in groups)


def _named_topics(change: GroupChange) -> set[str]:
    return {*change.partitions}.union(*change.added.values(), *change.subscriptions.values())


def _simulated(scenario: Scenario, chosen: Sequence[Assignor]) -> Simulated:
    outcomes = {assignor.name: simulate(scenario, assignor) for assignor in chosen}
    doubts = []
    for assignor in chosen:
        step = sensitive_from_step(scenario, assignor, outcomes[assignor.name])
        if step is not None:
            doubts.append(
                f"{assignor.name}: from step {step + 1} on, who gets what follows the order of the members, which in "
                "Kafka is that of a hash map: counts and balance hold, single partitions may differ"
            )
        if is_topic_order_unknown(scenario, assignor):
            doubts.append(f"{assignor.name}: {TOPIC_ORDER_UNKNOWN}")
    return Simulated(scenario, outcomes, tuple(doubts))


def _compared(
    cluster: Cluster,
    group: Group,
    change: GroupChange,
    chosen: Sequence[Assignor],
    loads: Mapping[TopicPartition, int] | None,
) -> Comparison:
    compared = compare(cluster, group, change, chosen, loads)
    if compared.own is None or compared.own in {*ASSIGNORS, *(assignor.name for assignor in chosen)}:
        return compared
    note = f"its own assignor, {compared.own}, is not known here: name its class, --assignor package.module:Class"
    return replace(compared, notes=(*compared.notes, note))


def _chosen_groups(cluster: Cluster, question: Question) -> tuple[Group, ...]:
    there = {group.group_id: group for group in cluster.groups}
    if question.group_ids:
        problems = list(_unfit(there, question.group_ids))
        if problems:
            raise InvalidInput(problems)
        return tuple(there[group_id] for group_id in dict.fromkeys(question.group_ids))
    grown = question.change.partitions
    chosen = tuple(
        group
        for group in cluster.groups
        if is_assigned(group) and group.members and (not grown or _reads(group) & grown.keys())
    )
    if not chosen:
        wanted = f"with members that reads {', '.join(grown)}" if grown else "with members"
        raise InvalidInput(
            [Problem(NO_GROUP, f"there is no consumer group {wanted}; list them: reconciler groups list")]
        )
    return chosen


def _unfit(there: Mapping[str, Group], group_ids: Sequence[str]) -> Iterator[Problem]:
    for group_id in group_ids:
        group = there.get(group_id)
        if group is None:
            near = get_close_matches(group_id, there, n=1)
            hint = f"did you mean {near[0]}?" if near else "list them: reconciler groups list"
            yield Problem(NO_GROUP, f"there is no group {group_id}, or this user may not see it; {hint}")
        elif not is_assigned(group):
            kind = group.protocol_type if group.kind == CLASSIC else f"{group.kind} group"
            yield Problem(
                NO_GROUP, f"group {group_id} is a {kind}: none of these assignors decides who gets what in it"
            )


def _reads(group: Group) -> set[str]:
    return {name for member in group.members for name in (*member.subscription, *member.assignment)}


def _refuse_member_changes(change: GroupChange, groups: int) -> None:
    given = [
        option
        for option, values in (
            ("--add-member", change.added),
            ("--remove-member", change.removed),
            ("--subscribe", change.subscriptions),
        )
        if values
    ]
    if given:
        message = f"{', '.join(given)}: of which of the {groups} groups? Name one with --group"
        raise InvalidInput([Problem(NO_GROUP, message)])


def observed_groups(inputs: Inputs, group_ids: Collection[str] = (), topics: Collection[str] = ()) -> Cluster:
    """Return these groups, or all, with the brokers and the topics that they read, and `topics` where they exist.

    Of a snapshot that is the whole; of a live cluster neither configs nor sizes, nor topics that nobody asked for.
    """
    if inputs.state:
        return observed_state(inputs, None)
    with cluster_admin(inputs, cluster_meant(inputs)) as admin:
        groups = tuple(admin.groups(group_ids or None).values())
        return _around(admin, groups, topics)


def _around(admin: Admin, groups: Iterable[Group], topics: Collection[str]) -> Cluster:
    """Return the cluster as far as these groups go."""
    found = tuple(groups)
    names = {name for group in found for member in group.members for name in (*member.subscription, *member.assignment)}
    return Cluster(
        admin.cluster_id(),
        dict(sorted(admin.brokers().items())),
        dict(sorted(admin.topics({*names, *topics}).items())),
        found,
    )
