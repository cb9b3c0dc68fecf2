"""Everything that is asked of a placement, in one place: whether any check complains, and which."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from helpers.clusters.random_clusters import SMALL, TINY, Size, random_cluster, shuffled, with_unknown_sizes
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.oracle import (
    Demand,
    Problem,
    Worth,
    balance_of,
    is_feasible,
    leader_options,
    leader_worth,
    least_leaders,
    least_placement,
    legal_sets,
    problem_of,
    reached_replicas,
    worth_of,
)
from helpers.plans.planning import cluster_after, planned
from helpers.plans.proving import plan_of_placed

from reconciler.model.cluster import Cluster
from reconciler.model.desired import (
    Balance,
    Desired,
    DesiredCluster,
    DesiredTopic,
    Even,
    Off,
    Placement,
    Spread,
    Within,
)
from reconciler.model.move import Reason
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.place import Placed
from reconciler.proof.check import prove_end

EVERY = 8
Reached = Mapping[TopicPartition, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Case:
    """States that can be planned; `least` is what enumeration finds to be best, None where there is too much to try."""

    name: str
    desired: Desired
    observed: Cluster
    problem: Problem
    least: Worth | None


@cache
def cases() -> Sequence[Case]:
    """Return clusters of every kind: tiny ones for enumeration, larger ones, with even topics, with unknown sizes."""
    unknown = [
        _built(f"{case.name}, unknown sizes", case.desired, with_unknown_sizes(case.observed, 1))
        for case in _drawn(range(200, 240), TINY)
    ]
    even: list[Even | Within] = [Even(), Within(Fraction(1, 5))]
    topics = [
        _built(f"{case.name}, topics", _with_topics(case.desired, even[number % 2]), case.observed, is_tried=False)
        for number, case in enumerate([*_drawn(range(300, 340), TINY), *_drawn(range(300, 312), SMALL)])
    ]
    drawn = [*_drawn(range(70), TINY), *_drawn(range(30), SMALL), *_drawn(range(138, 139), SMALL)]
    return [_new_topic(), _led_topic(), _beside_assigned(), *drawn, *topics, *unknown]


def _drawn(seeds: range, size: Size) -> Iterator[Case]:
    for seed in seeds:
        desired, observed = random_cluster(seed, size)
        if is_feasible(problem_of(desired, observed)):
            yield _built(f"{size.brokers} brokers, seed {seed}", desired, observed, is_tried=size == TINY)


def _built(name: str, desired: Desired, observed: Cluster, *, is_tried: bool = True) -> Case:
    problem = problem_of(desired, observed)
    least = least_placement(problem, desired.cluster.balance.replicas) if is_tried else None
    return Case(name, desired, observed, problem, least)


def _with_topics(desired: Desired, target: Even | Within) -> Desired:
    balance = replace(desired.cluster.balance, topics=target)
    return replace(desired, cluster=replace(desired.cluster, balance=balance))


def _beside_assigned() -> Case:
    """Return two topics of which one is assigned, one list to be reached by copying, with all balances even."""
    observed = small_cluster(
        *(f"{name}-{number}: 1,2,3 size {number + 1}" for name in ("t", "u") for number in range(6))
    )
    assigned = Placement(assignment=((4, 5, 6), *[(1, 2, 3)] * 5))
    topics = {"t": DesiredTopic("t", placement=assigned), "u": DesiredTopic("u")}
    balance = Balance(replicas=Even(), leaders=Even(), topics=Even())
    return _built(
        "beside assigned ones", Desired(DesiredCluster("c", balance=balance), topics), observed, is_tried=False
    )


def _new_topic() -> Case:
    """Return a topic to create with nothing that decides where, but whose turn it is."""
    topic = DesiredTopic("new", partitions=12, replication_factor=3, placement=Placement(racks_spread=Spread.STRICT))
    desired = Desired(DesiredCluster("c", balance=Balance()), {"new": topic})
    return _built("a new topic", desired, small_cluster(brokers=range(1, 10)), is_tried=False)


def _led_topic() -> Case:
    """Return a topic to create with two replicas over three racks, of which the third is to lead."""
    placement = Placement(racks_spread=Spread.STRICT, racks_leader=frozenset({"c"}))
    topic = DesiredTopic("new", partitions=4, replication_factor=2, placement=placement)
    return _built("a led topic", Desired(DesiredCluster("c"), {"new": topic}), small_cluster(brokers=range(1, 6)))


def part(showing: Collection[str]) -> Sequence[Case]:
    """Return every fourth case of each kind, and those of these names."""
    return [case for number, case in enumerate(cases()) if number % EVERY == 0 or case.name in showing]


def complaint(looked_at: Sequence[Case], first: str = "") -> str | None:
    """Return the first thing that is wrong with a case's placement, after the case's name; None where nothing is.

    Cases of the name `first` are looked at before all others.
    """
    ordered = sorted(looked_at, key=lambda case: case.name != first)
    return next((f"{case.name}: {wrong}" for case in ordered for wrong in _wrong(case)), None)


def _wrong(case: Case) -> Iterator[str]:
    desired, observed = case.desired, case.observed
    try:
        placed = planned(desired, observed)
    except Exception as error:  # noqa: BLE001 - whatever the planner raises is a complaint here
        yield f"the planner raises {type(error).__name__}"
        return
    verdict = prove_end(plan_of_placed(desired, observed, placed), desired, observed)
    if verdict.wrong is not None:
        yield f"not proved: {verdict.wrong}"
    reached = reached_replicas(observed, placed.moves, placed.topic_changes)
    yield from _against_enumeration(case, reached)
    yield from _out_of_order(case, placed, reached)
    yield from _without_reason(placed, desired)
    yield from _not_the_same(case, placed)
    if case.name == "a new topic":
        yield from _out_of_turn(reached)


def _against_enumeration(case: Case, reached: Reached) -> Iterator[str]:
    for demand in case.problem.demands:
        replicas = reached.get(demand.topic_partition, ())
        if tuple(sorted(replicas)) not in legal_sets(demand, case.problem.rack_of):
            yield f"{demand.topic_partition} on {replicas} breaks a rule"
        if demand.settled is not None and replicas != demand.settled:
            yield f"{demand.topic_partition} is on {replicas}, not {demand.settled}"
    balance = case.desired.cluster.balance
    if case.least is not None and isinstance(balance.topics, Off):
        worth = worth_of(case.problem, balance.replicas, reached)
        reached_worth, least = (each.least_of(case.problem, balance.replicas) for each in (worth, case.least))
        if reached_worth != least:
            yield f"a placement is worth {reached_worth}, the best {least}"
        leaders = {key: replicas[0] for key, replicas in reached.items()}
        found = leader_worth(case.problem, balance.leaders, leaders)
        best = least_leaders(case.problem, balance.leaders, reached)
        if found != best:
            yield f"leaders are worth {found}, the best {best}"
        if sum(map(_is_fresh, case.problem.demands, map(leaders.get, _keys(case)))) != _least_fresh(case, reached):
            yield "leaders without data lead where others could"


def _keys(case: Case) -> list[TopicPartition]:
    return [demand.topic_partition for demand in case.problem.demands]


def _is_fresh(demand: Demand, leader: int | None) -> bool:
    """Whether that leader would not hold the data yet."""
    return bool(demand.current) and leader not in demand.current


def _least_fresh(case: Case, reached: Reached) -> int:
    """Return the fewest leaders without data, among those that are best otherwise."""
    target, brokers = case.desired.cluster.balance.leaders, case.problem.brokers
    best: dict[tuple[int, ...], tuple[int, int]] = {(0,) * len(brokers): (0, 0)}
    for demand in case.problem.demands:
        now: dict[tuple[int, ...], tuple[int, int]] = {}
        for counts, (changed, fresh) in best.items():
            for leader in leader_options(demand, reached[demand.topic_partition]):
                key = tuple(count + (b == leader) for count, b in zip(counts, brokers, strict=True))
                is_changed = bool(demand.current) and leader != demand.current[0]
                worth = changed + is_changed, fresh + _is_fresh(demand, leader)
                now[key] = min(now.get(key, worth), worth)
        best = now
    counted = ((dict(zip(brokers, counts, strict=True)), worth) for counts, worth in best.items())
    return min((balance_of(target, case.problem.capacity, counts), *worth) for counts, worth in counted)[2]


def _out_of_order(case: Case, placed: Placed, reached: Reached) -> Iterator[str]:
    """Yield lists that are not: the leader, kept replicas as they stood, new ones by id from the leader's id on."""
    moved = {move.topic_partition for move in placed.moves}
    for demand in case.problem.demands:
        key = demand.topic_partition
        if demand.settled is not None or (demand.current and key not in moved):
            continue
        first, *rest = reached[key]
        kept = [replica for replica in demand.current if replica in rest]
        added = sorted(set(rest) - set(kept), key=lambda replica: (replica < first, replica))
        if rest != [*kept, *added]:
            yield f"{key} is ordered {reached[key]}"


def _without_reason(placed: Placed, desired: Desired) -> Iterator[str]:
    balance = desired.cluster.balance
    for move in placed.moves:
        if move.reason is Reason.BALANCE and isinstance(balance.replicas, Off) and isinstance(balance.topics, Off):
            yield f"{move.topic_partition} moves for a balance that is off"


def _not_the_same(case: Case, placed: Placed) -> Iterator[str]:
    """Yield what a plan in another order of the files, or a plan of the state reached, does differently."""
    if planned(shuffled(case.desired, 1), case.observed) != placed:
        yield "the order of the files decides"
    again = planned(case.desired, cluster_after(case.observed, placed.moves, placed.topic_changes))
    if again.moves or again.topic_changes:
        yield "the state reached is not left alone"


def _out_of_turn(reached: Reached) -> Iterator[str]:
    """Yield partitions that are not with the broker of each rack whose turn it is: racks shift with every round."""
    for key, replicas in reached.items():
        number = key.partition
        turn = {rack + 1 + 3 * ((number + number // 3 * rack) % 3) for rack in range(3)}
        if set(replicas) != turn:
            yield f"{key} is on {replicas}, and it is the turn of {sorted(turn)}"
