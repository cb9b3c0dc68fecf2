from dataclasses import replace

import pytest
from helpers.plans.sample_plan import sample_plan

from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.effect import Effect, EffectClass
from reconciler.model.move import Election, Move, Reason
from reconciler.model.plan import Plan
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.render.labels import LABELS, labels

KEY = TopicPartition("orders", 0)


def _plan(stages: tuple[Stage, ...], changes: tuple[TopicChange, ...] = ()) -> Plan:
    topics = (TopicsStage(1, tuple(range(len(changes)))),) if changes else ()
    return replace(sample_plan(), stages=(*topics, *stages), topic_changes=changes)


def _moved(start: tuple[int, ...], end: tuple[int, ...], size: int = 0) -> ReassignStage:
    return ReassignStage(2, (Move(KEY, start, end, size, Reason.BALANCE),))


ELECTED = ElectStage(3, (Election(KEY, 1),))
LOST = Effect(EffectClass.DESTROYS, "deletes what is older than 1 h", "retention.ms")
FOR_GOOD = Effect(EffectClass.IRREVERSIBLE, "it cannot be turned off", "remote.storage.enable")
CLIENTS = Effect(EffectClass.CLIENTS, "producers are refused", "max.message.bytes")
SET = AlterConfigs("orders", {"max.message.bytes": "1"}, (), {"max.message.bytes": None})


@pytest.mark.parametrize(
    ("stages", "changes", "expected"),
    [
        ((), (), "no changes"),
        ((ELECTED,), (), "leaders only"),
        ((_moved((1, 2), (2, 1)), ELECTED), (), "leaders only"),
        ((_moved((1, 2), (1,)),), (), "metadata only"),
        ((), (SET,), "metadata only"),
        ((ELECTED,), (SET,), "metadata only"),
        ((_moved((1, 2), (1, 3), 5),), (), "moves data"),
        ((_moved((1, 2), (1, 3)),), (SET,), "moves data"),
        ((), (CreateTopic("new", 1, 1),), "metadata only"),
        ((), (CreatePartitions("orders", 1, 2),), "metadata only, irreversible"),
        ((_moved((1, 2), (1, 3), 5),), (DeleteTopic("old"),), "moves data, destroys, irreversible"),
        ((), (DeleteTopic("old"),), "destroys, irreversible"),
        ((), (replace(SET, effects=(LOST, CLIENTS)),), "destroys, irreversible"),
        ((), (replace(SET, effects=(FOR_GOOD,)),), "metadata only, irreversible"),
        ((), (replace(SET, effects=(CLIENTS,)),), "metadata only"),
    ],
)
def test_a_plan_is_labelled_with_what_it_does_at_most(
    stages: tuple[Stage, ...], changes: tuple[TopicChange, ...], expected: str
) -> None:
    found = labels(_plan(stages, changes))
    assert ", ".join(found) == expected
    assert set(found) <= set(LABELS)
