"""Computes where every move of a plan stands: what apply, cancel, status and the journal tell of a run."""

from collections.abc import Collection

from reconciler.apply.course import Itinerary, Place
from reconciler.apply.moves import is_in_sync
from reconciler.apply.observed import Observed
from reconciler.model.move import Move
from reconciler.model.stage import ReassignStage
from reconciler.model.tally import Standing, Tally
from reconciler.model.topic_partition import TopicPartition


def tally(itinerary: Itinerary, observed: Observed, withdrawn: Collection[TopicPartition] = ()) -> Tally:
    """Return where each move stands, as observed; of what is to do, the moves of `withdrawn` were taken back."""
    made = frozenset(change.topic for change in itinerary.plan.topic_changes)
    fronts = {key: _front(itinerary, key, observed, made) for key in itinerary.courses}
    stages: dict[int, dict[TopicPartition, Standing]] = {}
    for stage in [one for one in itinerary.plan.stages if isinstance(one, ReassignStage)]:
        links = {move.topic_partition: itinerary.link(stage, move) for move in stage.moves}
        stages[stage.number] = {
            key: _standing(link, *fronts[key], is_withdrawn=key in withdrawn) for key, link in links.items()
        }
    return Tally(stages)


def _front(
    itinerary: Itinerary, key: TopicPartition, observed: Observed, made: Collection[str]
) -> tuple[int, Standing]:
    """Return the first move of a partition that is not done, as a position on its course, and where it stands."""
    moves = itinerary.courses[key].moves
    position = itinerary.position(key, observed)
    match position.place:
        case Place.AT:
            is_synced = position.index == 0 or is_in_sync(moves[position.index - 1], observed)
            return (position.index, Standing.LEFT) if is_synced else (position.index - 1, Standing.UNSYNCED)
        case Place.MOVING:
            return position.index - 1, Standing.IN_FLIGHT
        case Place.CANCELLED | Place.BETWEEN:
            return position.index, Standing.IN_FLIGHT
        case Place.UNKNOWN:
            overwritten = [link for link, move in enumerate(moves) if is_overwritten(move, observed)]
            return (overwritten[-1], Standing.IN_FLIGHT) if overwritten else (0, Standing.FOREIGN)
        case Place.MISSING if key.topic in made:
            return 0, Standing.LEFT
    return 0, Standing.FOREIGN


def _standing(link: int, front: int, at_front: Standing, *, is_withdrawn: bool) -> Standing:
    if link < front:
        return Standing.DONE
    if link > front:
        return Standing.FOREIGN if at_front is Standing.FOREIGN else Standing.LEFT
    return Standing.TAKEN_BACK if is_withdrawn and at_front is Standing.LEFT else at_front


def moves_under_way(itinerary: Itinerary, observed: Observed) -> tuple[Move, ...]:
    """Return the plan's moves that are in flight, or were cancelled without their order being restored."""
    found = []
    for key, course in itinerary.courses.items():
        position = itinerary.position(key, observed)
        if position.place is Place.MOVING:
            found.append(course.moves[position.index - 1])
        if position.place is Place.CANCELLED:
            found.append(course.moves[position.index])
    return tuple(found)


def overwritten_moves(itinerary: Itinerary, observed: Observed) -> tuple[Move, ...]:
    """Return the plan's moves that somebody replaced in flight and then cancelled: more replicas are left than before.

    Kafka's own cancel takes away what the second target was adding, and nothing of the first.
    """
    found = []
    for key, course in itinerary.courses.items():
        if itinerary.position(key, observed).place is Place.UNKNOWN:
            found += [move for move in course.moves if is_overwritten(move, observed)][-1:]
    return tuple(found)


def is_overwritten(move: Move, observed: Observed) -> bool:
    """Whether a partition at rest has all replicas from before a move, and some of those that it was to add."""
    partition = observed.partition(move.topic_partition)
    if partition is None or partition.is_reassigning:
        return False
    more = set(partition.replicas) - set(move.from_replicas)
    return bool(more) and more <= set(move.added) and set(move.from_replicas) <= set(partition.replicas)
