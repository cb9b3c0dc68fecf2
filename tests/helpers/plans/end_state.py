"""What a finished run must leave, read off a plan by plain loops; shares no code with what runs plans."""

from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic
from reconciler.model.cluster import Cluster
from reconciler.model.plan import Plan
from reconciler.model.stage import ReassignStage, elections_of

THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "cordoned.log.dirs",
)


def throttles(cluster: Cluster) -> dict[str, str]:
    """Return every throttle key and cordon that is set, by where it is set."""
    found = {}
    for broker in cluster.brokers.values():
        found.update({f"broker {broker.id} {key}": broker.configs[key] for key in THROTTLES if key in broker.configs})
    for topic in cluster.topics.values():
        found.update({f"topic {topic.name} {key}": topic.configs[key] for key in THROTTLES if key in topic.configs})
    return found


def in_flight(cluster: Cluster) -> list[str]:
    """Return the partitions that are being reassigned."""
    return [
        str(key) for key, partition in cluster.partitions() if partition.adding_replicas or partition.removing_replicas
    ]


def assignments(cluster: Cluster) -> dict[str, tuple[int, ...]]:
    """Return every partition's ordered replicas."""
    return {str(key): partition.replicas for key, partition in cluster.partitions()}


def shortcomings(plan: Plan, before: Cluster, after: Cluster) -> list[str]:
    """Return what is not as the finished plan must leave it; empty when all is well."""
    told = [f"{name} is still being reassigned" for name in in_flight(after)]
    if throttles(after) != {where: value for where, value in throttles(before).items() if "topic old " not in where}:
        told.append(f"throttles are {throttles(after)}, they were {throttles(before)}")
    wanted = _wanted_assignments(plan, before)
    if assignments(after) != wanted:
        told.append(f"replicas are {assignments(after)}, wanted {wanted}")
    for key, partition in after.partitions():
        if set(partition.isr) != set(partition.replicas):
            told.append(f"{key} has {partition.isr} in sync of {partition.replicas}")
    leaders = {e.topic_partition: e.leader for s in plan.stages for e in elections_of(s)}
    for key, leader in leaders.items():
        found = after.partition(key)
        if found is None or found.leader != leader:
            told.append(f"{key} is not led by {leader}")
    for change in plan.topic_changes:
        if isinstance(change, AlterConfigs):
            configs = after.topics[change.topic].configs
            wrong = [k for k, v in change.set.items() if configs.get(k) != v] + [
                k for k in change.delete if k in configs
            ]
            told += [f"{change.topic} has the wrong {key}" for key in wrong]
    return told


def _wanted_assignments(plan: Plan, before: Cluster) -> dict[str, tuple[int, ...]]:
    wanted = assignments(before)
    for change in plan.topic_changes:
        if isinstance(change, (CreateTopic, CreatePartitions)):
            wanted.update({f"{change.topic}-{number}": replicas for number, replicas in change.assignment.items()})
        if isinstance(change, DeleteTopic):
            wanted = {name: replicas for name, replicas in wanted.items() if name.rpartition("-")[0] != change.topic}
    for stage in plan.stages:
        if isinstance(stage, ReassignStage):
            wanted.update({str(move.topic_partition): move.to_replicas for move in stage.moves})
    return wanted
