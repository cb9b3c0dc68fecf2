"""The program, whose Spark never comes to an end with the loads: `python -m balance.endless_job ARGUMENTS`.

All else is its own: how it starts Spark, where it writes, what it does at a signal.
"""

from types import SimpleNamespace
from typing import TYPE_CHECKING

from reconciler.balance import loads_job
from reconciler.cli.main import run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _endless(spark: "SparkSession") -> "DataFrame":
    return spark.range(10**18).where("hash(id) = id AND id > 10")


def _no_partitions(spark: "SparkSession", *_: object) -> "tuple[SparkSession, tuple[DataFrame, ...]]":
    return spark, (_endless(spark).persist(),)


def _never_measured(spark: "SparkSession", *_: object) -> SimpleNamespace:
    return SimpleNamespace(loads=_endless(spark), found=_endless(spark), clusters=_endless(spark))


def main() -> None:
    """Be the program."""
    from reconciler.balance import load

    loads_job._partitions = _no_partitions  # type: ignore[assignment]
    load.measured = _never_measured  # type: ignore[assignment]
    run()


if __name__ == "__main__":
    main()
