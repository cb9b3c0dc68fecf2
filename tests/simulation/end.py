"""What a run must leave on a cluster that others changed too, read off plan and cluster by plain loops."""

from helpers.plans.end_state import throttles
from simulation.cases import Case
from simulation.watch import Watch

from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic
from reconciler.model.cluster import Cluster
from reconciler.model.stage import ElectStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition


def not_as_planned(case: Case, watch: Watch, after: Cluster, *, are_leaders_kept: bool) -> list[str]:
    """Return what is not as the finished plan leaves it, apart from what others changed; empty when all is well."""
    told = left_behind(watch, after)
    wanted = final_lists(case)
    for key, partition in after.partitions():
        before = case.before.partition(key)
        expected = wanted.get(key, before.replicas if before else None)
        if not watch.is_touched(key) and partition.replicas != expected:
            told.append(f"{key} is on {partition.replicas}, wanted {expected}")
        if set(partition.isr) != set(partition.replicas):
            told.append(f"{key} has {partition.isr} in sync of {partition.replicas}")
    told += [f"{key} is missing" for key in wanted if after.partition(key) is None and not watch.is_touched(key)]
    told += _topics(case, watch, after)
    for stage in case.plan.stages if are_leaders_kept else ():
        for election in stage.elections if isinstance(stage, ReassignStage | ElectStage) else ():
            found = after.partition(election.topic_partition)
            is_last = wanted.get(election.topic_partition, (election.leader,))[0] == election.leader
            if found and is_last and found.leader != election.leader and not watch.is_touched(election.topic_partition):
                told.append(f"{election.topic_partition} is led by {found.leader}, not by {election.leader}")
    return told


def left_behind(watch: Watch, after: Cluster) -> list[str]:
    """Return the throttles that differ from those of before, and our moves in flight."""
    there = throttles(after)
    told = [
        f"{where} is {there.get(where)!r}, it was {watch.foreign.get(where)!r}"
        for where in sorted({*there, *watch.foreign})
        if there.get(where) != watch.foreign.get(where) and where not in watch.contested
    ]
    return told + [f"{key} is still being reassigned" for key in our_moves_in_flight(watch, after)]


def our_moves_in_flight(watch: Watch, cluster: Cluster) -> list[TopicPartition]:
    """Return the partitions whose reassignment, in flight, is ours."""
    found = [(key, cluster.partition(key)) for key in sorted(watch.ours)]
    return [key for key, partition in found if partition is not None and partition.is_reassigning]


def final_lists(case: Case) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the list that each partition of the plan ends on."""
    wanted: dict[TopicPartition, tuple[int, ...]] = {}
    for change in case.plan.topic_changes:
        if isinstance(change, CreateTopic | CreatePartitions):
            wanted |= {TopicPartition(change.topic, number): to for number, to in change.assignment.items()}
    for stage in case.plan.stages:
        wanted |= {move.topic_partition: move.to_replicas for move in getattr(stage, "moves", ())}
    return wanted


def unfinished(case: Case, watch: Watch, cluster: Cluster) -> list[TopicPartition]:
    """Return the partitions of the plan's moves that are not on their last list, and that nobody else changed."""
    moved = {move.topic_partition for stage in case.plan.stages for move in getattr(stage, "moves", ())}
    wanted = final_lists(case)
    found = [(key, cluster.partition(key)) for key in sorted(moved)]
    return [key for key, one in found if one is not None and one.replicas != wanted[key] and not watch.is_touched(key)]


def _topics(case: Case, watch: Watch, after: Cluster) -> list[str]:
    told = []
    for change in case.plan.topic_changes:
        if change.topic in watch.topics_of_others:
            continue
        if isinstance(change, DeleteTopic) and change.topic in after.topics:
            told.append(f"{change.topic} is still there")
        if isinstance(change, AlterConfigs):
            configs = after.topics[change.topic].configs
            wrong = [key for key, value in change.set.items() if configs.get(key) != value]
            told += [
                f"{change.topic} has the wrong {key}" for key in (*wrong, *(k for k in change.delete if k in configs))
            ]
    return told
