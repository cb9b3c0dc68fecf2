"""Where an order of moves keeps every disk within its limit, it is found, though greedy packing gets stuck."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import pytest
from staging.cases import cluster, desired, move, rules_of

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Limits, MovePolicy
from reconciler.model.stage import ReassignStage
from reconciler.staging import safe_order
from reconciler.staging.disk import DiskUse
from reconciler.staging.room import ReplicaCounts, Room
from reconciler.staging.stages import Staging, stage_moves
from reconciler.staging.step import Step, Steps, Urgency

TOTAL, ALLOWED = 100, 80
Lists = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Case:
    """Partitions by number: replicas now and wanted, and the bytes of one; what else each broker holds."""

    before: Lists
    after: Lists
    sizes: Sequence[int]
    beside: Mapping[int, int]

    def held(self, lists: Lists) -> Counter[int]:
        held = Counter(self.beside)
        for replicas, size in zip(lists, self.sizes, strict=True):
            for replica in replicas:
                held[replica] += size
        return held


TRAP = Case(
    before=[(2,), (2,), (3,), (3,), (1,), (2,)],
    after=[(3,), (2,), (2,), (2,), (3,), (3,)],
    sizes=[20, 20, 20, 20, 25, 30],
    beside={1: 10, 2: 10, 3: 0},
)
TRAP_OF_TWO_REPLICAS = Case(
    before=[(1, 3), (1, 2), (3, 2), (1, 2), (1, 3)],
    after=[(1, 3), (2, 3), (2, 1), (3, 1), (2, 1)],
    sizes=[25, 25, 30, 5, 10],
    beside={1: 10, 2: 0, 3: 0},
)
BACK_AND_FORTH = Case(
    before=[(2,), (3,), (2,), (1,), (3,), (3,)],
    after=[(3,), (2,), (1,), (2,), (1,), (1,)],
    sizes=[30, 30, 20, 30, 20, 15],
    beside={1: 20, 2: 10, 3: 20},
)
BACK_AND_FORTH_OF_TWO_REPLICAS = Case(
    before=[(2, 1), (2, 3), (1, 3), (3, 2), (1, 3)],
    after=[(1, 3), (1, 2), (3, 2), (1, 2), (3, 2)],
    sizes=[30, 30, 5, 10, 20],
    beside={1: 0, 2: 0, 3: 0},
)
TRAP_BESIDE_ROOM = Case(
    [*TRAP.before, (4, 5)], [*TRAP.after, (6, 7)], [*TRAP.sizes, 1], {**TRAP.beside, 4: 0, 5: 0, 6: 0, 7: 0}
)
CASES = [TRAP, TRAP_OF_TWO_REPLICAS, BACK_AND_FORTH, BACK_AND_FORTH_OF_TWO_REPLICAS, TRAP_BESIDE_ROOM]
DEADLOCK = Case(before=[(1,), (2,)], after=[(2,), (1,)], sizes=[50, 40], beside={})


def staged(case: Case, per_broker: int = 10) -> Staging:
    lines = [
        f"t-{number}: {','.join(map(str, replicas))} size {size}"
        for number, (replicas, size) in enumerate(zip(case.before, case.sizes, strict=True))
    ]
    held = case.held(case.before)
    ids = sorted({*held, *(replica for replicas in (*case.before, *case.after) for replica in replicas)})
    observed = cluster(" ".join(f"{broker_id}a" for broker_id in ids), *lines, disks={b: (TOTAL, held[b]) for b in ids})
    moves = [
        move(f"t-{number}: {','.join(map(str, old))} -> {','.join(map(str, new))}", size=size)
        for number, (old, new, size) in enumerate(zip(case.before, case.after, case.sizes, strict=True))
    ]
    policy = MovePolicy(throttle_bytes_per_second=1, per_broker=per_broker, per_partition=1)
    limits = Limits(disk_use=Fraction(ALLOWED, TOTAL))
    return stage_moves(
        moves, [], [], observed=observed, desired=desired({}, policy, limits), rules=rules_of(observed, ["t"], None)
    )


def has_order(case: Case) -> bool:
    """Whether any order of single exchanges ends at what is wanted; every state is looked at."""
    goal = tuple(map(frozenset, case.after))
    start = tuple(map(frozenset, case.before))
    seen, waiting = {start}, [start]
    while waiting:
        state = waiting.pop()
        held = case.held([tuple(each) for each in state])
        for number, replicas in enumerate(state):
            for added in goal[number] - replicas:
                if held[added] + case.sizes[number] > ALLOWED:
                    continue
                for removed in replicas - goal[number]:
                    then = (*state[:number], replicas - {removed} | {added}, *state[number + 1 :])
                    if then not in seen:
                        seen.add(then)
                        waiting.append(then)
    return goal in seen


def overfilled(case: Case, found: Staging) -> list[str]:
    """Return which stage overfills what, counting that nothing is free before its stage has ended."""
    lists, told = list(case.before), []
    for stage in found.stages:
        if not isinstance(stage, ReassignStage):
            continue
        held, taken = case.held(lists), Counter[int]()
        assert len({one.topic_partition for one in stage.moves}) == len(stage.moves)
        for one in stage.moves:
            number = one.topic_partition.partition
            assert one.from_replicas == lists[number]
            lists[number] = one.to_replicas
            for replica in one.added:
                taken[replica] += case.sizes[number]
        told += [f"{stage.number}: broker {b}" for b in taken if held[b] + taken[b] > ALLOWED]
    assert lists == list(case.after)
    return told


def drawn(seed: int) -> Case | None:
    """Return partitions of one or two replicas on a few nearly full brokers that end within their limit."""
    rng = random.Random(seed)
    ids = range(1, rng.randint(2, 4) + 1)
    factor, count = 1 if len(ids) == 2 else rng.randint(1, 2), rng.randint(3, 6)
    lists = [[tuple(rng.sample(ids, factor)) for _ in range(count)] for _ in range(2)]
    case = Case(lists[0], lists[1], rng.choices([5, 10, 20, 25, 30], k=count), {b: rng.choice([0, 10]) for b in ids})
    is_possible = max(case.held(case.before).values()) <= TOTAL and max(case.held(case.after).values()) <= ALLOWED
    return case if is_possible else None


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("per_broker", [1, 10])
def test_an_order_that_greedy_packing_misses_is_found(
    case: Case, per_broker: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert has_order(case)
    found = staged(case, per_broker)
    assert overfilled(case, found) == []
    assert found.violations == ()
    monkeypatch.setattr(safe_order, "MOST_ASKED", 0)
    assert staged(case, per_broker).violations != ()


@pytest.mark.long
def test_no_limit_is_gone_over_where_an_order_exists() -> None:
    cases = [case for seed in range(400) if (case := drawn(seed)) is not None]
    orders = [has_order(case) for case in cases]
    assert len(cases) > 100
    assert {True, False} == set(orders)
    for case, is_possible in zip(cases, orders, strict=True):
        found = staged(case)
        assert bool(overfilled(case, found)) == bool(found.violations) == (not is_possible), case


def test_a_deadlock_is_told_as_before() -> None:
    assert not has_order(DEADLOCK)
    found = staged(DEADLOCK)
    assert [problem.code for problem in found.violations] == ["KR413"]
    assert "(10 bytes)" in found.violations[0].message


@pytest.mark.long
def test_the_search_ends_by_count() -> None:
    """Two brokers that cannot swap, beside three among which small partitions may go in any of very many orders."""
    before = [(1,), (2,), *[(3 + number % 3,) for number in range(24)]]
    after = [(2,), (1,), *[(3 + (number + 1) % 3,) for number in range(24)]]
    case = Case(before, after, [50, 40, *[9 - number % 2 for number in range(24)]], {})
    assert [problem.code for problem in staged(case).violations] == ["KR413"]


def unlimited(observed: Cluster, steps: Sequence[Step]) -> Room:
    columns = Steps.of([steps])
    return Room(DiskUse(observed, columns, None), ReplicaCounts(None, columns, {}, {}))


@pytest.mark.parametrize(
    ("urgency", "order"), [(Urgency.REPAIR + 2, (0, 1)), (Urgency.REPAIRED, (1, 0)), (Urgency.BALANCE, (1, 0))]
)
def test_a_leader_hands_over_first_unless_there_is_something_to_repair(urgency: int, order: tuple[int, int]) -> None:
    observed = cluster("1a 2a 3a 4a", "t-0: 1 size 5", "t-1: 3,4")
    copied = Step(move("t-0: 1 -> 2", size=5), (2,), (1,), load=5, source=1, urgency=urgency)
    handover = Step(move("t-1: 3,4 -> 4,3"), (), (), 0, source=3, urgency=Urgency.LEADERS, is_handover=True)
    steps = [copied, handover]
    assert safe_order.safe_order(steps, [None, None], [0, 1], unlimited(observed, steps)) == order


def test_steps_of_a_safe_order_share_a_stage_up_to_its_limit() -> None:
    observed = cluster("1a 2a 3a", *(f"t-{number}: 1 size 5" for number in range(4)))
    moves = [move(f"t-{number}: 1 -> 2", size=5) for number in range(4)]
    steps = [Step(one, (2,), (1,), load=5, source=1, urgency=Urgency.BALANCE) for one in moves]
    policy = MovePolicy(per_stage=3)
    loads = safe_order.loads_in_order(steps, [None] * 4, range(4), policy, unlimited(observed, steps))
    assert list(loads) == [[0, 1, 2], [3]]


@pytest.mark.parametrize(("most", "order"), [(2, (0, 1)), (1, None)])
def test_a_search_asks_as_often_as_it_may_and_no_more(
    most: int, order: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_order, "MOST_ASKED", most)
    moves = [move("t-0: 1 -> 2", size=5), move("t-1: 1 -> 2", size=5)]
    steps = [Step(one, (2,), (1,), load=5, source=1, urgency=Urgency.BALANCE) for one in moves]
    room = unlimited(cluster("1a 2a", "t-0: 1 size 5", "t-1: 1 size 5"), steps)
    assert safe_order.safe_order(steps, [None, None], [0, 1], room) == order
