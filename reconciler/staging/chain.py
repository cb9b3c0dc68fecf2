"""Splits a whole move into a chain of steps, a few replicas at a time, so that every state on the way is safe.

Kafka would copy all new replicas of a partition at once. Steps keep the load of one partition on its leader small, and
let each state between them be checked: racks, in-sync replicas, and who leads.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product

import numpy as np

from reconciler.diff.rules import TopicRules
from reconciler.model.columns import NONE, Bools, Ints
from reconciler.model.desired import Spread
from reconciler.model.move import Move
from reconciler.model.move_table import Moves
from reconciler.staging.step import URGENCY_OF, Situation, Standing, Step, Steps, Urgency

# A repair's urgency is its number of in-sync replicas; so many keep it below Urgency.REPAIRED.
MOST_IN_SYNC = 899
_NOBODY: frozenset[int] = frozenset()


def chains(moves: Moves, situation: Situation) -> Steps:
    """Return the steps of all moves, chain behind chain."""
    leader = situation.leaders(moves)
    is_plain = _is_plain(moves, situation, leader)
    whole, others = np.flatnonzero(is_plain), np.flatnonzero(~is_plain)
    unlike = moves.part(others)
    walked = [_walked(walk) for walk in _walks(unlike, situation, leader[others])]
    found = _plain_steps(moves.part(whole), situation, leader[whole]).and_then(Steps.of(walked))
    if not walked:
        return found
    of_move = np.append(whole, np.repeat(others, [*map(len, walked)]))
    return found.part(np.argsort(of_move, kind="stable"))


def walks(moves: Moves, situation: Situation) -> list["Walk"]:
    """Return the way of each partition as a value."""
    return [*_walks(moves, situation, situation.leaders(moves))]


def _walks(moves: Moves, situation: Situation, leader: Ints) -> Iterator["Walk"]:
    for move, standing in zip(moves, situation.standings(moves, leader), strict=True):
        yield Walk.of(move, situation, standing)


def chains_through(walks: Iterable["Walk"], sets: Iterable[Sequence[frozenset[int]]]) -> Steps:
    """Return the steps of these partitions, each of which passes exactly its replica sets, the last its goal."""
    return Steps.of([_walked(walk, () if walk.dead else some) for walk, some in zip(walks, sets, strict=True)])


def _is_plain(moves: Moves, situation: Situation, leader: Ints) -> Bools:
    """Return which moves are one step: nobody is dead, and who leads goes on leading, as mostly."""
    is_led = (leader == moves.after[:, 0]) & (leader >= 0) & ~np.isin(leader, [*situation.unfit_leaders])
    is_alive = np.all((moves.before < 0) | np.isin(moves.before, [*situation.alive]), axis=1)
    found: Bools = is_led & is_alive & (moves.copies <= situation.per_partition)
    return found


def _plain_steps(moves: Moves, situation: Situation, leader: Ints) -> Steps:
    is_leaving = (moves.is_removed & np.isin(moves.before, [*situation.leaving])).any(axis=1)
    urgency = np.array([URGENCY_OF[why.reason] for why in moves.whys], dtype=np.int64)[moves.why]
    return Steps(
        moves,
        source=leader,
        urgency=np.where(is_leaving, Urgency.DRAINING, urgency),
        elected=np.full(len(moves), NONE, dtype=np.int64),
        is_handover=np.zeros(len(moves), dtype=np.bool_),
        depth=np.zeros(len(moves), dtype=np.int64),
    )


def steps_of(move: Move, situation: Situation) -> tuple[Step, ...]:
    """Return the move's steps; each starts where the one before it ended, the last ends at `to_replicas`.

    A step copies at most `per_partition` replicas. One exception: dead replicas are all replaced in the first step,
    however many, because Kafka ends a reassignment only when every target replica is in sync, and a dead one that
    stays in the target never is.

    The replicas of a step's end never break the rack rule by more than those of its start, and are never fewer than
    the live ones of its start or the number wanted. The leader stays first until it is removed; one on a broker that
    must not lead hands over, before its data goes, to an in-sync replica elsewhere, if there is one. The only step that
    keeps a dead replica is such a handover by order alone, where racks forbid the replica to go first.
    """
    return tuple(chains(Moves.of([move]), situation))


def _size(move: Move, added: Sequence[int]) -> int:
    """Return what each new replica copies: every one is a whole copy of the same partition, so all are of one size."""
    return move.bytes // len(added) if added else 0


def _walked(walk: "Walk", sets: Sequence[frozenset[int]] = ()) -> tuple[Step, ...]:
    """Return the steps through these replica sets; without any, through those that are the best for the partition."""
    move, situation = walk.move, walk.situation
    if walk.heir is None and len(walk.added) <= situation.per_partition and not sets[:-1]:
        return (_step(walk, move.from_replicas, move.to_replicas, walk.leader),)
    steps: list[Step] = []
    current, leader = move.from_replicas, walk.leader
    for target in _through(walk, sets) if sets else _targets(walk):
        step = _step(walk, current, target, leader)
        steps.append(step)
        leader = step.elected if step.elected is not None else _leader_after(leader, target)
        current = target
    return tuple(steps)


@dataclass(slots=True)
class Walk:
    """The way of one partition from the replicas before its move to those after it."""

    move: Move
    situation: Situation
    rules: TopicRules | None
    leader: int | None
    heir: int | None
    added: tuple[int, ...]
    dead: frozenset[int]
    in_sync: int
    size: int

    def next_sets(self, current: frozenset[int]) -> Iterator[frozenset[int]]:
        """Yield the replica sets that a step may end at: the goal, or one replica more, less, or in place of another.

        Dead replicas are replaced all at once, so a partition that has any passes the sets that are best for it.
        """
        goal, situation = frozenset(self.move.to_replicas), self.situation
        if self.dead:
            sets = [frozenset(self.move.from_replicas), *map(frozenset, _targets(self))]
            yield from (after for before, after in pairwise(sets) if before == current != after)
            return
        missing, extra = sorted(goal - current), sorted(current - goal)
        if len(missing) <= situation.per_partition:
            yield goal
        least, most = sorted((len(current), len(goal)))
        for added, removed in product([*combinations(missing, 1), ()], [*combinations(extra, 1), ()]):
            reached = current.union(added).difference(removed)
            is_between = reached not in (current, goal) and least <= len(reached) <= most
            if is_between and _excess(self, reached) <= _excess(self, current):
                yield reached

    @classmethod
    def of(cls, move: Move, situation: Situation, standing: Standing) -> "Walk":
        """Return the way of that move, whose partition stands so when it begins."""
        before, alive, leader = move.from_replicas, situation.alive, standing.leader
        isr = [replica for replica in standing.isr if replica in before and replica in alive]
        rules = situation.rules.get(move.topic_partition.topic)
        added = move.added
        return cls(
            move=move,
            situation=situation,
            rules=rules,
            leader=leader,
            heir=_heir(move, leader, isr, situation, rules),
            added=added,
            dead=_NOBODY if alive.issuperset(before) else frozenset(before).difference(alive, move.to_replicas),
            in_sync=len(isr),
            size=_size(move, added),
        )


def _heir(
    move: Move, leader: int | None, isr: Sequence[int], situation: Situation, rules: TopicRules | None
) -> int | None:
    """Return who takes over from a leader that must go before its data; None where nobody has to, or can."""
    if leader in move.to_replicas or leader not in situation.unfit_leaders:
        return None
    if leader not in isr or any(replica not in situation.alive for replica in move.to_replicas):
        return None
    # Only a replica in sync: electing any other (KIP-460, unclean) loses what it has not read.
    fit = [replica for replica in isr if replica not in situation.unfit_leaders]
    staying = [replica for replica in move.to_replicas if replica in fit]
    candidates = staying + [replica for replica in move.from_replicas if replica in fit and replica not in staying]
    leadable = rules.leadable if rules else frozenset(candidates)
    return min(candidates, key=lambda replica: (replica not in leadable, candidates.index(replica)), default=None)


def _targets(walk: Walk) -> Iterator[tuple[int, ...]]:
    """Yield the ordered replicas at which each step ends."""
    current, leader = walk.move.from_replicas, walk.leader
    handed_over = _handed_over(walk, current)
    if handed_over is not None:
        current, leader = handed_over, walk.heir
        yield current
    while current != walk.move.to_replicas:
        current = _next_target(walk, current, leader)
        leader = _leader_after(leader, current)
        yield current


def _through(walk: Walk, sets: Iterable[frozenset[int]]) -> Iterator[tuple[int, ...]]:
    """Yield the ordered replicas at which each step ends that passes these sets, after the leader has handed over."""
    current, leader = walk.move.from_replicas, walk.leader
    handed_over = _handed_over(walk, current)
    if handed_over is not None:
        current, leader = handed_over, walk.heir
        yield current
    for reached in sets:
        if reached == frozenset(walk.move.to_replicas):
            current = walk.move.to_replicas
        else:
            current = _ordered(walk, current, reached, _head(walk, current, reached, leader))
        leader = _leader_after(leader, current)
        yield current


def _handed_over(walk: Walk, current: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return a target with the heir in front, for which nothing is copied but what replaces dead replicas.

    Where that would break the rack rule, the dead ones stay: Kafka ends a change of order at once, whoever is in sync.
    None where nobody takes over, or where Kafka no longer knows a dead broker and so refuses to list it again: then
    leadership and data leave together, which Kafka does as one.
    """
    heir = walk.heir
    if heir is None:
        return None
    if walk.dead:
        going = [replica for replica in _going(walk, current, heir) if replica not in (walk.leader, heir)]
        reached = _least_excess(walk, _options(walk, current, going, copies=0), current)
        if _excess(walk, reached) <= _excess(walk, current):
            return _ordered(walk, current, reached, heir)
        if not walk.dead <= walk.situation.observed.brokers.keys():
            return None
    return (heir, *(replica for replica in current if replica != heir))


def _next_target(walk: Walk, current: tuple[int, ...], leader: int | None) -> tuple[int, ...]:
    goal = walk.move.to_replicas
    missing = sum(replica not in current for replica in goal)
    copies = walk.situation.per_partition
    if missing <= copies:
        return goal
    reached = _least_excess(walk, _options(walk, current, _going(walk, current, leader), copies=copies), current)
    if reached == frozenset(goal):
        return goal
    return _ordered(walk, current, reached, _head(walk, current, reached, leader))


def _options(walk: Walk, current: Sequence[int], going: Sequence[int], *, copies: int) -> Iterator[frozenset[int]]:
    """Yield the sets that a step may end at: dead replicas out, the factor between now and wanted, the best first.

    So many copies are better than more, which only dead replicas allow, more replicas better than fewer, and the
    first of `going` goes first. Between two sets that balance the racks there is always one that does too: they are
    the bases of a matroid.
    """
    missing = [replica for replica in walk.move.to_replicas if replica not in current]
    dead = [replica for replica in current if replica in walk.dead]
    staying = frozenset(current).difference(dead)
    # Between the factor now and the one wanted: more replicas than either need room that nobody asked for, fewer are
    # less safe than both ends.
    least, most = sorted((len(current), len(walk.move.to_replicas)))
    for count in range(copies, 1 + min(len(missing), max(copies, walk.situation.per_partition, len(dead)))):
        for size in range(min(most, len(staying) + count), least - 1, -1):
            for removed in combinations(going, len(staying) + count - size):
                for added in combinations(missing, count):
                    yield staying.union(added).difference(removed)


def _going(walk: Walk, current: Sequence[int], leader: int | None) -> list[int]:
    """Return the living replicas that are to go, in the order in which they should leave."""
    goal = walk.move.to_replicas
    living = (replica for replica in current if replica not in goal and replica not in walk.dead)
    return sorted(living, key=lambda replica: _order_of_leaving(walk, current, replica, leader))


def _order_of_leaving(walk: Walk, current: Sequence[int], replica: int, leader: int | None) -> tuple[int, int, int]:
    """Sort by: brokers that must empty first; a leader last, unless it must not lead and nobody could take over."""
    # False sorts before True: what drains is first. A leader that leaves costs its clients a new connection.
    haste = 1 if replica != leader else 0 if replica in walk.situation.unfit_leaders else 2
    return (replica not in walk.situation.leaving, haste, current.index(replica))


def _least_excess(walk: Walk, options: Iterator[frozenset[int]], current: Sequence[int]) -> frozenset[int]:
    """Return the first option that is no worse than now, else the first of the least excess."""
    best = next(options)
    least = _excess(walk, best)
    if least == 0 or least <= (bound := _excess(walk, current)):
        return best
    for option in options:
        excess = _excess(walk, option)
        if excess < least:
            best, least = option, excess
            if least <= bound:
                break
    return best


def _excess(walk: Walk, replicas: Collection[int]) -> int:
    if walk.rules is None or walk.rules.spread is Spread.IGNORE:
        return 0
    return walk.rules.rack_excess(tuple(replicas))


def _head(walk: Walk, current: Sequence[int], reached: frozenset[int], leader: int | None) -> int:
    """Return the preferred leader on the way: the present one if it may be, so that nothing is elected twice."""
    leadable = (walk.rules.leadable if walk.rules else reached) - walk.situation.unfit_leaders
    order = [replica for replica in dict.fromkeys((*walk.move.to_replicas, *current)) if replica in reached]
    # Those that will be in sync and stand where leaders may be.
    fit = [replica for replica in order if replica not in walk.situation.unfit_leaders]
    if _must_hand_over(walk, leader) and fit:
        return next((replica for replica in fit if replica in leadable), fit[0])
    if leader is not None and leader in reached and (leader in leadable or current[0] not in leadable):
        return leader
    if current[0] in reached:
        return current[0]
    return next((replica for replica in order if replica in leadable), order[0])


def _ordered(walk: Walk, current: Sequence[int], reached: frozenset[int], head: int) -> tuple[int, ...]:
    goal = walk.move.to_replicas
    final = [replica for replica in goal if replica in reached and replica != head]
    other = [replica for replica in current if replica in reached and replica not in goal and replica != head]
    # The final order as early as it can be: a plan that is stopped here is as near to its end as it can be.
    return (head, *final, *other)


def _must_hand_over(walk: Walk, leader: int | None) -> bool:
    """Whether the leadership has to leave its broker before the data does."""
    return leader in walk.situation.unfit_leaders and leader not in walk.move.to_replicas


def _leader_after(leader: int | None, target: Sequence[int]) -> int:
    """Return who leads once all of the target is in sync: Kafka takes the first if the leader is not among them."""
    return leader if leader is not None and leader in target else target[0]


def _step(walk: Walk, current: tuple[int, ...], target: tuple[int, ...], leader: int | None) -> Step:
    whole = walk.move
    is_whole = current == whole.from_replicas and target == whole.to_replicas
    added = whole.added if is_whole else tuple([replica for replica in target if replica not in current])
    removed = tuple([replica for replica in current if replica not in target])
    copied = walk.size * len(added)
    move = whole
    if not is_whole:
        asked = {broker_id: path for broker_id, path in whole.log_dirs.items() if broker_id in added}
        move = Move(whole.topic_partition, current, target, copied, whole.reason, whole.at, whole.is_size_known, asked)
    unfit = walk.situation.unfit_leaders
    is_handover = not added and not removed and leader in unfit and target[0] not in unfit
    elected = target[0] if _is_to_elect(walk, target, leader) and target[0] != _leader_after(leader, target) else None
    return Step(
        move=move,
        added=added,
        removed=removed,
        load=walk.size if added else 0,
        # New replicas fetch from the leader alone; reading from followers (KIP-392) is for consumers.
        source=leader,
        urgency=_urgency(walk, removed, is_handover=is_handover),
        elected=elected if elected in walk.situation.alive else None,
        is_handover=is_handover,
    )


def _is_to_elect(walk: Walk, target: tuple[int, ...], leader: int | None) -> bool:
    """Whether the first replica is to lead once a step has ended, if it does not: at the end, or when one must go."""
    if _must_hand_over(walk, leader):
        return True
    leadable = walk.rules.leadable if walk.rules else frozenset(target) - walk.situation.unfit_leaders
    is_forced = _leader_after(leader, target) not in leadable and target[0] in leadable
    return target == walk.move.to_replicas and (walk.situation.is_election_wanted or is_forced)


def _urgency(walk: Walk, removed: Collection[int], *, is_handover: bool) -> int:
    if not walk.dead.isdisjoint(walk.dead if is_handover else removed):
        return Urgency.REPAIR + min(walk.in_sync, MOST_IN_SYNC)
    if is_handover:
        return Urgency.DRAINING
    if not walk.situation.leaving.isdisjoint(removed):
        return Urgency.DRAINING
    return URGENCY_OF[walk.move.reason]
