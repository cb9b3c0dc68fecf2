"""The kinds of cluster with loads that are small enough for every run: what is copied, what each broker ends with."""

from functools import cache

import pytest
from helpers.clusters.loads_clusters import A_ADD, A_DRIFT, LoadsCase
from helpers.clusters.random_clusters import shuffled
from helpers.plans.planning import cluster_after
from planner.load_balance.planning import planned_with

from reconciler.model.cluster import Cluster
from reconciler.model.columns import Ints
from reconciler.model.desired import Desired
from reconciler.model.loads import Loads
from reconciler.planner.load_balance import parts, place
from reconciler.planner.load_balance.bands import Bands
from reconciler.planner.load_balance.column_generation import Goal
from reconciler.planner.load_balance.exchanges import Placement
from reconciler.planner.place import Placed

pytestmark = pytest.mark.long

BAND = 1.09
FLEET = LoadsCase("fleet", brokers=18, racks=3, topics=32, partitions=40, is_drifted=True)


@cache
def _planned(case: LoadsCase) -> tuple[Desired, Cluster, Loads, Placed]:
    desired, observed, loads = case.build()
    return desired, observed, loads, planned_with(desired, observed, loads)


def _assert_all_bands_are_kept(placed: Placed) -> None:
    for measure in ("replicas", "leaders", "bytes", "bytes_in_per_second", "bytes_out_per_second"):
        held = [float(getattr(share, measure)) for share in placed.balance_after.values()]
        assert max(held) / (sum(held) / len(held)) <= BAND + 0.003, measure


def _assert_another_order_gives_the_same_and_the_reached_state_needs_nothing(case: LoadsCase) -> None:
    desired, observed, loads, placed = _planned(case)
    other = Loads(dict(sorted(loads.of.items(), reverse=True)))
    assert planned_with(shuffled(desired, 7), observed, other) == placed
    reached = cluster_after(observed, placed.moves, placed.topic_changes)
    assert planned_with(desired, reached, loads).moves == ()


@pytest.mark.parametrize(
    ("case", "over_bound", "copies", "leaders"),
    [(A_ADD, 1.001, 784, 264), (A_DRIFT, 1.002, 214, 74)],
    ids=["three brokers join", "nine brokers drifted"],
)
def test_all_five_bands_are_kept_with_nearly_the_fewest_bytes_and_fewer_moves_than_cruise_control(
    case: LoadsCase, over_bound: float, copies: int, leaders: int
) -> None:
    *_, placed = _planned(case)
    assert placed.proof.lower_bound <= placed.proof.value <= over_bound * placed.proof.lower_bound
    assert placed.proof.value == sum(move.bytes for move in placed.moves)
    assert sum(len(move.added) for move in placed.moves) < copies
    assert sum(move.from_replicas[0] != move.to_replicas[0] for move in placed.moves) < leaders
    _assert_all_bands_are_kept(placed)
    assert not [problem for problem in placed.warnings if problem.code == "KR842"]


def test_the_same_inputs_in_another_order_give_the_same_moves_and_the_reached_state_needs_none() -> None:
    _assert_another_order_gives_the_same_and_the_reached_state_needs_nothing(A_DRIFT)


def test_a_fleet_is_balanced_in_parts_within_all_bands_above_a_bound_and_stays_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts, "ONE_PROGRAM", 8)
    monkeypatch.setattr(parts, "PART", 9)
    dealt: list[int] = []
    part_of = parts.part_of

    def counted(end: Placement, bands: Bands, goal: Goal, brokers: Ints) -> parts.Part:
        dealt.append(len(brokers))
        return part_of(end, bands, goal, brokers)

    monkeypatch.setattr(place, "part_of", counted)
    _, observed, _, placed = _planned(FLEET)
    assert dealt == [9, 9]
    assert placed.proof.lower_bound <= placed.proof.value <= 1.2 * placed.proof.lower_bound
    _assert_all_bands_are_kept(placed)
    racks = {broker_id: broker.rack for broker_id, broker in observed.brokers.items()}
    assert all(len({racks[broker_id] for broker_id in move.to_replicas}) == 3 for move in placed.moves)
    _assert_another_order_gives_the_same_and_the_reached_state_needs_nothing(FLEET)


def test_the_bound_is_the_sum_of_cheapest_placements_at_the_prices_that_the_plan_keeps() -> None:
    _, observed, loads, placed = _planned(A_DRIFT)
    (level,) = placed.proof.levels
    brokers = sorted(observed.brokers)
    rack_of = {broker_id: observed.brokers[broker_id].rack for broker_id in brokers}
    prices = {
        "replicas": level.prices,
        "disk": level.load_prices.get("disk", {}),
        "networkIn": level.load_prices.get("networkIn", {}),
    }
    bound = 0
    total = dict.fromkeys(prices, 0)
    for key, partition in observed.partitions():
        load = loads.of[key]
        assert load.size_bytes is not None
        assert load.bytes_in is not None
        weight = {"replicas": 1, "disk": load.size_bytes, "networkIn": load.bytes_in}
        for rack in sorted(set(rack_of.values()), key=str):
            bound += min(
                (0 if broker_id in partition.replicas else load.size_bytes << level.shift)
                + sum(weight[name] * price.get(broker_id, 0) for name, price in prices.items())
                for broker_id in brokers
                if rack_of[broker_id] == rack
            )
        for name in total:
            total[name] += 3 * weight[name]
    for name, price in prices.items():
        for broker_id in brokers:
            low, high = -(-91 * total[name] // 900), 109 * total[name] // 900
            bound -= max(price.get(broker_id, 0) * low, price.get(broker_id, 0) * high)
    assert level.lower_bound == -(-bound >> level.shift)
