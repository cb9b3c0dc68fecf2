"""An explanation says what is true: checked by hand on small clusters, and by planning with the other choice forced."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from random import Random

import pytest
from helpers.clusters.small_cluster import small_cluster, with_cordons
from helpers.depth import parts

from reconciler.files.plan_file import plan_from_json
from reconciler.model.cluster import Broker, Cluster
from reconciler.model.codec import to_json
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
)
from reconciler.model.explanation import Alternative, Barred, Cause, Counts, Judgement
from reconciler.model.grounds import OtherMove
from reconciler.model.move import Move, Reason
from reconciler.model.plan import Plan, Restore, Rollback, Source
from reconciler.model.problem import InvalidInput, Location
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.explain import explain, steps_of
from reconciler.workflow.plan import plan_of

SEEDS = 40
STRICT = Placement(racks_spread=Spread.STRICT)
EVEN = Balance(
    replicas=Even(), leaders=Even(), at={"replicas": Location("c.yaml", 3), "leaders": Location("c.yaml", 4)}
)
DRAINING = {1: DesiredBroker(1, BrokerState.DRAINING, at=Location("c.yaml", 9))}


def _plan(
    observed: Cluster,
    *topics: DesiredTopic,
    brokers: Mapping[int, DesiredBroker] | None = None,
    balance: Balance | None = None,
) -> Plan:
    cluster = DesiredCluster("c", brokers=brokers or {}, balance=balance or Balance())
    return plan_of(Desired(cluster, {topic.name: topic for topic in topics}), observed)


def _key(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def test_a_share_is_that_of_the_measure_it_is_told_of() -> None:
    observed = small_cluster(*(f"t-{number}: 1,2 size 100" for number in range(12)), brokers=(1, 2, 3))
    weights = {3: DesiredBroker(3, weights={"replicas": 2, "leaders": 4})}
    plan = _plan(observed, DesiredTopic("t"), brokers=weights, balance=EVEN)
    shares = {one: (share.replicas, share.leaders) for one, share in plan.balance_after.items()}
    assert shares == {1: (6, 2), 2: (6, 2), 3: (12, 8)}
    led = next(key for key in (_key(f"t-{number}") for number in range(12)) if explain(plan, key).leader)
    found = explain(plan, led)
    assert {one.counts.share for one in found.added} == {12.0}
    assert found.leader is not None
    assert found.leader.new_counts.share == {1: 2.0, 2: 2.0, 3: 8.0}[found.after[0]]


def test_a_third_replica_goes_to_the_only_rack_that_is_free() -> None:
    # Racks: 1 and 4 are a, 2 and 5 are b, 3 and 6 are c. Broker 3 holds two replicas, broker 6 none.
    observed = small_cluster("clicks-0: 1,2 size 100", "other-0: 3 size 5", "other-1: 3 size 5")
    clicks = DesiredTopic("clicks", replication_factor=3, placement=STRICT, at={"replicationFactor": Location("t", 9)})
    found = explain(_plan(observed, clicks, DesiredTopic("other"), balance=EVEN), _key("clicks-0"))
    assert (found.before, found.after) == ((1, 2), (1, 2, 6))
    assert (found.reason, found.at) == (Reason.REPLICATION_FACTOR, Location("t", 9))
    (added,) = found.added
    assert (added.broker_id, added.rack, added.in_place_of) == (6, "c", None)
    assert added.full == (("a", (1,)), ("b", (2,)))
    assert [one.broker_id for one in added.alternatives] == [3]
    assert added.barred == ()
    (step,) = found.steps
    assert (step.source, step.added, step.removed, step.bytes) == (1, (6,), (), 100)
    assert found.is_least
    assert found.removed == ()
    assert found.leader is None


def test_a_new_broker_takes_the_smallest_and_the_next_one_is_named() -> None:
    # Four replicas on broker 1, one rack, broker 2 joins: two must move, the smallest two (10 and 20 bytes).
    observed = small_cluster(
        "t-0: 1 size 40", "t-1: 1 size 10", "t-2: 1 size 30", "t-3: 1 size 20", brokers=(1, 2), kafka_version="4.1"
    )
    plan = _plan(observed, DesiredTopic("t", placement=Placement(racks_spread=Spread.IGNORE)), balance=EVEN)
    moved = {move.topic_partition for stage in plan.stages for move in getattr(stage, "moves", ())}
    assert moved == {_key("t-1"), _key("t-3")}
    smaller, larger = explain(plan, _key("t-1")), explain(plan, _key("t-3"))
    assert smaller.reason is Reason.BALANCE
    assert smaller.at == Location("c.yaml", 3)
    for found in (smaller, larger):
        (added,) = found.added
        assert added.in_place_of == 1
        assert added.instead == OtherMove(1, 2, "t", 2, 30)
        assert added.counts == Counts(0, 2, 2.0)
        assert [(one.broker_id, one.cause) for one in found.removed] == [(1, Cause.BALANCE)]
        assert found.removed[0].counts == Counts(4, 2, 2.0)
    # The price of a place on broker 2 lies between 20 and 30: keeping t-1 costs 10 more than keeping t-3.
    kept = [found.added[0].alternatives[0] for found in (smaller, larger)]
    assert [one.broker_id for one in kept] == [1, 1]
    assert kept[0].extra - kept[1].extra == 10
    assert 10 <= kept[0].extra <= 20


def test_a_drained_broker_is_the_cause_and_its_rack_takes_over() -> None:
    observed = small_cluster("t-0: 1,2,3 size 100")
    found = explain(_plan(observed, DesiredTopic("t", placement=STRICT), brokers=DRAINING), _key("t-0"))
    assert (found.reason, found.at) == (Reason.DRAINING, Location("c.yaml", 9))
    assert [(one.broker_id, one.cause) for one in found.removed] == [(1, Cause.DRAINING)]
    (added,) = found.added
    assert (added.broker_id, added.in_place_of, added.alternatives, added.others) == (4, 1, (), 0)
    assert found.leader is not None
    assert (found.leader.old, found.leader.cause) == (1, Cause.GONE)
    assert found.leader.old_counts == Counts(1, 0, None)


def test_a_copy_comes_from_whoever_leads_by_then() -> None:
    observed = small_cluster("t-0: 1,2,3 leader 1 size 100")
    found = explain(_plan(observed, DesiredTopic("t", placement=STRICT), brokers=DRAINING), _key("t-0"))
    copying = [step for step in found.steps if step.added]
    assert [step.source for step in copying] == [2]
    assert [step.elected for step in found.steps if step.elected is not None] == [2]


def test_where_a_leader_gives_its_replica_up_the_first_of_the_new_ones_serves_the_next_copy() -> None:
    key = _key("t-0")
    stages = (
        ReassignStage(1, (Move(key, (1, 2), (3, 2), 5, Reason.DRAINING),)),
        ReassignStage(2, (Move(key, (3, 2), (3, 4), 5, Reason.DRAINING),)),
    )
    plan = Plan("c", "c", Source("d"), stages=stages, rollback=Rollback((Restore(key, (1, 2), 1),)))
    assert [step.source for step in steps_of(plan, key)] == [1, 3]


@pytest.mark.parametrize(
    ("placement", "brokers", "fenced", "why"),
    [
        (Placement(brokers_except=frozenset({4})), {}, (), "in brokers.except"),
        (Placement(brokers_only=frozenset({1, 2, 3, 5, 6})), {}, (), "not in brokers.only"),
        (Placement(racks_only=frozenset({"b", "c"})), {}, (), "not in racks.only"),
        (Placement(), {4: DesiredBroker(4, BrokerState.CORDONED)}, (), "cordoned"),
        (Placement(), {4: DesiredBroker(4, BrokerState.DRAINING)}, (), "draining"),
        (Placement(), {}, (4,), "not alive"),
        (Placement(), {}, (-4,), "cordoned by Kafka"),
        (Placement(), {4: DesiredBroker(4, BrokerState.MAINTENANCE)}, (-4,), "cordoned by Kafka"),
    ],
)
def test_a_broker_that_may_not_take_it_is_named_with_the_rule(
    placement: Placement, brokers: Mapping[int, DesiredBroker], fenced: tuple[int, ...], why: str
) -> None:
    observed = small_cluster("t-0: 2,3 size 100", fenced=[one for one in fenced if one > 0])
    observed = with_cordons(observed, [-one for one in fenced if one < 0])
    topic = DesiredTopic("t", replication_factor=3, placement=replace(placement, racks_spread=Spread.IGNORE))
    (added,) = explain(plan_from_json(to_json(_plan(observed, topic, brokers=brokers))), _key("t-0")).added
    assert Barred(4, why) in added.barred
    assert 4 not in [one.broker_id for one in added.alternatives]


def test_a_reorder_for_balance_names_both_leaders_and_what_they_lead() -> None:
    observed = small_cluster("t-0: 1,2 size 9", "t-1: 1,2 size 9", brokers=(1, 2))
    plan = _plan(observed, DesiredTopic("t"), balance=EVEN)
    (key,) = [move.topic_partition for stage in plan.stages for move in getattr(stage, "moves", ())]
    found = explain(plan, key)
    assert found.leader is not None
    assert (found.leader.old, found.leader.new, found.leader.cause) == (1, 2, Cause.BALANCE)
    assert (found.leader.old_counts, found.leader.new_counts) == (Counts(2, 1, 1.0), Counts(0, 1, 1.0))
    assert (found.bytes, found.added, found.removed) == (0, (), ())


def test_a_leader_in_maintenance_or_outside_the_leader_racks_is_the_cause() -> None:
    observed = small_cluster("t-0: 1,2 size 9")
    maintenance = {1: DesiredBroker(1, BrokerState.MAINTENANCE)}
    resting = explain(_plan(observed, DesiredTopic("t"), brokers=maintenance), _key("t-0"))
    topic = DesiredTopic("t", placement=Placement(racks_leader=frozenset({"b"})))
    outside = explain(_plan(observed, topic), _key("t-0"))
    assert [one.leader.cause if one.leader else None for one in (resting, outside)] == [
        Cause.MAINTENANCE,
        Cause.LEADER_RACKS,
    ]


def test_an_explicit_assignment_has_no_alternatives() -> None:
    observed = small_cluster("t-0: 1,2 size 9")
    found = explain(_plan(observed, DesiredTopic("t", placement=Placement(assignment=((3, 2),)))), _key("t-0"))
    assert found.reason is Reason.ASSIGNMENT
    assert [(one.broker_id, one.alternatives, one.others, one.barred, one.full) for one in found.added] == [
        (3, (), 0, (), ())
    ]
    assert [one.cause for one in found.removed] == [Cause.ASSIGNMENT]


def test_one_replica_less_needs_no_other_reason() -> None:
    observed = small_cluster("t-0: 1,2,3 size 9")
    found = explain(_plan(observed, DesiredTopic("t", replication_factor=2)), _key("t-0"))
    assert [one.cause for one in found.removed] == [Cause.FEWER_REPLICAS]
    assert (found.added, found.bytes) == ((), 0)


def test_a_replica_that_its_topic_does_not_allow() -> None:
    observed = small_cluster("t-0: 1,2 size 9")
    topic = DesiredTopic("t", placement=Placement(brokers_except=frozenset({1})))
    found = explain(_plan(observed, topic), _key("t-0"))
    assert (found.reason, [one.cause for one in found.removed]) == (Reason.ELIGIBILITY, [Cause.NOT_ALLOWED])


def test_dead_brokers_and_crowded_racks_are_told_as_such() -> None:
    topic = DesiredTopic("t", replication_factor=2)
    dead = explain(_plan(small_cluster("t-0: 1,2 isr 2 size 9", fenced=(1,)), topic), _key("t-0"))
    crowded = explain(_plan(small_cluster("t-0: 1,4,2 size 9"), DesiredTopic("t", placement=STRICT)), _key("t-0"))
    assert [one.cause for one in dead.removed] == [Cause.DEAD]
    assert [one.cause for one in crowded.removed] == [Cause.RACKS]


def test_a_new_partition_is_explained_like_a_move_that_copies_nothing() -> None:
    observed = small_cluster("t-0: 1,2,3 size 9")
    found = explain(_plan(observed, DesiredTopic("t", partitions=2, placement=STRICT)), _key("t-1"))
    assert (found.before, found.reason, found.bytes) == ((), Reason.NEW_PARTITION, 0)
    assert found.steps[0].is_created
    assert len(found.added) == 3


def test_a_topic_that_nobody_declared_leaves_a_draining_broker() -> None:
    observed = small_cluster("t-0: 1,2 size 9")
    found = explain(_plan(observed, brokers=DRAINING), _key("t-0"))
    assert [one.cause for one in found.removed] == [Cause.DRAINING]
    assert found.added[0].alternatives


def test_a_partition_that_stays_is_not_touched() -> None:
    observed = small_cluster("t-0: 1,2,3 size 9", "u-0: 2,3,4 size 9")
    plan = _plan(observed, DesiredTopic("t", placement=STRICT), brokers=DRAINING)
    found = explain(plan, _key("u-0"))
    assert (found.steps, found.added, found.removed, found.reason) == ((), (), (), None)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("orders-7", "orders-7 is not known to this plan: orders has partitions 0 to 0"),
        ("order-0", "topic order is not known to this plan: did you mean orders?"),
        ("zzz-0", "topic zzz is not known to this plan: its cluster has 2 topics, none like it"),
    ],
)
def test_an_unknown_partition_is_told_with_those_near_it(name: str, words: str) -> None:
    observed = small_cluster("orders-0: 1,2,3 size 9", "payments-0: 2,3,4 size 9")
    plan = _plan(observed, DesiredTopic("orders"), brokers=DRAINING)
    with pytest.raises(InvalidInput) as refused:
        explain(plan, _key(name))
    assert words in str(refused.value)


def test_a_plan_without_grounds_says_that_it_explains_nothing() -> None:
    empty = _plan(small_cluster("t-0: 1,2 size 9"))
    assert empty.is_empty
    with pytest.raises(InvalidInput, match="it changes nothing"):
        explain(empty, _key("t-0"))


def test_where_loads_are_balanced_no_price_is_read_as_bytes_and_the_disks_are_told() -> None:
    observed = small_cluster("clicks-0: 1,2 size 100", "other-0: 3 size 5", "other-1: 3 size 5")
    clicks = DesiredTopic("clicks", replication_factor=3, placement=STRICT)
    plan = _plan(observed, clicks, DesiredTopic("other"), balance=EVEN)
    loaded = {"load_prices": {"disk": {3: 7, 6: -7}}, "shift": 20}
    (added,) = explain(_with_bytes_level(plan, **loaded), _key("clicks-0")).added
    assert added.alternatives == (Alternative(3, Judgement.LOADS, Counts(2, 1, 0.8, 10, 5)),)
    assert added.counts == Counts(0, 1, 0.8, 0, 100)
    (of_gap,) = explain(_with_bytes_level(plan, lower_bound=0), _key("clicks-0")).added
    assert [one.verdict for one in of_gap.alternatives] == [Judgement.LOADS]


def _with_bytes_level(plan: Plan, **fields: object) -> Plan:
    levels = tuple(
        replace(level, **fields) if level.objective == "bytes" else level  # type: ignore[arg-type]
        for level in plan.proof.levels
    )
    return replace(plan, proof=replace(plan.proof, levels=levels))


def _random_case(seed: int) -> tuple[Desired, Cluster]:
    """Return a cluster of topics with one partition each, so that a choice can be forced by an assignment."""
    random = Random(seed)
    racks = random.choice(["aabb", "aabbcc", "aaabbb", "aaaa", "aabbc"])
    brokers = {number: Broker(number, rack) for number, rack in enumerate(racks, start=1)}
    spread = random.choice([Spread.STRICT, Spread.STRICT, Spread.IGNORE])
    factor = random.choice([1, 2, 2])
    lines = []
    for number in range(random.randint(4, 9)):
        ids = random.sample(sorted(brokers)[:-1], 2)
        if spread is Spread.STRICT and len(set(racks)) > 1:
            while brokers[ids[0]].rack == brokers[ids[1]].rack:
                ids = random.sample(sorted(brokers)[:-1], 2)
        held = ",".join(map(str, ids[:factor]))
        lines.append(f"t{number}-0: {held} size {random.choice([1, 2, 3, 5, 8, 13, 100])}")
    observed = replace(small_cluster(*lines), brokers=brokers)
    draining = {1: DesiredBroker(1, BrokerState.DRAINING)} if random.random() < 0.4 else {}
    wanted = factor + 1 if random.random() < 0.3 and factor == 1 else None
    confined = frozenset({1, 2, 3}) if spread is Spread.IGNORE and random.random() < 0.6 else None
    topics = {
        name: DesiredTopic(
            name,
            replication_factor=wanted,
            placement=Placement(racks_spread=spread, brokers_only=confined if random.random() < 0.6 else None),
        )
        for name in observed.topics
    }
    return Desired(DesiredCluster("c", brokers=draining, balance=Balance(replicas=Even())), topics), observed


@cache
def _judged(seeds: range) -> list[tuple[Desired, Cluster, Plan, TopicPartition, tuple[int, ...], int, Alternative]]:
    """Return every alternative of every moved partition of many random plans."""
    found = []
    for seed in seeds:
        desired, observed = _random_case(seed)
        try:
            plan = plan_of(desired, observed)
        except InvalidInput:
            continue
        moved = sorted({move.topic_partition for stage in plan.stages for move in getattr(stage, "moves", ())})
        for key in moved:
            explanation = explain(plan, key)
            for added in explanation.added:
                found += [
                    (desired, observed, plan, key, explanation.after, added.broker_id, one)
                    for one in added.alternatives
                ]
    return found


def _forced(desired: Desired, key: TopicPartition, replicas: tuple[int, ...]) -> Desired:
    topic = desired.topics[key.topic]
    placement = replace(topic.placement, assignment=(replicas,))
    changed = replace(topic, replication_factor=len(replicas), placement=placement)
    return replace(desired, topics={**desired.topics, key.topic: changed})


def _imbalance(plan: Plan, observed: Cluster, desired: Desired) -> Fraction:
    if plan.is_empty:
        held = [sum(b in one.replicas for _, one in observed.partitions()) for b in observed.brokers]
        return Fraction(sum(count**2 for count in held))
    return Fraction(
        sum(
            share.replicas**2
            for broker_id, share in plan.balance_after.items()
            if desired.cluster.broker(broker_id).state is BrokerState.ACTIVE
        )
    )


@pytest.mark.long
@parts("seeds", range(0, SEEDS, 12), deep=range(SEEDS))
def test_no_alternative_is_better_than_it_is_said_to_be(seeds: range) -> None:
    for desired, observed, plan, key, after, taker, other in _judged(seeds):
        swapped = tuple(other.broker_id if one == taker else one for one in after)
        forced_state = _forced(desired, key, swapped)
        forced = plan_of(forced_state, observed)
        before = (_imbalance(plan, observed, desired), plan.summary.bytes)
        then = (_imbalance(forced, observed, desired), forced.summary.bytes)
        told = (key, after, taker, other)
        match other.verdict:
            case Judgement.LESS_EVEN:
                assert then[0] > before[0], told
            case Judgement.COSTS_MORE:
                assert then[0] > before[0] or then[1] >= before[1] + other.extra, told
                assert other.extra > 0
            case Judgement.AS_GOOD:
                assert then >= before, told
            case _:
                pytest.fail(f"a plan with all its prices leaves a verdict open: {told}")


@pytest.mark.long
def test_random_plans_hold_every_verdict() -> None:
    verdicts = [one[-1].verdict for one in _judged(range(SEEDS))]
    assert {verdict: verdicts.count(verdict) >= 8 for verdict in set(verdicts)} == {
        Judgement.LESS_EVEN: True,
        Judgement.COSTS_MORE: True,
        Judgement.AS_GOOD: True,
    }


def _candidates(plan: Plan, observed: Cluster, desired: Desired, giver: int, taker: int) -> Iterator[tuple[int, str]]:
    """Yield every partition that stays and could have made that swap, by looking at each replica list."""
    moved = {move.topic_partition for stage in plan.stages for move in getattr(stage, "moves", ())}
    for key, partition in observed.partitions():
        if key in moved or giver not in partition.replicas or taker in partition.replicas:
            continue
        only = desired.topics[key.topic].placement.brokers_only
        if only is not None and taker not in only:
            continue
        swapped = [taker if one == giver else one for one in partition.replicas]
        racks = [observed.brokers[one].rack for one in swapped]
        all_racks = {b.rack for b in observed.brokers.values() if desired.cluster.broker(b.id).state.value == "active"}
        is_strict = desired.topics[key.topic].placement.racks_spread is Spread.STRICT
        most, least = -(-len(racks) // len(all_racks)), len(racks) // len(all_racks)
        if not is_strict or all(least <= racks.count(rack) <= most for rack in all_racks):
            yield partition.sizes[0] or 0, str(key)


@pytest.mark.long
def test_what_could_have_moved_instead_is_the_smallest_that_could() -> None:
    seen = 0
    for seed in range(SEEDS):
        desired, observed = _random_case(seed)
        plan = plan_of(desired, observed)
        for swap, other in plan.grounds.instead.items():
            best = min(_candidates(plan, observed, desired, *swap))
            assert other.bytes == best[0], (seed, swap)
            assert (other.bytes, str(other.topic_partition)) in set(_candidates(plan, observed, desired, *swap))
            seen += 1
    assert seen >= 15


def test_a_frozen_topic_is_not_offered_instead() -> None:
    observed = small_cluster("f-0: 1 size 1", "t-0: 1 size 40", "t-1: 1 size 50", brokers=(1, 2))
    frozen = DesiredTopic("f", protect=frozenset({Protection.MOVE}))
    plan = _plan(observed, DesiredTopic("t"), frozen, balance=EVEN)
    assert [str(other.topic_partition) for other in plan.grounds.instead.values()] == ["t-1"]
