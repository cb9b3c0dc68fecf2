"""Hours of the week: the busiest brokers and the room that is left for moves, against plain Python."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING

import pytest

from reconciler.balance.spark.buckets import hours_of_week

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FIRST = int(datetime(2026, 11, 18, 21, 30, tzinfo=UTC).timestamp())  # a Wednesday
BROKERS, CLUSTERS = (1, 2, 7), ("a", "b")
KNOWN = "key long, side string, cluster string, level string, broker int"
BY_BUCKET = "key long, cluster string, bucket long, bytes_in long, bytes_out long, seen_in long, seen_out long"
Row = tuple[int, str, int, int | None, int | None, int, int]


def _drawn() -> list[Row]:
    """Return ten days of buckets of ten minutes, in thousandths of a byte a second, some of them not seen."""
    random = Random(3)
    rows = []
    for number, cluster in enumerate(CLUSTERS):
        for broker in BROKERS:
            for step in range(0, 10 * 144, random.choice((5, 7))):
                bucket = (FIRST + 600 * step) * 1_000_000
                values = [random.choice((None, random.randrange(10**6))) for _ in range(2)]
                seen = [int(value is not None) for value in values]
                rows.append((100 * number + broker, cluster, bucket, values[0], values[1], seen[0], seen[1]))
    return rows


def _told(rows: Iterable[Row], most: int | None) -> dict[tuple[str, int], tuple[object, object, int | None]]:
    """Return for each cluster and hour of the week the busiest brokers, in and out, and the room at 80 %."""
    at: dict[tuple[str, int], dict[int, list[list[int]]]] = defaultdict(lambda: defaultdict(lambda: [[], []]))
    peak: dict[tuple[str, int], list[list[int]]] = defaultdict(lambda: [[], []])
    for key, cluster, bucket, *values, _, _ in rows:
        moment = datetime.fromtimestamp(bucket // 1_000_000, UTC)
        hour = 24 * moment.weekday() + moment.hour
        for way, value in enumerate(values):
            if value is not None:
                at[cluster, hour][key % 100][way].append(value)
                peak[cluster, key % 100][way].append(value)
            at[cluster, hour][key % 100]
    told: dict[tuple[str, int], tuple[object, object, int | None]] = {}
    for (cluster, hour), brokers in at.items():
        busiest = [
            max(((max(seen[way]), -broker) for broker, seen in brokers.items() if seen[way]), default=None)
            for way in (0, 1)
        ]
        rooms = []
        for broker, seen in brokers.items():
            for way in (0, 1):
                limit = most * 1000 if most is not None else max(peak[cluster, broker][way])
                if seen[way]:
                    rooms.append((limit * 8 // 10 - max(seen[way])) // 1000)
        told[cluster, hour] = (busiest[0], busiest[1], max(0, min(rooms)) if rooms else None)
    return told


@pytest.mark.parametrize("most", [None, 1100])
def test_each_hour_of_the_week_has_its_busiest_brokers_and_the_throttle_beside_which_all_stay_within_a_share(
    spark: "SparkSession", most: int | None
) -> None:
    rows = _drawn()
    known = [
        (100 * number + broker, "before", cluster, "broker", broker)
        for number, cluster in enumerate(CLUSTERS)
        for broker in BROKERS
    ]
    others = [(100, "before", "a", "cluster", -1), (101, "after", "a", "broker", 1)]
    found = hours_of_week(
        spark.createDataFrame(rows, BY_BUCKET), spark.createDataFrame([*known, *others], KNOWN), 0.8, most
    ).collect()
    wanted = _told(rows, most)
    assert len(found) == len(wanted) > 200
    for row in found:
        ways = [None if one is None else (one[0], one.turned) for one in (row.busiest_in, row.busiest_out)]
        assert (*ways, row.room) == wanted[row.cluster, row.hour], (row.cluster, row.hour)
    assert len({row.room for row in found}) > 20
