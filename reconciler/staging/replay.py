"""Who leads what while a plan's stages run."""

from collections.abc import Iterator, Sequence

from reconciler.model.cluster import Cluster
from reconciler.model.move import Move
from reconciler.model.stage import ElectStage, ReassignStage, Stage
from reconciler.model.topic_partition import TopicPartition


def served_moves(stages: Sequence[Stage], observed: Cluster) -> Iterator[tuple[Move, int | None]]:
    """Yield every move in order, with the leader that serves its copies; None where the partition has none."""
    leaders: dict[TopicPartition, int | None] = {}
    for stage in stages:
        if isinstance(stage, ReassignStage):
            for move in stage.moves:
                leader = _leader(move.topic_partition, leaders, observed)
                yield move, leader
                leaders[move.topic_partition] = leader if leader in move.to_replicas else move.to_replicas[0]
        elif isinstance(stage, ElectStage):
            leaders.update({election.topic_partition: election.leader for election in stage.elections})


def _leader(
    topic_partition: TopicPartition, leaders: dict[TopicPartition, int | None], observed: Cluster
) -> int | None:
    if topic_partition in leaders:
        return leaders[topic_partition]
    partition = observed.partition(topic_partition)
    return partition.leader if partition else None
