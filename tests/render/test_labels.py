from dataclasses import replace

import pytest
from helpers.plans.sample_plan import sample_plan

from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
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
        ((_moved((1, 2), (1, 3), 5),), (DeleteTopic("old"),), "moves data, irreversible"),
    ],
)
def test_a_plan_is_labelled_with_what_it_does_at_most(
    stages: tuple[Stage, ...], changes: tuple[TopicChange, ...], expected: str
) -> None:
    found = labels(_plan(stages, changes))
    assert ", ".join(found) == expected
    assert set(found) <= set(LABELS)


@pytest.mark.parametrize(
    ("key", "before", "after", "is_lost"),
    [
        ("retention.ms", "1000", "999", True),
        ("retention.ms", "999", "1000", False),
        ("retention.ms", "-1", "1000", True),
        ("retention.ms", "1000", "-1", False),
        ("retention.ms", None, "604800000", False),
        ("retention.ms", None, "604799999", True),
        ("retention.ms", "604800001", None, True),
        ("retention.ms", "1000", None, False),
        ("retention.bytes", None, "1000", True),
        ("retention.bytes", "1000", None, False),
        ("retention.bytes", "soon", "1000", True),
        ("cleanup.policy", "compact", "compact,delete", True),
        ("cleanup.policy", "compact, delete", "delete", False),
        ("cleanup.policy", None, "delete", False),
        ("cleanup.policy", None, "compact", True),
        ("cleanup.policy", "compact", None, True),
        ("segment.ms", "1000", "1", False),
    ],
)
def test_a_config_that_lets_kafka_delete_more_is_irreversible(
    key: str, before: str | None, after: str | None, *, is_lost: bool
) -> None:
    change = AlterConfigs(
        "orders", {} if after is None else {key: after}, (key,) if after is None else (), {key: before}
    )
    assert ("irreversible" in labels(_plan((), (change,)))) == is_lost
