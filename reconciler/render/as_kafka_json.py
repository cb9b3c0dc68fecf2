"""Writes a plan as files for Kafka's own tools, one set a stage, in the exact form that those tools write."""

import json
from collections.abc import Iterable, Mapping

from reconciler.model.move import Election
from reconciler.model.plan import Plan
from reconciler.model.stage import ReassignStage, elections_of
from reconciler.model.topic_partition import TopicPartition

ANY_LOG_DIR = "any"


def plan_files(plan: Plan, *, has_log_dirs: bool = False) -> Mapping[str, str]:
    """Return each file's text by its name, sorted in the order of use; topic changes have no such file.

    `stage-NN-reassign.json` and `stage-NN-rollback.json` are for kafka-reassign-partitions, `stage-NN-elect.json` is
    for kafka-leader-election. With `has_log_dirs`, each new replica gets the log dir that is predicted for it.
    """
    width = max(2, len(str(len(plan.stages))))
    files: dict[str, str] = {}
    for stage in plan.stages:
        prefix = f"stage-{stage.number:0{width}}"
        if isinstance(stage, ReassignStage):
            targets = {move.topic_partition: move.to_replicas for move in stage.moves}
            origins = {move.topic_partition: move.from_replicas for move in stage.moves}
            files[f"{prefix}-reassign.json"] = reassignment(targets, _log_dirs(plan, stage) if has_log_dirs else {})
            files[f"{prefix}-rollback.json"] = reassignment(origins)
        if elections_of(stage):
            files[f"{prefix}-elect.json"] = elections(elections_of(stage))
    return files


def reassignment(
    targets: Mapping[TopicPartition, tuple[int, ...]],
    log_dirs: Mapping[TopicPartition, Mapping[int, str]] | None = None,
) -> str:
    """Return the file that `--reassignment-json-file` takes, sorted by topic and partition.

    `log_dirs` names the log dirs of some replicas, by partition and broker; that of every other is `any`.
    """
    named = log_dirs or {}
    partitions = [
        {
            "topic": topic_partition.topic,
            "partition": topic_partition.partition,
            "replicas": list(replicas),
            "log_dirs": [named.get(topic_partition, {}).get(replica, ANY_LOG_DIR) for replica in replicas],
        }
        for topic_partition, replicas in sorted(targets.items())
    ]
    return _compact({"version": 1, "partitions": partitions})


def _log_dirs(plan: Plan, stage: ReassignStage) -> Mapping[TopicPartition, Mapping[int, str]]:
    """Return what is predicted of the replicas that this stage copies; those that stay are not to be moved about."""
    predicted = plan.predicted_log_dirs
    return {
        move.topic_partition: {
            replica: path for replica, path in predicted.get(move.topic_partition, {}).items() if replica in move.added
        }
        for move in stage.moves
    }


def elections(wanted: Iterable[Election]) -> str:
    """Return the file that kafka-leader-election takes with `--path-to-json-file`; it has no version."""
    keys = sorted(election.topic_partition for election in wanted)
    return _compact({"partitions": [{"topic": key.topic, "partition": key.partition} for key in keys]})


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"
