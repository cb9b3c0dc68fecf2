"""What a run would do, in words."""

from collections.abc import Iterator
from typing import assert_never

from reconciler.apply.checks import is_move_done
from reconciler.apply.course import Itinerary
from reconciler.apply.elections import elections_due
from reconciler.apply.observed import Observed
from reconciler.apply.throttles import wanted_rates
from reconciler.apply.topic_changes import ChangeState, standing
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage


def steps_to_do(itinerary: Itinerary, observed: Observed) -> tuple[str, ...]:
    """Return a line for each thing that a run would do now, in order."""
    steps = tuple(
        f"stage {stage.number}: {line}"
        for stage in itinerary.plan.stages
        for line in _lines(itinerary, stage, observed)
    )
    if not steps or not itinerary.plan.cordoned:
        return steps
    brokers = f"broker{'s' if itinerary.plan.cordoned[1:] else ''} {', '.join(map(str, itinerary.plan.cordoned))}"
    return f"cordon the log dirs of {brokers}", *steps, f"put the cordon of {brokers} back to what it was"


def _lines(itinerary: Itinerary, stage: Stage, observed: Observed) -> Iterator[str]:
    match stage:
        case TopicsStage():
            changes = (itinerary.plan.topic_changes[position] for position in stage.changes)
            due = (c for c in changes if standing(c, observed, itinerary).state is not ChangeState.DONE)
            yield from (_change(change) for change in due)
        case ReassignStage():
            yield from _moves(itinerary, stage, observed)
        case ElectStage():
            for election in elections_due(itinerary, stage, observed):
                yield f"elect broker {election.leader} as leader of {election.topic_partition}"
        case _:
            assert_never(stage)


def _moves(itinerary: Itinerary, stage: ReassignStage, observed: Observed) -> Iterator[str]:
    left = [move for move in stage.moves if not is_move_done(itinerary, stage, move, observed)]
    rates = wanted_rates(stage)
    if left and rates:
        yield f"throttle brokers {', '.join(map(str, rates))} to {stage.throttle_bytes_per_second} B/s"
    for move in left:
        flight = observed.reassignments.get(move.topic_partition)
        if flight is not None and flight.target_replicas == move.to_replicas:
            yield f"wait for {move.topic_partition}, which is on its way to {list(move.to_replicas)}"
            continue
        copies = f", copies {move.bytes} bytes" if move.added else ""
        yield f"move {move.topic_partition} {list(move.from_replicas)} -> {list(move.to_replicas)}{copies}"
    if left and rates:
        yield "put throttles back to what they were"


def _change(change: TopicChange) -> str:
    match change:
        case CreateTopic():
            return f"create topic {change.topic}, {change.partitions} partitions x {change.replication_factor} replicas"
        case CreatePartitions():
            return f"grow topic {change.topic} from {change.from_count} to {change.to_count} partitions"
        case AlterConfigs():
            to_set = [f"{key}={value}" for key, value in sorted(change.set.items())]
            return f"configs of topic {change.topic}: {', '.join([*to_set, *(f'remove {k}' for k in change.delete)])}"
        case DeleteTopic():
            return f"delete topic {change.topic}"
        case _:
            assert_never(change)
