"""Somebody else works on the same brokers while a run moves replicas: what is theirs stays as they want it."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import NewPartitions, ResourceType
from helpers.brokers.by_hand import create, delete
from helpers.brokers.checker import Checker
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.delivery import Delivery
from helpers.waiting import HANG
from live.faults import Tally
from live.folder import Assignment, LiveFolder
from live.other_hands import reassign

pytestmark = pytest.mark.brokers

STAYS, OTHER, THEIRS = "hands-stays", "hands-other", "hands-theirs"
TOPICS = (STAYS, OTHER)
BEFORE: Mapping[str, Assignment] = {STAYS: {0: (1, 2), 1: (2, 3), 2: (3, 4)}, OTHER: {0: (4, 5), 1: (5, 1)}}
AFTER: Mapping[str, Assignment] = {STAYS: {0: (1, 6), 1: (2, 6), 2: (3, 5)}, OTHER: {0: (4, 6), 1: (5, 6)}}
SIZES = {STAYS: 200_000, OTHER: 1_000_000}
"""Bytes of a partition: what others touch is in flight for some seconds."""
DONE, FAILED, STALE = 0, 1, 4


@pytest.fixture
def folder(tmp_path: Path, steady: KafkaCluster) -> Iterator[LiveFolder]:
    """A folder whose plan, `plan.json`, moves both topics, slowly, in one stage."""
    live = LiveFolder(tmp_path, steady, moves="throttle: 200kB/s, perBroker: 100")
    live.create(BEFORE)
    for topic, size in SIZES.items():
        for number in BEFORE[topic]:
            steady.produce(topic, number, size=size)
    live.plan("plan", AFTER)
    yield live
    live.heal(*TOPICS, THEIRS)


def told_when(folder: LiveFolder, others: Callable[[], None], *, expect: int) -> str:
    """Run the plan, let somebody else act once the topic moves that they want, and return all that the run said."""
    with folder.started("apply", "plan.json", "--yes") as applying:
        folder.wait_in_flight(applying, OTHER)
        others()
        out, err = applying.communicate(timeout=HANG)
    assert applying.returncode == expect, out + err
    return out + err


def wanted(checker: Checker, **changed: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the lists of a finished plan for the checker's topics, but for those that somebody else made."""
    lists = {f"{topic}-{number}": to for topic in checker.topics for number, to in AFTER.get(topic, {}).items()}
    return {**checker.lists, **lists, **changed}


def test_a_partition_that_somebody_else_reassigns_is_left_alone_and_named(folder: LiveFolder, tally: Tally) -> None:
    kafka = folder.kafka
    create(kafka, {THEIRS: [[1, 2]]})
    kafka.produce(THEIRS, 0, size=SIZES[STAYS])
    both = {f"{side}.replication.throttled.replicas": "*" for side in ("leader", "follower")}
    folder.set_throttles({(ResourceType.TOPIC, THEIRS): both})
    checker = Checker(kafka, *TOPICS, THEIRS)

    def they_reassign() -> None:
        reassign(kafka.bootstrap, {f"{OTHER}-1": (5, 2), f"{THEIRS}-0": (1, 4)})

    with Delivery(kafka.bootstrap, STAYS, len(BEFORE[STAYS])) as delivery:
        told = told_when(folder, they_reassign, expect=FAILED)
    assert f"{OTHER}-1 is " in told
    assert "somebody else changes it, so it was left alone" in told
    assert THEIRS not in told
    assert checker.faults(wanted(checker, **{f"{OTHER}-1": (5, 2), f"{THEIRS}-0": (1, 4)}), delivery) == []
    tally.accepted("somebody else reassigns", checker, delivery)


@pytest.mark.deep
def test_a_topic_deleted_while_it_moves_is_named_and_the_rest_ends(folder: LiveFolder, tally: Tally) -> None:
    checker = Checker(folder.kafka, STAYS)
    with Delivery(folder.kafka.bootstrap, STAYS, len(BEFORE[STAYS])) as delivery:
        told = told_when(folder, lambda: delete(folder.kafka, OTHER), expect=FAILED)
    assert f"{OTHER}-0 is gone" in told
    assert checker.faults(wanted(checker), delivery) == []
    tally.accepted("topic deleted", checker, delivery)
    folder.run("apply", "plan.json", "--yes", expect=STALE)


@pytest.mark.deep
def test_a_topic_made_again_while_it_moves_is_another_one_and_not_touched(folder: LiveFolder, tally: Tally) -> None:
    checker = Checker(folder.kafka, *TOPICS)

    def delete_and_make_again() -> None:
        delete(folder.kafka, OTHER)
        create(folder.kafka, {OTHER: BEFORE[OTHER]})

    with Delivery(folder.kafka.bootstrap, STAYS, len(BEFORE[STAYS])) as delivery:
        told = told_when(folder, delete_and_make_again, expect=FAILED)
    assert f"{OTHER}-0 is gone" in told
    assert "found another topic under the same name" in told
    kept = {f"{OTHER}-{number}": replicas for number, replicas in BEFORE[OTHER].items()}
    assert checker.faults(wanted(checker, **kept), delivery) == []
    tally.accepted("topic made again", checker, delivery)
    folder.run("apply", "plan.json", "--yes", expect=STALE)


@pytest.mark.deep
def test_partitions_added_while_a_topic_moves_are_told_of_and_not_touched(folder: LiveFolder, tally: Tally) -> None:
    checker = Checker(folder.kafka, *TOPICS)

    made: list[tuple[int, ...]] = []

    def grow() -> None:
        folder.admin.create_partitions([NewPartitions(OTHER, 3)])[OTHER].result(HANG)
        folder.kafka.wait_for(lambda: len(folder.observer.topic(OTHER)) == 3, "the new partition")
        made.append(folder.observer.topic(OTHER)[2].replicas)

    with Delivery(folder.kafka.bootstrap, STAYS, len(BEFORE[STAYS])) as delivery:
        told = told_when(folder, grow, expect=DONE)
    assert f"{OTHER}: " in told
    assert "2 -> 3" in told
    assert checker.faults(wanted(checker, **{f"{OTHER}-2": made[0]}), delivery) == []
    tally.accepted("partitions added", checker, delivery)
