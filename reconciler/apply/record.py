"""What a run remembers between turns: only what the cluster cannot tell."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reconciler.apply.course import Itinerary
from reconciler.apply.moves import History, MoveState, is_in_sync, next_history
from reconciler.apply.observed import Observed
from reconciler.model.move import Move
from reconciler.model.problem import Problem
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request for one item that the cluster does not show yet: how often it was made, and when it may be again."""

    count: int
    quiet_until: datetime


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The memory of the current stage.

    `progressed_at`: when last a byte was copied, a replica came in sync or a move ended. `fenced_since`: since when a
    broker of this stage is seen dead. `left_alone`: partitions given up, and why.
    """

    stage_index: int
    started_at: datetime
    progressed_at: datetime
    is_throttled: bool = False
    has_lists_on: bool = False
    polls: int = 0
    histories: Mapping[TopicPartition, History] = field(default_factory=dict)
    fenced_since: Mapping[int, datetime] = field(default_factory=dict)
    left_alone: Mapping[TopicPartition, Problem] = field(default_factory=dict)
    attempts: Mapping[str, Attempt] = field(default_factory=dict)
    copied_bytes: int = 0
    synced_replicas: int = 0

    def history(self, topic_partition: TopicPartition) -> History:
        """Return what earlier turns saw of a partition's move."""
        return self.histories.get(topic_partition, History())

    def state(self, topic_partition: TopicPartition) -> MoveState:
        """Return the last state of a partition's move."""
        return self.history(topic_partition).state

    def is_dead_for(self, broker_id: int, patience: timedelta, now: datetime) -> bool:
        """Whether that broker has been dead for that long."""
        since = self.fenced_since.get(broker_id)
        return since is not None and now - since >= patience

    def submitted(self, moves: Iterable[Move], quiet_until: datetime) -> "RunRecord":
        """Return the record with these moves being handed to the controller once more."""
        histories = dict(self.histories)
        for move in moves:
            known = self.history(move.topic_partition)
            histories[move.topic_partition] = replace(known, quiet_until=quiet_until, attempts=known.attempts + 1)
        return replace(self, histories=histories, polls=0)

    def answered(self, topic_partition: TopicPartition, quiet_until: datetime) -> "RunRecord":
        """Return the record after the controller answered for one submitted move."""
        known = replace(self.history(topic_partition), quiet_until=quiet_until)
        return replace(self, histories={**self.histories, topic_partition: known})

    def attempted(self, items: Iterable[str], quiet_until: datetime) -> "RunRecord":
        """Return the record with a request for these items being made once more."""
        attempts = dict(self.attempts)
        for item in items:
            known = attempts.get(item)
            attempts[item] = Attempt(known.count + 1 if known else 1, quiet_until)
        return replace(self, attempts=attempts, polls=0)

    def quieted(self, items: Iterable[str], quiet_until: datetime) -> "RunRecord":
        """Return the record with another time at which these items may be asked for again."""
        changed = {item: replace(self.attempts[item], quiet_until=quiet_until) for item in items}
        return replace(self, attempts={**self.attempts, **changed})

    def is_quiet(self, item: str, now: datetime) -> bool:
        """Whether a request for that item may still be taking effect."""
        attempt = self.attempts.get(item)
        return attempt is not None and now < attempt.quiet_until

    def count(self, item: str) -> int:
        """Return how often that item was asked for."""
        attempt = self.attempts.get(item)
        return attempt.count if attempt else 0

    def leaving_alone(self, topic_partition: TopicPartition, problem: Problem) -> "RunRecord":
        """Return the record after one partition was given up."""
        return replace(self, left_alone={**self.left_alone, topic_partition: problem})


def note(itinerary: Itinerary, stage: ReassignStage, observed: Observed, record: RunRecord, now: datetime) -> RunRecord:
    """Return the record after a look at a stage of moves: their states, dead brokers, and whether anything went on."""
    watched = [move for move in stage.moves if move.topic_partition not in record.left_alone]
    histories = {
        move.topic_partition: next_history(
            record.history(move.topic_partition),
            itinerary.position(move.topic_partition, observed),
            itinerary.link(stage, move),
            now,
            is_synced=is_in_sync(move, observed),
        )
        for move in watched
    }
    copied = sum(observed.replica_bytes.get((m.topic_partition, b), 0) for m in watched for b in m.added)
    synced = sum(_synced(move, observed) for move in watched)
    seen = {key: history.state for key, history in histories.items()}
    before = {key: record.state(key) for key in histories}
    has_progressed = copied > record.copied_bytes or synced > record.synced_replicas or seen != before
    return replace(
        record,
        histories={**record.histories, **histories},
        fenced_since=_fenced_since(stage, observed, record, now),
        progressed_at=now if has_progressed else record.progressed_at,
        copied_bytes=copied if observed.replica_bytes else record.copied_bytes,
        synced_replicas=max(synced, record.synced_replicas),
        polls=0 if has_progressed else record.polls + 1,
    )


def _synced(move: Move, observed: Observed) -> int:
    partition = observed.partition(move.topic_partition)
    return len(set(move.to_replicas) & set(partition.isr)) if partition else 0


def _fenced_since(stage: ReassignStage, observed: Observed, record: RunRecord, now: datetime) -> Mapping[int, datetime]:
    brokers = {broker for move in stage.moves for broker in move.to_replicas}
    return {broker: record.fenced_since.get(broker, now) for broker in observed.dead_of(brokers)}
