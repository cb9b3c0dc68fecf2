import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.rules import TopicRules, topic_rules
from reconciler.model.change import AlterConfigs
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, DesiredCluster, DesiredTopic, Placement, Spread
from reconciler.model.move import Election, Move, Reason
from reconciler.model.plan import Plan, Source
from reconciler.model.stage import ElectStage, ReassignStage, TopicsStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.checked import UnsafePlan, events_of, refuse_unsafe
from reconciler.workflow.demo import demo_cluster

KEY = TopicPartition("clicks", 0)


def _check(*stages: ReassignStage | ElectStage, configs: dict[str, str] | None = None) -> None:
    observed = demo_cluster()
    topic = observed.topics["clicks"]
    topic = replace(topic, configs={**topic.configs, **(configs or {})})
    observed = replace(observed, topics={**observed.topics, "clicks": topic})
    declared = DesiredTopic("clicks", placement=Placement(racks_spread=Spread.STRICT))
    desired = Desired(DesiredCluster("demo"), {"clicks": declared})
    plan = Plan("demo", observed.cluster_id, Source("sha256:0"), stages=stages)
    refuse_unsafe(plan, observed, topic_rules(desired, observed))


def _move(observed: Cluster, *to: int) -> ReassignStage:
    partition = observed.partition(KEY)
    assert partition is not None
    return ReassignStage(1, (Move(KEY, partition.replicas, to, 5, Reason.BALANCE),))


def test_a_plan_that_keeps_the_rules_passes() -> None:
    observed = demo_cluster()
    partition = observed.partition(KEY)
    assert partition is not None
    free = next(
        broker.id
        for broker in observed.brokers.values()
        if broker.rack not in {observed.brokers[each].rack for each in partition.replicas}
    )
    _check(_move(observed, *partition.replicas, free))


def test_a_stage_that_breaks_a_strict_rack_rule_is_refused() -> None:
    observed = demo_cluster()
    rack = observed.brokers[1].rack
    same = [broker.id for broker in observed.brokers.values() if broker.rack == rack]
    with pytest.raises(UnsafePlan, match="rack rule"):
        _check(_move(observed, *same[:2]))


def test_a_stage_onto_an_unknown_broker_is_refused() -> None:
    with pytest.raises(UnsafePlan, match="stage 1"):
        _check(_move(demo_cluster(), 1, 99))


def test_an_election_of_a_topic_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnsafePlan):
        _check(ElectStage(1, (Election(TopicPartition("nosuch", 0), 1),)))


def test_configs_that_another_kafka_takes_are_for_that_one_to_judge() -> None:
    observed = demo_cluster()
    topics = {**observed.topics, "clicks": replace(observed.topics["clicks"], configs={"vendor.tier": "soon"})}
    observed = replace(observed, topics=topics)
    changes = (
        AlterConfigs("clicks", {"message.format.version": "3.0", "segment.bytes": "20000", "retention.ms": "5"}),
    )
    plan = Plan("demo", observed.cluster_id, Source("sha256:0"), topic_changes=changes, stages=(TopicsStage(1, (0,)),))
    desired = Desired(DesiredCluster("demo"), {"clicks": DesiredTopic("clicks")})
    refuse_unsafe(plan, observed, topic_rules(desired, observed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60))
def test_of_partitions_that_are_alike_one_speaks_for_all(seed: int) -> None:
    """A plan is refused exactly where one of its partitions, planned by itself, is."""
    chance = random.Random(seed)
    observed = small_cluster(
        *(f"{name}-{number}: {_list(chance)}" for name in ("loose", "strict") for number in range(8)),
        fenced=[6] if seed % 3 == 0 else (),
        configs={"strict": {"min.insync.replicas": "2"}},
    )
    declared = {
        "loose": DesiredTopic("loose", placement=Placement(racks_spread=Spread.PREFER)),
        "strict": DesiredTopic("strict", placement=Placement(racks_spread=Spread.STRICT)),
    }
    rules = topic_rules(Desired(DesiredCluster("small"), declared), observed)
    stages, at = [], dict(observed.partitions())
    for number in (1, 2):
        keys = chance.sample(sorted(at), 10)
        targets = {key: _ids(chance) for key in keys}
        moves = tuple(Move(key, at[key].replicas, targets[key], 5, Reason.BALANCE) for key in keys)
        led = tuple(Election(key, targets[key][0]) for key in keys if targets[key][0] != at[key].replicas[0])
        at |= {key: at[key].on_replicas(targets[key]) for key in keys}
        stages.append(ReassignStage(number, moves, elections=led[:3]))
    plan = Plan("small", observed.cluster_id, Source("sha256:0"), stages=tuple(stages))
    alone = [_is_refused(_of(plan, key), observed, rules) for key in at]
    assert _is_refused(plan, observed, rules) == any(alone)


def _ids(chance: random.Random) -> tuple[int, ...]:
    """Return a broker of each rack, and now and then any brokers."""
    if chance.random() < 0.03:
        return tuple(chance.sample(range(1, 7), chance.choice((2, 3, 4))))
    return tuple(chance.sample([chance.choice(pair) for pair in ((1, 4), (2, 5), (3, 3))], 3))


def _list(chance: random.Random) -> str:
    return ",".join(map(str, _ids(chance)))


def _of(plan: Plan, key: TopicPartition) -> Plan:
    stages = []
    for stage in plan.stages:
        assert isinstance(stage, ReassignStage)
        moves = tuple(move for move in stage.moves if move.topic_partition == key)
        elections = tuple(each for each in stage.elections if each.topic_partition == key)
        stages.append(replace(stage, moves=moves, elections=elections))
    return replace(plan, stages=tuple(stages))


def _is_refused(plan: Plan, observed: Cluster, rules: Mapping[str, TopicRules]) -> bool:
    try:
        refuse_unsafe(plan, observed, rules)
    except UnsafePlan:
        return True
    return False


@pytest.mark.parametrize("seed", range(60))
def test_two_partitions_have_the_same_events_only_where_the_same_happens_to_both(seed: int) -> None:
    draw = random.Random(seed)
    happens = dict[TopicPartition, list[tuple[object, ...]]]()
    last = dict[TopicPartition, int]()
    stages = list[ReassignStage | ElectStage]()

    def told(key: TopicPartition, number: int, *what: object) -> None:
        is_next = key in last and last[key] != number
        happens.setdefault(key, []).append((is_next, *what))
        last[key] = number

    for number in range(1, draw.randint(2, 5)):
        keys = [TopicPartition(draw.choice("ab"), each) for each in draw.sample(range(8), 5)]
        moves = [Move(key, (1, 2), draw.choice(((2, 1), (1, 3), (3,))), 0, Reason.BALANCE) for key in keys[:3]]
        elections = tuple(Election(key, draw.choice((1, 2))) for key in keys[2:])
        is_moving = draw.random() < 0.7
        for move in moves if is_moving else ():
            told(move.topic_partition, number, move.from_replicas, move.to_replicas)
        for election in elections:
            told(election.topic_partition, number, election.leader)
        stage = ReassignStage(number, tuple(moves), elections=elections) if is_moving else ElectStage(number, elections)
        stages.append(stage)
    found = events_of(Plan("demo", "id", Source("sha256:0"), stages=tuple(stages)))
    rows = zip(found.topic.tolist(), found.number.tolist(), map(tuple, found.told.tolist()), strict=True)
    by_key = {TopicPartition(found.topics[topic], number): told for topic, number, told in rows}
    assert by_key.keys() == happens.keys()
    for (one, events), (other, others) in product(by_key.items(), repeat=2):
        assert (events == others) == (happens[one] == happens[other]), (one, other)
