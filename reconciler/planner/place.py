"""Plans a placement: the planner's way in, from values to arrays, and from arrays back to moves and a proof."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from reconciler.diff.rules import TopicRules
from reconciler.model.budget import Budget, Budgeted, CurveReport
from reconciler.model.change import BrokenRule, Changes, CreatePartitions, CreateTopic, TopicChange
from reconciler.model.cluster import REMOTE_STORAGE, Cluster
from reconciler.model.columns import NONE, Bools, Ints, exact_product, is_at, places_in
from reconciler.model.desired import Balance, BrokerState, Desired, DesiredCluster, Off
from reconciler.model.disk_space import Space
from reconciler.model.grounds import Grounds
from reconciler.model.loads import Loads
from reconciler.model.move import Reason
from reconciler.model.move_table import Moves, Why
from reconciler.model.plan import BrokerShare, Proof, TieredBytes
from reconciler.model.problem import InvalidInput, Location, PlacementInfeasible, Problem, warning
from reconciler.model.table_maker import table_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import size
from reconciler.planner.choice import Choice, Chosen, with_fixed
from reconciler.planner.conflicts import frozen_conflicts, placement_conflicts
from reconciler.planner.load_balance.limits import above_limits, caps_of, disk_caps, unchecked
from reconciler.planner.load_balance.measured import (
    Measured,
    has_loads,
    measured,
    refuse_without_loads,
)
from reconciler.planner.load_balance.task import DISK
from reconciler.planner.placement_task import PlacementTask, eligible_brokers, placement_task
from reconciler.planner.reasons import grounds_of
from reconciler.planner.replicas import ReplicaSets
from reconciler.planner.shares import Shares, Target, shares, with_rates
from reconciler.planner.spread import mended_by, spread_warnings, yielding_spread
from reconciler.planner.tightness import (
    crowded_brokers,
    is_crowded,
    overfull_brokers,
    rackless_brokers,
)
from reconciler.planner.to_place import PartitionsToPlace, Unmoved, partitions_to_place

_FOR_SETS = ("replicas", "topics", "disk", "networkIn", "networkOut")
_FOR_LEADERS = ("leaders", "topics", "networkOut", "leaderIn")


@dataclass(frozen=True, slots=True)
class Placed:
    """Where everything goes: one whole `Move` for each partition that changes, from its present ordered replicas.

    `topic_changes` are those of the diff with their assignments; `proof` shows that no legal placement, as
    balanced as this, copies less; where measured loads are balanced it is a lower bound.
    """

    moves: Moves
    topic_changes: tuple[TopicChange, ...]
    proof: Proof
    warnings: tuple[Problem, ...]
    balance_before: Mapping[int, BrokerShare]
    balance_after: Mapping[int, BrokerShare]
    grounds: Grounds = field(default_factory=Grounds)
    violations: tuple[Problem, ...] = ()
    budgeted: Budgeted | None = None  # what it is beside the whole plan, where a budget was given
    disk_excess: int | None = 0  # bytes above the limit of disks that the search counted; None: it looks no further


def plan_placement(
    desired: Desired,
    observed: Cluster,
    rules: Mapping[str, TopicRules],
    changes: Changes,
    only: Collection[str] | None = None,
    *,
    loads: Loads | None = None,
    space: Space | None = None,
    budget: Budget | None = None,
) -> Placed:
    """Return the least movement that keeps every rule and reaches the balance asked for (contract, section 4).

    With `only`, just these topics move; the others count where they are. `loads` are what partitions carry, for a
    balance of disks and network; `space` is how full disks may be, which is not looked at without. With a `budget`
    rules are mended first, and the balance comes as near as the rest of the budget brings it. Raises
    PlacementInfeasible, with a smallest set of rules in conflict for each topic, where no placement keeps them all;
    InvalidInput for a budget of what is not known.
    """
    cluster, balance = desired.cluster, desired.cluster.balance
    refuse_without_loads(balance, cluster.limits, loads)
    task, unmoved = _task(desired, observed, rules, changes, only)
    partitions, limit_at = task.partitions, cluster.limits.at.get("replicasPerBroker")
    if budget is not None:
        _refuse_unknown("--budget", desired, partitions, needs_throttle=budget.seconds is not None)
    caps = caps_of(cluster, task.eligible.ids)
    is_loaded = bool(caps) or has_loads(balance) or space is not None
    carried = _carried(task, unmoved, observed, cluster, loads) if is_loaded else None
    if carried is not None and space is not None:
        caps = {**caps, DISK: disk_caps(observed, task.eligible, space, carried.of)}

    disks = None
    if space is not None:
        from reconciler.planner.space.disks import disks_of

        disks = disks_of(task, observed, space, changes.deleted)

    @lru_cache(maxsize=1)
    def reached(chosen: Chosen) -> tuple[Ints, Target, Shares, Shares]:
        """Return which partitions change, where they are in the end, and what each broker carries before and then."""
        rows, target = _target(task, with_fixed(task, chosen.sets.held), chosen.leaders.column)
        before, after = shares(observed, target, changes.deleted)
        if carried is not None and loads is not None:
            has_leader_in = not isinstance(balance.leader_in, Off) or "leaderIn" in cluster.limits.rates
            before, after = with_rates(before, after, observed, target, carried.of, has_leader_in=has_leader_in)
        return rows, target, before, after

    choice = Choice(task, unmoved, cluster, carried, caps, disks, budget, is_part=only is not None)
    chosen = choice.chosen(lambda each: any(above_limits(caps, reached(each)[3], cluster)))
    rows, target, before, after = reached(chosen)
    sets, leaders = chosen.sets, chosen.leaders
    most = task.eligible.most
    full = frozenset(id_ for id_, share in before.items() if most is not None and share.replicas > most)
    may_yield = task.spread is not None or disks is not None
    broken = mended_by(task, sets.held, changes.broken_rules) if may_yield else changes.broken_rules
    moves = _moves(partitions, rows, target.replicas, broken=broken, desired=desired, full=full)
    topic_changes = tuple(_assigned(change, target) for change in changes.topic_changes)
    proof = _with_forced(sets, partitions)
    return Placed(
        moves=moves,
        topic_changes=topic_changes,
        proof=replace(proof, levels=(*proof.levels, *leaders.levels), tiered=_tiered(moves, observed)),
        warnings=(
            *_size_warnings(partitions),
            *_reassigning_warnings(observed),
            *rackless_brokers(observed, rules, moves, topic_changes),
            *(carried.warnings if carried is not None else ()),
            *(_excess_warnings(sets.budgeted) if sets.budgeted is not None else ()),
            *chosen.warnings,
            *(spread_warnings(task, cluster, sets.held) if may_yield else ()),
            *unchecked(cluster, task.eligible.ids),
            *overfull_brokers(task, limit_at),
        ),
        balance_before=before,
        balance_after=after,
        grounds=grounds_of(desired, observed, rules, topic_changes=topic_changes, task=task, moves=moves),
        violations=tuple(above_limits(caps, after, cluster)),
        budgeted=sets.budgeted,
        disk_excess=chosen.disk_excess,
    )


def plan_curve(
    desired: Desired,
    observed: Cluster,
    rules: Mapping[str, TopicRules],
    changes: Changes,
    only: Collection[str] | None = None,
) -> CurveReport:
    """Return what each budget buys of the balance of counts; raises as `plan_placement` does."""
    from reconciler.planner.budget import curve_of

    if has_loads(desired.cluster.balance):
        message = "--curve tells of counts alone, and loads are to be balanced; plan with --budget to see what one buys"
        at = desired.cluster.balance.at
        where = next((at[name] for name in ("disk", "networkIn", "networkOut") if name in at), None)
        raise InvalidInput([Problem("KR372", message, where)])
    task, _ = _task(desired, observed, rules, changes, only)
    _refuse_unknown("--curve", desired, task.partitions)
    return curve_of(task, desired.cluster)


def _task(
    desired: Desired, observed: Cluster, rules: Mapping[str, TopicRules], changes: Changes, only: Collection[str] | None
) -> tuple[PlacementTask, Unmoved]:
    """Return what is to be placed, and what stays; raise PlacementInfeasible where no placement keeps all rules."""
    partitions, unmoved = partitions_to_place(desired, observed, rules, changes, only)
    broken = [found for found in changes.broken_rules if only is None or found.topic_partition.topic in only]
    problems = [
        *_absent_but_there(desired, observed),
        *frozen_conflicts(rules, broken),
        *placement_conflicts(desired, observed, partitions),
    ]
    if problems:
        raise PlacementInfeasible(problems)
    task = placement_task(partitions, unmoved, eligible_brokers(desired, observed))
    if is_crowded(task):
        nearest = yielding_spread(task)
        if nearest is None:
            at = desired.cluster.limits.at.get("replicasPerBroker")
            raise PlacementInfeasible([*crowded_brokers(task, at)])
        task = nearest
    return task, unmoved


def _refuse_unknown(
    option: str, desired: Desired, partitions: PartitionsToPlace, *, needs_throttle: bool = False
) -> None:
    unknown = np.flatnonzero(~partitions.is_new & (partitions.size < 0))
    if len(unknown):
        first = next(partitions.keys(unknown))
        message = (
            f"{option}: the size of {len(unknown)} partitions is unknown ({first} and others), so nobody knows what a "
            f"plan copies; check the right Describe on the cluster, or plan without {option}"
        )
        raise InvalidInput([Problem("KR370", message)])
    if needs_throttle and desired.cluster.moves.throttle_bytes_per_second is None:
        message = (
            f"{option}: a time needs a rate, and moves.throttle is not written; write it, or give the budget in bytes"
        )
        raise InvalidInput([Problem("KR371", message, desired.cluster.at)])


def _excess_warnings(budgeted: Budgeted) -> Iterator[Problem]:
    is_idle = all(way.reached == way.mended for way in budgeted.ways)
    if is_idle and not budgeted.is_whole and not budgeted.excess:
        message = (
            f"a budget of {size(budgeted.bytes)} brings the balance no nearer: each step copies more; the whole plan "
            f"copies {size(budgeted.whole_bytes)}, and --curve shows what less than that buys"
        )
        yield warning("KR871", message)
    if budgeted.excess:
        message = (
            f"mending the rules alone copies {size(budgeted.mended_bytes)}, {size(budgeted.excess)} more than the "
            "budget: the plan is made of that alone"
        )
        yield warning("KR870", message)


def _tiered(moves: Moves, observed: Cluster) -> TieredBytes | None:
    """Return which bytes of tiered topics the moves count: local ones where what is not tiered is unknown of any."""
    tiered = {name for name, topic in observed.topics.items() if topic.configs.get(REMOTE_STORAGE) == "true"}
    rows = moves.rows_of_topics(tiered)
    copied = moves.part(rows[moves.copies[rows] > 0]).topic_partitions()
    untiered = [observed.topics[topic].partitions[partition].untiered_bytes for topic, partition in copied]
    if not untiered:
        return None
    return TieredBytes.LOCAL if None in untiered else TieredBytes.UNTIERED


def _carried(
    task: PlacementTask, unmoved: Unmoved, observed: Cluster, cluster: DesiredCluster, loads: Loads | None
) -> Measured:
    sizes = [(key, found.bytes_to_copy) for key, _ in unmoved if (found := observed.partition(key)) is not None]
    return measured(task.partitions, sizes, cluster.balance, loads, cluster.limits)


def _absent_but_there(desired: Desired, observed: Cluster) -> Iterator[Problem]:
    for id_, broker in sorted(desired.cluster.brokers.items()):
        count = int((table_of(observed).target == id_).sum()) if broker.state is BrokerState.ABSENT else 0
        if count:
            message = f"broker {id_} is declared absent, but it holds {count} replicas: declare it draining first"
            yield Problem("KR303", message, broker.at)


def _target(task: PlacementTask, held: Ints, leader: Ints) -> tuple[Ints, Target]:
    """Return the rows of the partitions that do not stay exactly as they are, and where these will be."""
    length = (task.partitions.replicas >= 0).sum(axis=1)
    many = (held >= 0).sum(axis=1)
    is_same = (many == length) & (is_at(held, task.replicas).sum(axis=1) == many)
    is_same &= (leader == task.replicas[:, 0]) & (task.need > 0)
    rows = np.flatnonzero(~is_same)
    ids, present = np.array([*task.eligible.ids, NONE]), task.partitions.replicas[rows]
    holders = np.full((len(rows), max(held.shape[1], present.shape[1])), NONE)
    holders[:, : held.shape[1]] = ids[held[rows]]
    replicas = _ordered(holders, ids[leader[rows]], present, task.need[rows] == 0)
    is_other = (replicas[:, : present.shape[1]] != present).any(axis=1) | (many[rows] != length[rows])
    rows, replicas = rows[is_other], replicas[is_other]
    partitions = task.partitions
    return rows, Target(partitions.topics, partitions.topic[rows], partitions.number[rows], replicas)


def _ordered(holders: Ints, leader: Ints, present: Ints, is_assigned: Bools) -> Ints:
    """Return the leader, then kept replicas in their present order, then new ones by id, from the leader's id on.

    What is assigned keeps the order in which it is written.
    """
    place = np.full(holders.shape, present.shape[1])
    for seat, column in enumerate(present.T):
        place[holders == column[:, None]] = seat
    place[holders == leader[:, None]] = -1
    place[is_assigned] = np.arange(holders.shape[1])
    place[holders < 0] = place.max(initial=0) + 1
    order = np.lexsort((holders, holders < leader[:, None], place), axis=1)
    return np.take_along_axis(holders, order, axis=1)


def _moves(
    partitions: PartitionsToPlace,
    changed: Ints,
    reached: Ints,
    *,
    broken: Sequence[BrokenRule],
    desired: Desired,
    full: frozenset[int],
) -> Moves:
    """Return the moves; what leaves a broker of `full`, which holds more than a limit allows, is told with its line."""
    is_there = ~partitions.is_new[changed]
    rows, after = changed[is_there], reached[is_there]
    balance, size = desired.cluster.balance, partitions.size[rows]
    limit_at = desired.cluster.limits.at.get("replicasPerBroker")
    for_sets = Why(Reason.BALANCE, _asked_at(balance, _FOR_SETS) or desired.cluster.limits.at.get("diskUse"))
    for_leaders = Why(Reason.LEADERS, _asked_at(balance, _FOR_LEADERS))
    whys = {for_sets: 0}
    moves = Moves(
        topics=partitions.topics,
        topic=partitions.topic[rows],
        number=partitions.number[rows],
        before=partitions.replicas[rows],
        after=after,
        bytes=np.zeros_like(size),
        whys=(for_sets,),
        why=np.zeros_like(rows),
        is_size_known=size >= 0,
    )
    is_relief = (moves.is_removed & np.isin(moves.before, [*full])).any(axis=1)
    why = np.where(is_relief, whys.setdefault(Why(Reason.BALANCE, limit_at), len(whys)), 0)
    why[~(moves.is_added.any(axis=1) | moves.is_removed.any(axis=1))] = whys.setdefault(for_leaders, len(whys))
    found = np.array([whys.setdefault(Why(each.reason, each.at), len(whys)) for each in broken], dtype=np.int64)
    asked = moves.partitions_of([each.topic_partition for each in broken])
    place = places_in(moves.partition, asked)
    why[place[place >= 0]] = found[place >= 0]
    return replace(moves, bytes=exact_product(moves.copies, np.maximum(size, 0)), whys=(*whys,), why=why)


def _asked_at(balance: Balance, names: Sequence[str]) -> Location | None:
    """Return the line that asks for the first of these measures, None where none of them is asked for."""
    return next((balance.at.get(name) for name in names if not isinstance(balance.targets[name], Off)), None)


def _assigned(change: TopicChange, target: Target) -> TopicChange:
    """Return the change with the planned replicas of its new partitions."""
    if isinstance(change, CreateTopic):
        numbers = range(change.partitions)
    elif isinstance(change, CreatePartitions):
        numbers = range(change.from_count, change.to_count)
    else:
        return change
    keys = [TopicPartition(change.topic, number) for number in numbers]
    return replace(change, assignment={key.partition: target.lists[key] for key in keys if key in target.lists})


def _with_forced(sets: ReplicaSets, partitions: PartitionsToPlace) -> Proof:
    """Return the proof with what explicit assignments copy, which no choice could save."""
    fixed = partitions.at([*partitions.fixed])
    assigned = [partition for partition in fixed if partition.need == 0 and not partition.is_new]
    copies = [len(set(partition.fixed).difference(partition.replicas)) for partition in assigned]
    copied = sum(count * (partition.size or 0) for count, partition in zip(copies, assigned, strict=True))
    forced = {"bytes": copied, "replicas": sum(copies)}
    proof, more = sets.proof, forced[sets.proof.objective]
    levels = []
    for level in proof.levels:
        extra = forced.get(level.objective, 0)
        levels.append(replace(level, value=level.value + extra, lower_bound=level.lower_bound + extra))
    return replace(proof, value=proof.value + more, lower_bound=proof.lower_bound + more, levels=tuple(levels))


def _size_warnings(partitions: PartitionsToPlace) -> Iterator[Problem]:
    unknown = np.flatnonzero(~partitions.is_new & (partitions.size < 0))
    if len(unknown):
        first = next(partitions.keys(unknown))
        message = (
            f"the size of {len(unknown)} partitions is unknown ({first} and others): "
            "the plan copies the fewest replicas, not the fewest bytes; check the right Describe on the cluster"
        )
        yield warning("KR801", message)


def _reassigning_warnings(observed: Cluster) -> Iterator[Problem]:
    moving = table_of(observed).reassigning
    if moving:
        first = table_of(observed).key(moving[0])
        count = f"{first} is" if len(moving) == 1 else f"{len(moving)} partitions ({first} and others) are"
        message = f"{count} being reassigned now: the plan takes the target of each as reached"
        yield warning("KR802", message)
