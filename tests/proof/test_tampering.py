"""No plan that was made worse, and no proof that was, is taken for proved; nor a plan for other states."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from helpers.plans.proving import provable_plan, with_levels

from reconciler.model.change import CreatePartitions, CreateTopic, DeleteTopic
from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import (
    Balance,
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    Placement,
    Protection,
    Spread,
    TopicPolicy,
    Within,
)
from reconciler.model.move import Move, Reason
from reconciler.model.plan import BrokerShare, Plan, PriceLevel, Proof, TieredBytes
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.check import prove_end


def _shop() -> tuple[Desired, Cluster]:
    """Return nine brokers on three racks, one draining, one new and empty, topics with every kind of rule."""
    brokers = {b: Broker(b, "abc"[b % 3]) for b in range(9)}

    def topic(name: str, first: int, sizes: list[int], brokers: int = 8) -> Topic:
        lists = [tuple((first + number + step) % brokers for step in (0, 1, 2)) for number in range(len(sizes))]
        partitions = tuple(
            Partition(number, replicas[0], replicas, replicas, sizes=(sizes[number],) * 3)
            for number, replicas in enumerate(lists)
        )
        return Topic(name, partitions)

    topics = {
        "orders": topic("orders", 0, [70, 10, 30, 50, 90, 20, 60, 40]),
        "clicks": topic("clicks", 3, [5, 5, 5, 5, 5, 5]),
        "frozen": topic("frozen", 1, [1, 1]),
        "fixed": topic("fixed", 2, [8, 9]),
        "free": topic("free", 5, [11]),
        "events": topic("events", 0, [300, 200, 100, 301, 201, 101, 302, 202, 102], brokers=6),
        "gone": topic("gone", 0, [1]),
        "nobodys": topic("nobodys", 6, [4, 4]),
    }
    strict = Placement(racks_spread=Spread.STRICT)
    declared = {
        "orders": DesiredTopic("orders", placement=strict),
        "events": DesiredTopic("events", placement=strict),
        "clicks": DesiredTopic("clicks", partitions=8, replication_factor=2, placement=strict),
        "frozen": DesiredTopic("frozen", protect=frozenset({Protection.MOVE})),
        "fixed": DesiredTopic("fixed", placement=Placement(assignment=((2, 3, 4), (8, 3, 4)))),
        "free": DesiredTopic("free", placement=Placement(brokers_except=frozenset({5}), racks_leader=frozenset({"a"}))),
        "fresh": DesiredTopic("fresh", partitions=3, replication_factor=3, placement=strict),
        "gone": DesiredTopic("gone", is_absent=True),
    }
    cluster = DesiredCluster(
        "shop",
        brokers={7: DesiredBroker(7, BrokerState.DRAINING), 2: DesiredBroker(2, capacity=2)},
        topics=TopicPolicy(is_delete_allowed=True),
        balance=Balance(replicas=Even(), leaders=Even()),
    )
    return Desired(cluster, declared), Cluster("id", brokers, topics)


SHOP, SHOP_OBSERVED = _shop()
SHOP_PLAN = provable_plan(SHOP, SHOP_OBSERVED)


def test_the_plan_of_the_shop_is_proved() -> None:
    verdict = prove_end(SHOP_PLAN, SHOP, SHOP_OBSERVED)
    assert verdict.wrong is None
    assert [level.objective for level in verdict.levels] == [
        "replicas balance",
        "bytes",
        "replicas",
        "leaders balance",
        "leaders changed",
    ]


def _moves(plan: Plan) -> tuple[Move, ...]:
    (stage,) = plan.stages
    assert isinstance(stage, ReassignStage)
    return tuple(stage.moves)


def _with_moves(plan: Plan, moves: tuple[Move, ...]) -> Plan:
    return replace(plan, stages=(ReassignStage(1, moves),))


def _with_move(plan: Plan, number: int, change: Callable[[Move], Move]) -> Plan:
    moves = list(_moves(plan))
    moves[number] = change(moves[number])
    return _with_moves(plan, tuple(moves))


def _level(plan: Plan, objective: str, change: Callable[[PriceLevel], PriceLevel]) -> Plan:
    return with_levels(plan, [change(each) if each.objective == objective else each for each in plan.proof.levels])


def _proof(plan: Plan, change: Callable[[Proof], Proof]) -> Plan:
    return replace(plan, proof=change(plan.proof))


def _number(topic: str, partition: int) -> int:
    keys = [move.topic_partition for move in _moves(SHOP_PLAN)]
    return keys.index(TopicPartition(topic, partition))


def _move(topic: str, now: tuple[int, ...], then: tuple[int, ...], copied: int) -> Move:
    return Move(TopicPartition(topic, 0), now, then, copied, Reason.BALANCE)


ORDERS, NOBODYS = _number("orders", 5), _number("nobodys", 0)


def _elsewhere(move: Move) -> Move:
    """Return the move with its new replica on another broker of the same rack."""
    (new,) = move.added
    other = next(b for b in (4, 1, 0, 3, 6) if b not in move.to_replicas and b % 3 == new % 3)
    return replace(move, to_replicas=tuple(other if b == new else b for b in move.to_replicas))


def _in_wrong_rack(move: Move) -> Move:
    (new,) = move.added
    other = next(b for b in range(9) if b not in move.to_replicas and b % 3 != new % 3 and b != 7)
    return replace(move, to_replicas=tuple(other if b == new else b for b in move.to_replicas))


def _with_assignment(plan: Plan, topic: str, assignment: dict[int, tuple[int, ...]]) -> Plan:
    changes = tuple(
        replace(change, assignment={**change.assignment, **assignment})
        if change.topic == topic and isinstance(change, CreateTopic | CreatePartitions)
        else change
        for change in plan.topic_changes
    )
    return replace(plan, topic_changes=changes)


def _joint(proof: Proof, weight: int) -> dict[int, int]:
    even, copies = proof.levels[:2]
    joint = {broker_id: copies.prices[broker_id] + weight * even.prices[broker_id] for broker_id in even.prices}
    return {broker_id: price - min(joint.values()) for broker_id, price in joint.items()}


def test_joint_prices_may_weigh_the_balance_more() -> None:
    heavier = _proof(SHOP_PLAN, lambda proof: replace(proof, joint_prices=_joint(proof, weight=10**6)))
    assert prove_end(heavier, SHOP, SHOP_OBSERVED).is_proved


TAMPERED: list[tuple[str, Plan, str]] = [
    (
        "the value of a level is lowered",
        _level(SHOP_PLAN, "bytes", lambda level: replace(level, value=level.value - 1, lower_bound=level.value - 1)),
        "bytes: the proof says 233, but the plan reaches 234",
    ),
    (
        "the bound of a level is raised",
        _level(SHOP_PLAN, "bytes", lambda level: replace(level, lower_bound=level.lower_bound + 1)),
        "bytes: the proof claims the bound 235, but its prices prove 234",
    ),
    (
        "the bound of a level is lowered",
        _level(SHOP_PLAN, "replicas balance", lambda level: replace(level, lower_bound=0)),
        "replicas balance: the proof claims the bound 0, but its prices prove",
    ),
    (
        "all prices of a level are 0",
        _level(SHOP_PLAN, "replicas balance", lambda level: replace(level, prices={})),
        "replicas balance: the prices prove only",
    ),
    (
        "the prices of the bytes are turned round",
        _level(SHOP_PLAN, "bytes", lambda level: replace(level, prices={b: -p for b, p in level.prices.items()})),
        "bytes: the prices prove only",
    ),
    (
        "a broker that is not there has a price",
        _level(SHOP_PLAN, "bytes", lambda level: replace(level, prices={**level.prices, 99: 1})),
        "bytes: there is a price of broker 99, which takes no part in the plan",
    ),
    (
        "a draining broker has a price",
        _level(SHOP_PLAN, "bytes", lambda level: replace(level, prices={**level.prices, 7: 1})),
        "bytes: there is a price of broker 7",
    ),
    (
        "a price is beyond 64 bits",
        _level(SHOP_PLAN, "bytes", lambda level: replace(level, prices={**level.prices, 0: 1 << 80})),
        "bytes: the prices prove only -12089258196146291747060502, but the plan reaches 234",
    ),
    (
        "a topic that is not there has prices",
        _level(SHOP_PLAN, "bytes", lambda level: replace(level, topic_prices={"nowhere": {0: 1}})),
        "bytes: there are prices of topic nowhere",
    ),
    (
        "a topic has prices that are not fair",
        _level(SHOP_PLAN, "bytes", lambda level: replace(level, topic_prices={"orders": {0: 50, 1: -50}})),
        "bytes: the prices prove only",
    ),
    (
        "a level is missing",
        with_levels(SHOP_PLAN, SHOP_PLAN.proof.levels[1:]),
        "the proof has no prices for replicas balance, which the desired state asks for",
    ),
    (
        "a level is weighed though no budget binds",
        _level(SHOP_PLAN, "replicas balance", lambda level: replace(level, weight=1, byte_weight=1)),
        "replicas balance is weighed against bytes, and no budget asks for that",
    ),
    (
        "a level has prices of loads",
        _level(SHOP_PLAN, "bytes", lambda level: replace(level, load_prices={"disk": {0: 0}}, shift=1)),
        "bytes has prices of loads, and no load is to be balanced",
    ),
    (
        "the levels are in another order",
        with_levels(SHOP_PLAN, [SHOP_PLAN.proof.levels[number] for number in (1, 0, 2, 3, 4)]),
        "the proof is over bytes, replicas balance, replicas, leaders balance, leaders changed; in order it must be",
    ),
    (
        "a level is there twice",
        with_levels(SHOP_PLAN, [SHOP_PLAN.proof.levels[0], *SHOP_PLAN.proof.levels]),
        "the proof is over replicas balance, replicas balance, bytes",
    ),
    (
        "a level is of something unknown",
        with_levels(SHOP_PLAN, [*SHOP_PLAN.proof.levels, PriceLevel("beauty", 0, 0)]),
        "in order it must be",
    ),
    ("there is no proof", _proof(SHOP_PLAN, lambda _: Proof()), "the proof has no prices for replicas balance"),
    (
        "the proof's value is lower than its level's",
        _proof(SHOP_PLAN, lambda proof: replace(proof, value=proof.value - 1, lower_bound=proof.value - 1)),
        "the proof says 233 bytes with the bound 233, but the plan copies 234",
    ),
    (
        "the proof leaves a gap",
        _proof(SHOP_PLAN, lambda proof: replace(proof, lower_bound=proof.lower_bound - 1)),
        "the proof says 234 bytes with the bound 233",
    ),
    (
        "the proof is over replicas, although all sizes are known",
        _proof(SHOP_PLAN, lambda proof: replace(proof, objective="replicas")),
        "the proof's objective is replicas, but the fewest bytes are asked for",
    ),
    (
        "a joint price is another",
        _proof(SHOP_PLAN, lambda proof: replace(proof, joint_prices={**proof.joint_prices, 3: 1 << 30})),
        "the proof's prices are not those of its levels together",
    ),
    (
        "the joint prices weigh a copy as much as the balance",
        _proof(SHOP_PLAN, lambda proof: replace(proof, joint_prices=_joint(proof, weight=1))),
        "the proof's prices are not those of its levels together",
    ),
    (
        "there are no joint prices",
        _proof(SHOP_PLAN, lambda proof: replace(proof, joint_prices={})),
        "the proof's prices are not those of its levels together",
    ),
    (
        "a move is dropped",
        _with_moves(SHOP_PLAN, _moves(SHOP_PLAN)[:ORDERS] + _moves(SHOP_PLAN)[ORDERS + 1 :]),
        "orders-5 ends on brokers [5, 6, 7]: one of them may not hold it",
    ),
    (
        "every move is dropped",
        replace(SHOP_PLAN, stages=()),
        "fixed-1 does not end on brokers [8, 3, 4], and its assignment is written",
    ),
    (
        "a move is there twice",
        _with_moves(SHOP_PLAN, (*_moves(SHOP_PLAN), _moves(SHOP_PLAN)[ORDERS])),
        "orders-5 is moved from brokers [5, 6, 7], but it is on",
    ),
    ("a move goes to another broker of the rack", _with_move(SHOP_PLAN, ORDERS, _elsewhere), ""),
    (
        "a move goes to another rack",
        _with_move(SHOP_PLAN, ORDERS, _in_wrong_rack),
        "they do not spread over the racks as they must",
    ),
    (
        "a move goes to the draining broker",
        _with_move(SHOP_PLAN, 0, lambda move: replace(move, to_replicas=(3, 7), bytes=5)),
        "clicks-0 ends on brokers [3, 7]: one of them may not hold it",
    ),
    (
        "a move goes to a broker that does not exist",
        _with_move(SHOP_PLAN, 0, lambda move: replace(move, to_replicas=(3, 77), bytes=5)),
        "clicks-0 ends on brokers [3, 77]: one of them may not hold it",
    ),
    (
        "a move takes one replica too few along",
        _with_move(SHOP_PLAN, ORDERS, lambda move: replace(move, to_replicas=move.to_replicas[:2], bytes=0)),
        "that is not the number of replicas that it is to have",
    ),
    (
        "a move names a broker twice",
        _with_move(SHOP_PLAN, 0, lambda move: replace(move, to_replicas=(3, 3), bytes=0)),
        "clicks-0 is moved to brokers [3, 3]: each must be named once",
    ),
    (
        "a move says that it copies less",
        _with_move(SHOP_PLAN, ORDERS, lambda move: replace(move, bytes=0)),
        "copies 20 bytes, not 0",
    ),
    (
        "a move says that its size is not known",
        _with_move(SHOP_PLAN, ORDERS, lambda move: replace(move, is_size_known=False)),
        "orders-5 is moved, and its size is known: the plan says otherwise",
    ),
    (
        "a move starts elsewhere",
        _with_move(SHOP_PLAN, ORDERS, lambda move: replace(move, from_replicas=(5, 6, 8))),
        "orders-5 is moved from brokers [5, 6, 8], but it is on [5, 6, 7]",
    ),
    (
        "the preferred leader is another",
        _with_move(SHOP_PLAN, ORDERS, lambda move: replace(move, to_replicas=move.to_replicas[::-1])),
        "",
    ),
    (
        "a partition moves that need not",
        _with_moves(SHOP_PLAN, (*_moves(SHOP_PLAN), _move("orders", (0, 1, 2), (3, 1, 2), 70))),
        "",
    ),
    (
        "a partition that may not be moved is",
        _with_moves(SHOP_PLAN, (*_moves(SHOP_PLAN), _move("frozen", (1, 2, 3), (1, 2, 6), 1))),
        "frozen-0 does not end on brokers [1, 2, 3], and it is not to be moved",
    ),
    (
        "a partition of a deleted topic is moved",
        _with_moves(SHOP_PLAN, (*_moves(SHOP_PLAN), _move("gone", (0, 1, 2), (3, 1, 2), 1))),
        "gone-0 is moved, but its topic is deleted",
    ),
    (
        "a partition that is not there is moved",
        _with_moves(SHOP_PLAN, (*_moves(SHOP_PLAN), _move("lost", (0,), (1,), 1))),
        "lost-0 is moved, but it does not exist",
    ),
    (
        "a replica that nobody spoke of moves",
        _with_move(SHOP_PLAN, NOBODYS, lambda move: replace(move, to_replicas=(3, 1, 2), bytes=12)),
        "nobodys-0 ends on brokers [3, 1, 2]: ",
    ),
    (
        "a new partition is in one rack twice",
        _with_assignment(SHOP_PLAN, "fresh", {0: (2, 5, 1)}),
        "fresh-0 ends on brokers [2, 5, 1]: they do not spread over the racks as they must",
    ),
    (
        "a new partition has a replica too many",
        _with_assignment(SHOP_PLAN, "clicks", {6: (8, 0, 1)}),
        "clicks-6 ends on brokers [8, 0, 1]: that is not the number",
    ),
    ("a new partition is elsewhere", _with_assignment(SHOP_PLAN, "fresh", {0: (5, 0, 1)}), ""),
    (
        "a new partition has a broker twice",
        _with_assignment(SHOP_PLAN, "fresh", {0: (2, 0, 0)}),
        "fresh-0 is created on brokers [2, 0, 0]: each must be named once",
    ),
    (
        "a new partition has no replica",
        _with_assignment(SHOP_PLAN, "fresh", {0: ()}),
        "fresh-0 is created on brokers []: each must be named once",
    ),
    (
        "one partition too many is created",
        _with_assignment(SHOP_PLAN, "fresh", {3: (2, 0, 1)}),
        "fresh-3 is created, and nobody asked for it",
    ),
    (
        "a topic is not created",
        replace(SHOP_PLAN, topic_changes=tuple(c for c in SHOP_PLAN.topic_changes if c.topic != "fresh")),
        "fresh-0 is not created, although the files ask for it",
    ),
    (
        "a topic is not deleted",
        replace(SHOP_PLAN, topic_changes=tuple(c for c in SHOP_PLAN.topic_changes if c.topic != "gone")),
        "topic gone is not deleted, although it is to go",
    ),
    (
        "a topic is deleted that is to stay",
        replace(SHOP_PLAN, topic_changes=(*SHOP_PLAN.topic_changes, DeleteTopic("orders"))),
        "topic orders is deleted, and nobody asked for it",
    ),
    (
        "the balance that it says it reaches is another",
        replace(SHOP_PLAN, balance_after={**SHOP_PLAN.balance_after, 0: BrokerShare(1, 1)}),
        "the plan says that broker 0 ends with 1 replicas and leads 1, but it ends with",
    ),
]


@pytest.mark.parametrize(("plan", "wrong"), [case[1:] for case in TAMPERED], ids=[case[0] for case in TAMPERED])
def test_a_plan_that_was_tampered_with_is_not_proved(plan: Plan, wrong: str) -> None:
    assert plan != SHOP_PLAN
    verdict = prove_end(plan, SHOP, SHOP_OBSERVED)
    assert verdict.wrong is not None
    assert wrong in verdict.wrong
    assert not verdict.is_proved


@pytest.mark.parametrize("objective", ["replicas balance", "bytes", "leaders balance"])
@pytest.mark.parametrize("broker_id", [0, 1, 2, 3, 4, 5, 6, 8])
def test_each_price_of_the_shop_counts(objective: str, broker_id: int) -> None:
    for price in (-1_000_000, 1_000_000):
        plan = _level(SHOP_PLAN, objective, lambda level: replace(level, prices={**level.prices, broker_id: price}))  # noqa: B023 - called at once
        assert not prove_end(plan, SHOP, SHOP_OBSERVED).is_proved


def _written(**topics: DesiredTopic) -> Desired:
    return replace(SHOP, topics={**SHOP.topics, **topics})


def _placed(**placements: Placement) -> Desired:
    return _written(**{name: DesiredTopic(name, placement=placement) for name, placement in placements.items()})


def _cluster(document: DesiredCluster) -> Desired:
    return replace(SHOP, cluster=document)


LOOSENED: list[tuple[str, Desired]] = [
    (
        "racks count for nothing",
        _written(orders=DesiredTopic("orders", placement=Placement(racks_spread=Spread.IGNORE))),
    ),
    ("nothing drains", _cluster(replace(SHOP.cluster, brokers={2: SHOP.cluster.brokers[2]}))),
    ("all brokers are alike", _cluster(replace(SHOP.cluster, brokers={7: SHOP.cluster.brokers[7]}))),
    ("no balance is asked for", _cluster(replace(SHOP.cluster, balance=Balance(leaders=Even())))),
    ("leaders need no balance", _cluster(replace(SHOP.cluster, balance=Balance(replicas=Even())))),
    ("a band is enough", _cluster(replace(SHOP.cluster, balance=Balance(Within(Fraction(1, 2)), Even())))),
    ("nothing is deleted", _cluster(replace(SHOP.cluster, topics=TopicPolicy()))),
    ("an assignment is not written any more", _written(fixed=DesiredTopic("fixed"))),
    ("what was frozen may move", _written(frozen=DesiredTopic("frozen"))),
    ("more replicas are asked for", _written(clicks=replace(SHOP.topics["clicks"], replication_factor=3))),
    ("more partitions are asked for", _written(fresh=replace(SHOP.topics["fresh"], partitions=4))),
    (
        "another rack is to lead",
        _written(free=DesiredTopic("free", placement=Placement(racks_leader=frozenset({"b"})))),
    ),
]


@pytest.mark.parametrize("desired", [case[1] for case in LOOSENED], ids=[case[0] for case in LOOSENED])
def test_a_plan_is_not_proved_for_another_desired_state(desired: Desired) -> None:
    assert not prove_end(SHOP_PLAN, desired, SHOP_OBSERVED).is_proved


def _observed_with(topic: str, number: int, change: Callable[[Partition], Partition]) -> Cluster:
    partitions = list(SHOP_OBSERVED.topics[topic].partitions)
    partitions[number] = change(partitions[number])
    edited = replace(SHOP_OBSERVED.topics[topic], partitions=tuple(partitions))
    return replace(SHOP_OBSERVED, topics={**SHOP_OBSERVED.topics, topic: edited})


EDITED: list[tuple[str, Cluster]] = [
    ("what moves is larger", _observed_with("orders", 5, lambda partition: replace(partition, sizes=(21, 21, 21)))),
    ("what moves is of unknown size", _observed_with("orders", 5, lambda partition: replace(partition, sizes=()))),
    ("what moves is elsewhere", _observed_with("orders", 5, lambda p: replace(p, replicas=(5, 6, 8), isr=(5, 6, 8)))),
    ("what stays has another order", _observed_with("orders", 0, lambda p: replace(p, replicas=(2, 0, 1)))),
    ("what stays would be cheap to move", _observed_with("orders", 2, lambda p: replace(p, sizes=(1, 1, 1)))),
    ("nobody's replicas are elsewhere", _observed_with("frozen", 0, lambda p: replace(p, replicas=(4, 5, 6)))),
    ("a broker is dead", replace(SHOP_OBSERVED, brokers={**SHOP_OBSERVED.brokers, 4: Broker(4, "b", is_fenced=True)})),
    ("a broker is in another rack", replace(SHOP_OBSERVED, brokers={**SHOP_OBSERVED.brokers, 4: Broker(4, "a")})),
    ("a broker is gone", replace(SHOP_OBSERVED, brokers={b: x for b, x in SHOP_OBSERVED.brokers.items() if b != 8})),
    ("a broker has come", replace(SHOP_OBSERVED, brokers={**SHOP_OBSERVED.brokers, 9: Broker(9, "a")})),
    (
        "a topic is gone",
        replace(SHOP_OBSERVED, topics={n: t for n, t in SHOP_OBSERVED.topics.items() if n != "clicks"}),
    ),
]


@pytest.mark.parametrize("observed", [case[1] for case in EDITED], ids=[case[0] for case in EDITED])
def test_a_plan_is_not_proved_for_another_observed_state(observed: Cluster) -> None:
    assert not prove_end(SHOP_PLAN, SHOP, observed).is_proved


def test_a_move_where_there_is_no_topic_at_all_is_refused() -> None:
    plan = replace(SHOP_PLAN, topic_changes=())
    verdict = prove_end(plan, replace(SHOP, topics={}), replace(SHOP_OBSERVED, topics={}))
    assert verdict.wrong is not None
    assert verdict.wrong.endswith("is moved, but it does not exist")


def test_a_proof_says_which_bytes_of_tiered_topics_it_counts() -> None:
    def topics(untiered: int | None) -> dict[str, Topic]:
        one = Partition(0, 1, (1, 2), (1, 2), sizes=(900, 900), untiered_bytes=untiered)
        return {"orders": Topic("orders", (one,), configs={"remote.storage.enable": "true"})}

    desired = Desired(DesiredCluster("shop"), {"orders": DesiredTopic("orders", replication_factor=3)})
    brokers = {b: Broker(b) for b in (1, 2, 3)}
    for untiered, counted, copied in ((None, TieredBytes.LOCAL, 900), (40, TieredBytes.UNTIERED, 40)):
        observed = Cluster("c", brokers, topics(untiered))
        plan = provable_plan(desired, observed)
        assert (plan.proof.tiered, plan.proof.value) == (counted, copied)
        assert prove_end(plan, desired, observed).is_proved
        for other in {None, *TieredBytes} - {counted}:
            told = prove_end(replace(plan, proof=replace(plan.proof, tiered=other)), desired, observed)
            assert "bytes of tiered topics" in (told.wrong or "")
