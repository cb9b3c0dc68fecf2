"""Partitions whose samples need no neighbours are summed without them, and those that do are found.

That both together are the oracle's loads is shown in `test_loads`.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from balance.broken_series import CLEAN, MINUTE, broken_series
from helpers.samples.sample_tables import write_by_age

from reconciler.balance.files.sample_files import find_sample_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = datetime(2026, 4, 1, tzinfo=UTC)


def _partitions(samples: "DataFrame") -> "tuple[list[Any], list[Any]]":
    """Return the rows of partitions, alone and beside their neighbours, by partition."""
    from reconciler.balance.spark.growth import with_growth
    from reconciler.balance.spark.load import alone, partitions_of
    from reconciler.balance.spark.normalise import cleaned, normalised

    by_itself = alone(cleaned(samples, now=NOW), MINUTE).orderBy("cluster", "partition").collect()
    in_order = with_growth(normalised(samples, bucket_seconds=MINUTE, now=NOW))
    return by_itself, partitions_of(in_order).orderBy("cluster", "partition").collect()


def test_a_partition_is_summed_alone_where_that_changes_nothing_and_nowhere_else(
    spark: "SparkSession", tmp_path: Path
) -> None:
    from reconciler.balance.spark.sources import read_samples

    files = find_sample_files([str(write_by_age(tmp_path / "in", broken_series()))]).files
    alone, beside = _partitions(read_samples(spark, files))
    sound = {row.partition for row in alone if row.is_sound}
    assert sound == set(range(CLEAN))
    same = {row.partition: row.asDict() for row in beside if row.partition in sound and row.cluster is not None}
    for row in alone:
        if row.is_sound:
            found = row.asDict()
            del found["is_sound"]
            # To the last digit: what is summed alone is summed in the same order.
            assert found == same[row.partition]
