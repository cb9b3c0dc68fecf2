"""Chooses who holds and who leads each partition: by counts if these keep all limits, else by measured loads."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from reconciler.model.budget import Budget, Budgeted
from reconciler.model.columns import Ints
from reconciler.model.desired import Balance, DesiredCluster, Off
from reconciler.model.disk_space import NO_SPACE
from reconciler.model.plan import PriceLevel
from reconciler.model.problem import Problem
from reconciler.planner.flow import FlowInfeasibleError
from reconciler.planner.leaders import Leaders, place_leaders
from reconciler.planner.load_balance.bands import Caps
from reconciler.planner.load_balance.measured import Measured, has_loads, has_many_parts, refuse_many_parts
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.replicas import ReplicaSets, place_replicas
from reconciler.planner.spread import is_nearest
from reconciler.planner.tightness import tightness_warnings
from reconciler.planner.to_place import Unmoved

if TYPE_CHECKING:
    from reconciler.planner.space.disks import Disks
    from reconciler.planner.space.place import Roomy


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A placement: who holds and who leads each partition, with its warnings."""

    sets: ReplicaSets
    leaders: Leaders
    warnings: tuple[Problem, ...]
    disk_excess: int | None = 0  # bytes above the limit of disks; None: the search of loads looks no further


@dataclass(frozen=True, slots=True)
class Choice:
    """A task, with the rules and loads that decide where its partitions go."""

    task: PlacementTask
    unmoved: Unmoved
    cluster: DesiredCluster
    carried: Measured | None  # None if no rule asks for loads
    caps: Caps
    disks: "Disks | None"  # None if any may be filled
    budget: Budget | None
    is_part: bool  # only the topics that --only names may move

    def chosen(self, is_above: Callable[[Chosen], bool]) -> Chosen:
        """Return the placement; `is_above` says whether one exceeds a limit on loads."""
        balance, disks = self.cluster.balance, self.disks
        # Loads are balanced among the brokers that take part, if there are any.
        carried = self.carried if self.task.eligible.ids else None
        # A topic of one partition has no more than one replica on a broker anyway.
        many = int((np.bincount(self.task.topic) > 1).sum()), len(self.task.eligible.ids)
        if carried is not None and has_loads(balance):
            refuse_many_parts(balance, *many)
            # This search knows the end alone: with more to look at on the way it would find the same.
            return replace(self._by_loads(carried), disk_excess=0 if disks is None else None)
        is_last = carried is None or has_many_parts(balance, *many)
        chosen, fits = self._by_counts(is_last=is_last)
        # The placement by counts is exact, so it is taken if it keeps the limits.
        if carried is None or is_last or (fits and not is_above(chosen)):
            return chosen
        nearer = self._nearer(chosen, carried)
        if disks is None:
            return nearer
        nearer = replace(nearer, disk_excess=int(disks.excess(nearer.sets.held).sum()))
        last = self._by_counts(is_last=True)[0] if nearer.disk_excess and not fits else nearer
        return min(nearer, last, key=lambda each: each.disk_excess or 0)

    def _by_counts(self, *, is_last: bool) -> tuple[Chosen, bool]:
        """Return what is best by counts, and whether disks, as far as they matter, have the room there can be."""
        task, cluster, disks = self.task, self.cluster, self.disks
        sets = place_replicas(task, cluster.balance) if self.budget is None else self._within(self.budget)
        budgeted, warnings, fits, is_yielding, excess = sets.budgeted, list[Problem](), True, False, 0
        if disks is not None:
            from reconciler.planner.space.place import with_room

            roomy: Roomy | None = with_room(task, cluster.balance, sets, disks, is_last=is_last or budgeted is not None)
            # A placement that fits the disks may copy no more than the budget, and must be bought as well.
            if budgeted is not None and not (roomy and roomy.sets and _is_as_bought(sets, roomy.sets, budgeted)):
                roomy, budgeted = self._mended_with_room(budgeted, disks)
                is_better = roomy and roomy.sets and disks.excess(roomy.sets.held).sum() < disks.excess(sets.held).sum()
                roomy, budgeted = (roomy, budgeted) if is_better else (None, sets.budgeted)
            if roomy is not None:
                sets, warnings = roomy.sets or sets, [*roomy.problems(cluster, is_part=self.is_part)]
                fits, is_yielding, excess = bool(roomy.sets), roomy.is_yielding, roomy.excess
                sets = replace(sets, budgeted=budgeted)
        if task.spread is not None:
            sets = replace(sets, proof=replace(sets.proof, levels=(task.spread.level, *sets.proof.levels)))
        leaders = place_leaders(task, with_fixed(task, sets.held), cluster.balance)
        is_short = is_yielding or (budgeted is not None and not budgeted.is_whole)
        balance = replace(cluster.balance, replicas=Off(), topics=Off()) if is_short else cluster.balance
        warnings += tightness_warnings(balance, task, sets.held, leaders.column)
        return Chosen(sets, leaders, tuple(warnings), excess), fits

    def _within(self, budget: Budget) -> ReplicaSets:
        """Return the replica sets within the budget."""
        from reconciler.planner.budget import Curve

        curve, most = Curve(self.task, self.cluster.balance), budget.bytes or 0
        if budget.seconds is not None:
            most = curve.within_time(budget.seconds * (self.cluster.moves.throttle_bytes_per_second or 0))
        sets = curve.within(most)
        return replace(sets, budgeted=curve.budgeted(sets, most))

    def _mended_with_room(self, budgeted: Budgeted, disks: "Disks") -> "tuple[Roomy | None, Budgeted]":
        """Return the least placement that mends rules and relieves disks, and its bytes: a budget forbids neither."""
        from reconciler.planner.budget import Curve
        from reconciler.planner.space.place import with_room

        curve = Curve(self.task, self.cluster.balance)
        balance = replace(self.cluster.balance, replicas=Off(), topics=Off())
        roomy = with_room(self.task, balance, curve.mended, disks, is_last=True)
        held = curve.mended.held if roomy.sets is None else roomy.sets.held
        return roomy, replace(budgeted, mended_bytes=curve.copied(held))

    def _by_loads(self, carried: Measured) -> Chosen:
        """Return the placement that comes nearest to the bands of loads.

        This search keeps a spread over racks even if it may yield to a limit. So its placement may exceed a limit that
        a placement by the rules alone keeps. Then the latter is returned, with a warning for each band that it misses.
        """
        from reconciler.planner.load_balance.place import missed_bands, placed_with_loads

        task, balance, disks = self.task, self.cluster.balance, self.disks
        budget = None if self.budget is None else self._most_bytes(self.budget)
        try:
            chosen = Chosen(*placed_with_loads(task, self.unmoved, balance, carried.of, self.caps, budget=budget))
        except FlowInfeasibleError:
            if task.spread is None:
                raise
            chosen = None
        if chosen is not None and task.spread is not None:
            chosen = _without_bound(chosen) if is_nearest(task, chosen.sets.held) else None
        excess = 0
        if chosen is not None and disks is not None and budget is None and has_loads(balance):
            excess = int(disks.excess(chosen.sets.held).sum())
        if chosen is not None and not excess:
            return chosen
        by_rules = replace(self, cluster=replace(self.cluster, balance=Balance()), budget=None)
        mended, _ = by_rules._by_counts(is_last=True)  # noqa: SLF001 - its own class
        if chosen is not None and excess <= (mended.disk_excess or 0):
            return chosen
        missed = missed_bands(
            task, self.unmoved, balance, carried.of, self.caps, held=mended.sets.held, leaders=mended.leaders
        )
        return _without_bound(replace(mended, warnings=(*mended.warnings, *missed)))

    def _nearer(self, chosen: Chosen, carried: Measured) -> Chosen:
        """Return the placement that loads find instead of this one, which exceeds a limit; else this one."""
        from reconciler.planner.load_balance.column_generation import NoSolution

        try:
            nearer = self._by_loads(carried)
        except NoSolution:
            return chosen
        kept = [warning for warning in chosen.warnings if warning.code == NO_SPACE]
        return replace(nearer, warnings=(*nearer.warnings, *kept))

    def _most_bytes(self, budget: Budget) -> int:
        """Return the budget in bytes; of a time, all that the brokers together could receive in it."""
        if budget.seconds is None:
            return budget.bytes or 0
        return budget.seconds * (self.cluster.moves.throttle_bytes_per_second or 0) * len(self.task.eligible.ids)


def with_fixed(task: PlacementTask, held: Ints) -> Ints:
    """Return who holds each partition [partitions, some], with the replicas that are decided already."""
    return np.concatenate([held, task.fixed], axis=1) if (task.fixed >= 0).any() else held


def _without_bound(chosen: Chosen) -> Chosen:
    """Return the same with a bound of 0: prices of loads show neither a spread that yields, nor full disks."""
    proof = chosen.sets.proof
    level = PriceLevel(proof.objective, proof.value, 0)
    proof = replace(proof, lower_bound=0, joint_prices={}, levels=(level,))
    return replace(chosen, sets=replace(chosen.sets, proof=proof), leaders=replace(chosen.leaders, levels=()))


def _is_as_bought(sets: ReplicaSets, roomy: ReplicaSets, budgeted: Budgeted) -> bool:
    """Whether other sets are within the budget too, and prove the same of the balance that it bought."""
    bought, others = ([level for level in each.proof.levels if level.weight] for each in (sets, roomy))
    return bought == others and roomy.proof.value <= max(budgeted.bytes, sets.proof.value)
