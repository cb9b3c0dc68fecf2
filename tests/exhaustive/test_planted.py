"""Faults planted in the executor, one at a time: the search finds each, and tells the shortest way to it."""

import sys
from dataclasses import replace

import pytest
from exhaustive.bounds import ONE_EACH, searched
from helpers.figures import Tell
from mutations.faults import Fault, planted
from mutations.test_executor_faults import FAULTS as EVERYWHERE

pytestmark = pytest.mark.long

FEW = 2_000
"""States in which a fault is looked for: each is a few actions away from the start."""

KNOWN = {fault.what: fault for fault in EVERYWHERE}
SHOWN_BY = {
    "the last stage is skipped": "moves nothing",
    "a stage ends before its moves do": "moves nothing",
    "one stage's moves are submitted with the next one's": "moves nothing",
    "one copy more than allowed is in flight at a broker": "moves nothing",
    "elections of a stage are not held": "moves nothing",
    "an answered move is submitted again while it does not show": "moves stale",
    "dead brokers are taken for living ones": "moves death",
    "a foreign reassignment is overwritten": "factors others",
    "an operator's `*` is appended to": "moves others",
    "moves in flight are left when a run stops": "moves nothing",
    "the order is not restored after a cancel": "factors nothing",
    "throttles go on after the moves": "moves nothing",
    "the destinations are not throttled": "moves nothing",
    "an operator's list is overwritten": "moves nothing",
    "one throttle entry is forgotten": "moves nothing",
    "one broker's rates are forgotten": "moves nothing",
    "an operator's rate does not come back": "moves nothing",
    "done is said though throttles are on": "moves nothing",
    "a leftover throttle is not named": "moves death",
    "throttles that a crash left stay": "moves kill",
    "the cluster's record of throttles is dropped": "moves kill",
}
"""What shows first those faults that seeds and crashes find, too."""

FAULTS = [
    *(replace(KNOWN[what], shown_by=shown_by) for what, shown_by in SHOWN_BY.items()),
    # What is asked for.
    Fault(
        "what is in flight takes no slot",
        "decide._slots",
        "is not MoveState.TO_DO",
        "is MoveState.SETTLING",
        "moves nothing",
    ),
    Fault(
        "a move to a dead broker is submitted",
        "decide._submission",
        "and not observed.dead_of(observed.awaited(move))",
        "",
        "moves death",
    ),
    # Others.
    Fault(
        "the order from before is submitted over what somebody else moves",
        "withdraw._restore_order",
        "if move.topic_partition not in in_flight]",
        "]",
        "factors others",
    ),
    # The way back.
    Fault(
        "a move that has just ended is taken back",
        "withdraw._is_of_the_past",
        "return partition.replicas in older",
        "return False",
        "moves stale",
    ),
    Fault(
        "a move that ends between two looks of a cancel is taken back",
        "withdraw.withdraw",
        "{Place.MOVING, Place.AT, Place.BETWEEN}",
        "{Place.MOVING}",
        "factors stale+kill",
    ),
    Fault(
        "what has ended by itself is not seen when it is cancelled",
        "withdraw._after_cancel",
        "and partition.replicas == move.to_replicas",
        "and False",
        "moves nothing",
    ),
    # Throttles.
    Fault(
        "lists come off while the last move is in flight",
        "decide._moves",
        "if not unfinished:",
        "if len(unfinished) < 2:",
        "moves nothing",
    ),
    Fault(
        "a run that stops leaves its throttles",
        "turns.end_in_order",
        "take_all_off(session, has_moves=has_moves)",
        "pass",
        "moves nothing",
    ),
    # A process that died.
    Fault(
        "another run takes throttles off while copies are in flight",
        "run._locked",
        "is_clear = not under_way(session.paths, observed)",
        "is_clear = True",
        "moves kill",
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.what for fault in FAULTS])
def test_a_fault_in_the_executor_is_found_with_the_way_to_it(fault: Fault, figures: Tell) -> None:
    with planted(fault, "reconciler.apply"):
        names = [fault.shown_by, *ONE_EACH]
        trace = next((found for name in names if (found := searched(name, FEW).trace) is not None), None)
    assert trace is not None
    sys.stdout.write(f"{trace}\n")  # pytest shows it with -rP
    figures(f"planted: {fault.what}", f"found in {len(trace.steps)} actions: {trace.wrong[:100]}")


def test_faults_enough_are_planted() -> None:
    assert len(FAULTS) >= 20
