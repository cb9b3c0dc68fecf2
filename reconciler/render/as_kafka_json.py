"""Writes a plan as files for Kafka's own tools, one set a stage, in the exact form that those tools write."""

import json
from collections.abc import Callable, Iterable, Mapping

from reconciler.model.move import DirMove, Election
from reconciler.model.plan import Plan
from reconciler.model.stage import LogDirsStage, ReassignStage, elections_of
from reconciler.model.topic_partition import TopicPartition

ANY_LOG_DIR = "any"


def plan_files(plan: Plan, *, has_log_dirs: bool = False) -> Mapping[str, str]:
    """Return each file's text by its name, sorted in the order of use; topic changes have no such file.

    `stage-NN-reassign.json` and `stage-NN-rollback.json` are for kafka-reassign-partitions, `stage-NN-elect.json` is
    for kafka-leader-election. A new replica gets the log dir that it is asked to go to and, with `has_log_dirs`, else
    the one that is predicted. A move inside a broker is a file with unchanged replicas and another log dir.
    """
    width = max(2, len(str(len(plan.stages))))
    files: dict[str, str] = {}
    for stage in plan.stages:
        prefix = f"stage-{stage.number:0{width}}"
        if isinstance(stage, ReassignStage):
            targets = {move.topic_partition: move.to_replicas for move in stage.moves}
            origins = {move.topic_partition: move.from_replicas for move in stage.moves}
            dirs = _log_dirs(plan, stage, has_predicted=has_log_dirs)
            files[f"{prefix}-reassign.json"] = reassignment(targets, dirs)
            files[f"{prefix}-rollback.json"] = reassignment(origins)
        if isinstance(stage, LogDirsStage):
            files[f"{prefix}-reassign.json"] = _inside(stage, lambda move: move.to_dir)
            files[f"{prefix}-rollback.json"] = _inside(stage, lambda move: move.from_dir)
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


def _log_dirs(plan: Plan, stage: ReassignStage, *, has_predicted: bool) -> Mapping[TopicPartition, Mapping[int, str]]:
    """Return the log dirs of the replicas that this stage copies; those that stay are not to be moved about."""
    predicted = plan.predicted_log_dirs if has_predicted else {}
    return {
        move.topic_partition: {
            **{id_: path for id_, path in predicted.get(move.topic_partition, {}).items() if id_ in move.added},
            **move.log_dirs,
        }
        for move in stage.moves
    }


def _inside(stage: LogDirsStage, dir_of: Callable[[DirMove], str]) -> str:
    replicas = {move.topic_partition: move.replicas for move in stage.moves}
    dirs: dict[TopicPartition, dict[int, str]] = {}
    for move in stage.moves:
        dirs.setdefault(move.topic_partition, {})[move.broker] = dir_of(move)
    return reassignment(replicas, dirs)


def elections(wanted: Iterable[Election]) -> str:
    """Return the file that kafka-leader-election takes with `--path-to-json-file`; it has no version."""
    keys = sorted(election.topic_partition for election in wanted)
    return _compact({"partitions": [{"topic": key.topic, "partition": key.partition} for key in keys]})


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"
