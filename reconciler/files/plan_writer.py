"""A plan -> the JSON of its file."""

from collections.abc import Mapping
from typing import Any, assert_never

from reconciler.files.plan_effects import destruction_to_json, effects_to_json
from reconciler.files.plan_extras import extras_to_json
from reconciler.files.plan_log_dirs import log_dirs_to_json
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.move import Election, Move
from reconciler.model.plan import BrokerShare, Plan, PriceLevel, Proof, Restore, Rollback
from reconciler.model.problem import Location, Problem
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage

FORMAT_VERSION = "1.0"


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as the JSON object of contract and schema."""
    return {
        "formatVersion": FORMAT_VERSION,
        "id": plan.id,
        "digest": plan.digest,
        "cluster": {"name": plan.cluster_name, "clusterId": plan.cluster_id},
        "source": _source(plan),
        "requires": _requires(plan),
        "run": _run(plan),
        "topicChanges": [_topic_change(change) for change in plan.topic_changes],
        "stages": [_stage(stage) for stage in plan.stages],
        "rollback": _rollback(plan.rollback),
        "proof": _proof(plan.proof),
        "balance": {"before": _shares(plan.balance_before), "after": _shares(plan.balance_after)},
        "diskCapacity": _by_broker(plan.disk_capacity),
        "diskPeak": _by_broker(plan.disk_peak),
        "warnings": [_problem(problem) for problem in plan.warnings],
        "violations": [_problem(problem) for problem in plan.violations],
        "summary": _summary(plan),
        **log_dirs_to_json(plan),
        **extras_to_json(plan),
    }


def _run(plan: Plan) -> dict[str, Any]:
    cordon = {"cordon": list(plan.cordoned)} if plan.cordoned else {}
    return {"electionBatch": plan.election_batch, "timeoutSeconds": plan.timeout_seconds, **cordon}


def _requires(plan: Plan) -> dict[str, Any]:
    ids = {"topicIds": dict(plan.topic_ids)} if plan.topic_ids else {}
    return {"brokersAlive": sorted(plan.brokers_alive), **ids}


def _source(plan: Plan) -> dict[str, Any]:
    source = plan.source
    some: dict[str, Any] = {"only": list(source.only)} if source.only else {}
    if source.rolls_back is not None:
        some["rollsBack"] = source.rolls_back
    return {"commit": source.commit, "desiredDigest": source.desired_digest, "observedAt": source.observed_at, **some}


def _topic_change(change: TopicChange) -> dict[str, Any]:
    fields: dict[str, Any]
    match change:
        case CreateTopic():
            fields = {
                "kind": "createTopic",
                "partitions": change.partitions,
                "replicationFactor": change.replication_factor,
                "configs": dict(change.configs),
                "assignment": _assignment(change.assignment),
            }
        case CreatePartitions():
            fields = {
                "kind": "createPartitions",
                "fromCount": change.from_count,
                "toCount": change.to_count,
                "assignment": _assignment(change.assignment),
            }
        case AlterConfigs():
            fields = {
                "kind": "alterConfigs",
                "set": dict(change.set),
                "delete": sorted(change.delete),
                "before": dict(change.before),
            }
        case DeleteTopic():
            fields = {"kind": "deleteTopic", "topicId": change.topic_id, "declared": change.is_declared}
        case _:
            assert_never(change)
    return _placed({"topic": change.topic, **fields, **effects_to_json(change.effects)}, change.at)


def _assignment(assignment: Mapping[int, tuple[int, ...]]) -> dict[str, list[int]]:
    return {str(partition): list(assignment[partition]) for partition in sorted(assignment)}


def _stage(stage: Stage) -> dict[str, Any]:
    match stage:
        case TopicsStage():
            return {"number": stage.number, "kind": "topics", "topicChanges": list(stage.changes)}
        case ReassignStage():
            return {
                "number": stage.number,
                "kind": "reassign",
                "throttleBytesPerSecond": stage.throttle_bytes_per_second,
                "estimatedSeconds": stage.estimated_seconds,
                "moves": [_move(move) for move in stage.moves],
            }
        case ElectStage():
            elections = [_election(election) for election in stage.elections]
            return {"number": stage.number, "kind": "elect", "elections": elections}
        case _:
            assert_never(stage)


def _move(move: Move) -> dict[str, Any]:
    topic, partition = move.topic_partition
    fields: dict[str, Any] = {
        "topic": topic,
        "partition": partition,
        "from": list(move.from_replicas),
        "to": list(move.to_replicas),
        "bytes": move.bytes,
        "reason": move.reason.value,
    }
    if not move.is_size_known:
        fields["sizeKnown"] = False
    return _placed(fields, move.at)


def _election(election: Election) -> dict[str, Any]:
    topic, partition = election.topic_partition
    return {"topic": topic, "partition": partition, "leader": election.leader}


def _rollback(rollback: Rollback) -> dict[str, Any]:
    return {
        "assignments": [_restore(restore) for restore in rollback.assignments],
        "throttles": {
            "brokers": {str(broker): dict(keys) for broker, keys in rollback.broker_throttles.items()},
            "topics": {topic: dict(keys) for topic, keys in rollback.topic_throttles.items()},
        },
    }


def _restore(restore: Restore) -> dict[str, Any]:
    topic, partition = restore.topic_partition
    return {"topic": topic, "partition": partition, "replicas": list(restore.replicas), "leader": restore.leader}


def _proof(proof: Proof) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "objective": proof.objective,
        "value": proof.value,
        "lowerBound": proof.lower_bound,
        "gapPercent": float(proof.gap_percent),
        "prices": _by_broker(proof.prices),
    }
    if proof.tiered is not None:
        fields["tieredBytes"] = proof.tiered.value
    if proof.levels:
        fields["levels"] = [_level(level) for level in proof.levels]
    return fields


def _level(level: PriceLevel) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "objective": level.objective,
        "value": level.value,
        "lowerBound": level.lower_bound,
        "prices": _by_broker(level.prices),
    }
    if level.topic_prices:
        fields["topicPrices"] = {topic: _by_broker(prices) for topic, prices in level.topic_prices.items()}
    if level.load_prices:
        fields["loadPrices"] = {load: _by_broker(prices) for load, prices in level.load_prices.items()}
    if level.shift:
        fields["shift"] = level.shift
    return fields


def _shares(shares: Mapping[int, BrokerShare]) -> dict[str, Any]:
    return {str(broker): _share(share) for broker, share in shares.items()}


def _share(share: BrokerShare) -> dict[str, Any]:
    rates = {"bytesInPerSecond": share.bytes_in_per_second, "bytesOutPerSecond": share.bytes_out_per_second}
    known = {name: value for name, value in rates.items() if value is not None}
    return {"replicas": share.replicas, "leaders": share.leaders, "bytes": share.bytes, **known}


def _by_broker(values: Mapping[int, int]) -> dict[str, int]:
    return {str(broker): value for broker, value in values.items()}


def _problem(problem: Problem) -> dict[str, Any]:
    return _placed({"code": problem.code, "message": problem.message}, problem.at)


def _summary(plan: Plan) -> dict[str, int]:
    summary = plan.summary
    return {
        "replicaMoves": summary.replica_moves,
        "bytes": summary.bytes,
        "leaderChanges": summary.leader_changes,
        "elections": summary.elections,
        "topicChanges": summary.topic_changes,
        "partitions": summary.partitions,
        "stages": summary.stages,
        "estimatedSeconds": summary.estimated_seconds,
        **({} if summary.least_seconds is None else {"leastSeconds": summary.least_seconds}),
        **(destruction_to_json(summary.destroys) if any(change.effects for change in plan.topic_changes) else {}),
        **({"drift": len(plan.drift)} if plan.drift else {}),
    }


def _placed(fields: dict[str, Any], at: Location | None) -> dict[str, Any]:
    if at is not None:
        fields["at"] = str(at)
    return fields
