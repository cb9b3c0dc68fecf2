"""Runs that are killed at one boundary and started again: what they leave, compared with a run that never died."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count as numbers
from itertools import islice
from random import Random
from typing import NamedTuple

from simulation.cases import Case, drawn_case
from simulation.end import not_as_planned
from simulation.watch import Broken, Watch
from simulation.world import World

from reconciler.admin.port import Answer
from reconciler.apply.crash import CRASH_POINTS, Killed, planted
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.model.cluster import Cluster
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import RunEvent
from reconciler.model.stage import ReassignStage

NO_LAG = timedelta(0)
UNSYNCED, UNREAD = "record written, not synced", "request sent, answer not read"
POINTS = (*CRASH_POINTS, UNSYNCED, UNREAD)
"""The executor's own boundaries, and two that lie inside the journal and inside the client."""

TURNS = 4
"""In each run every fourth point is tried of a plan, at one of its boundaries: of the next plan, other points."""
MOST_STAGES = 6
POLLS = 2
"""At how many polls in a row a run is killed; the others are no different."""


class Boundary(NamedTuple):
    """The n-th boundary that a run passes, its name, and in which stage."""

    number: int
    name: str
    stage: int


class Bomb:
    """Passes boundaries, and kills the process at one of them."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.stage = 0
        self.passed: list[Boundary] = []

    def __call__(self, name: str) -> None:
        self.passed.append(Boundary(len(self.passed) + 1, name, self.stage))
        if len(self.passed) == self.at:
            raise Killed(name)


class CrashingJournal(MemoryJournal):
    """A journal with a boundary between the write of an event and its sync: killed there, the event may be lost."""

    def __init__(self, bomb: Bomb, events: Collection[RunEvent] = (), *, is_last_lost: bool = False) -> None:
        super().__init__(tuple(events))
        self.bomb = bomb
        self.is_last_lost = is_last_lost

    def append(self, event: RunEvent, /) -> None:
        self.bomb.stage = event.stage
        super().append(event)
        try:
            self.bomb(UNSYNCED)
        except Killed:
            if self.is_last_lost:
                self.appended.pop()
            raise


class CrashingWorld(World):
    """A world with a boundary between each request's effect and its answer."""

    def __init__(self, case: Case, watch: Watch, bomb: Bomb, *, can_keep: bool = True) -> None:
        super().__init__(case.before, Random(0), watch, can_keep=can_keep)
        self.bomb = bomb

    def _after(self, name: str) -> Answer | None:
        del name
        self.bomb(UNREAD)
        return None


@dataclass(slots=True)
class Crashes:
    """What was tried for one plan: how often each point was hit in how many stages, and what went wrong."""

    seed: int
    runs: int = 0
    stages: int = 0
    points: Counter[str] = field(default_factory=Counter)
    places: set[tuple[int, str, int]] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)


def plans_to_crash(count: int) -> list[int]:
    """Return the first seeds whose plan has a few stages, each of several moves and copies."""
    return list(islice((seed for seed in numbers() if _is_handy(drawn_case(seed))), count))


def _is_handy(case: Case) -> bool:
    stages = [stage for stage in case.plan.stages if isinstance(stage, ReassignStage)]
    return len(case.plan.stages) <= MOST_STAGES and sum(stage.bytes for stage in stages) > 0


def crashed_somewhere(seed: int) -> Crashes:
    """Do the same at one boundary of some points, which are others for each plan."""
    return crashed_everywhere(seed, is_everywhere=False)


def crashed_everywhere(seed: int, *, is_everywhere: bool = True) -> Crashes:
    """Kill the run of a seed's plan at each boundary, or at some, start it again, and return what differed."""
    case = drawn_case(seed)
    told = Crashes(seed, stages=len(case.plan.stages))
    wanted, passed = _undisturbed(case)
    boundaries = _worth_a_crash(passed)
    for boundary in boundaries if is_everywhere else _some(boundaries, seed):
        told.runs += 1
        told.points[boundary.name] += 1
        told.places.add((seed, boundary.name, boundary.stage))
        wrong = _crashed_at(case, boundary, wanted, choice=boundary.number + seed)
        if wrong is not None:
            told.wrong.append(f"seed {seed}, killed at {boundary}: {wrong}")
    return told


def _undisturbed(case: Case) -> tuple[Mapping[str, object], list[Boundary]]:
    bomb = Bomb()
    world = CrashingWorld(case, Watch(case, NO_LAG), bomb)
    with planted(bomb):
        run_plan(case.plan, world, CrashingJournal(bomb))
    return _end_state(world.cluster), bomb.passed


def _worth_a_crash(passed: list[Boundary]) -> list[Boundary]:
    """Return the boundaries, of polls in a row only the first few."""
    kept = []
    polls = 0
    for boundary in passed:
        polls = polls + 1 if boundary.name == "poll" else 0
        if polls <= POLLS:
            kept.append(boundary)
    return kept


def _some(boundaries: Sequence[Boundary], seed: int) -> Iterator[Boundary]:
    for name in POINTS[seed % TURNS :: TURNS]:
        if own := sorted((one.stage, one) for one in boundaries if one.name == name):
            yield own[7 * seed % len(own)][1]


def _crashed_at(case: Case, boundary: Boundary, wanted: Mapping[str, object], choice: int) -> str | None:
    """Kill, start again here or on another machine, in one case of five kill that run too; return what is wrong."""
    bomb = Bomb(boundary.number)
    watch = Watch(case, NO_LAG)
    world = CrashingWorld(case, watch, bomb, can_keep=choice % 7 > 2)
    journal = CrashingJournal(bomb, is_last_lost=choice % 3 == 0)
    is_elsewhere = choice % 2 == 0
    try:
        with planted(bomb):
            _killed(case, world, journal)
            journal = _next(journal, bomb, is_elsewhere=is_elsewhere)
            if choice % 5 == 0:
                bomb.at = len(bomb.passed) + 7
                _killed(case, world, journal)
                journal = _next(journal, bomb, is_elsewhere=is_elsewhere)
            bomb.at = None
            run_plan(case.plan, world, journal)
        return _judged(case, watch, world, wanted, _next(journal, bomb, is_elsewhere=is_elsewhere))
    except (Broken, ReconcilerError) as error:
        return f"{type(error).__name__} {error}\n" + "\n".join(world.diary[-60:])


def _killed(case: Case, world: World, journal: MemoryJournal) -> None:
    try:
        run_plan(case.plan, world, journal)
    except Killed:
        world.diary.append("killed")


def _next(journal: MemoryJournal, bomb: Bomb, *, is_elsewhere: bool) -> CrashingJournal:
    return CrashingJournal(bomb, () if is_elsewhere else [*journal.events, *journal.appended])


def _judged(case: Case, watch: Watch, world: World, wanted: Mapping[str, object], journal: MemoryJournal) -> str | None:
    requests = world.requests
    run_plan(case.plan, world, journal)
    if world.requests != requests:
        return "a second apply writes"
    wrong = not_as_planned(case, watch, world.cluster, are_leaders_kept=True)
    found = _end_state(world.cluster)
    wrong += [f"{key}: {found.get(key)}, without a crash {wanted.get(key)}" for key in _differing(found, wanted)]
    copies = Counter(
        (m.topic_partition, broker) for chain in watch.moves.values() for _, m in chain for broker in m.added
    )
    wrong += [f"{key} is copied to {broker} again" for key, broker in sorted((watch.copied - copies).keys())]
    return "; ".join(wrong) or None


def _differing(found: Mapping[str, object], wanted: Mapping[str, object]) -> list[str]:
    return [key for key in sorted({*found, *wanted}) if found.get(key) != wanted.get(key)]


def _end_state(cluster: Cluster) -> dict[str, object]:
    """Return all that two runs of the same plan must agree on."""
    state: dict[str, object] = {
        str(key): (partition.replicas, sorted(partition.isr), partition.leader, partition.sizes)
        for key, partition in cluster.partitions()
    }
    state |= {f"topic {topic.name}": dict(topic.configs) for topic in cluster.topics.values()}
    return state | {f"broker {broker.id}": dict(broker.configs) for broker in cluster.brokers.values()}
