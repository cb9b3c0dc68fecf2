"""Assembles a plan from its stages, the observed state and the proof; everything but the plan's id."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from reconciler.model.change import DeleteTopic, TopicChange
from reconciler.model.cluster import (
    ALTER_LOG_DIRS_RATE,
    BROKER_LEASES,
    CORDONED_LOG_DIRS,
    TOPIC_THROTTLES,
    Broker,
    Cluster,
)
from reconciler.model.config_rule import version_of
from reconciler.model.desired import BrokerState, Desired
from reconciler.model.move import DirMove
from reconciler.model.move_table import Moves
from reconciler.model.plan import BrokerShare, Plan, Proof, Rollback, Source
from reconciler.model.problem import Problem
from reconciler.model.restores import Restores
from reconciler.model.stage import LogDirsStage, Stage, elections_of
from reconciler.model.table_maker import table_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.staging.estimate import Served, busiest_broker_seconds, served_moves
from reconciler.staging.stages import Staging

Key = TypeVar("Key", str, int)
# KIP-1066 came with Kafka 4.3. Counts only where the snapshot does not hold the broker's settings.
CORDONS_SINCE = (4, 3)


def assemble(
    staging: Staging,
    *,
    observed: Cluster,
    desired: Desired,
    source: Source,
    proof: Proof,
    balance_before: Mapping[int, BrokerShare],
    balance_after: Mapping[int, BrokerShare],
    warnings: Sequence[Problem] = (),
    violations: Sequence[Problem] = (),
    least_dir_bytes: int | None = None,
) -> Plan:
    """Return the plan without its id; `warnings` and `violations` are others', placed before the stages' own."""
    served, elected = served_moves(staging.stages, observed), tuple(_elected(staging.stages))
    inside = [move for stage in staging.stages if isinstance(stage, LogDirsStage) for move in stage.moves]
    topics = served.moves.topics_moved | {topic_partition.topic for topic_partition in elected}
    changed = topics | {move.topic_partition.topic for move in inside}
    return Plan(
        cluster_name=desired.cluster.name,
        cluster_id=observed.cluster_id,
        source=source,
        brokers_alive=_brokers_needed(served, inside),
        topic_changes=staging.topic_changes,
        stages=staging.stages,
        rollback=_rollback(served.moves, elected, topics, observed, _leases(staging.stages)),
        proof=proof,
        balance_before=balance_before,
        balance_after=balance_after,
        warnings=(*warnings, *staging.warnings),
        violations=(*violations, *staging.violations),
        disk_peak=staging.disk_peak,
        log_dirs=staging.log_dirs,
        predicted_log_dirs=staging.predicted_log_dirs,
        disk_capacity=_capacities(observed),
        election_batch=desired.cluster.moves.election_batch,
        per_broker=desired.cluster.moves.per_broker,
        timeout_seconds=desired.cluster.moves.timeout_seconds,
        least_seconds=busiest_broker_seconds(served, desired.cluster.moves),
        least_dir_bytes=least_dir_bytes if any(isinstance(one, LogDirsStage) for one in staging.stages) else None,
        topic_ids=_topic_ids(staging.topic_changes, changed, observed),
        cordoned=_cordoned(served.moves, observed, desired),
    )


def _cordoned(moves: Moves, observed: Cluster, desired: Desired) -> tuple[int, ...]:
    """Return the living brokers that are declared draining, lose replicas, and know what a cordon is."""
    draining = {id_ for id_, broker in desired.cluster.brokers.items() if broker.state is BrokerState.DRAINING}
    if not draining or not desired.cluster.moves.is_draining_cordoned:
        return ()
    # A cordon (KIP-1066) keeps new replicas off a broker while its own leave.
    emptied = frozenset(np.unique(moves.before[moves.is_removed]).tolist())
    return tuple(
        broker
        for broker in sorted(emptied & draining)
        if observed.is_alive(broker) and _knows_cordons(observed.brokers[broker], observed)
    )


def _knows_cordons(broker: Broker, observed: Cluster) -> bool:
    if broker.settings:
        return CORDONED_LOG_DIRS in broker.settings
    return (version_of(observed.kafka_version) or (0, 0)) >= CORDONS_SINCE


def _brokers_needed(served: Served, inside: Iterable[DirMove]) -> tuple[int, ...]:
    """Return the brokers without which a copy could not end: all that a copying move ends on, and its source."""
    is_copying = served.moves.copies > 0
    needed = np.unique(np.append(served.moves.after[is_copying], served.source[is_copying]))
    return tuple(sorted({move.broker for move in inside}.union(needed[needed >= 0].tolist())))


def _topic_ids(changes: Iterable[TopicChange], moved: frozenset[str], observed: Cluster) -> Mapping[str, str]:
    """Return the ids of the topics that are changed and go on; a deletion names the id of its topic itself."""
    changed = {change.topic for change in changes if not isinstance(change, DeleteTopic)}
    found = ((name, observed.topics[name].topic_id) for name in sorted(moved | changed) if name in observed.topics)
    return {name: topic_id for name, topic_id in found if topic_id is not None}


def _rollback(
    moves: Moves, elected: Sequence[TopicPartition], topics: frozenset[str], observed: Cluster, leases: Sequence[str]
) -> Rollback:
    table = table_of(observed)
    rows = np.append(moves.rows_in(table), table.rows_of(elected))
    is_touched = np.zeros(len(table.number), dtype=np.bool_)
    is_touched[rows[rows >= 0]] = True
    rows = np.flatnonzero(is_touched)
    by_name = np.argsort(np.argsort(table.topics))[table.topic[rows]]
    rows = rows[np.lexsort((table.number[rows], by_name))]
    found = {name: observed.topics[name].configs for name in topics if name in observed.topics}
    return Rollback(
        assignments=Restores(table, rows),
        topic_throttles=_only_set(found, TOPIC_THROTTLES),
        broker_throttles=_only_set({id_: broker.configs for id_, broker in observed.brokers.items()}, leases),
    )


def _leases(stages: Sequence[Stage]) -> tuple[str, ...]:
    """Return the settings of brokers that a run of these stages changes and gives back."""
    has_dirs = any(isinstance(stage, LogDirsStage) for stage in stages)
    return tuple(key for key in BROKER_LEASES if has_dirs or key != ALTER_LOG_DIRS_RATE)


def _elected(stages: Sequence[Stage]) -> Iterator[TopicPartition]:
    return (election.topic_partition for stage in stages for election in elections_of(stage))


def _only_set(configs: Mapping[Key, Mapping[str, str]], names: Sequence[str]) -> Mapping[Key, Mapping[str, str]]:
    """Return those of the named configs that are set, by owner."""
    kept = {owner: {name: given[name] for name in names if name in given} for owner, given in sorted(configs.items())}
    return {owner: given for owner, given in kept.items() if given}


def _capacities(observed: Cluster) -> Mapping[int, int]:
    known = ((broker_id, broker.total_bytes) for broker_id, broker in observed.brokers.items())
    return {broker_id: total for broker_id, total in known if total is not None}
