"""The proof follows every state between: orders edited by hand are refused where trying states one by one says so."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from helpers.clusters.mixed_clusters import mixed_cluster
from helpers.depth import parts
from helpers.figures import Tell
from proof.naive_states import complaints

from reconciler.model.move import Move
from reconciler.model.move_table import Moves
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError
from reconciler.model.stage import ElectStage, ReassignStage, Stage, numbered
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.check import prove
from reconciler.workflow.plan import plan_of


def _merged(stages: list[Stage], random: Random) -> list[Stage]:
    """Make one stage of all: moves of one partition become one."""
    whole = dict[TopicPartition, Move]()
    for stage in stages:
        for move in stage.moves if isinstance(stage, ReassignStage) else ():
            first = whole.get(move.topic_partition, move)
            added = len({*move.to_replicas} - {*first.from_replicas})
            size = move.bytes // max(1, len(move.added)) or first.bytes // max(1, len(first.added))
            whole[move.topic_partition] = replace(
                first, to_replicas=move.to_replicas, bytes=size * added, is_size_known=move.is_size_known
            )
    moves = [move for move in whole.values() if move.from_replicas != move.to_replicas]
    others = [stage for stage in stages if not isinstance(stage, ReassignStage)]
    place = random.randrange(len(others) + 1)
    return [*others[:place], ReassignStage(1, tuple(moves)), *others[place:]]


def _swapped(stages: list[Stage], random: Random) -> list[Stage]:
    """Let two stages follow one another the other way round."""
    at = random.randrange(len(stages) - 1)
    return [*stages[:at], stages[at + 1], stages[at], *stages[at + 2 :]]


def _joined(stages: list[Stage], random: Random) -> list[Stage]:
    """Make one stage of two that follow one another."""
    at = [n for n in range(len(stages) - 1) if all(isinstance(s, ReassignStage) for s in stages[n : n + 2])]
    if not at:
        return stages
    first = random.choice(at)
    one, other = stages[first], stages[first + 1]
    assert isinstance(one, ReassignStage)
    assert isinstance(other, ReassignStage)
    moves = Moves.joined([Moves.of(one.moves), Moves.of(other.moves)])
    return [
        *stages[:first],
        replace(one, moves=moves, elections=(*one.elections, *other.elections)),
        *stages[first + 2 :],
    ]


def _detoured(stages: list[Stage], random: Random) -> list[Stage]:
    """Let a partition shrink to its first replica on the way, and grow again."""
    at = [n for n, stage in enumerate(stages) if isinstance(stage, ReassignStage) and stage.moves]
    if not at:
        return stages
    first = random.choice(at)
    stage = stages[first]
    assert isinstance(stage, ReassignStage)
    moves = [*stage.moves]
    chosen = random.randrange(len(moves))
    move = moves[chosen]
    size = move.bytes // max(1, len(move.added))
    one = random.choice(move.from_replicas)
    there = replace(move, to_replicas=(one,), bytes=0)
    back = replace(move, from_replicas=(one,), bytes=size * len({*move.to_replicas} - {one}))
    before = replace(stage, moves=(there,), elections=())
    return [
        *stages[:first],
        before,
        replace(stage, moves=(*moves[:chosen], back, *moves[chosen + 1 :])),
        *stages[first + 1 :],
    ]


def _elected_early(stages: list[Stage], random: Random) -> list[Stage]:
    """Hold the elections of a stage before it."""
    at = [n for n, stage in enumerate(stages) if isinstance(stage, ReassignStage) and stage.elections]
    if not at:
        return stages
    first = random.choice(at)
    stage = stages[first]
    assert isinstance(stage, ReassignStage)
    return [*stages[:first], ElectStage(1, stage.elections), replace(stage, elections=()), *stages[first + 1 :]]


EDITS: dict[str, Callable[[list[Stage], Random], list[Stage]]] = {
    "merged": _merged,
    "swapped": _swapped,
    "joined": _joined,
    "detoured": _detoured,
    "elected early": _elected_early,
}


def other_orders(plan: Plan, seed: int) -> Iterator[tuple[str, Plan]]:
    """Yield the plan with other stages to the same end."""
    for name, edit in EDITS.items() if len(plan.stages) > 1 else ():
        yield name, replace(plan, stages=numbered(edit([*plan.stages], Random(seed))))


@parts("seeds", range(60), deep=range(3000))
def test_an_order_that_breaks_a_rule_for_one_step_is_refused_and_another_is_not(seeds: range, figures: Tell) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds:
        desired, observed = mixed_cluster(seed)
        try:
            plan = plan_of(desired, observed)
        except ReconcilerError:
            continue
        for name, other in [("as made", plan), *other_orders(plan, seed)]:
            wrong = sorted(set(complaints(other, desired, observed, Random(seed))))
            verdict = prove(other, desired, observed)
            assert (verdict.wrong is not None) >= bool(wrong), (seed, name, wrong)
            if name == "as made" and not verdict.is_limit_broken:
                assert verdict.wrong is None, (seed, verdict.wrong)
            if verdict.wrong is not None and verdict.wrong.startswith("stage "):
                stage = verdict.wrong.split()[1].rstrip(":")
                is_first = any(each.startswith(f"{stage} ") for each in wrong) or "does not leave it" in verdict.wrong
                assert is_first, (seed, name, wrong, verdict.wrong)
            counts[f"{name}: {'refused' if verdict.wrong else 'held'}"] += 1
    figures("orders edited by hand", ", ".join(f"{what} {count}" for what, count in sorted(counts.items())))
    assert sum(count for what, count in counts.items() if what.endswith("refused")) > len(seeds) // 4
