"""Every reason and verdict is a sentence of its own, and nothing that others wrote steers the terminal."""

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.model.codec import to_json
from reconciler.model.explanation import (
    Added,
    Alternative,
    Barred,
    Cause,
    Counts,
    Explanation,
    FullRack,
    Judgement,
    NewLeader,
    Removed,
    StepOfPartition,
)
from reconciler.model.grounds import OtherMove
from reconciler.model.move import Reason
from reconciler.model.problem import Location
from reconciler.model.topic_partition import TopicPartition
from reconciler.render import explained
from reconciler.render.as_json import document

GIB = 1 << 30
KEY = TopicPartition("t", 3)
ADDED = Added(
    6,
    "c",
    Counts(1078, 1100, 1099.5),
    in_place_of=2,
    full=(FullRack("a", (1,)), FullRack("b", (4, 5))),
    alternatives=(
        Alternative(3, Judgement.AS_GOOD, Counts(81, 82, 1099.5)),
        Alternative(7, Judgement.COSTS_MORE, Counts(5, 5, 2199.0), 2 * GIB),
        Alternative(8, Judgement.LESS_EVEN, Counts(90, 91, 1099.5)),
        Alternative(9, Judgement.LOADS, Counts(9, 8, None, 3 * GIB, 4 * GIB)),
    ),
    others=1200,
    barred=(Barred(10, "cordoned"), Barred(11, "not alive")),
    instead=OtherMove(3, 4, "u", 7, 3 * GIB),
)
FOUND = Explanation(
    KEY,
    (2, 4),
    (6, 4),
    (
        StepOfPartition(2, (4, 2), source=2),
        StepOfPartition(3, elected=4, source=2),
        StepOfPartition(4, (6, 4), (6,), (2,), 2 * GIB, 4),
    ),
    2 * GIB,
    reason=Reason.BALANCE,
    at=Location("demo/c.yaml", 9),
    added=(ADDED,),
    removed=(Removed(2, Cause.BALANCE, Counts(120, 80, 80.0)),),
    leader=NewLeader(2, 6, Cause.GONE, Counts(9, 8), Counts(7, 8, 8.0)),
    is_least=True,
)


def test_all_of_it_reads_as_sentences() -> None:
    golden = Path(__file__).parent / "golden" / "explained.txt"
    assert explained.explanation(FOUND, root="state") == golden.read_text("utf-8")


def test_without_sizes_replicas_are_counted() -> None:
    others = tuple(replace(one, is_counted_in_replicas=True) for one in ADDED.alternatives)
    added = replace(ADDED, alternatives=others)
    assert to_json(others[1])["atLeastMoreReplicas"] == 2 * GIB
    assert "atLeastMoreBytes" not in to_json(others[1])
    told = explained.explanation(replace(FOUND, added=(added,), is_size_known=False))
    assert f"would copy at least {2 * GIB:,} replicas more" in told
    assert "[2, 4] -> [6, 4]   size unknown" in told


def test_a_broker_that_holds_it_now_could_keep_it() -> None:
    verdicts = {
        Judgement.AS_GOOD: "could keep it, another partition moving instead for no more: a fixed order decides",
        Judgement.COSTS_MORE: "keeping it: the plan would copy at least 1.0 GiB more",
        Judgement.LESS_EVEN: "keeping it: the counts would be less even",
        Judgement.LOADS: "could keep it, all loads together deciding otherwise",
    }
    for verdict, words in verdicts.items():
        added = replace(ADDED, alternatives=(Alternative(2, verdict, Counts(9, 8), GIB),))
        assert f"broker 2 {words} (holds" in explained.explanation(replace(FOUND, added=(added,)))


def test_another_partition_is_not_told_where_more_than_its_size_decided() -> None:
    smaller = replace(ADDED, instead=OtherMove(3, 4, "u", 7, GIB))
    assert "why this partition" not in explained.explanation(replace(FOUND, added=(smaller,)))


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_words(reason: Reason) -> None:
    told = explained.explanation(replace(FOUND, reason=reason)).splitlines()[4]
    assert told.startswith("  why                 ")
    assert len(told) > len("  why                 ")


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_has_words(cause: Cause) -> None:
    is_of_leader = cause in {Cause.GONE, Cause.MAINTENANCE, Cause.LEADER_RACKS}
    removed = () if is_of_leader else (Removed(2, cause, Counts(1, 0)),)
    leader = NewLeader(2, 6, cause, Counts(9, 8), Counts(7, 8)) if is_of_leader else None
    assert "why " in explained.explanation(replace(FOUND, removed=removed, leader=leader))


def test_what_waits_for_a_leader_says_so() -> None:
    step = StepOfPartition(1, (6,), (6,), (), 1, None)
    told = explained.explanation(replace(FOUND, steps=(step,)))
    assert "copied from whoever leads once one of its brokers is back to broker 6" in told


def test_nothing_in_a_rack_or_a_name_steers_the_terminal() -> None:
    added = replace(ADDED, rack="c\x1b[31m", full=(FullRack("a\n", (1,)),))
    told = explained.explanation(replace(FOUND, topic_partition=TopicPartition("t\x07", 1), added=(added,)))
    assert not {"\x1b", "\x07"} & set(told)
    assert "a\\u000a (broker 1) holds all it may" in told
    assert "\\u001b" in document(replace(FOUND, added=(added,)))
