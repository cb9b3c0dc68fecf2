"""Reads measured loads as groups see them: what the members of one group read of each partition."""

from dataclasses import dataclass

from reconciler.groups.advice import Measured
from reconciler.groups.model.advice import Existing
from reconciler.model.loads import Loads, Statistic
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.inputs import Inputs, NotNamed, cluster_name


@dataclass(frozen=True, slots=True)
class LoadsFolder:
    """Where measured loads are, and which figure of a rate counts."""

    folder: str
    statistic: Statistic = Statistic.PEAK


def loads_of(inputs: Inputs, at: LoadsFolder) -> Loads:
    """Return the loads of the cluster that is named; NotNamed where it is not: a folder may hold several."""
    from reconciler.files.loads import read_loads

    try:
        name = cluster_name(inputs)
    except NotNamed:
        raise NotNamed(f"--loads {at.folder} may hold several clusters: name this one with --cluster") from None
    return read_loads(at.folder, name, at.statistic)


def read_by_one_group(loads: Loads) -> dict[TopicPartition, int]:
    """Return the bytes per second that a group reads of each measured partition: all that is written to it."""
    return {key: load.bytes_in for key, load in loads.of.items() if load.bytes_in is not None}


def measured_topic(loads: Loads, existing: Existing, groups: int) -> Measured:
    """Return what the topic's partitions have been measured to carry; so many groups share what consumers read."""
    of_topic = [loads.of.get(TopicPartition(existing.topic, number)) for number in range(existing.partitions)]
    taken = [load.bytes_in for load in of_topic if load is not None and load.bytes_in is not None]
    sent = [load.bytes_out for load in of_topic if load is not None and load.bytes_out is not None]
    return Measured(
        sum(taken) or None,
        max(taken, default=0) or None,
        max(sent, default=0) // max(groups, 1) or None,
        len(of_topic) - len(taken),
    )
