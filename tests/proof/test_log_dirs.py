"""Orders edited by hand that overfill a log dir are refused: trying each state and each choice of Kafka says which."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product
from random import Random

from helpers.depth import parts
from helpers.figures import Tell
from planner.log_dirs.dir_worlds import world
from planner.log_dirs.test_place import plan_or_none

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Limits
from reconciler.model.move import DirMove, Move
from reconciler.model.plan import Plan
from reconciler.model.stage import LogDirsStage, ReassignStage, Stage, numbered
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.check import prove
from reconciler.render import as_proof

Place = tuple[int, str]
Choice = dict[TopicPartition, str]
"""The log dir into which Kafka puts each new replica that is asked to go to none."""
TRIED = 256


@parts("seeds", range(0, 300, 2), deep=range(4000))
def test_an_order_that_overfills_a_log_dir_is_refused_and_another_is_not(seeds: range, figures: Tell) -> None:
    counts = Counter[str]()
    for seed in seeds:
        desired, observed = world(seed)
        plan = plan_or_none(desired, observed)
        if plan is None:
            continue
        share = desired.cluster.limits.disk_use or _fullest(plan, observed)
        tight = replace(desired, cluster=replace(desired.cluster, limits=Limits(disk_use=share)))
        for name, stages in _orders([*plan.stages], Random(seed)):
            order = replace(plan, stages=numbered(stages))
            choices = [*islice(_choices(order, observed), TRIED)]
            broken = [_first_overfull(order, share, observed, choice) for choice in choices]
            wrong = prove(order, tight, observed).wrong
            if wrong is not None and wrong.startswith("in the end "):
                wrong = None  # The order decides nothing there.
            assert name != "as made" or wrong is None, (seed, wrong)
            if wrong is not None and " would hold " in wrong:
                assert None not in broken, (seed, name, wrong)
            if len(choices) == 1 and broken != [None]:
                assert wrong is not None, (seed, name)
                is_lost = "does not lie there" in wrong or "lies there in the end" in wrong
                assert is_lost or wrong.startswith(f"stage {broken[0]}: "), (seed, name, wrong)
            counts[f"{name} {'refused' if wrong else 'held'}"] += 1
    figures("orders of moves between log dirs", ", ".join(f"{what} {count}" for what, count in sorted(counts.items())))
    assert sum(count for what, count in counts.items() if what.endswith("refused")) > len(seeds) // 10


@parts("seeds", range(0, 300, 5), deep=range(1000))
def test_a_plan_that_leaves_a_replica_in_a_draining_log_dir_is_not_proved(seeds: range) -> None:
    tried = 0
    for seed in seeds:
        desired, observed = world(seed)
        plan = plan_or_none(desired, observed)
        for stage in plan.stages if plan is not None else ():
            if plan is not None and isinstance(stage, LogDirsStage):
                without = replace(plan, stages=numbered(one for one in plan.stages if one is not stage))
                draining = {one.reason.value for one in stage.moves} & {"draining"}
                verdict = prove(without, desired, observed)
                assert (verdict.wrong is not None) >= bool(draining), (seed, verdict)
                assert "is not part of the proof." in as_proof.text(prove(plan, desired, observed))
                tried += bool(draining)
    assert tried > len(seeds) // 10


def _orders(stages: list[Stage], random: Random) -> Iterator[tuple[str, list[Stage]]]:
    yield "as made", stages
    if len(stages) > 1:
        at = random.randrange(len(stages) - 1)
        yield "swapped", [*stages[:at], stages[at + 1], stages[at], *stages[at + 2 :]]
    inside = [move for stage in stages if isinstance(stage, LogDirsStage) for move in stage.moves]
    if inside:
        others: list[Stage] = [stage for stage in stages if not isinstance(stage, LogDirsStage)]
        yield "none inside", others
        yield "all inside at first", [LogDirsStage(1, tuple(inside)), *others]
        yield "all inside in the end", [*others, LogDirsStage(1, tuple(inside))]


def _choices(plan: Plan, observed: Cluster) -> Iterator[Choice]:
    free = [move for stage in plan.stages if isinstance(stage, ReassignStage) for move in stage.moves]
    free = [move for move in free if move.to_replicas != move.from_replicas and not move.log_dirs]
    paths = [[one.path for one in observed.brokers[move.to_replicas[0]].log_dirs] for move in free]
    for chosen in product(*paths):
        yield {move.topic_partition: path for move, path in zip(free, chosen, strict=True)}


def _fills(plan: Plan, observed: Cluster, choice: Choice) -> Iterator[tuple[int, Place, Fraction]]:
    """Yield the stage, the log dir and how full it is, in each state in which bytes come into it."""
    dirs = {(b, one.path): one for b, broker in observed.brokers.items() for one in broker.log_dirs}
    used = {place: (one.total_bytes or 0) - (one.usable_bytes or 0) for place, one in dirs.items()}
    lies = {key: (p.replicas[0], p.log_dirs[0] or "") for key, p in observed.partitions()}
    sizes = {key: partition.sizes[0] or 0 for key, partition in observed.partitions()}
    for stage in plan.stages:
        if not isinstance(stage, ReassignStage | LogDirsStage):
            continue
        moves = [(move.topic_partition, *_ends(move, lies, choice)) for move in stage.moves]
        states = product("012", repeat=len(moves)) if 3 ** len(moves) <= TRIED else ["1" * len(moves)]
        for state in states:
            now, filling = Counter(used), set[Place]()
            for (key, start, end), how in zip(moves, state, strict=True):
                now[end] += sizes[key] if how != "0" else 0
                now[start] -= sizes[key] if how == "2" else 0
                filling |= {end} if how == "1" and sizes[key] else set()
            yield from ((stage.number, place, Fraction(now[place], dirs[place].total_bytes or 1)) for place in filling)
        for key, start, end in moves:
            used[start] -= sizes[key]
            used[end] += sizes[key]
            lies[key] = end


def _fullest(plan: Plan, observed: Cluster) -> Fraction:
    """Return how full the fullest log dir is while something comes into it, whatever Kafka chooses."""
    fills = [fill for choice in islice(_choices(plan, observed), TRIED) for fill in _fills(plan, observed, choice)]
    return max((fullness for _, _, fullness in fills), default=Fraction(1))


def _first_overfull(plan: Plan, share: Fraction, observed: Cluster, choice: Choice) -> int | None:
    """Return the first stage with a state that overfills a log dir, and the plan does not say so; None: no stage."""
    said = [one.message for one in plan.violations if one.code == "KR413"]
    for stage, (broker, path), fullness in _fills(plan, observed, choice):
        if fullness > share and not any(f"broker {broker} would" in text and f"in {path} at" in text for text in said):
            return stage
    return None


def _ends(move: Move | DirMove, lies: dict[TopicPartition, Place], choice: Choice) -> tuple[Place, Place]:
    if isinstance(move, DirMove):
        return (move.broker, move.from_dir), (move.broker, move.to_dir)
    broker = move.to_replicas[0]
    return lies[move.topic_partition], (broker, move.log_dirs.get(broker) or choice[move.topic_partition])
