"""Which partitions of copies stand still, of which nobody can tell; what is told of copies that lack, or are small."""

import time

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.diff.doctor.copies import Pair, Parts, Times, behind, findings, longer, made_again, not_told, parts_of
from reconciler.model.topic_partition import TopicPartition

COPY, TOPIC = TopicPartition("us.orders", 0), TopicPartition("orders", 0)
PARTS = [Parts(COPY, TOPIC)]
MINUTE = 60_000
NOW = 1_000 * MINUTE

CASES: dict[str, tuple[int | None, int | None, int, bool]] = {
    # newest there, newest here (minutes before now), end offset here, and whether it is behind
    "all is copied": (1, 1, 7, False),
    "the source has no records": (None, None, 0, False),
    "a record is on its way": (0, 1, 7, False),
    "a source that was idle just got a record": (0, 4, 7, False),
    "minutes behind a source that goes on": (0, 6, 7, True),
    "the last record of an idle source is not copied": (6, 7, 7, True),
    "the last record of a source that is idle since a moment ago": (4, 5, 7, False),
    "a copy that got later records from elsewhere": (1, 0, 7, False),
    "no record ever came": (0, None, 0, True),
    "all records of the copy are gone": (0, None, 7, False),
}


@pytest.mark.parametrize("case", CASES)
def test_a_copy_is_behind_where_its_newest_record_is_minutes_older(case: str) -> None:
    there, here, end, is_behind = CASES[case]
    times = [None if minutes is None else NOW - minutes * MINUTE for minutes in (there, here)]
    found = behind(PARTS, {TOPIC: times[0]}, {COPY: times[1]}, {COPY: end}, NOW)
    assert bool(found) is is_behind
    is_unknown = times[0] is not None and times[1] is None and end > 0
    assert not_told(PARTS, {TOPIC: times[0]}, {COPY: times[1]}, {COPY: end}) == is_unknown


def test_times_are_told_in_utc_and_one_that_is_no_date_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    still = behind(PARTS, {TOPIC: 1_795_722_548_000_000_000}, {COPY: NOW}, {COPY: 7}, NOW)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        (told,) = findings("us", [], small_cluster(), small_cluster(), still=still)
    time.tzset()
    assert told.next
    assert "us.orders-0 (newest record 1970-01-01T16:40:00Z, that of orders-0 1795722548000000000 ms)" in told.message


@pytest.mark.parametrize("untold", ["there", "here", "end"])
def test_of_what_nobody_tells_nothing_is_found(untold: str) -> None:
    there: Times = {} if untold == "there" else {TOPIC: NOW}
    here: Times = {} if untold == "here" else {COPY: 0}
    ends: Times = {} if untold == "end" else {COPY: 7}
    assert behind(PARTS, there, here, ends, NOW) == []
    assert not_told(PARTS, there, here, ends) == 1


@pytest.mark.parametrize(
    ("copied", "end", "is_again"),
    [(4711, 120, True), (120, 120, True), (0, 0, True), (119, 120, False), (None, 120, False), (4711, None, False)],
)
def test_a_topic_that_ends_before_what_was_copied_was_made_again(
    copied: int | None, end: int | None, *, is_again: bool
) -> None:
    known = {} if copied is None else {TOPIC: copied}
    found = made_again(PARTS, known, {TOPIC: end})
    assert [(each.end, each.copied) for each in found] == ([(end, copied)] if is_again else [])
    told = [each.code for each in findings("us", [], small_cluster(), small_cluster(), again=found)]
    assert told == ["KR693"] * is_again


@pytest.mark.parametrize(("there", "here", "is_longer"), [(5, 6, True), (5, 5, False), (6, 5, False), (0, 1, True)])
def test_only_where_a_copy_is_longer_a_topic_made_again_is_looked_for(
    there: int, here: int, *, is_longer: bool
) -> None:
    assert list(longer(PARTS, {TOPIC: there}, {COPY: here})) == PARTS * is_longer
    assert longer(PARTS, {TOPIC: there}, {}) == []


def test_copies_that_lack_and_those_that_are_small_are_told_and_hidden_ones_are_not() -> None:
    there = small_cluster("orders-0: 1,2", "orders-1: 1,2", "clicks-0: 1,2", "pages-0: 1,2")
    here = small_cluster("us.orders-0: 1,2", "us.clicks-0: 1,2", "us.clicks-1: 1,2")
    pairs = [Pair(f"us.{name}", name) for name in ("clicks", "hidden", "orders", "pages")]
    found = list(findings("us", pairs, there, here, hidden={"us.hidden"}))
    assert [(each.code, each.topics) for each in found] == [("KR690", ("us.pages",)), ("KR691", ("us.orders",))]
    assert "us.orders has 1, orders 2" in found[1].message
    assert parts_of(pairs, there, here) == [
        Parts(TopicPartition("us.clicks", 0), TopicPartition("clicks", 0)),
        Parts(TopicPartition("us.orders", 0), TopicPartition("orders", 0)),
    ]
