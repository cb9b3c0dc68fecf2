from dataclasses import replace

import pytest

from reconciler.diff.rules import topic_rules
from reconciler.model.change import AlterConfigs
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, DesiredCluster, DesiredTopic, Placement, Spread
from reconciler.model.move import Election, Move, Reason
from reconciler.model.plan import Plan, Source
from reconciler.model.stage import ElectStage, ReassignStage, TopicsStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.checked import UnsafePlan, refuse_unsafe
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
