"""Finds a placement that fits the disks.

It is looked for among the optima of counts, then among all as balanced, then among all that keep the rules, and at last
off a spread over racks that is only preferred.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from reconciler.model.columns import Bools, Ints, is_at, is_missing
from reconciler.model.desired import Balance, DesiredCluster, Off
from reconciler.model.disk_space import NO_SPACE
from reconciler.model.plan import BYTES
from reconciler.model.problem import Problem, warning
from reconciler.model.words import counted, size
from reconciler.planner.objectives import CountTargets, asked_of_replicas
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.replicas import ReplicaSets, copied, place_replicas
from reconciler.planner.rows import Standing
from reconciler.planner.space.disks import Disks
from reconciler.planner.space.relief import relieved
from reconciler.planner.space.search import NO_EXCESS, Excess, Goal, OffSpread, Search
from reconciler.planner.spread import loosened

MOST_CHOICES = 40_000
"""Choices of one search: where there are more, the rows that matter to crowded disks are looked at alone."""
MOST_CELLS = 3_000_000
"""Partitions times brokers: up to so many, `load_balance` searches where no flow is near."""


@dataclass(frozen=True, slots=True)
class Searched:
    """How far a search went, which is what may be said of its result."""

    is_whole: bool = True  # every placement was part of it, not only those that matter to full disks
    is_proved: bool = True  # it came to its end: of what was part of it, nothing is better
    steps: int = 0  # moves were looked at in so many steps at the most; 0: only the end was

    @property
    def is_exact(self) -> bool:
        """Whether no placement is better."""
        return self.is_whole and self.is_proved

    def __str__(self) -> str:
        """Return what was searched, in words."""
        part = "the search ended at its limit" if self.is_whole else "only those that matter to full disks"
        found = "all placements were searched"
        steps = f", their moves in {counted(self.steps, 'step')} at the most" if self.steps else ""
        return f"{found if self.is_exact else f'not {found}, {part}'}{steps}"


@dataclass(frozen=True, slots=True)
class Roomy:
    """The placement of a search for room. `sets` is None if no placement was found that is as near to the wishes.

    `is_yielding`: the balance of replicas is not reached. `excess`: bytes above the limit, all disks together.
    """

    sets: ReplicaSets | None
    searched: Searched = Searched()
    is_yielding: bool = False
    excess: int = 0
    for_excess: Searched = Searched()  # how the least excess was searched for
    is_bound: bool = False  # no placement leaves less, which needs no search
    is_size_known: bool = True  # else more may be above it, and less be possible

    def problems(self, desired: DesiredCluster, *, is_part: bool) -> Iterator[Problem]:
        """Yield what disks ask for beside what counts would; `is_part`: only the topics that --only names may move."""
        at, balance = desired.limits.at.get("diskUse"), desired.balance
        if self.sets is None:
            return
        if self.excess:
            yield warning(NO_SPACE, self._excess_words(is_part=is_part), at)
        proof, words = self.sets.proof, []
        if self.is_yielding:
            word = "replicas" if not isinstance(balance.replicas, Off) else "topics"
            words.append(f"disks do not allow what balance.{word} asks for, and counts are as near to it as they allow")
        if proof.value > proof.lower_bound:
            more = proof.value - proof.lower_bound
            copies = size(more) if proof.objective == BYTES else f"{more} replicas"
            words.append(f"to keep it, {copies} more are copied than without it")
        if words:
            message = f"limits.diskUse: {'; '.join(words)}; {self.searched}"
            yield warning("KR848", message, at)

    def _excess_words(self, *, is_part: bool) -> str:
        placement = f"placement{' of the topics that --only names' if is_part else ''}"
        above = f"disks are above it by {size(self.excess)} ({self.excess} bytes) in all"
        if self.is_bound:
            why = "what may not leave a disk, or fits on none, is more than that alone"
            return f"no {placement} that keeps the rules keeps limits.diskUse: with each, {above} at least; {why}"
        if self.for_excess.is_exact and not self.for_excess.steps and self.is_size_known:
            begin = f"no {placement} that keeps the rules keeps limits.diskUse: {self.for_excess}"
            return f"{begin}, and with each {above} at least"
        begin = f"no {placement} that keeps the rules and limits.diskUse was found: {self.for_excess}"
        unknown = "" if self.is_size_known else ", with unknown sizes as 0"
        return f"{begin}; with the best of them {above}{unknown}"


def with_room(task: PlacementTask, balance: Balance, sets: ReplicaSets, disks: Disks, *, is_last: bool) -> Roomy:
    """Return the sets as they are if they fit the disks, else others as good, else those that copy the least more.

    If no placement as balanced fits, the balance yields: it is as near as disks allow, and its levels leave the proof.
    Then a spread over racks that is not strict yields too, by as few replicas as can be. If no placement fits at all,
    disks are above the limit by the least that any leaves, and the same is asked again. There are no sets if the search
    of `load_balance` may find more, unless this search `is_last`.
    """
    if not len(disks.crowded(sets.held)) and not disks.is_tight.any():
        return Roomy(sets)
    search = _Rooms(task, balance, sets, disks)
    found = search.within(NO_EXCESS, is_last=is_last) if not search.bound else Roomy(None)
    if found.sets is not None or (search.is_for_loads and not is_last):
        return found
    return search.least()


@dataclass(frozen=True)
class _Rooms:
    """Searches for room, in one set of placements after another."""

    task: PlacementTask
    balance: Balance
    sets: ReplicaSets  # the best by counts
    disks: Disks

    @property
    def is_for_loads(self) -> bool:
        """Whether the search of `load_balance` may find what this one does not."""
        return MOST_CHOICES < len(self.sets.held) * len(self.task.eligible.ids) <= MOST_CELLS

    @cached_property
    def unbalanced(self) -> ReplicaSets:
        """The least movement that keeps every rule, of whatever counts."""
        is_balanced = len(self.sets.proof.levels) > len(self.sets.faces)
        return place_replicas(self.task, self._uncounted) if is_balanced else self.sets

    @cached_property
    def unspread(self) -> ReplicaSets | None:
        """The least movement off a spread that is not strict; None where none may yield, or it does so already."""
        asked, loose = self.task.rule_classes.rows, loosened(self.task)
        bounds = loose.rule_classes.rows
        may_yield = bool((bounds.low != asked.low).any() or (bounds.high != asked.high).any())
        return place_replicas(loose, self._uncounted) if may_yield and self.task.spread is None else None

    @cached_property
    def bound(self) -> int:
        """Bytes above the limit that there are with every placement."""
        return self.disks.least_excess()

    @cached_property
    def start(self) -> Ints:
        """The sets after full disks are relieved one replica at a time, as the rules allow."""
        face = self.unbalanced.balanced
        return self.sets.held if face is None else relieved(self.disks, face, self.sets.held)

    @cached_property
    def unspread_start(self) -> Ints:
        """The same off a spread that is not strict."""
        face = None if self.unspread is None else self.unspread.balanced
        return self.start if face is None else relieved(self.disks, face, self.start)

    @property
    def _uncounted(self) -> Balance:
        return replace(self.balance, replicas=Off(), topics=Off())

    def within(self, excess: Excess, *, is_last: bool = True) -> Roomy:
        """Return the best placement with disks above the limit by no more than that."""
        task, sets = self.task, self.sets
        levels = sets.proof.levels
        first = len(levels) - len(sets.faces)
        for many in range(len(sets.faces), 0, -1):
            table, searched = self._nearest(sets.faces[many - 1], excess)
            if table is not None:
                proof = replace(sets.proof, levels=levels[: first + many])
                return Roomy(replace(sets, held=table, proof=proof), excess=excess.whole)
        costs = [cost for _, cost in copied(task)]
        table, searched = self._nearest(sets.balanced, excess, costs, None if first else self.start)
        if table is not None:
            value = costs[0].of(task.replicas, table)
            return Roomy(_dearer(sets, first, table, value), searched, excess=excess.whole)
        if self.is_for_loads and not is_last:
            return Roomy(None, searched)
        if first:
            roomy = self._of_all(self.unbalanced, self.start, excess)
            searched = roomy.searched
            if roomy.sets is not None:
                return roomy
        if self.unspread is not None:
            return self._of_all(self.unspread, self.unspread_start, excess, OffSpread(task))
        return Roomy(None, searched)

    def _of_all(self, sets: ReplicaSets, start: Ints, excess: Excess, *goals: Goal) -> Roomy:
        """Return the best of all these sets by the goals, then by the balance, then by what they copy."""
        targets = [*asked_of_replicas(self.task, self.balance)]
        costs = [cost for _, cost in copied(self.task)]
        every = [*goals, *(target for _, target in targets), *costs]
        table, searched = self._nearest(sets.balanced, excess, every, start)
        if table is None:
            return Roomy(None, searched)
        least = {level.objective: level.value for level in self.sets.proof.levels}
        is_yielding = any(_imbalance(self.task, target, table) > least.get(name, 0) for name, target in targets)
        value = costs[0].of(self.task.replicas, table)
        return Roomy(_dearer(sets, 0, table, value), searched, is_yielding=is_yielding, excess=excess.whole)

    def least(self) -> Roomy:
        """Return the best of the placements with which disks are above the limit by the least."""
        face, start = (self.unspread or self.unbalanced).balanced, self.unspread_start
        reached, how = int(self.disks.excess(start).sum()), Searched(is_proved=False)
        found = Excess(reached, reached)
        if reached > self.bound and face is not None:
            free, table, is_whole = self._choices(face)
            search = Search(self.disks, face, free, table, hint=start, excess=None)
            least, is_proved = search.least_excess(self.bound)
            if least is not None and least <= found:
                found, how = least, Searched(is_whole, is_proved, search.steps)
        roomy = self.within(found)
        excess = roomy.excess
        if roomy.sets is None:
            # The placement that counts prefer stays: no better one was found.
            excess, roomy = int(self.disks.excess(self.sets.held).sum()), Roomy(self.sets)
            how = replace(how, is_proved=False)
        is_known = self.task.is_size_known
        return replace(
            roomy, excess=excess, for_excess=how, is_bound=is_known and excess == self.bound, is_size_known=is_known
        )

    def _nearest(
        self, face: Standing | None, excess: Excess, goals: Sequence[Goal] = (), start: Ints | None = None
    ) -> tuple[Ints | None, Searched]:
        """Return the best table that the face and the disks allow, and of several the nearest to the best by counts."""
        disks, table = self.disks, self.sets.held
        if face is None:
            return None, Searched()
        free, table, is_whole = self._choices(face)
        if not free.any() and not disks.is_tight.any():
            return (table if disks.excess(table).sum() <= excess.end else None), Searched()
        if not is_whole and not goals and not len(self._crowded(table)):
            return table, Searched(is_whole=False)
        search = Search(disks, face, free, table, hint=start, excess=excess)
        found, is_proved = search.found(goals)
        if found is None and start is not None and not is_proved and self._is_within(start, excess):
            found = start
        return found, Searched(is_whole, is_proved, search.steps)

    def _is_within(self, table: Ints, excess: Excess) -> bool:
        """Whether a table leaves no more than that above the limit, if the way to it does not matter."""
        is_open = bool(excess.end) or not len(self.disks.crowded(table))
        return is_open and not self.disks.is_tight.any() and self.disks.excess(table).sum() <= excess.end

    def _choices(self, face: Standing) -> tuple[Bools, Ints, bool]:
        """Return the free choices to search, the table that others stay as, and whether these are all free choices."""
        table = self.sets.held
        free = face.choices.states(face.demand, np.arange(len(face.number))) == 0
        if free.sum() <= MOST_CHOICES:
            return free, table, True
        table = _traded(self.disks, face, free, table)
        return _that_matter(self.disks, face, free, table, self._crowded(table)), table, False

    def _crowded(self, table: Ints) -> Ints:
        """Return the brokers that the table fills too far, and those to look at in each step."""
        return np.union1d(self.disks.crowded(table), self.disks.broker[self.disks.is_tight])


def _imbalance(task: PlacementTask, targets: CountTargets, table: Ints) -> int:
    counts = targets.base + task.counts(table, are_cells=targets.is_cells)
    return targets.imbalance_of(counts, targets.many)


def _dearer(sets: ReplicaSets, first: int, held: Ints, value: int) -> ReplicaSets:
    """Return other sets, with what the prices say of those that were chosen first as their bound."""
    levels = (*sets.proof.levels[:first], replace(sets.proof.levels[first], value=value))
    return replace(sets, held=held, proof=replace(sets.proof, value=value, levels=levels))


def _traded(disks: Disks, face: Standing, free: Bools, table: Ints) -> Ints:
    """Return the table with new replicas of crowded brokers traded for smaller ones of others of the rack.

    Counts and copies stay what they are, so this is as good a table; the largest go first, each for the smallest.
    """
    number, rack, table = face.number, face.demand.rules.rack, table.copy(order="F")
    row, seat = np.nonzero(is_missing(table[number], disks.task.replicas[number]))
    where, size = table[number[row], seat], disks.task.size[number[row]]
    may_go = free[row, where]
    row, seat, where, size = row[may_go], seat[may_go], where[may_go], size[may_go]
    left = disks.left(table)
    for broker in np.flatnonzero(left < 0)[np.argsort(left[left < 0], kind="stable")].tolist():
        mine = np.flatnonzero(where == broker)
        for large in mine[np.argsort(-size[mine], kind="stable")].tolist():
            if left[broker] >= 0:
                break
            other = where
            is_fine = np.asarray(rack[other] == rack[broker]) & (other != broker)
            is_fine &= free[row, broker] & free[row[large], other]
            is_fine &= (size < size[large]) & (left[other] >= size[large] - size)
            is_fine &= ~(table[number[row]] == broker).any(axis=1) & ~np.isin(other, table[number[row[large]]])
            small = np.flatnonzero(is_fine)
            if len(small):
                one = int(small[np.argmin(size[small])])
                there, gained = int(where[one]), int(size[large] - size[one])
                table[number[row[large]], seat[large]], table[number[row[one]], seat[one]] = there, broker
                where[large], where[one] = there, broker
                left[broker] += gained
                left[there] -= gained
    return table


def _that_matter(disks: Disks, face: Standing, free: Bools, table: Ints, crowded: Ints) -> Bools:
    """Return the free choices that matter to crowded brokers.

    All those of rows that come to them, the largest first; of others, the smallest first, whether they come instead;
    and of rows that are there, the smallest first, whether they go to make room.
    """
    size, now, present = (each[face.number] for each in (disks.task.size, table, disks.task.replicas))
    instead = np.zeros_like(free)
    instead[:, crowded] = True
    for held in (*now.T, *present.T):
        row = np.flatnonzero(held >= 0)
        instead[row, held[row]] = True
    comes = np.asarray((np.isin(now, crowded) & ~is_at(now, present)).any(axis=1))
    some = np.where(comes[:, None], free, free & instead)
    is_there = np.isin(present, crowded).any(axis=1) & ~comes
    some[is_there] = free[is_there]
    many = some.sum(axis=1)
    order = np.lexsort((np.where(comes, -size, size), is_there, ~comes))
    picked = np.zeros_like(comes)
    picked[order[np.cumsum(many[order]) <= MOST_CHOICES]] = True
    picked &= some[:, crowded].any(axis=1)
    return np.asarray(some & picked[:, None])
