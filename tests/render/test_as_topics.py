"""Growth of topics in words: what is not known is never zero, and what is little is not nothing."""

import pytest

from reconciler.model.cluster import Partition, Topic
from reconciler.model.topic_report import Growth, ListedTopic, ListOfCluster, TopicFacts
from reconciler.render.as_topics import kafka_lines, listed

BARE = Topic("t", (Partition(0, None, (1, 2), ()),))


def facts(growth: Growth | None = None, topic: Topic = BARE) -> TopicFacts:
    return TopicFacts(topic, topic.configs, None, None, None, growth)


@pytest.mark.parametrize(
    ("growth", "words"),
    [
        ((None, None, None), ["-", "-"]),
        ((None, None, False), ["-", "-"]),
        ((0, 0, True), ["0", "B", "idle"]),
        ((-2048, 0, False), ["-2.0", "KiB", "under", "1"]),
        ((1, 12345, False), ["+1", "B", "12,345"]),
    ],
)
def test_growth_is_told_in_two_columns(growth: tuple[int | None, int | None, bool | None], words: list[str]) -> None:
    topic = ListedTopic(facts(Growth("2026-11-19T00:00:00Z", *growth)))
    row = listed(ListOfCluster(None, "c", None, (topic,), ())).splitlines()[1]
    assert row.split()[8:] == words


def test_without_an_earlier_snapshot_there_are_no_such_columns() -> None:
    head, row = listed(ListOfCluster(None, "c", None, (ListedTopic(facts()),), ())).splitlines()
    assert (head.split()[-1], row.split()) == ("readers", ["t", "-", "-", "1", "2", "-", "-", "-"])


def test_eligible_leaders_that_nobody_asked_for_are_not_told_as_none() -> None:
    _, line = kafka_lines(facts())
    assert line.endswith("\tLeader: none\tReplicas: 1,2\tIsr: \tElr: N/A\tLastKnownElr: N/A")
