"""Faults planted in the executor, its journal and its own checkers, one at a time: each is noticed.

Runs in a bad world (`simulation.play`) and runs that are killed and started again (`simulation.crashes`) notice those
of the executor. `shown_by` names what showed a fault last; if it shows it no longer, the log dirs, seeds and crashes of
the default run are searched. A fault whose piece of source has changed is not found: write it anew.
"""

from collections.abc import Callable, Iterator, Sequence

import pytest
from helpers.figures import Tell
from mutations.faults import Fault, planted
from mutations.watch_faults import unnoticed
from simulation.crashes import crashed_somewhere, plans_to_crash
from simulation.many import played
from simulation.test_crashes import PLANS
from simulation.test_log_dirs import World
from simulation.test_seeds import PART

from reconciler.model.problem import ReconcilerError

pytestmark = pytest.mark.simulation

APPLY, CHECKERS = "reconciler.apply", "simulation"


def seed_complaint(seed: int) -> str | None:
    """Return why a seed failed, None where it ended as it must."""
    outcome = played(seed)
    return outcome if isinstance(outcome, str) else None


def crash_complaint(seed: int) -> str | None:
    """Return what is wrong after runs of a seed's plan were killed and started again."""
    return "\n".join(crashed_somewhere(seed).wrong) or None


def dirs_complaint(seed: int) -> str | None:
    """Return what is wrong with a seed's run that moves replicas between log dirs."""
    try:
        World(seed).play()
    except (AssertionError, ReconcilerError) as error:
        return str(error)
    return None


COMPLAINTS: dict[str, Callable[[int], str | None]] = {
    "seed": seed_complaint,
    "crash": crash_complaint,
    "dirs": dirs_complaint,
}


def complaint(shown_by: str, seeds: Sequence[int] = PART) -> str | None:
    """Return what shows first that something is wrong: what showed it last, else a seed, else crashes."""
    return next((one for one in looked_at(shown_by, seeds) if is_wrong(one)), None)


def looked_at(shown_by: str, seeds: Sequence[int]) -> Iterator[str]:
    """Yield what may show a fault, crashes last: to find plans worth a crash costs most."""
    if shown_by:
        yield shown_by
    yield from (f"dirs {seed}" for seed in range(25))
    yield from (f"seed {seed}" for seed in seeds)
    yield from (f"crash {seed}" for seed in plans_to_crash(PLANS))


def is_wrong(one: str) -> bool:
    """Whether something is wrong with `seed 7`, or with `crash 7`."""
    kind, number = one.split()
    return COMPLAINTS[kind](int(number)) is not None


FAULTS = [
    # Between log dirs.
    Fault(
        "copies between log dirs have the throttle of copies between brokers",
        "throttles.rate_keys",
        "(ALTER_LOG_DIRS_RATE,)",
        "BROKER_THROTTLES",
        "dirs 0",
    ),
    Fault(
        "a copy between log dirs takes no slot",
        "decide_dirs._choice",
        "slots = Slots(paths.plan.per_broker)",
        "slots = Slots(None)",
        "dirs 0",
    ),
    Fault(
        "a replica on its way to a log dir counts as there",
        "dir_moves.are_dirs_done",
        "is DirPlace.AT_END",
        "is not DirPlace.AT_START",
        "dirs 15",
    ),
    Fault(
        "a cancel leaves copies between log dirs",
        "cancel._Cancel.ended",
        "withdraw_dirs(session, inside, outcome)",
        "None",
        "dirs 27",
    ),
    # What is asked for.
    Fault(
        "the last stage is skipped",
        "turns.Run._all_stages",
        "range(self.first, len(self._plan.stages))",
        "range(self.first, len(self._plan.stages) - 1)",
        "seed 0",
    ),
    Fault(
        "a stage ends before its moves do",
        "decide._moves",
        "is not MoveState.DONE]",
        "not in {MoveState.DONE, MoveState.IN_FLIGHT}]",
        "seed 1",
    ),
    Fault(
        "a foreign reassignment is overwritten",
        "partition_path.PartitionPath.position",
        "Place.FOREIGN, found=target",
        "Place.AT, 0, target",
        "seed 23",
    ),
    Fault(
        "dead brokers are taken for living ones",
        "observed.Observed.is_alive",
        "broker is not None and not broker.is_fenced",
        "broker is not None",
        "seed 83",
    ),
    Fault(
        "a log dir that failed is not looked at",
        "stage_memory.bad_disks_of",
        "if one.is_offline]",
        "if False]",
        "seed 431",
    ),
    Fault(
        "a request without an answer is sent again at once",
        "perform.prepared",
        "memory.submitted(step.moves, now + UNKNOWN)",
        "memory",
        "seed 10",
    ),
    Fault(
        "an answered move is submitted again while it does not show",
        "perform._submit",
        "memory.answered(key, now + SETTLE)",
        "memory.answered(key, now)",
        "seed 0",
    ),
    Fault(
        "one copy more than allowed is in flight at a broker",
        "decide._slots",
        "slots = Slots(paths.plan.per_broker)",
        "slots = Slots(None)",
        "seed 1",
    ),
    Fault(
        "elections of a stage are not held",
        "decide._moves",
        "return _end_of_moves(stage, memory) or _next_election(paths, stage, observed, memory, now)",
        "return _end_of_moves(stage, memory) or FinishStage()",
        "seed 1",
    ),
    Fault(
        "one stage's moves are submitted with the next one's",
        "standings.is_stage_done",
        "is_moved = all(is_move_done(paths, stage, move, observed) for move in stage.moves)",
        "is_moved = True",
        "seed 0",
    ),
    Fault(
        "the order is not restored after a cancel",
        "withdraw._restore_order",
        "if is_kept else disordered.append(move)",
        "if True else disordered.append(move)",
        "seed 431",
    ),
    Fault(
        "moves in flight are left when a run stops",
        "turns._take_back",
        "withdraw(session, moves_under_way(session.paths, observed))",
        "withdraw(session, [])",
        "seed 20",
    ),
    Fault("an election is not asked for again", "standings._is_election_due", "return True", "return False", "seed 9"),
    Fault(
        "a topic that was made again is taken for the old one",
        "observed.replaced_topics",
        "ids.get(name, topic_id) != topic_id",
        "False",
        "seed 55",
    ),
    # Throttles.
    Fault(
        "one throttle entry is forgotten",
        "throttles.list_restored",
        "ConfigChange(key, ConfigOperation.DELETE) if is_ours_alone",
        "None if is_ours_alone",
        "seed 1",
    ),
    Fault(
        "one broker's rates are forgotten",
        "throttling._CleanUp.rates",
        "in throttles.brokers:",
        "in throttles.brokers[1:]:",
        "seed 1",
    ),
    Fault("an operator's `*` is appended to", "throttles.lists_to_extend", "value != EVERYTHING and", "", "seed 1"),
    Fault(
        "an operator's list is overwritten",
        "throttles.appended",
        "ConfigOperation.APPEND",
        "ConfigOperation.SET",
        "seed 1",
    ),
    Fault(
        "throttles go on after the moves",
        "decide._is_unthrottled",
        "if stage.throttle_bytes_per_second is None or",
        "if memory.polls < 2 or stage.throttle_bytes_per_second is None or",
        "seed 1",
    ),
    Fault(
        "the destinations are not throttled",
        "throttles.wanted_lists",
        "for broker in move.added}",
        "for broker in move.added[1:]}",
        "seed 1",
    ),
    Fault(
        "an operator's rate does not come back",
        "throttles.rate_restored",
        "if before is None else _set(key, before)",
        "",
        "seed 1",
    ),
    Fault(
        "throttles that a crash left stay",
        "leftovers._Traces.completed",
        "throttles=start.plus(ThrottleRecord(rates, lists))",
        "throttles=start",
        "crash 7",
    ),
    # What is told.
    Fault(
        "the journal's record of throttles is dropped",
        "session.Session.write_event",
        "if self.is_journal_broken:",
        'if self.is_journal_broken or step == "throttle":',
        "seed 5612",
    ),
    Fault(
        "a stop does not name what is left",
        "session.Session.result",
        "known.undone if known is not None and",
        "() if known is not None and",
        "seed 9",
    ),
    Fault("done is said though throttles are on", "turns.Run._finish", "take_all_off(self.session)", "pass", "seed 1"),
    Fault(
        "a leftover throttle is not named", "throttling.take_all_off", "[*left, *_still_on(session)]", "[]", "seed 265"
    ),
]

CHECKER_FAULTS = [
    Fault(
        "a watch that sees nothing", "watch.Watch.step", "self.truth = self.truth, truth", "self.truth = truth, truth"
    ),
    Fault("a watch that lets every request pass", "watch.Watch.reassign", "targets.items()", "()"),
    Fault(
        "a watch that counts nothing in flight",
        "watch.Watch._in_flight",
        "for key, found in ours if",
        "for key, found in [] if",
    ),
    Fault("a watch blind to throttles", "watch.Watch._throttle_entry", "theirs = self.foreign.get(where)", "return"),
    Fault("an end that is always as planned", "end.not_as_planned", "told = left_behind(watch, after)", "return []"),
    Fault("nothing is ever left behind", "end.left_behind", "there = throttles(after)", "return []"),
]


def test_without_a_fault_nothing_is_wrong() -> None:
    assert [seed_complaint(seed) for seed in range(20)] == [None] * 20
    assert unnoticed() == []


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.what for fault in FAULTS])
def test_a_fault_in_the_executor_is_noticed(fault: Fault) -> None:
    with planted(fault, APPLY):
        assert complaint(fault.shown_by) is not None


@pytest.mark.parametrize("fault", CHECKER_FAULTS, ids=[fault.what for fault in CHECKER_FAULTS])
def test_a_fault_in_the_simulations_own_checkers_is_noticed(fault: Fault) -> None:
    with planted(fault, CHECKERS):
        assert unnoticed() != []


def test_what_showed_a_fault_is_tried_in_each_run() -> None:
    shown_by = [fault.shown_by.split() for fault in FAULTS]
    assert {int(number) for kind, number in shown_by if kind == "seed"} <= set(PART)


def test_how_many_faults_are_planted(figures: Tell) -> None:
    figures("executor faults", f"{len(FAULTS)} planted in the executor, {len(CHECKER_FAULTS)} in its checkers")
