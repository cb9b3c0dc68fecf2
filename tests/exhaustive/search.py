"""Visits every state that a run and its environment can come to; tells the way to a fault with the fewest disturbances.

Of states that differ only in what is behind them the least disturbed stands for all: whatever may still happen to
another may happen to it, and nothing excuses it that would not excuse the other.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

from exhaustive.adapter import (
    CAN_BE_LATE,
    KILLED,
    LATE,
    LOST,
    OF_CONTROLLER,
    OTHER_CONTROLLER,
    UNANSWERED,
    WRITES,
    Disturbance,
    Done,
    Executor,
)
from exhaustive.cases import Case
from exhaustive.environment import FAULT, FREE, KILL, Bounds, events, healed, passing, settled, settling, spent
from exhaustive.invariants import Rules, Violation
from exhaustive.state import State, World, described
from helpers.plans.end_state import throttles

LONGEST = 400
"""How many turns a run may take to its end where nothing disturbs it any more."""


@dataclass(slots=True)
class Trace:
    """The shortest way to a fault: actions with what they changed, and what is wrong in the end."""

    steps: list[tuple[str, Mapping[str, tuple[str, str]]]]
    wrong: str

    def __str__(self) -> str:
        lines = []
        for number, (label, changes) in enumerate(self.steps, 1):
            lines.append(f"{number:3} {label}")
            lines += [f"      {name}: {before or '-'} => {after or '-'}" for name, (before, after) in changes.items()]
        return "\n".join([*lines, f"  ! {self.wrong}"])


@dataclass(slots=True)
class Report:
    """What was visited."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    trace: Trace | None = None


Act = Callable[..., Done]


@dataclass(frozen=True, slots=True)
class Action:
    """Something the executor, or its operator, may do in a state."""

    what: str
    kind: str
    act: Act


class Visited:
    """The states that were visited, each with what was behind it."""

    def __init__(self) -> None:
        self.count = 0
        self._behind: dict[bytes, list[Counter[str]]] = {}

    def has(self, state: State) -> bool:
        """Whether it was visited, or one that stands for it."""
        behind = Counter(state.world.spent)
        return any(one <= behind for one in self._behind.get(state.fingerprint, ()))

    def add(self, state: State) -> None:
        """Take it for visited."""
        self.count += 1
        self._behind.setdefault(state.fingerprint, []).append(Counter(state.world.spent))


@dataclass(frozen=True, slots=True, order=True)
class Level:
    """The states with so many disturbances behind them, and so many actions: looked at in this order."""

    disturbances: int
    actions: int


class Search:
    """One plan, bounds, and what was visited so far."""

    def __init__(self, case: Case, bounds: Bounds, most_states: int | None = None) -> None:
        self.case = case
        self.bounds = bounds
        self.most_states = most_states
        self.rules = Rules(case)
        self.executor = Executor(case.plan, self.rules)
        self.known = Visited()
        self.levels: dict[Level, list[tuple[int, State]]] = {}
        self.parents: list[tuple[int, str]] = []
        self.lively = Visited()
        self.at = 0
        """The number of the state that is looked at."""
        self.calm: list[tuple[str, State]] = []
        """What followed it where nothing happened any more."""
        self.under_way = ""

    def first(self) -> State:
        """Return the state before anything was done."""
        return State(World(self.case.before, theirs=throttles(self.case.before)))

    def run(self) -> Report:
        """Visit every state, level by level, and let a run go on undisturbed from each; ends at the first fault."""
        report, limit = Report(), None
        try:
            self._visit(self.first(), "", 0)
            while self.levels:
                level = min(self.levels)
                if (limit and level >= limit) or self.known.count > (self.most_states or self.known.count):
                    break
                report.depth = max(report.depth, level.actions)
                self._look(level.actions, self.levels[level], report)
                del self.levels[level]
                # A way on which nothing happens any more may be longer than another one to the same fault.
                limit = limit or (report.trace and Level(level.disturbances, len(report.trace.steps) - 1))
        except Violation as violation:
            report.trace = self._trace(violation)
        report.states = self.known.count
        return report

    def _look(self, actions: int, states: Sequence[tuple[int, State]], report: Report) -> None:
        for self.at, state in states:
            report.ends[state.ended] = report.ends.get(state.ended, 0) + 1
            for label, after in self.after(state):
                report.transitions += 1
                self.under_way = label
                self._visit(after, label, actions + 1)
        try:
            for self.at, state in states if report.trace is None else ():
                self._runs_to_its_end(state)
        except Violation as violation:
            report.trace = self._trace(violation)
        self.calm = []

    def _visit(self, state: State, label: str, actions: int) -> None:
        if self.known.has(state):
            return
        self.rules.state(state)
        self.known.add(state)
        self.parents.append((self.at, label))
        level = Level(len(state.world.spent), actions)
        self.levels.setdefault(level, []).append((len(self.parents) - 1, state))

    # What may follow

    def after(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield all that may follow a state, each with what leads to it."""
        if state.is_over:
            return
        for event in events(self.case, state.world):
            if self.bounds.allow(state.world, event.kind):
                yield event.what, State(event.happened(state.world), state.process, state.ended)
        for action in self._actions(state):
            yield from self._outcomes(state, action)
        if state.process is not None and self.bounds.allow(state.world, KILL):
            yield "the process is killed", State(spent(replace(state.world, answered=frozenset()), KILL))

    def _actions(self, state: State) -> Iterator[Action]:
        if state.process is not None:
            yield Action("turn", FREE, self.executor.turns)
            yield Action("SIGTERM", KILL, partial(self.executor.turns, is_stopped=True))
            return
        # Nobody starts at once where metadata may be older than the last process: its effects must show.
        if state.world.shown is None and not state.world.late:
            yield Action("apply", FREE, self.executor.starts)
            yield Action("cancel", KILL, self.executor.cancels)

    def _outcomes(self, state: State, action: Action) -> Iterator[tuple[str, State]]:
        if not self.bounds.allow(state.world, action.kind):
            return
        begun = State(spent(state.world, action.kind), state.process, state.ended)
        calm = self._done(begun, action)
        yield _label(action, calm), calm.state
        if calm.ticks > 1:
            slow = self._done(begun, action, passing_=settling)
            yield _label(action, slow, "while copies end"), slow.state
        for one, kind in self._disturbances(begun.world, calm):
            done = self._done(begun, action, one, kind)
            if done.has_acted:
                yield _label(action, done, str(one)), done.state

    def _disturbances(self, world: World, calm: Done) -> Iterator[tuple[Disturbance, str]]:
        may_fault, may_kill = self.bounds.allow(world, FAULT), self.bounds.allow(world, KILL)
        happening = [event for event in events(self.case, world) if self.bounds.allow(world, event.kind)]
        for at, name in enumerate(calm.calls):
            is_write = name in WRITES
            if may_fault:
                yield Disturbance(at, LOST), FAULT
            if may_fault and is_write:
                yield Disturbance(at, UNANSWERED), FAULT
            if may_fault and name in OF_CONTROLLER:
                yield Disturbance(at, OTHER_CONTROLLER), FAULT
            if may_fault and name in CAN_BE_LATE:
                yield Disturbance(at, LATE), FAULT
            if may_kill and is_write:
                yield Disturbance(at, KILLED), KILL
            # What happens before the first call is an action of its own; between two reads in a row nothing is decided.
            if at == 1 or (at > 1 and (is_write or calm.calls[at - 1] in WRITES)):
                for event in happening:
                    yield Disturbance(at, event.what, event.raced), FREE

    def _done(
        self,
        state: State,
        action: Action,
        disturbance: Disturbance | None = None,
        kind: str = FREE,
        *,
        passing_: Callable[[World], World] = passing,
        is_calm: bool = False,
    ) -> Done:
        self.under_way = f"{action.what}{f' ({disturbance})' if disturbance else ''}"
        done = action.act(state, passing_, disturbance)
        if done.has_acted:
            done.state = State(spent(done.state.world, kind), done.state.process, done.state.ended)
        if done.state.ended:
            self.rules.end(done, is_calm=is_calm, has_begun=state.process is not None or bool(done.asked))
        elif done.state.process is None:
            self.rules.killed(done)
        return done

    # Every run comes to an end

    def _runs_to_its_end(self, state: State) -> None:
        """From here, with nothing happening any more, a run ends: as planned, or with a reason that it names.

        Once what died lives again, another apply ends as planned, unless somebody else has moved a partition; and one
        more asks for nothing.
        """
        path: list[State] = []
        is_healed = False
        self.calm = []
        state = self._calmly("from now on nothing happens", State(settled(state.world), state.process, state.ended))
        while not state.is_over:
            if self.lively.has(state):
                break
            path.append(state)
            if len(path) > LONGEST:
                raise Violation(f"after {LONGEST} turns in which nothing happened, the run has not ended")
            if state.process is None and state.ended:
                if is_healed and not state.world.touched:
                    raise Violation(f"all is well, and apply ends with {state.ended}")
                if is_healed:
                    break
                is_healed = True
                state = self._calmly("every broker lives", State(healed(state.world), None, state.ended))
            state = self._goes_on(state)
        if state.is_over:
            self._asks_for_nothing_more(state)
        for state in path:
            self.lively.add(state)

    def _calmly(self, label: str, state: State) -> State:
        self.calm.append((label, state))
        return state

    def _goes_on(self, state: State) -> State:
        """Return the state after a turn, or a start, with which nothing interferes."""
        action = (
            Action("turn", FREE, self.executor.turns) if state.process else Action("apply", FREE, self.executor.starts)
        )
        done = self._done(state, action, passing_=settling, is_calm=True)
        return self._calmly(_label(action, done), done.state)

    def _asks_for_nothing_more(self, state: State) -> None:
        """Once what died lives again, an apply pays what a run could not put back, and the next one writes nothing."""
        state = self._calmly("every broker lives", State(healed(state.world)))
        for _ in range(LONGEST):
            state = self._goes_on(state)
            if state.ended:
                break
        self.rules.second(self._done(State(state.world), Action("a second apply", FREE, self.executor.starts)))

    # The way to a fault

    def _trace(self, violation: Violation) -> Trace:
        """Return the way to the state that was looked at, and on to the fault."""
        labels, number, last = [], self.at, self.under_way
        while number > 0:
            number, label = self.parents[number]
            labels.append(label)
        states, calm = [("", self.first())], self.calm
        for label in reversed(labels):
            states.append(next(one for one in self.after(states[-1][1]) if one[0] == label))
        states += calm
        steps = [(label, _changes(before, after)) for (_, before), (label, after) in pairwise(states)]
        return Trace([*steps, (last, {})], str(violation))


def _changes(before: State, after: State) -> dict[str, tuple[str, str]]:
    old, new = described(before), described(after)
    names = {**old, **new}
    return {name: (old.get(name, ""), new.get(name, "")) for name in names if old.get(name) != new.get(name)}


def _label(action: Action, done: Done, disturbed: str = "") -> str:
    words = [action.what, *([f"({disturbed})"] if disturbed else []), *(["waits"] if done.ticks else [])]
    return ", ".join([" ".join(words), *done.asked])
