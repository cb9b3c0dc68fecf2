"""Checks the levels of a plan within a budget: what the budget buys at the most, and that what it bought copies least.

Such a plan is one of three. The whole plan, where the budget is enough for it: its levels are those of any plan. The
plan that mends the rules alone, where that takes the whole budget: that none copies less is all that is shown of it.
Else each balance that the budget does not make whole has prices of a weighted sum::

    weight * balance + byte_weight * bytes >= bound     of every plan, by the prices, as everywhere else
    balance >= (bound - byte_weight * budget) / weight  of every plan that copies no more than the budget

That bound may be below the balance that the plan reaches; the verdict tells both. What comes after such a balance is
bounded among the plans with the same counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.model.plan import Plan, PriceLevel
from reconciler.model.words import number
from reconciler.proof.arithmetic import NotProved
from reconciler.proof.bounds import Holdings, Measure, replica_bounds
from reconciler.proof.demands import Demands
from reconciler.proof.objectives import BALANCES, BYTES, COPIES, EVENNESS, SPREAD, Objectives


def budget_of(plan: Plan) -> int | None:
    """Return the bytes that the plan may copy, None where it has no budget; raise NotProved where it says two."""
    asked, told = plan.source.budget, plan.budgeted
    if (asked is None) != (told is None) or (asked and told and asked.bytes not in {None, told.bytes}):
        raise NotProved("what the plan says of its budget is not what it was made with")
    return None if told is None else told.bytes


def within_budget(plan: Plan, budget: int, objectives: Objectives, measures: Mapping[str, Measure]) -> Objectives:
    """Return the objectives of a plan within a budget; raise NotProved where it copies what its budget does not say."""
    levels, copied = [level for level in plan.proof.levels if level.objective != SPREAD], measures[BYTES].value
    is_balanced = any(name in BALANCES for name in objectives.replicas)
    is_mended = is_balanced and bool(levels) and levels[0].objective == BYTES
    if is_mended and copied < budget:
        raise NotProved(
            f"the plan mends the rules alone and copies {number(copied)} bytes, "
            f"less than its budget of {number(budget)}"
        )
    if is_balanced and not is_mended and copied > budget:
        raise NotProved(f"the plan copies {number(copied)} bytes, more than its budget of {number(budget)}")
    if not is_mended:
        return objectives
    spread = tuple(name for name in objectives.replicas if name == SPREAD)
    later = tuple(name for name in objectives.replicas if name not in {BYTES, SPREAD})
    return replace(objectives, replicas=(*spread, BYTES, *later), may_miss=objectives.may_miss.union(later))


def traded_bounds(
    demands: Demands, counted: Holdings, measures: Mapping[str, Measure], levels: Sequence[PriceLevel], budget: int
) -> Iterator[tuple[PriceLevel, int]]:
    """Yield each level with what its prices prove among the plans within the budget."""
    first = next((place for place, level in enumerate(levels) if level.weight), len(levels))
    before = [*levels[:first]]
    yield from zip(before, replica_bounds(demands, counted, measures, before), strict=True)
    same_counts: list[str] = []
    costs = [level for level in levels[first:] if level.objective in {BYTES, COPIES, EVENNESS}]
    for level in levels[first:]:
        if level in costs:
            continue
        if level.weight < 0 or level.byte_weight < 0 or (level.weight and not level.byte_weight):
            raise NotProved(f"{level.objective}: its weights are no weights")
        own = {**measures}
        if level.weight:
            own[level.objective] = measures[level.objective].against(measures[BYTES], level)
        bound = replica_bounds(demands, counted, own, [*before, level], same_counts)[-1]
        if level.weight:
            bound = max(0, -(-(bound - level.byte_weight * budget) // level.weight))
        yield level, bound
        same_counts.append(level.objective)
    if costs:
        bounds = replica_bounds(demands, counted, measures, [*before, *costs], same_counts)[len(before) :]
        yield from zip(costs, bounds, strict=True)
