"""Faults planted in the executor, one at a time: the search finds each, and tells the shortest way to it."""

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
        "the last stage is skipped",
        "turns.Run._all_stages",
        "range(self.first, len(self._plan.stages))",
        "range(self.first, len(self._plan.stages) - 1)",
        "moves nothing",
    ),
    Fault(
        "a stage ends before its moves do",
        "decide._moves",
        "is not MoveState.DONE]",
        "not in {MoveState.DONE, MoveState.IN_FLIGHT}]",
        "moves nothing",
    ),
    Fault(
        "one stage's moves are submitted with the next one's",
        "standings.is_stage_done",
        "is_moved = all(is_move_done(paths, stage, move, observed) for move in stage.moves)",
        "is_moved = True",
        "moves nothing",
    ),
    Fault(
        "one copy more than allowed is in flight at a broker",
        "decide._slots",
        "slots = Slots(paths.plan.per_broker)",
        "slots = Slots(None)",
        "moves nothing",
    ),
    Fault(
        "what is in flight takes no slot",
        "decide._slots",
        "is not MoveState.TO_DO",
        "is MoveState.SETTLING",
        "moves nothing",
    ),
    Fault(
        "elections of a stage are not held",
        "decide._moves",
        "return _end_of_moves(stage, memory) or _next_election(paths, stage, observed, memory, now)",
        "return _end_of_moves(stage, memory) or FinishStage()",
        "moves nothing",
    ),
    Fault(
        "an answered move is submitted again while it does not show",
        "perform._submit",
        "memory.answered(key, now + SETTLE)",
        "memory.answered(key, now)",
        "moves stale",
    ),
    Fault(
        "a move to a dead broker is submitted",
        "decide._submission",
        "and not observed.dead_of(observed.awaited(move))",
        "",
        "moves death",
    ),
    Fault(
        "dead brokers are taken for living ones",
        "observed.Observed.is_alive",
        "broker is not None and not broker.is_fenced",
        "broker is not None",
        "moves death",
    ),
    # Others.
    Fault(
        "a foreign reassignment is overwritten",
        "partition_path.PartitionPath.position",
        "Place.FOREIGN, found=target",
        "Place.AT, 0, target",
        "moves others",
    ),
    Fault(
        "the order from before is submitted over what somebody else moves",
        "withdraw._restore_order",
        "if move.topic_partition not in in_flight]",
        "]",
        "factors others",
    ),
    Fault(
        "an operator's `*` is appended to",
        "throttles.lists_to_extend",
        "value != EVERYTHING and",
        "",
        "moves others",
    ),
    # The way back.
    Fault(
        "moves in flight are left when a run stops",
        "turns._take_back",
        "withdraw(session, moves_under_way(session.paths, observed))",
        "withdraw(session, [])",
        "moves nothing",
    ),
    Fault(
        "the order is not restored after a cancel",
        "withdraw._restore_order",
        "if is_kept else disordered.append(move)",
        "if True else disordered.append(move)",
        "factors nothing",
    ),
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
        "throttles go on after the moves",
        "decide._is_unthrottled",
        "if stage.throttle_bytes_per_second is None or",
        "if memory.polls < 2 or stage.throttle_bytes_per_second is None or",
        "moves nothing",
    ),
    Fault(
        "lists come off while the last move is in flight",
        "decide._moves",
        "if not unfinished:",
        "if len(unfinished) < 2:",
        "moves nothing",
    ),
    Fault(
        "the destinations are not throttled",
        "throttles.wanted_lists",
        "for broker in move.added}",
        "for broker in move.added[1:]}",
        "moves nothing",
    ),
    Fault(
        "an operator's list is overwritten",
        "throttles.appended",
        "ConfigOperation.APPEND",
        "ConfigOperation.SET",
        "moves nothing",
    ),
    Fault(
        "one throttle entry is forgotten",
        "throttles.list_restored",
        "ConfigChange(key, ConfigOperation.DELETE) if is_ours_alone",
        "None if is_ours_alone",
        "moves nothing",
    ),
    Fault(
        "one broker's rates are forgotten",
        "throttling._CleanUp.rates",
        "in throttles.brokers:",
        "in throttles.brokers[1:]:",
        "moves nothing",
    ),
    Fault(
        "an operator's rate does not come back",
        "throttles.rate_restored",
        "if before is None else _set(key, before)",
        "",
        "moves nothing",
    ),
    Fault(
        "done is said though throttles are on",
        "turns.Run._finish",
        "take_all_off(self.session)",
        "pass",
        "moves nothing",
    ),
    Fault(
        "a run that stops leaves its throttles",
        "turns.end_in_order",
        "take_all_off(session, has_moves=has_moves)",
        "pass",
        "moves nothing",
    ),
    Fault(
        "a leftover throttle is not named",
        "throttling.take_all_off",
        "[one.problem for one in left]",
        "[]",
        "moves death",
    ),
    # A process that died.
    Fault(
        "throttles that a crash left stay",
        "leftovers._adopt",
        "earlier.plus(record.throttles)",
        "earlier",
        "moves kill",
    ),
    Fault(
        "the cluster's record of throttles is dropped",
        "session.Session._current_record",
        "throttles=self.throttles",
        "throttles=ThrottleRecord()",
        "moves kill",
    ),
    Fault(
        "another run takes throttles off while copies are in flight",
        "run._locked",
        "is_clear = not moves_under_way(session.paths, observed)",
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
