"""The next step of a stage of elections: in batches, and only while the list prefers that leader."""

from datetime import datetime

from reconciler.apply.course import Itinerary
from reconciler.apply.moves import SETTLE
from reconciler.apply.observed import Observed
from reconciler.apply.record import RunRecord
from reconciler.apply.steps import ElectLeaders, FailRun, FinishStage, Step
from reconciler.apply.waiting import poll
from reconciler.model.move import Election
from reconciler.model.problem import Problem
from reconciler.model.stage import ElectStage

ELECTION_ATTEMPTS = 12


def next_election(
    itinerary: Itinerary, stage: ElectStage, observed: Observed, record: RunRecord, now: datetime
) -> Step:
    """Return what to do next in a stage of elections."""
    due = elections_due(itinerary, stage, observed)
    if not due:
        return FinishStage()
    ready = []
    for election in due:
        key = str(election.topic_partition)
        if record.is_quiet(key, now):
            continue
        if not _is_electable(election, observed):
            if now - record.started_at >= SETTLE:
                return FailRun(_election_problem(itinerary, election, observed))
            continue
        if record.count(key) >= ELECTION_ATTEMPTS:
            return FailRun(_election_problem(itinerary, election, observed))
        ready.append(election)
    if not ready:
        return poll(record)
    return ElectLeaders(tuple(ready[: max(1, itinerary.plan.election_batch)]))


def _is_electable(election: Election, observed: Observed) -> bool:
    """Whether a preferred election gives this leader: metadata may lag, or somebody else may have changed the list."""
    partition = observed.partition(election.topic_partition)
    return partition is not None and partition.preferred_leader == election.leader


def elections_due(itinerary: Itinerary, stage: ElectStage, observed: Observed) -> tuple[Election, ...]:
    """Return the elections of a stage whose leader does not lead; a partition that has moved on since needs none."""
    return tuple(election for election in stage.elections if _is_election_due(itinerary, stage, election, observed))


def _is_election_due(itinerary: Itinerary, stage: ElectStage, election: Election, observed: Observed) -> bool:
    key = election.topic_partition
    partition = observed.partition(key)
    if partition is None or partition.leader == election.leader:
        return partition is None
    if key not in itinerary.courses:
        return True
    return itinerary.position(key, observed).index <= itinerary.passed_before(stage.number, key)


def _election_problem(itinerary: Itinerary, election: Election, observed: Observed) -> Problem:
    key, leader = election.topic_partition, election.leader
    partition = observed.partition(key)
    if partition is None:
        text = f"{key} is gone (found {observed.absence(key.topic)}), so broker {leader} cannot be elected its leader"
        return Problem("KR701", f"{text}; make a new plan")
    if partition.preferred_leader != leader:
        text = f"{key} is on {list(partition.target_replicas)}, so broker {leader} is not its preferred leader"
        return Problem("KR701", f"{text}; somebody else changed it: make a new plan")
    why = "it leads nothing until it is in sync" if leader not in partition.isr else "the controller did not elect it"
    text = f"broker {leader} does not lead {key} after {ELECTION_ATTEMPTS} elections (leader {partition.leader})"
    return Problem("KR706", f"{text}: {why}; see to that broker, then {itinerary.again}")
