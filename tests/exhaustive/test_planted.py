"""Faults planted in the executor, one at a time: the search finds each, and tells the shortest way to it.

Many more are in `mutations.test_executor_faults`, where seeds and crashes find them.
"""

import sys

import pytest
from exhaustive.bounds import ONE_EACH, searched
from helpers.figures import Tell
from mutations.faults import Fault, planted

pytestmark = pytest.mark.long

FEW = 2_000
"""States in which a fault is looked for: each is a few actions away from the start."""

FAULTS = [
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
