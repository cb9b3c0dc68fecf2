"""No stage brings a broker above `replicasPerBroker` if any order avoids it; if none does, the plan says so."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import pytest
from helpers.depth import parts
from staging.cases import cluster, desired, move, rules_of

from reconciler.model.change import CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, DesiredTopic, Limits, MovePolicy, Placement
from reconciler.model.move import Move
from reconciler.model.problem import Location
from reconciler.model.stage import ReassignStage, TopicsStage, numbered
from reconciler.proof.check import prove
from reconciler.staging import room, safe_order, ways
from reconciler.staging.stages import Staging, stage_moves
from reconciler.workflow.plan import plan_of

AT = Location("cluster.yaml", 12)
Lists = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Full:
    """Brokers that are as full as the limit, or nearly: the replicas of each partition before and after."""

    before: Lists
    after: Lists
    limit: int
    policy: MovePolicy

    @property
    def observed(self) -> Cluster:
        ids = sorted({one for lists in (self.before, self.after) for replicas in lists for one in replicas})
        lines = (f"t-{n}: {','.join(map(str, replicas))} size 10" for n, replicas in enumerate(self.before))
        return cluster(" ".join(f"{one}a" for one in ids), *lines)

    @property
    def moves(self) -> list[Move]:
        pairs = enumerate(zip(self.before, self.after, strict=True))
        lists = ((n, *(",".join(map(str, each)) for each in pair)) for n, pair in pairs if pair[0] != pair[1])
        return [move(f"t-{n}: {old} -> {new}", size=10) for n, old, new in lists]

    def staged(self, changes: Sequence[TopicChange] = ()) -> Staging:
        wanted, observed = (
            desired(moves=self.policy, limits=Limits(replicas_per_broker=self.limit, at={"replicasPerBroker": AT})),
            self.observed,
        )
        return stage_moves(self.moves, changes, (), observed=observed, desired=wanted, rules=rules_of(observed, ["t"]))


def drawn(seed: int) -> Full:
    """Return a case of 2 to 5 brokers, of which most have no place left, before and after."""
    draw = random.Random(seed)
    while True:
        ids = range(1, draw.randint(2, 5) + 1)
        most = min(draw.choice([1, 1, 2, 3]), len(ids))
        factors = [draw.randint(1, most) for _ in range(draw.randint(2, 8 if most == 1 else 5))]
        others = [factor if draw.random() < 0.8 else draw.randint(1, most) for factor in factors]
        limit = -(-max(sum(factors), sum(others)) // len(ids)) + draw.choice([0, 0, 0, 1])
        placed = [_placed(draw, ids, limit, each) for each in (factors, others)]
        if all(placed):
            policy = MovePolicy(per_stage=draw.choice([1, 2, 500]), per_partition=draw.choice([1, 1, 2]))
            return Full(placed[0], placed[1], limit, policy)


def _placed(draw: random.Random, ids: Sequence[int], limit: int, factors: Sequence[int]) -> Lists:
    free, found = dict.fromkeys(ids, limit), []
    for factor in factors:
        emptiest = sorted((one for one in ids if free[one]), key=lambda one: draw.random() - free[one])
        if len(emptiest) < factor:
            return ()
        found.append(tuple(draw.sample(emptiest[:factor], factor)))
        for one in found[-1]:
            free[one] -= 1
    return tuple(found)


def has_order(case: Full) -> bool:
    """Whether the partitions can pass to the other state, one change of one partition at a time, by trying all.

    What a change adds is there before anything goes; one replica set has no fewer or more than before and after.
    """
    start, goal = (tuple(map(frozenset, lists)) for lists in (case.before, case.after))
    seen, waiting = {start}, [start]
    while waiting:
        state = waiting.pop()
        if state == goal:
            return True
        for place, reached in _changes(state, goal, case):
            following = (*state[:place], reached, *state[place + 1 :])
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return False


def _changes(
    state: Sequence[frozenset[int]], goal: Sequence[frozenset[int]], case: Full
) -> Iterator[tuple[int, frozenset[int]]]:
    count = Counter(one for replicas in state for one in replicas)
    for place, (now, wanted) in enumerate(zip(state, goal, strict=True)):
        low, high = sorted((len(now), len(wanted)))
        coming = [some for size in range(case.policy.per_partition + 1) for some in combinations(wanted - now, size)]
        going = [some for size in range(len(now - wanted) + 1) for some in combinations(now - wanted, size)]
        for added, removed in product(coming, going):
            reached = now.union(added).difference(removed)
            if low <= len(reached) <= high and all(count[one] < case.limit for one in added):
                yield place, reached


def highest(observed: Cluster, staged: Staging) -> Counter[int]:
    """Return the most replicas that each broker holds when something comes, all of it before anything goes."""
    held = Counter(one for _, partition in observed.partitions() for one in partition.replicas)
    most = Counter[int]()
    for stage in staged.stages:
        coming, going = list[int](), list[int]()
        if isinstance(stage, ReassignStage):
            coming = [one for each in stage.moves for one in {*each.to_replicas} - {*each.from_replicas}]
            going = [one for each in stage.moves for one in {*each.from_replicas} - {*each.to_replicas}]
        elif isinstance(stage, TopicsStage):
            made = [staged.topic_changes[place] for place in stage.changes]
            lists = [
                r for each in made if isinstance(each, CreateTopic | CreatePartitions) for r in each.assignment.values()
            ]
            coming = [one for replicas in lists for one in replicas]
        held.update(coming)
        for one in coming:
            most[one] = max(most[one], held[one])
        held.subtract(going)
    return most


@parts("seeds", range(120), deep=range(1500))
def test_an_order_is_found_if_and_only_if_there_is_one(seeds: range) -> None:
    answers = Counter[bool]()
    for seed in seeds:
        case = drawn(seed)
        staged, is_possible = case.staged(), has_order(case)
        over = {one: count for one, count in highest(case.observed, staged).items() if count > case.limit}
        assert (not over) == is_possible, seed
        assert [(each.code, each.at, each.message.split(" replicas")[0]) for each in staged.violations] == [
            ("KR419", AT, f"broker {one} would hold {count}") for one, count in sorted(over.items())
        ], seed
        assert all(len(s.moves) <= case.policy.per_stage for s in staged.stages if isinstance(s, ReassignStage)), seed
        ends = {
            each.topic_partition: each.to_replicas
            for s in staged.stages
            if isinstance(s, ReassignStage)
            for each in s.moves
        }
        assert ends == {each.topic_partition: each.to_replicas for each in case.moves}, seed
        answers[is_possible] += 1
    assert min(answers.values()) > len(seeds) // 8


ISSUE = Full(((1,), (1,), (2,), (2,), (3,)), ((1,), (2,), (1,), (3,), (2,)), 2, MovePolicy(per_stage=1))


def test_what_frees_a_place_goes_before_what_takes_it() -> None:
    staged = ISSUE.staged()
    order = [each.topic_partition.partition for s in staged.stages if isinstance(s, ReassignStage) for each in s.moves]
    assert order == [3, 1, 2, 4]
    assert not staged.violations


def test_a_ring_without_a_free_place_is_a_violation_that_names_broker_stage_excess_and_line() -> None:
    ring = Full(((1,), (2,), (3,)), ((2,), (3,), (1,)), 1, MovePolicy())
    (violation,) = ring.staged().violations
    assert (violation.code, violation.at) == ("KR419", AT)
    assert violation.message == (
        "broker 2 would hold 2 replicas in stage 1, 1 more than limits.replicasPerBroker, 1, allows: no order of stages"
        " that keeps it was found; raise it or give the brokers room, or plan fewer topics at once with --only"
    )
    assert not replace(ring, before=(*ring.before, (4,)), after=(*ring.after, (4,)), limit=2).staged().violations


def test_a_free_place_goes_round_a_ring_before_it_leaves() -> None:
    """One place is free on broker 1. A replica from elsewhere takes it in the end, but 1 and 2 have to swap first."""
    case = Full(((1,), (2,), (3,)), ((2,), (1,), (1,)), 2, MovePolicy())
    case = replace(case, before=(*case.before, (2,)), after=(*case.after, (2,)))
    stages = [stage for stage in case.staged().stages if isinstance(stage, ReassignStage)]
    assert [[each.topic_partition.partition for each in stage.moves] for stage in stages] == [[1], [0], [2]]


def test_a_plan_of_written_assignments_is_put_in_that_order_and_proved() -> None:
    topic = DesiredTopic("t", placement=Placement(assignment=ISSUE.after))
    wanted = Desired(desired(moves=ISSUE.policy, limits=Limits(replicas_per_broker=2)).cluster, {"t": topic})
    plan = plan_of(wanted, ISSUE.observed)
    moved = [each.topic_partition.partition for s in plan.stages if isinstance(s, ReassignStage) for each in s.moves]
    assert moved == [3, 1, 2, 4]
    assert not plan.violations
    assert prove(plan, wanted, ISSUE.observed).wrong is None


def test_the_proof_counts_new_partitions_from_their_stage_on() -> None:
    wanted = Desired(
        desired(limits=Limits(replicas_per_broker=2)).cluster,
        {
            "t": DesiredTopic("t", placement=Placement(assignment=((3,), (1,), (2,)))),
            "new": DesiredTopic("new", partitions=1, placement=Placement(assignment=((1,),))),
        },
    )
    observed = Full(((1,), (1,), (2,)), ((3,), (1,), (2,)), 2, MovePolicy()).observed
    plan = plan_of(wanted, observed)
    assert prove(plan, wanted, observed).wrong is None
    early = replace(plan, stages=numbered(sorted(plan.stages, key=lambda stage: isinstance(stage, ReassignStage))))
    verdict = prove(early, wanted, observed)
    assert verdict.wrong == "stage 1: broker 1 would hold 3 replicas, and limits.replicasPerBroker is 2"
    assert verdict.is_limit_broken


def test_a_place_that_a_ring_needs_is_not_given_away_first_however_many_moves_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In each of 110 groups one place is free: a replica from elsewhere wants it, and two brokers have to swap."""
    before, after = ((3,), (1,), (2,), (2,)), ((1,), (2,), (1,), (2,))
    many = [tuple((one + 3 * group,) for group in range(110) for (one,) in lists) for lists in (before, after)]
    case = Full(many[0], many[1], 2, MovePolicy())
    assert len(case.moves) > safe_order.MOST_STEPS
    assert not case.staged().violations
    monkeypatch.setattr(room, "MOST_VISITS", 0)
    assert len(case.staged().violations) == 110


def test_another_order_of_a_partitions_own_replicas_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [case for seed in range(100) if not (case := drawn(seed)).staged().violations]
    monkeypatch.setattr(ways, "MOST_VISITS", 0)
    assert any(case.staged().violations for case in cases)


NEW = CreateTopic("new", partitions=1, replication_factor=1, assignment={0: (1,)})
GROWN = CreatePartitions("t", from_count=3, to_count=4, assignment={3: (1,)})


@pytest.mark.parametrize("change", [NEW, GROWN], ids=["a new topic", "growth"])
def test_new_partitions_wait_for_the_room_that_moves_leave(change: TopicChange) -> None:
    case = Full(((1,), (1,), (2,)), ((3,), (1,), (2,)), 2, MovePolicy())
    staged = case.staged([change])
    assert [type(stage).__name__ for stage in staged.stages] == ["ReassignStage", "TopicsStage"]
    assert not staged.violations
    assert [type(stage).__name__ for stage in replace(case, limit=3).staged([change]).stages] == [
        "TopicsStage",
        "ReassignStage",
    ]


def test_new_partitions_that_a_deletion_makes_room_for_are_a_violation_as_deletions_come_last() -> None:
    case = Full(((1,), (1,), (2,)), ((1,), (1,), (2,)), 2, MovePolicy())
    staged = case.staged([NEW, DeleteTopic("t")])
    (violation,) = [each for each in staged.violations if each.code == "KR419"]
    assert "broker 1 would hold 3 replicas in stage 1, 1 more" in violation.message
